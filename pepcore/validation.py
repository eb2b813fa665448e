"""Checks at the public door: what the caller gave is right, or a ValueError says how to mend it.

Every function returns the checked value as float64 (without a copy where it already is one) and never writes to what
it was given. Nothing is coerced silently: a wrong shape is an error, not a guess.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pepcore.gaussian import MAX_JITTER, Array

T = TypeVar("T")
ROUNDING = 10 * np.finfo(float).eps  # of the largest number: 0.1 + 0.2 and 0.3 are the same
SHOWN = 20  # numbers that a message shows
CHECKED = 2**16  # rows that are looked at in one go, so that a memory map is not read into memory as a whole


def as_real(value: ArrayLike, name: str, expected: str = "an array of real numbers") -> Array:
    """Turn real numbers of any shape into a float64 array, without a copy where none is needed.

    Raises ValueError for text, complex numbers, ragged lists, and numbers under a mask; the message says that `name`
    must be `expected`.
    """
    refuse_mask(value, name)
    if value is None:  # NumPy would turn it into NaN
        raise ValueError(f"{name} = None must be {expected}")
    try:
        if hasattr(value, "toarray"):
            raise TypeError("it is a sparse matrix; give what its method toarray() returns")
        array = np.asarray(value)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"its type is {array.dtype}")
        # NumPy would read the numbers out of the text
        if array.dtype.kind == "O" and any(isinstance(item, str | bytes) for item in array.flat):
            raise TypeError("it holds text")
        return array.astype(float, copy=False)
    except (TypeError, ValueError, OverflowError) as reason:
        raise ValueError(f"{name} must be {expected} ({reason})") from None


def refuse_mask(value: Any, name: str) -> None:
    """Raise ValueError for a masked array, and for lists that hold one: NumPy would use what lies under the mask."""
    if isinstance(value, list | tuple) and _hold_mask(value):
        for i, item in enumerate(value):
            refuse_mask(item, f"{name}[{i}]")
    if np.ma.isMaskedArray(value):
        raise ValueError(f"{name} is a masked array, expected a plain one, as the mask would be lost; drop the masked "
                         f"rows, or give {name}.data if none is masked")


def _hold_mask(items: Sequence) -> bool:
    """Whether a masked array is among the items of a list, or in lists among them; quick, as there may be many items."""
    kinds = set(map(type, items))
    if any(issubclass(kind, list | tuple) for kind in kinds):
        inner = chain.from_iterable(item for item in items if isinstance(item, list | tuple))
        if _hold_mask(list(inner)):
            return True
    return any(issubclass(kind, np.ma.MaskedArray) for kind in kinds)


def check_finite(array: Array, name: str) -> Array:
    """Raise ValueError if `array` (any shape) holds a NaN or an infinity; return it otherwise."""
    parts = array[None] if array.ndim == 0 else (array[start : start + CHECKED] for start in range(0, len(array), CHECKED))
    if not all(np.isfinite(part).all() for part in parts):
        bad = ~np.isfinite(array)
        if array.ndim == 0:
            raise ValueError(f"{name} = {array} is NaN or infinite, expected a finite number")
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name} holds {int(bad.sum())} value(s) that are NaN or infinite, the first at index "
                         f"{first}; drop those rows or fill the values in before the call")
    return array


def check_scale(scale: Any, name: str) -> Any:
    """Return the scale of what is called `name`; ValueError unless it is positive and finite."""
    if not (np.isfinite(scale).all() and np.all(scale > 0)):
        raise ValueError(f"{name} varies so much or so little that its variance is no floating-point number (found a scale of "
                         f"{np.asarray(scale).tolist()}); give it in other units")
    return scale


def check_inputs(X: ArrayLike, name: str = "X", columns: int | None = None, copy: bool = False) -> Array:
    """Check finite inputs (N, D), one row per point, D = `columns` if given; `copy` is for a result that keeps them.

    A memory map is not copied.
    """
    copy = copy and not isinstance(X, np.memmap)
    X = as_real(X, name)
    if X.ndim == 1:
        raise ValueError(f"{name} has shape {X.shape}, expected (N, D) with one row per point; for {X.size} points on "
                         f"a line give {name}[:, None]")
    if X.ndim != 2 or X.size == 0:
        raise ValueError(f"{name} has shape {X.shape}, expected (N, D) with N >= 1 and D >= 1")
    if columns is not None and X.shape[1] != columns:
        raise ValueError(f"{name} has {X.shape[1]} column(s), expected {columns} as in the other inputs")
    return check_finite(np.array(X) if copy else X, name)


def check_targets(y: ArrayLike, size: int, name: str = "y", each: str = "row of X", copy: bool = False) -> Array:
    """Check finite targets (size,), one for each `each`; `copy` is for a result that keeps them."""
    y = as_real(y, name)
    if y.shape != (size,):
        hint = f"; give {name}.ravel()" if y.ndim == 2 and y.size == size else ""
        raise ValueError(f"{name} has shape {y.shape}, expected ({size},), one number per {each}{hint}")
    return check_finite(np.array(y) if copy else y, name)


def check_alpha(alpha: ArrayLike, size: int | None = None) -> float | Array:
    """Check alpha, 0 (VFE) to 1 (EP): one power or, unless size is None, (size,) private ones, which are copied."""
    alpha = as_real(alpha, "alpha")
    if alpha.ndim > 0 and alpha.shape != (size,):
        expected = "a scalar" if size is None else f"a scalar or shape ({size},)"
        raise ValueError(f"alpha has shape {alpha.shape}, expected {expected}")
    check_finite(alpha, "alpha")
    outside = (alpha < 0) | (alpha > 1)
    if outside.any():
        raise ValueError(f"alpha = {np.atleast_1d(alpha)[np.atleast_1d(outside)][0]} is outside [0, 1]; 0 gives VFE, 1 "
                         "gives EP, 0.5 is a good compromise")
    return float(alpha) if alpha.ndim == 0 else alpha.copy()


def as_generator(rng: Any, name: str) -> Any:
    """Return `rng` if it can draw already, as a Generator or a RandomState does, else the Generator that it seeds."""
    try:
        return rng if hasattr(rng, "standard_normal") else np.random.default_rng(rng)
    except (TypeError, ValueError) as reason:
        raise ValueError(f"{name} = {rng!r} must be a numpy Generator, such as numpy.random.default_rng(0), or a seed for "
                         f"one ({reason})") from None


def constant(values: Array) -> Array:
    """Which columns of (N,) or (N, D) numbers are constant, but for rounding: () or (D,) bool."""
    low, high = values.min(axis=0), values.max(axis=0)
    with np.errstate(over="ignore"):
        return high - low <= ROUNDING * np.maximum(np.abs(low), np.abs(high))


def check_number(value: ArrayLike, name: str) -> float:
    """Check one real number; an array, even of one element, is an error, as are NaN and infinity."""
    number = as_real(value, name, "one real number")
    if number.ndim:
        raise ValueError(f"{name} has shape {number.shape}, expected one number; give a float")
    return float(check_finite(number, name))


def check_positive(value: ArrayLike, name: str) -> float:
    """Check a positive number such as a noise variance."""
    return float(check_all_positive(check_number(value, name), name))


def check_all_positive(value: ArrayLike, name: str) -> Array:
    """Check positive parameters of any shape."""
    value = check_finite(as_real(value, name), name)
    return _refuse(value <= 0, value, name, "must be positive; a parameter that has to be almost zero can be a small "
                                            "number such as 1e-8")


def check_all_not_negative(value: ArrayLike, name: str) -> Array:
    """Check parameters of any shape that may be 0 but not negative."""
    value = check_finite(as_real(value, name), name)
    return _refuse(value < 0, value, name, "must be at least 0")


def _refuse(wrong: Any, value: Array, name: str, expected: str) -> Array:
    """Raise ValueError that shows `value`, or of many numbers the first that is `wrong`; return it if none is."""
    if wrong.any():
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        shown = f"{name} = {value.tolist()}" if value.size <= SHOWN else f"{name}{list(first)} = {value[first]}"
        raise ValueError(f"{shown} {expected}")
    return value


def check_not_negative(value: ArrayLike, name: str, advice: str) -> float:
    """Check a number that may be 0 but not negative; the error ends with the advice."""
    number = check_number(value, name)
    if number < 0:
        raise ValueError(f"{name} = {number} must be at least 0; {advice}")
    return number


def check_jitter(jitter: ArrayLike) -> float:
    """Check a jitter in [0, 1e-2], relative to the kernel's variance."""
    jitter = check_number(jitter, "jitter")
    if not 0 <= jitter <= MAX_JITTER:
        raise ValueError(f"jitter = {jitter} must be in [0, {MAX_JITTER}], a small part of the kernel's variance; 1e-6 "
                         "suits most problems")
    return jitter


