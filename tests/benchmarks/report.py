"""Turn results/bench.json into what the page "Beside other software" shows: tables, one sentence and two figures.

    python tests/benchmarks/report.py

A test holds the tables to the measurements, so that no number on the page is typed by hand.
"""

import csv
import io
import json
from pathlib import Path

import numpy as np

from figures.drawing.table import true_minus

RESULTS = Path(__file__).resolve().parent / "results"
NAMES = {"pepcore": "pepcore", "gpflow": "GPflow", "gpy": "GPy", "gpytorch": "GPyTorch", "sklearn": "scikit-learn",
         "floor": "–"}
COLOURS = {"pepcore": "#ee4312", "gpflow": "#00729f", "gpy": "#00806a", "gpytorch": "#6b5fc4"}
THEORY = {"N": "1", "M": "at most 2", "D": "at most 1", "C": "at most 1"}
PLACE = {"N": 0, "M": 2, "D": 1, "C": 0}  # in the size
STEPS = ("classes", "orthogonal", "online", "two million rows")


def load():
    return json.loads((RESULTS / "bench.json").read_text())


def machine(results):
    """One sentence: what was measured, where and when."""
    versions = {row["package"]: row["version"] for row in results["rows"] if row["version"]}
    packages = ", ".join(f"{NAMES[name]} {version}" for name, version in versions.items())
    busy = f" The machine was busy (load {results['load']:.1f}), so read ratios with care." if results["load"] > 0.5 else ""
    return f"Measured on {results['date']}: {results['machine']}; {packages}.{busy}\n"


def tables(results):
    """A dict of name -> rows, the first of them the head."""
    rows = results["rows"]
    found = {
        "regression": beside(select(rows, "regression"), "(N, D, M)"),
        "probit": beside(select(rows, "probit"), "(N, D, M)"),
        "steps": beside([row for row in rows if row["group"] in STEPS], "Size"),
        "learning": learning(select(rows, "learning")),
        "estimators": estimators(select(rows, "estimators")),
        "growth": growth(rows),
    }
    for table in found.values():
        if len(table) == 1:
            table.append(["not measured", *[""] * (len(table[0]) - 1)])
    return found


def select(rows, group):
    return [row for row in rows if row["group"] == group]


def beside(rows, size):
    """Seconds on one and two threads, in units of the floor and of pepcore's first method on the same problem."""
    table = [[size, "Package", "Method", "1 thread, s", "2 threads, s", "of pepcore's", "Products", "Memory, MB"]]
    for row in rows:
        same = [other for other in rows if other["size"] == row["size"] and other["threads"] == row["threads"]]
        if row["threads"] != min(other["threads"] for other in rows if key(other) == key(row)):
            continue
        two = next((other for other in rows if key(other) == key(row) and other["threads"] == 2), None)
        floor = next((other for other in same if other["package"] == "floor"), None)
        table.append([
            size_in_words(row["size"]), NAMES[row["package"]], row["method"],
            number(row["seconds"]) if row["threads"] == 1 else "–", number(two["seconds"]) if two else "–",
            "–" if row["package"] == "floor" else number(row["seconds"] / counterpart(row, same)["seconds"]),
            number(row["seconds"] / floor["seconds"]) if floor else "–", number(row["megabytes"]),
        ])
    return table


def size_in_words(size):
    """For example 10 000 × 8 × 200, with thin spaces at which no line breaks."""
    return "\u202f×\u202f".join(number(n) for n in size)


def key(row):
    return row["package"], row["method"], *row["size"]


def counterpart(row, same):
    """pepcore's row of the same method, or of one whose name ends alike, as in a power, else its first row.

    Of several that end alike it is one that begins alike too, as "variational, with Adam" and "variational, Adam" do.
    """
    ours = [other for other in same if other["package"] == "pepcore"]
    words = row["method"].split()
    alike = [other for other in ours if other["method"].split()[-1] == words[-1]]
    nearest = [[other for other in alike if other["method"] == row["method"]],
               [other for other in alike if other["method"].split()[0] == words[0]], alike, ours]
    return next(others[0] for others in nearest if others)


