"""Rebuild a data set from its public origin: download, read, recode.

Everything here turns a source's own format into (X, y) with labels 0 ... C − 1. Whether the result is the data set is
not decided here but by `catalogue.verify`. The heavy packages, pooch and scikit-learn, are imported where they are used.
"""

import gzip
from pathlib import Path
from typing import Any

import numpy as np

from pepcore.datasets.catalogue import Info
from pepcore.gaussian import Array


def rebuild(info: Info, cache: Any) -> tuple[Array, Array]:
    """X (N, D) and y (N,) from the public origin of a data set, keeping what is downloaded in the folder `cache`.

    Raises OSError if a download fails, ValueError if the file cannot be read as described in the registry.
    """
    origin = info.origin
    if origin["kind"] == "bundled":
        return bundled(origin["loader"])
    if origin["kind"] == "openml":
        return _openml(origin["data_id"], cache)
    lines = []
    for url, path in zip(origin["urls"], original_files(info, cache)):
        lines += _read_lines(_download(url, path))[1 if origin.get("header") else 0 :]
    return parse(lines, origin, origin.get("text") or info.text)


def original_files(info: Info, cache: Path) -> list[Path]:
    """Where downloaded originals are kept; a file put there by hand, unchanged, is used in place of a download."""
    return [Path(cache) / "originals" / info.name / url.rsplit("/", 1)[1] for url in info.origin.get("urls", [])]


def bundled(loader: str) -> tuple[Array, Array]:
    """X and y that scikit-learn bundles, in raw units."""
    from sklearn import datasets

    options: dict[str, Any] = {"scaled": False} if loader == "load_diabetes" else {}
    source = getattr(datasets, loader)(**options)
    return source.data.astype(float), source.target.astype(float)


def parse(lines: list[str], origin: dict, text: dict) -> tuple[Array, Array]:
    """Lines of fields, separated by commas or white space -> X, y, following one [name.origin] table of the registry.

    `origin` has any of "target", "inputs", "labels", "missing", "sparse"; `text` maps positions among the inputs to
    categories.
    """
    rows = [_fields(line) for line in lines]
    if origin.get("sparse"):
        rows = [_dense(row) for row in rows]
    rows = [row for row in rows if origin.get("missing") not in row]
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise ValueError("the rows have different numbers of fields")
    target = origin.get("target", -1) % width
    inputs = origin.get("inputs", [j for j in range(width) if j != target])
    columns = [_codes([row[j] for row in rows], _lookup(text, i)) for i, j in enumerate(inputs)]
    alternatives = [label.split("|") for label in origin.get("labels", [])]
    return np.column_stack(columns), _codes([row[target] for row in rows], alternatives)


def _lookup(text: dict, column: int) -> list[list[str]]:
    """Categories of a column, as one-element lists of alternatives; [] for a column of numbers."""
    return [[word] for word in text.get(column, text.get(str(column), ()))]


def _codes(fields: list[str], alternatives: list[list[str]]) -> Array:
    """Numbers as they are; words, where there are any, as the position of their category."""
    if not alternatives:
        return np.array(fields, dtype=float)
    code = {word: position for position, words in enumerate(alternatives) for word in words}
    unknown = sorted(set(fields) - set(code))
    if unknown:
        raise ValueError(f"unknown categories {unknown[:5]}, expected {sorted(code)[:5]}...")
    return np.array([code[word] for word in fields], dtype=float)


def _fields(line: str) -> list[str]:
    fields = line.split(",") if "," in line else line.split()
    return [field.strip().strip("\"'").lstrip("+") for field in fields]


def _dense(row: list[str]) -> list[str]:
    """LIBSVM's 'label 1:value 2:value ...' -> [label, value, value, ...]; every index must be there."""
    pairs = [field.split(":") for field in row[1:]]
    if [int(index) for index, _ in pairs] != list(range(1, len(pairs) + 1)):
        raise ValueError("a row leaves out an index")
    return [row[0]] + [value for _, value in pairs]


def _read_lines(path: Path) -> list[str]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return [line for line in lines if line and line[0] not in "#%@"]


def _download(url: str, path: Path) -> Path:
    """Fetch `url` to `path`, unless it is there."""
    if path.exists():
        return path
    import pooch

    retrieved = pooch.retrieve(
        url, known_hash=None, fname=path.name, path=path.parent, downloader=pooch.HTTPDownloader(timeout=30)
    )  # no hash of the original is known: the values are verified after reading
    return Path(retrieved)


def _openml(data_id: int, cache: Path) -> tuple[Array, Array]:
    """A set of numbers with numeric labels from openml.org."""
    from sklearn.datasets import fetch_openml

    source = fetch_openml(data_id=data_id, data_home=str(cache), as_frame=False, parser="liac-arff")
    return np.asarray(source.data, dtype=np.float32), np.asarray(source.target, dtype=float)