def check_step(step: ArrayLike) -> float:
    """Check the length of a damped step in (0, 1]."""
    step = check_positive(step, "step")
    if step > 1:
        raise ValueError(f"step = {step} must be in (0, 1]; 1 is undamped, smaller values damp oscillations")
    return step


def check_sweeps(step: ArrayLike, tolerance: ArrayLike, max_sweeps: ArrayLike) -> dict[str, Any]:
    """Checked settings of `pepcore.sweeps.run_sweeps`, as a dict: the step, a tolerance > 0, a whole number of sweeps >= 0."""
    tolerance = check_positive(tolerance, "tolerance")
    return {"step": check_step(step), "tolerance": tolerance, "max_sweeps": check_count(max_sweeps, "max_sweeps", least=0)}


def check_count(value: ArrayLike, name: str, least: int = 1) -> int:
    """Check a number of things, such as sweeps: a whole number, at least `least`."""
    number = as_real(value, name, "a whole number")
    if number.ndim or not np.isfinite(number) or number < least or number != np.floor(number):
        raise ValueError(f"{name} = {value!r} must be a whole number, at least {least}")
    return int(number)


def check_fraction(value: ArrayLike, name: str) -> float:
    """Check a number in [0, 1]."""
    number = check_number(value, name)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} = {number} must be in [0, 1]")
    return number


