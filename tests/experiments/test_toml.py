"""Tables of TOML that are written here are read by the standard library."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from figures.experiments import toml

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t"))
values = st.one_of(texts, st.booleans(), st.integers(-2**63, 2**63 - 1), st.floats(allow_nan=False))


@given(st.dictionaries(st.sampled_from("abcdef"), values | st.lists(texts, max_size=3)))
def test_what_is_written_is_read_back(entry):
    assert tomllib.loads(toml.table("[table]", entry)) == {"table": entry}


def test_a_header_in_double_brackets_makes_a_list_of_tables():
    text = toml.table("[[row]]", {"a": 1}) + toml.table("[[row]]", {"a": 2})
    assert tomllib.loads(text) == {"row": [{"a": 1}, {"a": 2}]}
