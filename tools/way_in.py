"""The way into the book from elsewhere: descriptions, previews, a site map, a page for dead links, links back from references.

Set BOOK_SITE to the address at which the site is published, such as https://example.org/book; for a repository on GitHub it
is worked out from BOOK_REPOSITORY. Previews and the site map need whole addresses and are left out where there is none.
"""

import html
import os
import re
from html.entities import name2codepoint
from pathlib import Path
from urllib.parse import urlsplit

import build_book
import yaml
from bs4 import BeautifulSoup

LONGEST = 300       # characters of a description
ARTICLE = re.compile(r"<article.*</article>", re.DOTALL)
OPENING = 20_000    # characters of an article in which its title and first paragraphs stand; parsing all of it takes a second
NOT_FOUND = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Page not found — {title}</title>
<link rel="icon" href="{base}_static/favicon.svg">
<style>
body {{ max-width: 34rem; margin: 15vh auto; padding: 0 1rem; font: 1.1rem/1.6 sans-serif; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #14181e; color: #e4e6e9; }} a {{ color: #8ab4ff; }} }}
</style>
</head>
<body>
<main>
<h1>There is no such page</h1>
<p>The address may be misspelt, or the page has another name now.</p>
<p><a href="{base}index.html">Go to the first page of the book</a>, or <a href="{base}search.html">search it</a>.</p>
</main>
</body>
</html>
"""
ENTRANCE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="0; url={first}">
<title>{title}</title>
<link rel="icon" href="_static/favicon.svg">
{tags}
</head>
<body>
<main><p><a href="{first}">{title}</a></p></main>
</body>
</html>
"""


def address():
    """Where the site is published, with a slash at the end; "" if that is not known."""
    given = os.environ.get("BOOK_SITE", "")
    repository = urlsplit(os.environ.get("BOOK_REPOSITORY", ""))
    if not given and repository.netloc == "github.com":
        owner, name, *_ = [*repository.path.strip("/").removesuffix(".git").split("/"), ""]
        host = f"{owner.lower()}.github.io"
        given = f"https://{host}" + ("" if name.lower() == host else f"/{name}")
    return given.rstrip("/") + "/" if given else ""


def description(article):
    """The first paragraphs of an article, cut at a word."""
    words = ""
    for paragraph in article.select("p"):
        if paragraph.find_parent(class_=["admonition", "cell", "sidebar"]):
            continue
        words = f"{words} {' '.join(paragraph.get_text().split())}".strip()
        if len(words) > 120:
            break
    words = without_tex(words)
    return words if len(words) <= LONGEST else words[:LONGEST].rsplit(" ", 1)[0] + " …"


def without_tex(words):
    """Words with formulas such as \\(\\alpha^2\\), written with letters: α²."""
    words = re.sub(r"\\[()\[\]]", "", words)
    words = re.sub(r"\\[,;:! ]", " ", words)
    words = re.sub(r"\^([0-9])", lambda found: "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(found[1])], words)
    return re.sub(r"\\([a-z]+)", lambda found: chr(name2codepoint[found[1]]) if found[1] in name2codepoint else found[1], words)


def tags(title, words, path, cover):
    """The elements that tell a search engine or a preview what the page is."""
    pairs = [("name", "description", words), ("property", "og:title", title), ("property", "og:description", words),
             ("property", "og:type", "article"), ("property", "og:site_name", cover["title"])]
    if address():
        pairs += [("property", "og:url", address() + path), ("property", "og:image", f"{address()}_static/cover.png"),
                  ("name", "twitter:card", "summary_large_image")]
    lines = [f'<meta {kind}="{name}" content="{html.escape(text, quote=True)}">' for kind, name, text in pairs]
    if address():
        lines.append(f'<link rel="canonical" href="{address()}{path}">')
    return "\n    ".join(lines)


def unique_ids(page):
    """The page with repeated ids numbered; links lead to the first, as in browsers."""
    seen = {}

    def renamed(found):
        name = found[2]
        seen[name] = seen.get(name, 0) + 1
        return found[0] if seen[name] == 1 else f'{found[1]}id="{name}-again-{seen[name]}"'

    return re.sub(r'(<[a-z][^<>]*?\s)id="([^"]+)"', renamed, page)


def links_back(articles, titles):
    """To each reference of the bibliography, the pages that cite it: dict of id -> list of (file, title)."""
    found = {}
    for path, article in articles.items():
        if path.name != "bibliography.html":
            for anchor in dict.fromkeys(re.findall(r'href="(?:[^"]*/)?bibliography\.html#([^"]+)"', article)):
                found.setdefault(anchor, []).append((path.name, titles[path]))
    return found


def heading(soup):
    """The title of a page, with its number."""
    found = soup.find("h1")
    for link in found.select("a.headerlink"):
        link.extract()
    return " ".join(found.get_text().split())


def add_links_back(page, found):
    """The bibliography's HTML with the citing pages after each reference."""
    for anchor, citing in found.items():
        links = ", ".join(f'<a href="{file}">{html.escape(title)}</a>' for file, title in citing)
        line = f'<p class="cited-in">Cited in {links}.</p>\n'
        place = rf'(<div[^>]*id="{re.escape(anchor)}"[^>]*>.*?)(</div>)'
        page = re.sub(place, lambda found, line=line: found[1] + line + found[2], page, count=1, flags=re.DOTALL)
    return page


def entrance(first, words, config):
    """The page at the address of the site itself, which leads on to `first`, a path within the site."""
    title = config["title"]
    return ENTRANCE.format(title=html.escape(title), first=first, tags=tags(title, words, first, config).replace("    <", "<"))


def finish(app, problem):
    """Go over the finished site."""
    if problem:
        return
    site, config = Path(app.outdir), yaml.safe_load((build_book.ROOT / "_config.yml").read_text())
    pages = {path: path.read_text(encoding="utf-8") for path in sorted((site / "chapters").glob("*.html"))}
    articles = {path: ARTICLE.search(page)[0] for path, page in pages.items()}
    openings = {path: BeautifulSoup(article[:OPENING], "html.parser") for path, article in articles.items()}
    titles = {path: heading(soup) for path, soup in openings.items()}
    cited = links_back(articles, titles)
    for path, page in pages.items():
        described = tags(titles[path], description(openings[path]), path.relative_to(site).as_posix(), config)
        page = unique_ids(page).replace("</head>", f"  {described}\n  </head>", 1)
        if path.name == "bibliography.html":
            page = add_links_back(page, cited)
        path.write_text(page, encoding="utf-8")
    first = f"{build_book.pages()[0]}.html"
    words = description(openings[site / first])
    (site / "index.html").write_text(entrance(first, words, config), encoding="utf-8")
    base = urlsplit(address()).path or "/"
    (site / "404.html").write_text(NOT_FOUND.format(title=config["title"], base=base), encoding="utf-8")
    if address():
        urls = "".join(f"<url><loc>{address()}{path.relative_to(site).as_posix()}</loc></url>\n" for path in pages)
        (site / "sitemap.xml").write_text('<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/'
                                          f'schemas/sitemap/0.9">\n{urls}</urlset>\n', encoding="utf-8")
        (site / "robots.txt").write_text(f"Sitemap: {address()}sitemap.xml\n", encoding="utf-8")


def setup(app):
    app.connect("build-finished", finish, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