def check_names(names: Iterable[str], known: tuple[str, ...], name: str = "optimise") -> tuple[str, ...]:
    """Check a choice among known names and return it as a tuple; one name alone is an error."""
    choices = ", ".join(map(repr, known))
    if isinstance(names, str) or not np.iterable(names):
        example = (names if names in known else known[0],)
        raise ValueError(f"{name} = {names!r} must be a tuple of names out of {choices}, such as {example}")
    names = tuple(names)
    unknown = [one for one in names if one not in known]
    if unknown:
        raise ValueError(f"{name} must hold names out of {choices}; got {unknown}")
    return names


def check_order(order: ArrayLike | None, size: int) -> np.ndarray:
    """Check a permutation of 0 ... size − 1, or None for 0, 1, 2, ...; returns (size,) int."""
    if order is None:
        return np.arange(size)
    order = as_real(order, "order")
    if order.shape != (size,) or not np.array_equal(np.sort(order), np.arange(size)):
        raise ValueError(f"order must hold each of 0 ... {size - 1} once, one number for each row of X; got shape "
                         f"{order.shape}; numpy's Generator.permutation makes such an order")
    return order.astype(int)


def check_blocks(blocks: Any, size: int) -> list[np.ndarray]:
    """`blocks` as a list of index arrays that together hold each of range(size) once."""
    refuse_mask(blocks, "blocks")
    labels = np.asarray(blocks) if isinstance(blocks, np.ndarray) else None
    if labels is not None and labels.shape == (size,) and np.issubdtype(labels.dtype, np.integer):
        return [np.flatnonzero(labels == label) for label in np.unique(labels)]
    parts = blocks if np.iterable(blocks) else []
    # not integers yet: fractions would be cut off, and every block would seem right
    indices = [as_real(block, f"blocks[{number}]").ravel() for number, block in enumerate(parts)]
    joined = np.concatenate(indices or [np.zeros(0)])
    if len(joined) != size or not np.array_equal(np.sort(joined), np.arange(size)) or not all(map(len, indices)):
        raise ValueError(
            f"blocks must be {size} integer labels in an array, or a list of non-empty index arrays that hold each of "
            f"0 ... {size - 1} exactly once; got {type(blocks).__name__} of length {np.size(joined)} after joining."
        )
    return [index.astype(np.intp) for index in indices]


def check_part(part: T, fits: bool, name: str, expected: str, example: str) -> T:
    """Check part of a model and return it; a class in place of its instance is an error, as is what does not fit."""
    if isinstance(part, type):
        raise ValueError(f"{name} is the class {part.__name__}, expected an object made of it; give {part.__name__}(...)")
    if not fits:
        got = repr(part) if part is None or isinstance(part, str | int | float) else f"of type {type(part).__name__}"
        raise ValueError(f"{name} is {got}, expected {expected}; give {example}")
    return part


def check_kernel(kernel: Any, name: str = "kernel", others: Iterable[str] = ()) -> Any:
    """Return the kernel; ValueError for what cannot be called or has no `diagonal`, and for a class, not an instance.

    `exact` and `online` need no more of it for inference; the sparse methods and all learning need its derivatives too, see
    `pepcore.kernels`. `others` are names that stand for something else in the gradient.
    """
    fits = callable(kernel) and hasattr(kernel, "diagonal")
    expected = "a kernel, an object that can be called and has the method diagonal"
    check_part(kernel, fits, name, expected, "SquaredExponential(variance=1.0, lengthscales=1.0)")
    if twice := sorted(set(getattr(kernel, "parameters", ())) & set(others)):
        raise ValueError(f"the {name} has a parameter {twice[0]!r}, which in the gradient is the name of another one; give it "
                         "another name in the kernel")
    return kernel


def check_plain(kernel: Any, method: str) -> None:
    """Raise ValueError if `kernel` has pseudo-points that are not values of f, which `method` (str, a plural) cannot use."""
    if hasattr(check_kernel(kernel), "uf"):
        raise ValueError(f"{method} take points of f itself; give a plain kernel, not one for other pseudo-points")


def check_likelihood(likelihood: Any, several: bool = False) -> Any:
    """Return the likelihood; ValueError for what lacks its methods, and for a class in place of its instance.

    Unless `several`, also ValueError for a likelihood of several latent functions.
    """
    fits = all(hasattr(likelihood, method) for method in ("log_moment", "validate", "predict"))
    expected = "a likelihood, an object with the methods log_moment, validate and predict"
    check_part(likelihood, fits, "likelihood", expected, "Probit() or Gaussian(0.1)")
    if hasattr(likelihood, "classes") and not several:
        raise ValueError(f"likelihood {likelihood!r} has {likelihood.classes} latent functions, expected one of a single f; "
                         "call multiclass.infer or decoupled.infer")
    return likelihood
