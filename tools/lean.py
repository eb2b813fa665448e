"""Take out of the built pages what they do not need, and repair what the stock theme gets wrong: a Sphinx extension.

The theme brings 1.5 MB of icons as a script, of which the pages use a dozen: they come from a font instead, cut down to the
glyphs that occur. The search index is loaded on the search page alone, and thebe, which this book does not use, nowhere.
"""

import functools
import logging
import re
from html import unescape
from pathlib import Path

from fontTools import subset
from pictures import both_themes
from pybtex.plugin import find_plugin, register_plugin

from figures.drawing.dark import recoloured

FONTS = ("fa-solid-900", "fa-regular-400", "fa-brands-400")
UNUSED = [
    r'<script[^>]*src="[^"]*scripts/fontawesome\.js[^>]*></script>',
    r'<script[^>]*src="[^"]*sphinx-thebe\.js[^>]*></script>',
    r"<script>const THEBE_JS_URL.*?</script>",
    r'<script type="text/x-thebe-config">.*?</script>',
    r"<script>kernelName = .*?</script>",
    r'<link[^>]*href="[^"]*sphinx-thebe\.css[^>]*/>',
]
DESIGN = [r'<link[^>]*href="[^"]*sphinx-design\.min\.css[^>]*/>', r'<script[^>]*src="[^"]*design-tabs\.js[^>]*></script>']
SEARCH = [rf'<script[^>]*src="[^"]*{name}\.js[^>]*></script>' for name in ("searchtools", "language_data", "searchindex")]
AT_ONCE = "documentation_options|page|slider"       # scripts that the page needs while it is parsed; the rest waits for its end
LATER = rf'<script src="(?=[^"]*_static/(?!({AT_ONCE})\.js))'
ICON_RULE = r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"\\([0-9a-f]+)"\}'
BACK = re.compile(r'<a class="viewcode-back" href="([^"#]+)#([^"]+)">\[docs\]</a>\s*')
REPAIRS = [
    # the upper bar holds nothing but a second search box, and a first button for each menu, which the theme's script would take
    # for the one that is seen; it asks for the bar itself, too. And a table of contents for paper, which the search would show
    # in the place of the text
    (r'(?s)(<header id="pst-header")[^>]*>.*?(</header>)', r"\1 class='bd-header' hidden>\2"),
    (r'(?s)<div id="jb-print-docs-body".*?</nav>\s*</div>\s*</div>\s*</div>', ""),
    (r'<div role="list" class="citation-list">', '<div class="citation-list">'),
    (r'<summary aria-label="Toggle hidden content">', "<summary>"),     # its own text says more
    # a click on a solution's title folds it, and must not lead away
    (r'(<p class="admonition-title">Solution to)<a class="reference internal" href="[^"]*">(.*?)</a></p>', r"\1\2</p>"),
    (r'(<html[^>]*?) data-theme="auto"', r"\1"),       # no style sheet knows it: without a script a page is light
    (r'localStorage\.getItem\("theme"\) \|\| "auto"',
     'localStorage.getItem("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")'),
]


def lighten(page, search=False):
    """A page's HTML without what it does not need."""
    for pattern in UNUSED + ([] if search else SEARCH) + ([] if 'class="sd-' in page else DESIGN):
        page = re.sub(rf"\s*{pattern}", "", page, flags=re.DOTALL)
    for pattern, better in REPAIRS:
        page = re.sub(pattern, better, page)
    return page if search else re.sub(LATER, '<script defer src="', page)


def drawings(page, folder):
    """The HTML of a page in this folder whose drawings name their size, so that nothing moves, and have a dark twin."""
    def both(found):
        file = folder / f"{found['stem']}.svg"
        drawing = file.read_bytes()
        file.with_name(f"{file.stem}-dark.svg").write_bytes(recoloured(drawing))
        points = re.search(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing).groups()
        width, height = (round(float(length) * 4 / 3) for length in points)
        return both_themes(found["stem"], {"kind": "svg", "width": width, "height": height}, unescape(found["alt"]), lazy=False)

    return re.sub(r'<img alt="(?P<alt>[^"]*)" src="(?P<stem>[^"]*_images/[^"]+)\.svg" />', both, page)


