"""Sphinx extension: boxes for answers in place of what `check` and `quiz` show before anything is answered.

A notebook's output holds an element with the name of an exercise or a quiz. Here it becomes a form with the declaration
of `chapters/checks/` as JSON, which `_static/answers.js` judges by; an exercise that needs code gets a sentence on how
to run it.
"""

import json
import os
import re
import sys
from html import escape
from pathlib import Path

from docutils import nodes

CHAPTERS = Path(__file__).resolve().parent.parent / "chapters"
PLACE = re.compile(r'<div class="answer-here" data-answer="([\w-]+)">.*?</div>', re.DOTALL)


def exercises():
    """The module of the exercises, which lies beside the chapters."""
    for path in (CHAPTERS, CHAPTERS.parent):
        if str(path) not in sys.path:
            sys.path.insert(0, str(path))
    import exercises

    return exercises


def box(name, notebook=""):
    """The HTML for an exercise or a quiz; `notebook` is the address of the chapter's notebook."""
    declared = exercises().declarations().get(name)
    if declared is None:
        return needs_code(notebook)
    exported = declared.exported()
    if exported["kind"] != "quiz":
        return form(name, exported, "Your answer")
    asked = "".join(form(f"{name}-{place}", question, f"Question {place}. {question['text']}")
                    for place, question in enumerate(exported["questions"], start=1))
    return f'<div class="answer-quiz">{asked}</div>'


def form(name, exported, legend):
    """One box: fields, the button, a place for the reply, and the declaration."""
    if exported["kind"] == "choice":
        fields = "".join(f'<label class="answer-option"><input type="radio" name="{name}" value="{place}">'
                         f"<span>{'abcdefgh'[place]}) {escape(text)}</span></label>"
                         for place, text in enumerate(exported["options"]))
        button = '<button type="submit">Check</button>'
    else:
        alone = len(exported["labels"]) == 1
        named = f' aria-label="{escape(legend)}"' if alone else ""
        fields = "".join(f'<label>{"" if alone else escape(label)}'
                         f'<input type="text" autocomplete="off" spellcheck="false"{named}></label>'
                         for label in exported["labels"])
        fields = f'<div class="answer-fields">{fields}<button type="submit">Check</button></div>'
        button = ""
    judged_by = json.dumps(exported, ensure_ascii=False).replace("<", "\\u003c")
    # by the method "dialog" a form that no script listens to does nothing, and keeps what was typed
    return (f'<form class="answer" data-answer="{name}" method="dialog" novalidate>'
            f"<fieldset><legend>{escape(legend)}</legend>{fields}{button}</fieldset><output></output>"
            "<noscript>Answers are checked by a script, or by the notebook.</noscript>"
            f'<script type="application/json">{judged_by}</script></form>')


def needs_code(notebook):
    """The HTML below an exercise whose answer is code."""
    link = f'<a href="{escape(notebook)}" download>the notebook of this chapter</a>' if notebook else "the notebook"
    repository = os.environ.get("BOOK_REPOSITORY", "")
    copied = f'<a href="{escape(repository)}">the book&#x2019;s repository</a>' if repository else "the book&#x2019;s folder"
    return (f'<div class="answer-code"><p>The answer is code, so it needs {link}. In a copy of {copied} '
            "run <code>make lab</code>, open the chapter, put your answer in place of <code>...</code> and run the cell."
            "</p></div>")


def fill(app, doctree):
    """Put the boxes into a page."""
    page = app.env.docname
    notebook = "../" * page.count("/") + f"_sources/{page}.ipynb"
    for node in list(doctree.findall(nodes.raw)):
        if "html" in node.get("format", "").split() and "answer-here" in node.astext():
            filled = PLACE.sub(lambda found: box(found[1], notebook), node.astext())
            node.rawsource, node.children = filled, [nodes.Text(filled)]


def setup(app):
    app.connect("doctree-read", fill)
    return {"version": "1", "parallel_read_safe": True}
