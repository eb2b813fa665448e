"""The table of verdicts that chapters show: the ledger's lines, chosen by name."""

import pytest
from bs4 import BeautifulSoup

from figures.drawing.table import SORTABLE_FROM
from figures.experiments import claims

LEDGER = {claim.id: claim for claim in claims.ledger()}


def table(*names):
    return BeautifulSoup(claims.verdicts(*names)._repr_html_(), "html.parser")


def test_a_line_says_what_the_ledger_says_and_links_to_it():
    claim = LEDGER["bui-fig4-smse-half-vfe"]
    (line,) = table(claim.id).select("tbody tr")
    said, paper, ours, verdict, rule = (cell.get_text() for cell in line.select("td"))
    assert said == f"{claim.statement} ({claim.source})"
    assert (paper, ours, verdict) == ("67 %", claim.found, claim.verdict)
    assert "95 % interval" in ours
    assert rule == "with hindsight"
    assert line.select_one("a")["href"] == "claims.html#bui-fig4-smse-half-vfe"


@pytest.mark.parametrize(("name", "rule"), [("vil-fig1-speed", "before the runs"), ("bui-rem2", "needs no runs"),
                                            ("bui-fig4b-smll-ep", "with hindsight"), ("vil-fig7", "none")])
def test_the_rule_says_when_it_was_fixed(name, rule):
    assert table(name).select("tbody td")[-1].get_text() == rule


def test_every_claim_can_be_shown():
    lines = table(*LEDGER).select("tbody tr")
    assert [line.select_one("a")["href"].partition("#")[2] for line in lines] == [claim.anchor for claim in LEDGER.values()]
    assert len({claim.anchor for claim in LEDGER.values()}) == len(LEDGER)


def test_a_long_table_can_be_sorted():
    names = [*LEDGER][:SORTABLE_FROM]
    assert table(*names).table["class"] == ["verdicts", "sortable"]
    assert table(*names[1:]).table["class"] == ["verdicts"]


def test_a_beginning_stands_for_all_that_begin_with_it_and_a_hyphen():
    shown = [claim.id for claim in claims.verdicts("bui-fig4").claims]
    assert shown == [name for name in LEDGER if name.startswith("bui-fig4-")]
    assert any(name.startswith("bui-fig4b") for name in LEDGER)


def test_an_id_stands_for_itself_alone():
    assert "vil-fig7" in LEDGER and "vil-fig7-directions" in LEDGER
    assert [claim.id for claim in claims.verdicts("vil-fig7").claims] == ["vil-fig7"]


def test_names_come_in_the_order_asked_for_and_once():
    shown = [claim.id for claim in claims.verdicts("vil-speed", "bui-rem2", "vil-speed").claims]
    assert shown == ["vil-speed", "bui-rem2"]


def test_the_text_for_a_terminal_holds_the_same():
    claim = LEDGER["vil-speed"]
    text = repr(claims.verdicts("vil-speed"))
    assert all(part in text for part in (claim.statement, claim.claimed, claim.found, claim.verdict))


@pytest.mark.parametrize(("name", "close"), [("bui-fig4-smse-half-vef", "bui-fig4-smse-half-vfe"), ("bui-fig44", "bui-fig4")])
def test_an_unknown_name_gets_the_names_close_to_it(name, close):
    with pytest.raises(ValueError, match=rf"no claim is called '{name}'.*did you mean .*{close}"):
        claims.verdicts(name)


def test_a_name_that_is_like_none():
    with pytest.raises(ValueError, match=r"no claim is called 'xyzzy'.*`python -m figures claims` lists all"):
        claims.verdicts("xyzzy")


def test_verdicts_of_no_claim_are_refused():
    with pytest.raises(ValueError, match="name the claims"):
        claims.verdicts()
