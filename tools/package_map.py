"""The map of the package, drawn from its imports: floors of rooms, and what each room stands on.

As a Sphinx extension it adds the directive `package-map`; tests hold the package to `FLOORS`. A room is a file or a folder
of pepcore/. A room imports from the floors below its own, never from its own floor or from above.
"""

import ast
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

PACKAGE = Path(__file__).resolve().parent.parent / "pepcore"

# from the ground up; whoever adds a file or a folder says on which floor it stands
FLOORS = (
    ("gaussian", "threads"),
    ("validation",),
    ("kernels", "likelihoods", "sites", "metrics"),
    ("features", "sweeps", "datasets"),
    ("normal_equations", "posterior"),
    ("results",),
    ("exact", "power_ep", "online"),
    ("training",),
    ("multiclass",),
    ("decoupled",),
    ("estimators",),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
FIRST = ("sites", "features", "posterior", "exact", "power_ep", "training")  # what a newcomer reads, in this order

WIDTH, HEIGHT, STEP, ACROSS = 132, 30, 62, 156  # of a box, from floor to floor, from room to room, in pixels


def modules():
    """name -> path of every module below the package's own __init__, "kernels.stationary" for example."""
    paths = {path.relative_to(PACKAGE).with_suffix("").parts: path for path in PACKAGE.rglob("*.py")}
    return {".".join(parts).removesuffix(".__init__"): path for parts, path in paths.items() if parts != ("__init__",)}


def imported(path):
    """Modules of the package that the file imports, anywhere in it; a module named after `import` counts itself."""
    known, found = modules(), set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("pepcore.") for alias in node.names if alias.name.startswith("pepcore.")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "pepcore":
            for alias in node.names:
                name = f"{node.module}.{alias.name}".removeprefix("pepcore.")
                found.add(name if name in known else node.module.removeprefix("pepcore."))
    return found - {"pepcore"}


def room(name):
    """The file or folder of a module."""
    return name.partition(".")[0]


def foundations():
    """room -> set of the other rooms that it imports from."""
    found = {name: set() for name in FLOOR}
    for name, path in modules().items():
        found[room(name)] |= {room(other) for other in imported(path)} - {room(name)}
    return found


def direct():
    """`foundations` without imports that a longer path implies: room -> set of rooms."""
    below = foundations()

    def under(name):
        return below[name].union(*(under(other) for other in below[name]))

    return {name: others - set().union(*(under(other) for other in others)) for name, others in below.items()}


def says(name):
    """The first paragraph of a room's docstring."""
    path = PACKAGE / name / "__init__.py" if (PACKAGE / name).is_dir() else PACKAGE / f"{name}.py"
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).partition("\n\n")[0].replace("\n", " ")


def drawing():
    """The map as SVG, the top floor above; a box is a link to the room's entry on the page."""
    widest = max(map(len, FLOORS))
    size = (widest * ACROSS, len(FLOORS) * STEP)
    place = {}
    for number, rooms in enumerate(FLOORS):
        indent = (widest - len(rooms)) * ACROSS / 2
        for column, name in enumerate(rooms):
            place[name] = (indent + column * ACROSS + ACROSS / 2, size[1] - number * STEP - STEP / 2)
    lines = []
    for name, others in direct().items():
        (x, y), half = place[name], HEIGHT / 2
        for other in sorted(others):
            u, v = place[other]
            lines.append(f'<path d="M{x:.0f} {y + half:.0f}C{x:.0f} {y + STEP * 0.7:.0f} {u:.0f} {v - STEP * 0.7:.0f} '
                         f'{u:.0f} {v - half:.0f}"/>')
    boxes = []
    for name, (x, y) in place.items():
        label = f"{FIRST.index(name) + 1}. {name}" if name in FIRST else name
        kind = ' class="first"' if name in FIRST else ""
        corner = f'x="{x - WIDTH / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="6"'
        boxes.append(f'<a href="#module-pepcore.{name}"{kind}><rect {corner}/>'
                     f'<text x="{x:.0f}" y="{y + 5:.0f}">{escape(label)}</text></a>')
    title = f"{len(FLOOR)} files and folders on {len(FLOORS)} floors; each imports only from floors below its own"
    return (f'<div class="package-map-scroll"><svg class="package-map" role="group" viewBox="0 0 {size[0]} {size[1]}" '
            f'aria-label="{title}">'
            f'<g class="lines">{"".join(lines)}</g>{"".join(boxes)}</svg></div>')


def table():
    """The same in words, the top floor first, as Markdown, in which a bar ends a cell."""
    rows = ["| file or folder | holds | imports from |", "| --- | --- | --- |"]
    below = foundations()
    for rooms in reversed(FLOORS):
        for name in rooms:
            others = ", ".join(sorted(below[name], key=lambda other: (FLOOR[other], other))) or "nothing of the package"
            held = says(name).replace("|", r"\|")
            rows.append(f"| {{py:mod}}`{name} <pepcore.{name}>` | {held} | {others} |")
    return "\n".join(rows)


class PackageMap(SphinxDirective):
    """The drawing, and the table that says the same."""

    def run(self):
        for path in modules().values():
            self.env.note_dependency(str(path))
        return [nodes.raw("", drawing(), format="html"), *self.parse_text_to_nodes(table())]


def setup(app):
    app.add_directive("package-map", PackageMap)
    return {"version": "1", "parallel_read_safe": True}
