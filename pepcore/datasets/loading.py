"""Find a data set on disk or at its origin, verify it, split and standardise it."""

import os
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from pepcore.datasets import origins
from pepcore.datasets.catalogue import DataError, Dataset, Info, find, registry, verify
from pepcore.gaussian import Array
from pepcore.validation import as_real, check_finite, check_scale, constant


class DataNotFoundError(FileNotFoundError):
    """A data set is not on disk and could not be fetched from its public origin."""


def load(name: str, data_home: str | Path | None = None) -> Dataset:
    """Load a data set of the registry and verify it.

    Looks for `<folder>/<name>.csv.gz`, then `<name>.csv.gz`, in `data_home` ($PEPCORE_DATA if None), in the folder `data`
    of a checkout of this project and in the user's cache; a set that is in none of them is rebuilt from its public
    origin. `registry[name].folder` is the folder. The sets that scikit-learn bundles need no file. X is in the units of
    the source, y in {−1, +1} for binary sets and 0 ... C − 1 for multi-class ones.

    Raises
    ------
    ValueError for an unknown name; the nearest known ones are suggested
    DataError if what was found does not have the N, D, class counts and checksum of the registry
    DataNotFoundError if it is not on this machine and cannot be fetched; the message says what to place where
    """
    info = find(name)
    data_home = data_home if data_home is not None else os.environ.get("PEPCORE_DATA")
    folders = [*([Path(data_home)] if data_home else []), *_checkout()]
    if info.folder == "bundled":
        try:
            X, y = origins.rebuild(info, cache=None)
        except ImportError as reason:
            raise DataNotFoundError(f"the data set {name!r} comes with scikit-learn, which cannot be imported ({reason}); "
                                    'install it: pip install "pepcore[data]"') from reason
        where: str | Path = "scikit-learn's copy"
    else:
        X, y, where = _from_files(info, [*folders, _cache()]) or _from_origin(info, folders)
    if info.task == "binary":
        y = 2 * y - 1
    verify(info, X, y, where)
    return Dataset(name, X, y, info.task, info)


def splits(dataset: Dataset | str) -> list[tuple[np.ndarray, np.ndarray]]:
    """The 20 random splits of a data set into training and test rows.

    With `numpy.random.RandomState(1)`, twenty permutations of the rows one after the other; the first
    round(train_fraction · N) of each are for training. For the eight regression sets these are the splits of the
    literature (Hernandez-Lobato & Adams 2015, and Gal), order included. bui2017 gives only the sizes of its splits for
    binary sets, 90 % for training, and villacampa2017 its fractions; there the same rule is this package's choice.

    Parameters
    ----------
    dataset : Dataset, or str (a key of `registry`, for which no file is needed)

    Returns a list of 20 pairs (train, test) of index arrays.
    Source: bui2017 appendix I; villacampa2017 section 4.
    """
    if isinstance(dataset, Dataset):
        N, fraction = len(dataset.y), dataset.info.train_fraction if dataset.info else 0.9
    else:
        N, fraction = find(dataset).N, find(dataset).train_fraction
    random = np.random.RandomState(1)
    orders = [random.permutation(N) for _ in range(20)]
    count = round(fraction * N)
    return [(order[:count], order[count:]) for order in orders]


def official_split(dataset: Dataset | str) -> tuple[np.ndarray, np.ndarray]:
    """The source's own training and test rows, as a pair of index arrays; ValueError for a set that has none."""
    info = dataset.info if isinstance(dataset, Dataset) else find(dataset)
    if info is None or info.train_rows is None:
        known = [name for name, entry in registry.items() if entry.train_rows]
        raise ValueError(f"{getattr(dataset, 'name', dataset)!r} has no split of its own; these have: {known}")
    return np.arange(info.train_rows), np.arange(info.train_rows, info.N)


def location_scale(train: ArrayLike) -> tuple[Array, Array]:
    """Mean and standard deviation of each column of train (N,) or (N, D), with scale 1 for a column that is constant.

    Returns mean and scale, () or (D,), in the units of `train`.
    Raises ValueError for other shapes, no rows, text, NaN, a masked array or values whose variance is no float.
    """
    train = check_finite(as_real(train, "train"), "train")
    if train.ndim not in (1, 2) or train.size == 0:
        raise ValueError(f"train has shape {train.shape}, expected (N,) or (N, D) with N >= 1 and D >= 1")
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.where(constant(train), 1.0, train.std(0))
    return train.mean(0), check_scale(scale, "train")


