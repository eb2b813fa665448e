"""Sphinx extension: the directive `data_sets`, which lists the sets of some folders of the registry with source and terms.

    ```{data_sets} regression binary
    ```
"""

from html import escape

from sphinx.util.docutils import SphinxDirective

from pepcore.datasets import registry
from pepcore.datasets.catalogue import REGISTRY


class DataSets(SphinxDirective):
    """The sets of the folders that are named, in the order of the registry."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        self.env.note_dependency(str(REGISTRY))
        folders = self.arguments[0].split()
        return self.parse_text_to_nodes("\n".join(entry(info) for info in registry.values() if info.folder in folders))


def entry(info):
    """One set in Markdown: size, citation, notes, licence, where our copy is from, and the checksum of our file."""
    lines = [f"`{info.name}` ({size(info)})", f": {info.citation.rstrip('.')}.", f"  {info.notes}",
             f"  *Licence:* {info.licence}. *From:* {origin(info)}."]
    if info.sha256:
        lines.append(f'  *sha256:* <code style="overflow-wrap: anywhere">{escape(info.sha256)}</code>')
    return "\n".join(line for line in lines if line.strip()) + "\n"


def size(info):
    """Rows, inputs and classes in words."""
    classes = f", {len(info.classes)} classes" if info.classes else ""
    return f"{info.N} rows, {info.D} inputs{classes}"


def origin(info):
    """Where our copy was built from: a repository at a commit, scikit-learn or OpenML."""
    if info.origin["kind"] == "bundled":
        return f"scikit-learn's `{info.origin['loader']}`"
    if info.origin["kind"] == "openml":
        return f"[OpenML {info.origin['data_id']}](https://www.openml.org/d/{info.origin['data_id']})"
    return ", ".join(f"[{address(url)}]({url})" for url in info.origin["urls"])


def address(url):
    """Repository, first digits of the commit, and file of an address on raw.githubusercontent.com."""
    owner, repository, commit, *path = url.removeprefix("https://raw.githubusercontent.com/").split("/")
    return f"{owner}/{repository}@{commit[:7]}, {path[-1]}"


def setup(app):
    app.add_directive("data_sets", DataSets)
    return {"version": "1", "parallel_read_safe": True}
