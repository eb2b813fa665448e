"""Print the built site: one PDF for each page, and the whole book with contents and page numbers, into _build/pdf.

Needs Chromium or Chrome. The variable SOLUTIONS says where the solutions of a page go: `end` (of the page, if not given),
`inline` or `none`.
"""

import functools
import html
import http.server
import io
import os
import shutil
import sys
import threading
from pathlib import Path

import build_book
import yaml
from pypdf import PdfReader, PdfWriter

TARGET = build_book.BUILD / "pdf"
INSTALLED = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]
PATIENCE = 180_000      # milliseconds, for a busy machine
MARGIN = 17             # millimetres at the left and at the right
COLUMN = int((210 - 2 * MARGIN) / 25.4 * 96)        # pixels between them
SOLUTIONS = ("end", "inline", "none")

# Open what is folded, fetch all pictures, put the solutions where they are wanted, take out the empty heads of tables, turn
# sort buttons into words, since a browser does not repeat a button at the head of the next page, and keep a formula and
# the punctuation after it on one line.
PREPARE = """async (solutions) => {
  document.documentElement.dataset.theme = "light";
  for (const details of document.querySelectorAll("article details")) details.open = true;
  for (const button of document.querySelectorAll("article button.toggle-button-hidden")) button.click();
  for (const button of document.querySelectorAll("th button")) button.replaceWith(button.textContent);
  for (const head of document.querySelectorAll("article thead")) {
    if (!head.textContent.trim() && !head.querySelector("svg, img, mjx-container")) head.remove();
  }
  for (const formula of document.querySelectorAll("article span.math")) {
    const behind = formula.nextSibling, sign = behind?.nodeType === 3 && behind.data.match(/^[,.;:?!)\\]]+/)?.[0];
    if (!sign) continue;
    const together = document.createElement("span");
    together.style.whiteSpace = "nowrap";
    formula.replaceWith(together);
    together.append(formula, sign);
    behind.data = behind.data.slice(sign.length);
  }
  for (const folded of document.querySelectorAll("figure details")) folded.closest("figure").after(folded);
  const found = [...document.querySelectorAll("article div.solution")];
  if (solutions !== "inline" && found.length) {
    const last = document.createElement("section");
    last.innerHTML = "<h2>Solutions</h2>";
    for (const solution of found) {
      const cell = solution.nextElementSibling;
      last.append(solution);
      if (cell?.matches(".cell")) last.append(cell);
    }
    if (solutions === "end") document.querySelector("article").append(last);
  }
  const images = [...document.images];
  for (const image of images) image.loading = "eager";
  await Promise.all(images.filter((image) => image.matches(".light-frame")).map((image) => image.decode().catch(() => 0)));
  await document.fonts.ready;
}"""

# Keep short names of rows in one line and small tables on one page, and shrink tables and equations that are wider than the
# column.
FIT = """() => {
  for (const name of document.querySelectorAll("article tbody th")) {
    if (name.textContent.length < 25) name.style.whiteSpace = "nowrap";
  }
  const shrink = (element, column) => {
    const wide = Math.max(element.scrollWidth, element.querySelector("svg, math")?.getBoundingClientRect().width ?? 0);
    if (wide > column) element.style.zoom = column / wide;
  };
  for (const table of document.querySelectorAll("article table")) {
    shrink(table, table.parentElement.clientWidth);
    if (table.getBoundingClientRect().height < 330) table.style.setProperty("break-inside", "avoid", "important");
  }
  for (const formula of document.querySelectorAll("article mjx-container[display=true]")) shrink(formula, formula.clientWidth);
}"""

CONTENTS = """<html lang="en"><title>{title}</title><style>
@page {{ size: A4; margin: 25mm 22mm; }} body {{ font: 11pt/1.4 sans-serif; }}
h1 {{ margin: 45mm 0 5mm; font-size: 26pt; line-height: 1.2; }} section {{ break-before: page; }}
h2 {{ margin: 1.2em 0 0.2em; font-size: 11pt; }} p {{ display: flex; margin: 0.15em 0; }}
p i {{ flex: 1; margin: 0 0.4em 0.35em; border-bottom: 1px dotted #777; }}
section > h1 {{ margin: 0 0 5mm; }}
</style><h1>{title}</h1><div>{author}</div><div>{licence}</div><section><h1>Contents</h1>{lines}</section>"""
NUMBERS = """<html><style>@page {{ size: A4; margin: 0; }} body {{ margin: 0; font: 9pt sans-serif; }}
div {{ height: 297mm; break-after: page; position: relative; }} div:last-child {{ break-after: auto; }}
span, i {{ position: absolute; bottom: 9mm; width: 100%; text-align: center; }}
i {{ bottom: auto; top: 7mm; }}</style>{pages}</html>"""


