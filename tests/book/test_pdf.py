"""The book on paper: contents with page numbers, solutions where they are wanted, no controls."""

import re
import shutil

import build_book
import make_pdf
import pytest
from conftest import NEEDS_BROWSER
from pypdf import PdfReader
from visits import has_slider

FIRST = next(page for page in build_book.pages() if has_slider(page))


def test_the_contents_name_every_page_with_its_number():
    titles = {name: f"Title of {name}" for name in build_book.pages()}
    numbers = {name: 10 * i for i, name in enumerate(titles, 1)}
    said = re.sub(r"<[^>]+>", " ", make_pdf.contents(titles, numbers))
    for name, title in titles.items():
        assert re.search(rf"{title}\s+{numbers[name]}\s", said), name


def test_an_unknown_place_for_the_solutions_is_refused(monkeypatch):
    monkeypatch.setenv("SOLUTIONS", "somewhere")
    with pytest.raises(SystemExit, match="SOLUTIONS must be end, inline or none"):
        make_pdf.main()


@pytest.mark.book
def test_a_chapter_on_paper(site, tmp_path, monkeypatch):
    if not any(map(shutil.which, make_pdf.INSTALLED)):
        pytest.skip(NEEDS_BROWSER)
    monkeypatch.setattr(make_pdf, "TARGET", tmp_path)
    monkeypatch.setattr(build_book, "SITE", site)
    with make_pdf.server() as address, make_pdf.browser() as running:
        title = make_pdf.print_page(running, address, FIRST, "end")
        pages = make_pdf.bind(running, {FIRST: title})
    alone, book = PdfReader(tmp_path / f"{FIRST.split('/')[-1]}.pdf"), PdfReader(tmp_path / "book.pdf")
    assert len(book.pages) == pages == len(alone.pages) + 2         # title and contents
    text = "\n".join(page.extract_text() for page in book.pages)
    assert "On the website this is a slider" in text
    assert title in text and "Show the code" not in text and "Contents" in book.pages[1].extract_text()
    assert all(str(number) in page.extract_text() for number, page in enumerate(book.pages[2:], 3))
    assert book.outline[0].title == title
    heads = [page.extract_text().count(title) for page in book.pages[2:]]
    alone = [page.extract_text().count(title) - 1 for page in alone.pages]      # each has it in its foot
    assert heads == [alone[0], *(count + 1 for count in alone[1:])]     # no head above the title
