"""Tables of results: names, decimals, the best marked in more than colour, and the same text at every run."""

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from figures.drawing.table import MARK, MISSING, SORTABLE_FROM, table

ROWS = [{"method": "VFE", "error": 0.126, "seconds": 3, "fits": True},
        {"method": "EP <fast>", "error": 0.5, "seconds": -12, "fits": False},
        {"method": "DTC", "error": float("nan"), "seconds": 3, "fits": True}]


def soup(shown):
    return BeautifulSoup(shown._repr_html_(), "html.parser")


def cells(shown):
    return [[cell.get_text() for cell in row.select("td, th")] for row in soup(shown).select("tbody tr")]


def test_rows_and_columns_have_names_and_numbers_equal_decimals():
    shown = table(ROWS, "What the methods cost", units={"seconds": "s"})
    page = soup(shown)
    assert page.table["class"] == ["results"]
    assert page.caption.get_text() == "What the methods cost"
    assert [th.get_text() for th in page.select('thead th[scope="col"]')] == ["method", "error", "seconds (s)", "fits"]
    assert [th.get_text() for th in page.select('tbody th[scope="row"]')] == ["VFE", "EP <fast>", "DTC"]
    assert cells(shown)[1] == ["EP <fast>", "0.50", "\N{MINUS SIGN}12", "no"]
    assert [head.get_text() for head in page.select("thead th.number")] == ["error", "seconds (s)"]
    assert len(page.select("tbody td.number")) == 6


def test_it_scrolls_within_a_frame_that_the_keyboard_reaches():
    frame = soup(table(ROWS, 'Costs of "all"')).find(class_="results-scroll")
    assert (frame["tabindex"], frame["role"], frame["aria-label"]) == ("0", "region", 'Costs of "all"')


def test_a_missing_number_is_said_to_be_missing():
    cell = soup(table(ROWS)).select("tbody tr")[2].select("td")[0]
    assert cell.get_text() == MISSING
    assert cell.span["aria-label"] == "no value"


@pytest.mark.parametrize(("decimals", "expected"), [(None, "0.13"), (1, "0.1"), ({"error": 3}, "0.126"), ({"fits": 1}, "0.13")])
def test_numbers_have_the_decimals_asked_for(decimals, expected):
    assert cells(table(ROWS, decimals=decimals))[0][1] == expected


def test_no_minus_zero():
    assert cells(table([{"a": "x", "b": -0.001}]))[0][1] == "0.00"


@pytest.mark.parametrize(("written", "shown"), [
    ("-0.04 (-0.03)", "−0.04 (−0.03)"), ("-5 ± 2", "−5 ± 2"), ("at -.5", "at −.5"), ("−1", "−1"),
    ("5-10", "5-10"), ("1e-05", "1e-05"), ("log-loss", "log-loss"), ("set-2", "set-2"), ("(1)-(3)", "(1)-(3)")])
def test_negative_numbers_within_texts_have_a_true_minus(written, shown):
    row = table([{"a": "x", "b": written}])
    assert cells(row) == [["x", shown]]
    assert repr(row).endswith(shown)


def test_the_best_of_a_column_is_bold_and_has_a_mark_with_words():
    shown = table(ROWS, best={"error": "min", "seconds": "max"})
    marked = soup(shown).select("td:has(strong)")
    assert [cell.strong.get_text() for cell in marked] == ["0.13", "3", "3"]     # as good as the best is the best
    assert {cell.find(class_="best")["aria-label"] for cell in marked} == {"best"}
    assert soup(shown).caption.get_text().strip() == f"{MARK} best of its column"


def test_what_is_written_like_the_best_is_marked_too():
    shown = table([{"a": "x", "b": 0.501}, {"a": "y", "b": 0.499}, {"a": "z", "b": 0.51}], best="min")
    assert [bool(cell.strong) for cell in soup(shown).select("td")] == [True, True, False]


def test_the_best_of_a_row():
    shown = table([{"data": "boston", "0": 2.0, "1": 1.0}, {"data": "power", "0": 3.0, "1": 4.0}], best="row min")
    assert [cell.strong.get_text() for cell in soup(shown).select("td:has(strong)")] == ["1.00", "3.00"]
    assert "best of its row" in soup(shown).caption.get_text()


def test_an_index_names_the_rows_unless_it_counts_them():
    frame = pd.DataFrame({"error": [1.0, 2.0]}, index=pd.Index([5, 20], name="M"))
    assert [head.get_text() for head in soup(table(frame)).select("thead th")] == ["M", "error"]
    assert cells(table(frame.reset_index()))[1] == ["20", "2.00"]
    two = frame.assign(data="a").reset_index().set_index(["data", "M"])
    assert [head.get_text() for head in soup(table(two)).select("thead th")] == ["data", "M", "error"]


def test_sorting_beforehand():
    assert [row[0] for row in cells(table(ROWS, sort="-error"))] == ["EP <fast>", "VFE", "DTC"]
    assert [row[0] for row in cells(table(ROWS, sort="method"))] == ["DTC", "EP <fast>", "VFE"]


def test_only_a_long_table_offers_sorting():
    rows = [{"a": str(i), "b": i} for i in range(SORTABLE_FROM)]
    assert soup(table(rows)).table["class"] == ["results", "sortable"]
    assert soup(table(rows[1:])).table["class"] == ["results"]


def test_the_text_lines_up_and_never_changes():
    shown = table(ROWS, "Costs", best={"error": "min"}, units={"seconds": "s"})
    assert repr(shown) == """\
Costs
method      error  seconds (s)  fits
VFE        0.13 ★            3  yes
EP <fast>  0.50            −12  no
DTC           –              3  yes
★ best of its column"""
    assert repr(shown) == repr(table(pd.DataFrame(ROWS), "Costs", best={"error": "min"}, units={"seconds": "s"}))


def test_numbers_of_numpy_are_numbers():
    shown = table([{"a": "x", "b": np.float32(0.5), "c": np.int64(3), "d": np.bool_(True)}])
    assert cells(shown) == [["x", "0.50", "3", "yes"]]


@pytest.mark.parametrize(("options", "message"), [
    ({"rows": []}, "got no rows"),
    ({"rows": ROWS, "sort": "speed"}, "sort names 'speed', and the columns are 'method'"),
    ({"rows": ROWS, "best": {"speed": "min"}}, "best names 'speed'"),
    ({"rows": ROWS, "best": "low"}, 'best must be "min" or "max"'),
    ({"rows": ROWS, "units": {"speed": "s"}}, "units names 'speed'"),
    ({"rows": ROWS, "decimals": {"speed": 3}}, "decimals names 'speed'"),
    ({"rows": pd.DataFrame([[1, 2]], columns=["a", "a"])}, "several columns are called a"),
])
def test_wrong_calls(options, message):
    with pytest.raises(ValueError, match=message):
        table(**options)