def main():
    solutions = os.environ.get("SOLUTIONS") or "end"
    if solutions not in SOLUTIONS:
        sys.exit(f"SOLUTIONS must be {', '.join(SOLUTIONS[:-1])} or {SOLUTIONS[-1]}, got {solutions!r}.")
    with server() as address, browser() as running:
        shutil.rmtree(TARGET, ignore_errors=True)
        TARGET.mkdir(parents=True)
        titles = {name: print_page(running, address, name, solutions) for name in build_book.pages()}
        book = bind(running, titles)
    print(f"The book in {book} pages is at {TARGET / 'book.pdf'}, its {len(titles)} parts beside it.")


class server:
    """Serves the site on a free port of this machine; gives the address."""

    def __enter__(self):
        class Quiet(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=build_book.SITE))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __exit__(self, *problem):
        self.server.shutdown()


class browser:
    """A headless browser; gives the running browser."""

    def __enter__(self):
        from playwright.sync_api import sync_playwright

        installed = next(filter(None, map(shutil.which, INSTALLED)), None)
        self.playwright = sync_playwright().start()
        if not installed and not os.path.exists(self.playwright.chromium.executable_path):
            sys.exit("The book is printed by Chromium or Chrome: install one of them, and run make pdf again.")
        self.running = self.playwright.chromium.launch(executable_path=installed, args=["--no-sandbox", "--disable-gpu"])
        return self.running

    def __exit__(self, *problem):
        self.running.close()
        self.playwright.stop()


def print_page(running, address, name, solutions):
    """Print one page of the site; returns its title."""
    page = running.new_page(viewport={"width": 900, "height": 1200})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{address}/{name}.html", wait_until="load")
    page.evaluate(PREPARE, solutions)
    title = page.locator("article h1").first.evaluate("""heading => [...heading.childNodes]
        .filter(node => !node.classList?.contains('headerlink')).map(node => node.textContent).join('').trim()""")
    footer = ('<div style="width: 100%; text-align: center; font: 8pt sans-serif">'
              f'{html.escape(title)} — <span class="pageNumber"></span></div>')
    page.emulate_media(media="print")
    page.set_viewport_size({"width": COLUMN, "height": 1200})
    page.evaluate(FIT)
    shared = {"format": "A4", "print_background": True, "margin": dict.fromkeys(("left", "right"), f"{MARGIN}mm") |
              {"top": "16mm", "bottom": "20mm"}}
    page.pdf(path=TARGET / f"{Path(name).name}.pdf", display_header_footer=True, header_template="<span></span>",
             footer_template=footer, **shared)
    page.pdf(path=TARGET / f"{Path(name).name}.bare", **shared)
    page.close()
    return title


def bind(running, titles):
    """The whole book: contents, all pages with their numbers, and an outline; returns the number of pages."""
    parts = {name: PdfReader(TARGET / f"{Path(name).name}.bare") for name in titles}
    front = PdfReader(render(running, contents(titles, dict.fromkeys(titles, 0))))
    first, at = {}, len(front.pages) + 1
    for name, part in parts.items():
        first[name], at = at, at + len(part.pages)
    front = PdfReader(render(running, contents(titles, first)))
    heads = [""] * len(front.pages)
    for name, part in parts.items():
        heads += ["", *[titles[name]] * (len(part.pages) - 1)]      # none above a title
    numbers = PdfReader(render(running, NUMBERS.format(
        pages="".join(f"<div><i>{html.escape(head)}</i><span>{number}</span></div>" for number, head in enumerate(heads, 1)))))
    writer = PdfWriter()
    for page in front.pages:
        writer.add_page(page)
    for name, part in parts.items():
        for i, page in enumerate(part.pages):
            numbered = writer.add_page(page)
            numbered.merge_page(numbers.pages[first[name] + i - 1])
            numbered.compress_content_streams()     # merging has unpacked them
        writer.add_outline_item(title=titles[name], page_number=first[name] - 1)
        (TARGET / f"{Path(name).name}.bare").unlink()
    configuration = yaml.safe_load((build_book.ROOT / "_config.yml").read_text())
    writer.add_metadata({"/Title": configuration["title"], "/Author": configuration["author"]})
    writer.compress_identical_objects()
    writer.write(TARGET / "book.pdf")
    return len(writer.pages)


def contents(titles, first):
    """The title page and the table of contents, in HTML."""
    configuration = yaml.safe_load((build_book.ROOT / "_config.yml").read_text())
    toc = yaml.safe_load((build_book.ROOT / "_toc.yml").read_text())
    groups = [("", [toc["root"]]), *((part["caption"], [chapter["file"] for chapter in part["chapters"]])
                                     for part in toc["parts"])]
    lines = "".join(f"<h2>{html.escape(caption)}</h2>" * bool(caption)
                    + "".join(f"<p><span>{html.escape(titles[name])}</span><i></i><span>{first[name]}</span></p>"
                              for name in names if name in titles) for caption, names in groups)
    return CONTENTS.format(title=html.escape(configuration["title"]), author=html.escape(configuration["author"]),
                           licence=configuration["html"]["extra_footer"], lines=lines)


def render(running, text):
    """A PDF of an HTML text, as a stream."""
    page = running.new_page()
    page.set_content(text)
    data = page.pdf(prefer_css_page_size=True)
    page.close()
    return io.BytesIO(data)


if __name__ == "__main__":
    main()