def without_dead_links_back(page, folder):
    """The page of a module's source, in this folder, without links to descriptions that no page has."""
    return BACK.sub(lambda link: link[0] if link[2] in anchors((folder / link[1]).resolve()) else "", page)


@functools.cache
def anchors(path):
    """The names that links into a page may end in."""
    return set(re.findall(r'\bid="([^"]+)"', path.read_text(encoding="utf-8")))


def icon_names(site):
    """The names of the icons that the pages ask for."""
    return {name for page in site.rglob("*.html") for name in re.findall(r"\bfa-([a-z0-9-]+)", page.read_text(encoding="utf-8"))}


def icons(site):
    """The code points of the icons that the pages and the style sheets show."""
    sheet = (site / "_static/styles/pydata-sphinx-theme.css").read_text(encoding="utf-8")
    names = icon_names(site)
    codes = {code for selectors, code in re.findall(ICON_RULE, sheet)
             if names.intersection(re.findall(r"\.fa-([a-z0-9-]+):", selectors))}
    codes |= {"f107", "f303"}       # arrows of the theme, pencil of the exercises
    points = {int(code, 16) for code in codes}
    # the theme's own variables hold the characters themselves, of which the private ones are icons
    other = "".join(path.read_text(encoding="utf-8") for path in (site / "_static").rglob("*.css"))
    return points | {ord(char) for char in re.sub(r'\{content:"[^"]*"\}', "", other) if 0xE000 <= ord(char) <= 0xF8FF}


def cut(source, target, points):
    """Write a font with the glyphs of these code points alone, as WOFF."""
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    options = subset.Options(flavor="woff", layout_features=[], notdef_outline=False,
                             name_IDs=[0, 13, 14])      # whose it is, and its licence
    options.drop_tables += ["FFTM"]         # of FontForge, which the cutter does not know
    font = subset.load_font(source, options)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=points)
    cutter.subset(font)
    subset.save_font(font, target, options)


def cut_fonts(site):
    """Keep only the glyphs that are shown of the icon fonts, and let the style sheet name the new files."""
    folder, points = site / "_static/vendor/fontawesome/webfonts", icons(site)
    sheet = site / "_static/styles/pydata-sphinx-theme.css"
    text = re.sub(r"\n?/\*# sourceMappingURL.*?\*/", "", sheet.read_text(encoding="utf-8"))
    for name in FONTS:
        cut(folder / f"{name}.ttf", folder / f"{name}.woff", points)
        text = re.sub(rf'url\(([^)]*{name})\.woff2\) format\("woff2"\),url\([^)]*\.ttf\) format\("truetype"\)',
                      r'url(\1.woff) format("woff")', text)
        for whole in (".ttf", ".woff2"):
            (folder / f"{name}{whole}").unlink()
    sheet.write_text(without_icons(text, site), encoding="utf-8")


def without_icons(text, site):
    """A style sheet without the rules for icons that no page shows."""
    names = icon_names(site)

    def needed(rule):
        return rule[0] if names.intersection(re.findall(r"\.fa-([a-z0-9-]+):", rule[1])) else ""

    return re.sub(ICON_RULE, needed, text)


def finish(app, problem):
    """Go over the finished site."""
    if problem:
        return
    site = Path(app.outdir)
    for path in site.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        light = lighten(page, search=path.name == "search.html")
        better = without_dead_links_back(drawings(light, path.parent), path.parent)
        if better != page:
            path.write_text(better, encoding="utf-8")
    cut_fonts(site)
    for file in {*(site / "_static/scripts").glob("fontawesome.js*"), *(site / "_static").rglob("*.map")}:
        file.unlink()


def setup(app):
    for name in ("docutils", "plaintext"):      # registered here, since pybtex searches all packages anew for each citation
        register_plugin("pybtex.backends", name, find_plugin("pybtex.backends", name), force=True)
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
