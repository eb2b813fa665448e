"""The tables of costs: what loops count and what the chapters derive differ by terms of lower order only."""

import pytest

from figures.experiments.book import costs

SMALL, LARGE = {"M": 24, "G": 60, "batch": 120}, {"M": 48, "G": 120, "batch": 240}


@pytest.mark.parametrize(("counted", "derived", "small", "large"), [
    (costs.counted, costs.derived, {"N": 60, "M": 12}, {"N": 120, "M": 24}),
    (costs.counted_decoupled, costs.derived_decoupled, SMALL, LARGE),
], ids=["regression", "decoupled"])
def test_the_leading_terms_are_those_that_are_counted(counted, derived, small, large):
    counts, terms, smaller = counted(**large), derived(**large), counted(**small)
    assert set(counts) == set(terms)
    for name, count in counts.items():
        excess = count / terms[name] - 1
        assert 0 <= excess < 0.15, name
        assert excess <= 0.75 * (smaller[name] / derived(**small)[name] - 1), f"{name}: the rest is no lower order"
