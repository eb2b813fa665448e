"""A browser, and the built book at an address, for the tests of a module that visit its pages."""

import pytest
from visits import launched, served


@pytest.fixture(scope="module")
def browser():
    with launched() as running:
        yield running


@pytest.fixture(scope="module")
def address(site):
    """Where the built book is shown."""
    with served(site) as address:
        yield address