def standardise(train: ArrayLike, test: ArrayLike) -> tuple[Array, Array]:
    """Shift and scale the columns of both arrays by the mean and the standard deviation of the training rows.

    train is (N,) or (N, D), test (S,) or (S, D); the results are new arrays without units. A column that is constant in
    `train` is only shifted.

    Raises ValueError if the arrays do not have the same columns, and for text, NaN, masked arrays or no rows.
    """
    train, test = as_real(train, "train"), check_finite(as_real(test, "test"), "test")
    if train.shape[1:] != test.shape[1:]:
        raise ValueError(f"train has shape {train.shape} and test {test.shape}; both need the same columns")
    mean, scale = location_scale(train)
    return (train - mean) / scale, (test - mean) / scale


# --- where the values come from ---------------------------------------------------------------------------------------


def _checkout() -> list[Path]:
    """The folder with the small sets, in a list; an empty list where the package was installed without it."""
    root = Path(__file__).resolve().parents[2]
    return [root / "data"] if (root / "pyproject.toml").is_file() else []


def _cache() -> Path:
    import pooch

    return Path(pooch.os_cache("pepcore"))


def _candidates(info: Info, folders: list[Path]) -> list[Path]:
    return [folder / info.folder / info.filename for folder in folders] + [folder / info.filename for folder in folders]


def _from_files(info: Info, folders: list[Path]) -> tuple[Array, Array, Path] | None:
    """X, y and the path of the first file that is there; None if there is none."""
    path = next((path for path in _candidates(info, folders) if path.is_file()), None)
    if path is None:
        return None
    try:
        X, y = _read_npz(path) if path.suffix == ".npz" else _read_csv(path, info.text)
    except (OSError, EOFError, zlib.error, ValueError, KeyError, IndexError) as reason:
        raise DataError(f"{path} cannot be read as {info.name!r} ({reason}); replace it by the original.") from reason
    return X, y, path


def _read_csv(path: Path, text: dict) -> tuple[Array, Array]:
    lines = origins._read_lines(path)[1:]  # a header row, then y in the last column
    if text:
        return origins.parse(lines, {}, text)
    table = np.loadtxt(lines, delimiter=",", ndmin=2)
    return table[:, :-1].copy(), table[:, -1].copy()


def _read_npz(path: Path) -> tuple[Array, Array]:
    """Images and labels in two parts, as MNIST is stored; float32, to save memory."""
    with np.load(path) as file:
        X = np.concatenate([file["x_train"], file["x_test"]])
        y = np.concatenate([file["y_train"], file["y_test"]])
    return X.reshape(len(X), -1).astype(np.float32), y.astype(float)


def _from_origin(info: Info, folders: list[Path]) -> tuple[Array, Array, str]:
    cache = _cache()
    try:
        X, y = origins.rebuild(info, cache)
    except (OSError, ValueError, ImportError) as reason:
        raise DataNotFoundError(_where_to_place(info, folders, cache, reason)) from None  # the reason is in the text
    where = "scikit-learn's copy" if info.origin["kind"] == "bundled" else "what was fetched from the public origin"
    kept = ", ".join(map(str, origins.original_files(info, cache)))
    return X, y, f"{where} ({kept})" if kept else where


def _where_to_place(info: Info, folders: list[Path], cache: Path, reason: Exception) -> str:
    places = "\n".join(f"    {path}" for path in _candidates(info, [*folders, cache]))
    hint = "\n(the environment variable PEPCORE_DATA, which may name a folder of your own, is not set)"
    if os.environ.get("PEPCORE_DATA"):
        hint = ""
    shape = f"gzip CSV with a header row, {info.N} rows, {info.D} inputs and y in the last column"
    if info.filename.endswith(".npz"):
        shape = "arrays x_train, y_train, x_test, y_test"
    pairs = zip(info.origin.get("urls", ()), origins.original_files(info, cache))
    originals = "\n".join(f"    {url}\n      as {path}" for url, path in pairs)
    if not originals:
        originals = f"    data set {info.origin.get('data_id')} of openml.org, by scikit-learn's fetch_openml"
    return (
        f"the data set {info.name!r} is not on this machine and could not be fetched "
        f"({type(reason).__name__}: {str(reason)[:200]}).\n"
        f"Place {info.filename} ({shape}; sha256 {info.sha256}) at one of\n{places}{hint}\n"
        f"or the originals, unchanged, from these addresses (which we have not tried ourselves):\n{originals}"
    )
