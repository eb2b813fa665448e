"""The formulas of the pages are found and set, and what MathJax cannot set ends the build."""

import formulas
import pytest
from fontTools.ttLib import TTFont

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


def test_the_characters_of_a_style_sheet():
    css = r"""mjx-c::before { content: ""; } .a { content: "\2212"; } .b { content: "x\222B y"; }
    .c { content: "2"; } .d { content: "\\"; }"""
    assert formulas.characters(css) == {0x2212, 0x222B, *map(ord, "xy2\\")}


def test_fonts_keep_what_is_shown_and_nothing_else(mathjax, tmp_path):
    (font,) = formulas.ROOT.glob("node_modules/mathjax/es5/output/chtml/fonts/woff-v2/MathJax_Main-Regular.woff")
    (tmp_path / "x.woff").write_bytes(font.read_bytes())
    formulas.cut_fonts(tmp_path, 'a::before { content: "\\2212"; } b::before { content: "x"; }')
    assert set(TTFont(tmp_path / "x.woff").getBestCmap()) == {0x2212, ord("x")}
    size = (tmp_path / "x.woff").stat().st_size
    formulas.cut_fonts(tmp_path, 'a::before { content: "y"; }')
    assert (tmp_path / "x.woff").stat().st_size == size


def test_a_formula_that_cannot_be_set_ends_the_build(mathjax):
    with pytest.raises(ValueError, match="unknowncommand"):
        formulas.setting([("a", False), (r"\unknowncommand", False)])
