"""What is measured: races between entries that take turns."""

from typing import Any, NamedTuple


class Entry(NamedTuple):
    """One side of a race: `function` of `sides.<side>` on a problem of `problems`."""

    side: str
    function: str
    problem: str
    size: tuple
    method: str  # in words
    options: dict[str, Any] = {}  # noqa: RUF012 - never written to


class Race(NamedTuple):
    """Entries that take turns on the same machine."""

    group: str
    entries: list[Entry]
    threads: tuple[int, ...] = (1,)
    turns: int | None = None  # None for as many as the run asks for


SHAPES = [(1_000, 5, 50), (10_000, 8, 200), (100_000, 8, 200)]
EP_SHAPES = [(1_000, 2, 50), (10_000, 8, 100)]
VFE, PEP, FITC = "VFE", "Power EP, α = 0.5", "FITC"


def regression(size):
    """Log evidence and gradient."""
    ours = [("pepcore", "regression", method, {"alpha": alpha}) for method, alpha in ((VFE, 0.0), (PEP, 0.5))]
    theirs = [("gpflow", "regression", VFE, {"method": "vfe"}), ("gpflow", "regression", FITC, {"method": "fitc"}),
              ("gpy", "regression", VFE, {"method": "vfe"}), ("gpy", "regression", PEP, {"method": "pep"}),
              ("gpytorch", "regression", VFE, {})]
    floor = [("floor", "product", "one M × N × M product", {})]
    return [Entry(side, function, "regression", size, method, options)
            for side, function, method, options in ours + theirs + floor]


def probit(size, alpha):
    """EP to convergence at fixed hyper-parameters."""
    entries = [Entry("pepcore", "probit", "probit", size, f"Power EP, α = {alpha:g}", {"alpha": alpha})]
    if alpha:
        entries.append(Entry("gpy", "probit", "probit", size, f"EPDTC, power {alpha:g}", {"power": alpha}))
    return [*entries, Entry("floor", "product", "probit", size, "one M × N × M product")]


def class_step(size):
    """A step on a batch."""
    ours = [Entry("pepcore", "class_step", "classes", size, name, {"approximation": approximation})
            for name, approximation in (("SEP, with Adam", "sep"), ("variational, with Adam", "vi"))]
    theirs = [Entry("gpflow", "class_step", "classes", size, name, {"natural": natural})
              for name, natural in (("variational, natural gradient and Adam", True), ("variational, Adam", False))]
    return ours + theirs


def orthogonal_step(size):
    return [Entry(side, "orthogonal_step", "two_bases", size, name, {"natural": natural})
            for side in ("pepcore", "gpytorch")
            for name, natural in (("natural gradient and Adam", True), ("Adam", False))]


def learn(size, evaluations):
    options = {"evaluations": evaluations}
    return [Entry(side, "learn", "regression", size, VFE, options) for side in ("pepcore", "gpflow", "gpy", "gpytorch")]


def growth(sizes):
    return [Entry("pepcore", "regression", "regression", size, PEP) for size in sizes]


def estimators(name):
    return [Entry(side, "estimate", "bundled", (name,), method)
            for side, method in (("pepcore", "sparse, Power EP"), ("sklearn", "exact"))]


RACES = [
    *(Race("regression", regression(size), (1, 2)) for size in SHAPES),
    *(Race("probit", probit(size, alpha)) for size in EP_SHAPES for alpha in (1.0, 0.5, 0.0)),
    Race("classes", class_step((10, 784, 200)), (1, 2)),
    Race("orthogonal", orthogonal_step((10_000, 8, 300, 700)), (1, 2)),
    Race("learning", learn((1_000, 5, 50), 500)),
    *(Race("estimators", estimators(name)) for name in ("diabetes", "breast_cancer", "wine")),
    Race("online", [Entry("pepcore", "stream", "regression", (10_000, 8, 100), "1000 rows with a budget of 100")]),
    Race("growth in N", growth([(4_000 * 2**k, 8, 100) for k in range(6)])),
    Race("growth in M", growth([(20_000, 8, 25 * 2**k) for k in range(5)])),
    Race("growth in D", growth([(20_000, 2 * 2**k, 100) for k in range(6)])),
    Race("growth in C", [class_step((2 * 2**k, 16, 100))[0] for k in range(5)]),
    Race("two million rows", [Entry("pepcore", "regression", "regression", (2_000_000, 8, 200), PEP)], (2,), turns=2),
]
