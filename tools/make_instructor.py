"""The instructor edition in _build/instructor: a page of notes for each chapter, and nbgrader's course.

The notes link to the sliders of the built site, so they belong beside it, in _build.
"""

import shutil
from html import escape

import build_book
import make_student
import teacher_notes
from nbconvert import HTMLExporter
from nbformat.v4 import new_markdown_cell, new_notebook
from pygments.formatters import HtmlFormatter

INSTRUCTOR = build_book.BUILD / "instructor"
MATHJAX, FONTS = build_book.ROOT / "node_modules/mathjax/es5", "output/chtml/fonts"
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ max-width: 46rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }}
h2 {{ margin-top: 2.5rem; border-top: 1px solid #bbb; padding-top: 1rem; }}
table {{ border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }}
td, th {{ border: 1px solid #bbb; padding: .3rem .6rem; text-align: left; vertical-align: top; }}
pre {{ overflow-x: auto; padding: .6rem; background: #f5f5f5; font-size: .85rem; }}
.jp-OutputPrompt, .jp-InputPrompt, .prompt, .anchor-link {{ display: none; }}
mjx-container[display="true"] {{ overflow-x: auto; overflow-y: hidden; }}
@media print {{ h2 {{ break-after: avoid; }} }}
{highlighting}
</style>
<script>
MathJax = {{tex: {{inlineMath: [["$", "$"]]}}, options: {{enableMenu: false}}}}
</script>
<script async src="mathjax/tex-chtml.js"></script>
</head>
<body>
{body}
</body>
</html>
"""


def page(title, cells):
    """Cells as one page of HTML."""
    exporter = HTMLExporter(template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True)
    body, _ = exporter.from_notebook_node(new_notebook(cells=cells))
    return PAGE.format(title=escape(title), body=body, highlighting=HtmlFormatter().get_style_defs(".highlight"))


def make(folder, chapters):
    """Write the notes of all chapters and a page that lists them."""
    shutil.copytree(MATHJAX / FONTS, folder / "mathjax" / FONTS, dirs_exist_ok=True)
    for path in (MATHJAX / "tex-chtml.js", MATHJAX.parent / "LICENSE"):
        shutil.copy2(path, folder / "mathjax")
    listed = []
    for chapter in chapters:
        notes = page(f"{chapter.title}: notes for teachers", teacher_notes.notes(chapter, "course/source"))
        (folder / f"{chapter.stem}.html").write_text(notes, encoding="utf-8")
        minutes = sum(exercise.minutes for exercise in chapter.exercises)
        listed.append((f"[{chapter.title}]({chapter.stem}.html)", len(chapter.exercises), minutes, chapter.points))
    contents = "# Notes for teachers\n\n" + teacher_notes.table(("chapter", "exercises", "minutes", "points"), listed)
    (folder / "index.html").write_text(page("Notes for teachers", [new_markdown_cell(contents)]), encoding="utf-8")


def main():
    chapters = make_student.make(make_student.STUDENT, make_student.COURSE)
    make(INSTRUCTOR, chapters)
    print(f"notes for {len(chapters)} chapters: {(INSTRUCTOR / 'index.html').relative_to(build_book.ROOT)}")


if __name__ == "__main__":
    main()
