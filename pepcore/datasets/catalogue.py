"""What the package knows about each data set, and the check that a table is the set it claims to be.

The facts are in `registry.toml`, beside this file. `verify` compares size, class counts and a checksum of the values,
so that a result computed from a data set was computed from the same numbers everywhere.
"""

import difflib
import hashlib
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import numpy as np

from pepcore.gaussian import Array

REGISTRY = resources.files("pepcore.datasets").joinpath("registry.toml")


class DataError(ValueError):
    """The values are not those of the named data set."""


@dataclass(frozen=True, eq=False)
class Info:
    """The facts about one data set; see the head of `registry.toml` for their meaning."""

    name: str
    folder: str
    task: str  #: "regression", "binary" or "multiclass"
    N: int
    D: int
    citation: str
    licence: str
    content: str  #: checksum of the values, see `content_checksum`
    origin: dict  #: how to rebuild the set from a public address
    sha256: str = ""  #: of our file; empty for what scikit-learn bundles
    notes: str = ""
    #: rows per class, in the order −1, +1 (binary) or 0 ... C − 1 (multi-class); empty for regression
    classes: tuple = ()
    columns: tuple = ()  #: names of the inputs, empty where they have none
    #: position of an input that is a word -> its categories in the order of their codes 0, 1, ...
    text: dict = field(default_factory=dict)
    train_rows: int | None = None  #: number of first rows forming the source's own training part
    train_fraction: float = 0.9  #: for the random splits

    @property
    def filename(self) -> str:
        return f"{self.name}.npz" if self.origin["kind"] == "openml" else f"{self.name}.csv.gz"


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Inputs and targets, and where they are from."""

    name: str
    X: Array  #: (N, D) inputs, in the units of the source
    y: Array  #: (N,) targets; labels −1, +1 (binary) or 0 ... C − 1 (multi-class) as floats
    task: str  #: "regression", "binary" or "multiclass"
    info: Info | None = None  #: None for generated data
    #: what a generator knows and real data hide, such as the noise-free function at X under "f"; else empty
    truth: dict = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.task}, X {self.X.shape}, y {self.y.shape})"


def _info(name: str, entry: dict) -> Info:
    text = {int(column): tuple(words) for column, words in entry.pop("text", {}).items()}
    lists: dict[str, Any] = {key: tuple(entry.pop(key, ())) for key in ("classes", "columns")}
    return Info(name, **entry, **lists, text=text)


registry = {name: _info(name, entry) for name, entry in tomllib.loads(REGISTRY.read_text(encoding="utf-8")).items()}


def find(name: str) -> Info:
    """The Info of a data set; for an unknown name, a ValueError that suggests the nearest known ones."""
    if isinstance(name, str) and name in registry:
        return registry[name]
    close = difflib.get_close_matches(str(name), registry, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"known are {', '.join(registry)}."
    raise ValueError(f"there is no data set {name!r}; {hint}")


def content_checksum(X: Array, y: Array) -> str:
    """sha256 of the values: X (N, D), then y (N,), as little-endian float32 in row order.

    Independent of the file format, and of how many digits beyond the seventh a source prints. The order of the rows
    matters: the splits are index sets, and with other row numbers they would be other splits.
    """
    checksum = hashlib.sha256()
    for values in (X, y):
        checksum.update((np.asarray(values, dtype="<f4") + np.float32(0)).tobytes())  # + 0 turns −0 into 0
    return checksum.hexdigest()


def verify(info: Info, X: Array, y: Array, where: Any) -> None:
    """Raise DataError, naming `where` the values came from, unless X (N, D) and y (N,) are those of the data set."""
    if X.shape != (info.N, info.D):
        raise DataError(f"{where} holds {X.shape[0]} rows of {X.shape[1]} inputs, but {info.name!r} has {info.N} of "
                        f"{info.D}; {_mend(info, where)}")
    if info.classes:
        labels = (-1, 1) if info.task == "binary" else range(len(info.classes))
        counts = tuple(int((y == label).sum()) for label in labels)
        if counts != info.classes:
            raise DataError(f"{where} has class counts {counts}, expected {info.classes}; {_mend(info, where)}")
    if content_checksum(X, y) != info.content:
        raise DataError(f"{where} has the size of {info.name!r} but other values, or its rows in another order "
                        f"(content checksum {content_checksum(X, y)[:12]}..., expected {info.content[:12]}...); "
                        f"{_mend(info, where)}")


def _mend(info: Info, where: Any) -> str:
    return f"remove it and load {info.name!r} again, or replace it by the original."
