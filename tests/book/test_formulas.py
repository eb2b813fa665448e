"""The formulas of the pages are found and set, and what MathJax cannot set ends the build."""

import formulas
import pytest

PAGE = r"""
<p>If <span class="math notranslate nohighlight">\(a &lt; b\)</span> then <code>\(x\)</code> and</p>
<div class="math notranslate nohighlight" id="equation-one">
<span class="eqno">(1.1)<a class="headerlink" href="#equation-one">#</a></span>\[\begin{split} a \\[2pt] b \end{split}\]</div>
<div class="math notranslate nohighlight">
\[
c
\]</div>"""


@pytest.fixture
def mathjax():
    if not (formulas.ROOT / "node_modules/mathjax").exists():
        pytest.skip("MathJax is not here: run `make book` first")


def test_formulas_are_found_with_and_without_a_number():
    found = [formulas.formula(one) for one in formulas.FORMULA.finditer(PAGE)]
    assert found == [("a < b", False), (r"\begin{split} a \\[2pt] b \end{split}", True), ("\nc\n", True)]


def test_a_formula_is_set_for_eyes_and_for_assistive_technology(mathjax):
    (inline, displayed), css = formulas.setting([(r"\alpha^2", False), (r"\alpha^2", True)])
    assert "<mjx-math" in inline and "<msup>" in inline and 'display="true"' in displayed and 'display="true"' not in inline
    assert "mjx-c1D6FC" in css and "url(" in css


def test_a_formula_that_cannot_be_set_ends_the_build(mathjax):
    with pytest.raises(ValueError, match="unknowncommand"):
        formulas.setting([("a", False), (r"\unknowncommand", False)])