def number(value):
    """Two significant digits below ten, and whole numbers above, with thin spaces at the thousands."""
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}".replace(",", "\u202f")


def learning(rows):
    table = [["Package", "Seconds, median", "least to most", "Evaluations", "Best log evidence"]]
    for row in rows:
        best, _, evaluations = row["values"]
        table.append([NAMES[row["package"]], number(row["seconds"]), f"{number(row['least'])} to {number(row['most'])}",
                      str(evaluations), true_minus(f"{best:.1f}")])
    return table


def estimators(rows):
    table = [["Data", "Package", "Method", "Error", "Log density", "Seconds"]]
    for row in rows:
        error, density = row["values"]
        table.append([row["size"][0].replace("_", " "), NAMES[row["package"]], row["method"], f"{error:.3f}",
                      true_minus(f"{density:.3f}"), number(row["seconds"])])
    return table


def series(rows, letter):
    """Sizes and seconds of what grows in N, M, D or C."""
    chosen = sorted(select(rows, f"growth in {letter}"), key=lambda row: row["size"][PLACE[letter]])
    return np.array([[row["size"][PLACE[letter]], row["seconds"]] for row in chosen]).T


def exponent(sizes, seconds):
    """Slope of log time in log size over the upper half of the sizes."""
    upper = slice(len(sizes) // 2, None)
    return float(np.polyfit(np.log(sizes[upper]), np.log(seconds[upper]), 1)[0])


def growth(rows):
    table = [["Grows", "From", "To", "Exponent", "Theory"]]
    for letter in THEORY:
        if select(rows, f"growth in {letter}"):
            sizes, seconds = series(rows, letter)
            table.append([letter, f"{sizes[0]:.0f}", f"{sizes[-1]:.0f}", f"{exponent(sizes, seconds):.2f}", THEORY[letter]])
    return table


def as_csv(table):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    return text.getvalue()


def draw_growth(results):
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    fig = Figure(figsize=(7.0, 4.6))
    for ax, letter in zip(fig.subplots(2, 2).flat, THEORY):
        ax.set(xlabel=letter, ylabel="seconds")
        if not select(results["rows"], f"growth in {letter}"):
            continue
        sizes, seconds = series(results["rows"], letter)
        ax.loglog(sizes, seconds, "o-", color=COLOURS["pepcore"])
        for axis, ends, form in ((ax.xaxis, sizes[[0, -1]], ",.0f"), (ax.yaxis, np.sort(seconds)[[0, -1]], ".2g")):
            axis.set_minor_formatter(NullFormatter())
            axis.set_ticks(ends, labels=[format(end, form).replace(",", " ") for end in ends])
        ax.set_title(f"exponent {exponent(sizes, seconds):.2f}")
    return fig


def draw_regression(results):
    """Seconds for evidence and gradient on one thread, a group of bars for each size."""
    from matplotlib.figure import Figure

    rows = [row for row in select(results["rows"], "regression") if row["threads"] == 1 and row["package"] in COLOURS]
    sizes = list(dict.fromkeys(tuple(row["size"]) for row in rows))
    fig = Figure(figsize=(7.0, 3.6))
    ax = fig.subplots()
    for place, (name, colour) in enumerate(COLOURS.items()):
        best = [min((row["seconds"] for row in rows if tuple(row["size"]) == size and row["package"] == name), default=np.nan)
                for size in sizes]
        ax.bar(np.arange(len(sizes)) + 0.2 * (place - 1.5), best, 0.18, color=colour, label=NAMES[name])
    ax.set_xticks(range(len(sizes)), [f"N = {size[0]:,}".replace(",", " ") for size in sizes])
    ax.set(yscale="log", ylabel="seconds")
    ax.legend(ncols=2)
    return fig


def main():
    from figures.drawing import style

    results = load()
    (RESULTS / "machine.md").write_text(machine(results))
    for name, table in tables(results).items():
        (RESULTS / f"{name}.csv").write_text(as_csv(table))
    with style.context():
        for name, draw in {"growth": draw_growth, "regression": draw_regression}.items():
            draw(results).savefig(RESULTS / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
