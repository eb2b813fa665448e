"""Make a deck of slides for each chapter from the built site, into _build/slides: figures, sliders, equations, take-aways.

A deck takes from its page what one shows: the title, the goals, each section's figures and sliders with their captions
and its numbered equations with the sentences that lead to them, the take-away, and the titles of the exercises. It holds
no code. reveal.js shows it, and prints it at the address deck.html?print-pdf.
"""

import html
import re
import shutil
from copy import copy

import build_book
from bs4 import BeautifulSoup, NavigableString

TARGET = build_book.BUILD / "slides"
REVEAL = build_book.ROOT / "node_modules/reveal.js/dist"
OWN = [build_book.ROOT / "tools" / name for name in ("slides.css", "slides.js")]
OF_THE_SITE = ["mathjax.css", "mathjax", "slider.css", "slider.js", "favicon.svg"]
MOST = 25               # slides of a deck
TOGETHER = 3            # equations on a slide
SHOWN = "figure, div.math[id^='equation-']"
LEFT_OUT = ("Key equations", "Errata", "Further reading")
DECK = """<!DOCTYPE html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: slides</title>
<link rel="icon" href="_static/favicon.svg">
<link rel="stylesheet" href="_static/reset.css">
<link rel="stylesheet" href="_static/reveal.css">
<link rel="stylesheet" href="_static/mathjax.css">
<link rel="stylesheet" href="_static/slider.css">
<link rel="stylesheet" href="_static/slides.css">
<script src="_static/slider.js"></script>
</head>
<body>
<div class="reveal">
<div class="slides">
{slides}
</div>
</div>
<script src="_static/reveal.js"></script>
<script src="_static/slides.js"></script>
</body>
</html>
"""
INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{book}: slides</title>
<link rel="icon" href="_static/favicon.svg">
<link rel="stylesheet" href="_static/slides.css">
</head>
<body class="decks">
<h1>{book}</h1>
<p>Slides for each chapter. The arrow keys go from slide to slide, or move a slider once you have clicked it. To print
or save a PDF, click “print” and use your browser's print command.</p>
<ul>
{decks}
</ul>
</body>
</html>
"""


def main():
    shutil.rmtree(TARGET, ignore_errors=True)
    (TARGET / "_static").mkdir(parents=True)
    for name in OF_THE_SITE:
        source = build_book.SITE / "_static" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, TARGET / "_static" / name)
    for path in [*(REVEAL / name for name in ("reset.css", "reveal.css", "reveal.js")), *OWN]:
        shutil.copy(path, TARGET / "_static")
    book, decks = build_book.configuration()["title"], []
    for path in build_book.chapters():
        slides, title = slides_of(path.stem)
        if len(slides) > 2:
            write(path.stem, title, slides)
            decks.append(f'<li><a href="{path.stem}.html">{html.escape(title)}</a>, {len(slides)} slides '
                         f'(<a href="{path.stem}.html?print-pdf">print</a>)</li>')
    (TARGET / "index.html").write_text(INDEX.format(book=html.escape(book), decks="\n".join(decks)), encoding="utf-8")
    print(f"{len(decks)} decks of slides; open {TARGET / 'index.html'}")


def write(stem, title, slides):
    """Write a deck, and copy the pictures that it shows."""
    deck = DECK.format(title=html.escape(title), slides="\n".join(slides)).replace("../_static/", "_static/")
    (TARGET / f"{stem}.html").write_text(deck, encoding="utf-8")
    for folder in re.findall(r'data-folder="([^"]+)"', deck):
        shutil.copytree(build_book.SITE / folder, TARGET / folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*-dark.*"))
    for file in re.findall(r'<img[^>]*\ssrc="(_static/[^"]+)"', deck):
        if not (TARGET / file).exists():
            (TARGET / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(build_book.SITE / file, TARGET / file)


def slides_of(stem):
    """The slides of a chapter in HTML, and its title."""
    page = BeautifulSoup((build_book.SITE / f"chapters/{stem}.html").read_text(encoding="utf-8"), "html.parser")
    chapter = page.select_one("article > section") or page.select_one("article section")
    title = text_of(chapter.h1)
    clean(chapter)
    slides = [("title", slide(f"<h1>{chapter.h1.decode_contents()}</h1>", f'<p class="book">{html.escape(book_title())}</p>'))]
    opening = [child for child in chapter.find_all(recursive=False) if child.name != "section"]
    goals = next(filter(None, (child if child.name == "ul" else child.select_one("ul") for child in opening)), None)
    if goals:
        slides.append(("goals", slide("<h2>What you will be able to do</h2>", str(goals))))
    for section in chapter.find_all("section", recursive=False):
        slides += of_section(section)
    return [text for _, text in at_most(MOST, slides)], title


def book_title():
    return build_book.configuration()["title"]


def of_section(section):
    """(kind, HTML) of the slides of a section."""
    name = text_of(section.h2)
    heading = f"<h2>{section.h2.decode_contents()}</h2>"
    if re.search("take.?away", name, re.IGNORECASE) and (points := section.find("ul")):
        return [("take-away", slide(heading, str(points)))]
    if "Exercises" in name:
        titles = "".join(f"<li>{title.decode_contents()}</li>" for title in section.select(".exercise > .admonition-title"))
        return [("exercises", slide(heading, f'<ul class="exercises">{titles}</ul>'))] if titles else []
    if any(part in name for part in LEFT_OUT):
        return []
    found, equations = [], []

    def put_equations():
        if equations:
            found.append(("equations", slide(heading, "".join(equations))))
            equations.clear()

    for shown in section.select(SHOWN):
        if shown.name != "figure" and shown.find_parent(lambda tag: tag.name == "details" or is_folded(tag)):
            continue
        if shown.name == "figure":
            put_equations()
            for folded in shown.select("details"):      # for reading on the page, not for a slide
                folded.decompose()
            found.append(("slider" if shown.select_one(".slider-box") else "figure", slide(heading, str(shown))))
        else:
            equations.append(lead(shown) + str(shown))
            if len(equations) == TOGETHER:
                put_equations()
    put_equations()
    return found


def is_folded(tag):
    """Whether a part of the page is a box beside the text, or is unfolded by a click."""
    return bool({"admonition", "exercise", "solution"} & set(tag.get("class", [])))


def at_most(most, slides):
    """The slides without the last of those that can be spared: figures that do not move, then equations."""
    for kind in ("figure", "equations"):
        while len(slides) > most and any(one == kind for one, _ in slides):
            place = max(i for i, (one, _) in enumerate(slides) if one == kind)
            slides = slides[:place] + slides[place + 1:]
    return slides


def slide(heading, body):
    return f'<section>{heading}<div class="body">{body}</div></section>'


def lead(equation):
    """The sentence, or the part of it so far, that ends just before an equation."""
    before = equation.find_previous_sibling()
    if before is None or before.name != "p":
        return ""
    sentence = BeautifulSoup("<p></p>", "html.parser").p
    for child in reversed(before.contents):
        if isinstance(child, NavigableString) and (end := list(re.finditer(r"[.:?!]\)?\s+(?=\S)", child))):
            sentence.insert(0, NavigableString(child[end[-1].end():]))
            break
        sentence.insert(0, copy(child))
    return str(sentence)


def text_of(heading):
    """The words of a heading, without its number and its link."""
    heading = copy(heading)
    for extra in heading.select(".headerlink, .section-number, mjx-math"):
        extra.extract()
    return " ".join(heading.get_text().split())


def clean(chapter):
    """Take out of a chapter what a slide does not need: links, pictures for the dark theme and for paper."""
    for extra in chapter.select(".headerlink, .dark-frame, .paper-only"):
        extra.extract()
    for link in chapter.select("a"):
        link.unwrap()
    for picture in chapter.select("img"):
        del picture["loading"]


if __name__ == "__main__":
    main()
