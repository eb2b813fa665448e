"""The map of methods, bui2017 figure 1 redrawn: two polygons whose corners and edges are links.

In a chapter make `fig1.show()` the last line of a cell, without a figure's metadata: the map is HTML, it carries its own
description, and its list of links says in words what the drawing shows. Every place on the map leads to the section that
treats it, and names the tests that prove it; the tests of this module hold both to be there.
"""

from dataclasses import dataclass
from html import escape
from math import atan2, degrees

from figures import FOLDER
from figures.drawing import style

TESTS = FOLDER.parent / "tests"

# where the corners stand, in units of which a phone's screen has about 360
LEFT, RIGHT, WIDTH = 42, 318, 360


@dataclass(frozen=True)
class Place:
    """A corner of the map at one point, or an edge between two.

    Attributes
    ----------
    label : what stands beside it in the drawing
    says : one sentence for the list of links and for readers who cannot see the drawing
    section : address of the section that treats it, relative to the chapters' folder
    tests : the tests that prove what `says` says, as "file::function"
    identity : address of the page that runs the same identity in the open, or ""
    points : ((x, y),) or ((x, y), (x, y))
    colour : of a corner; an edge without one changes its colour with alpha, from left to right
    side : where a corner's label stands, "above", "below" or "left"; "alone" for a label without a corner
    """

    label: str
    says: str
    section: str
    tests: tuple
    points: tuple
    identity: str = ""
    colour: str = ""
    side: str = "above"


VFE, FITC, PITC, EXACT = (LEFT, 250), (RIGHT, 250), (RIGHT, 150), (RIGHT, 40)
VFE_SPARSE, EP_SPARSE, VFE_FULL, EP_FULL = (LEFT, 250), (RIGHT, 250), (LEFT, 60), (RIGHT, 60)
CHAPTER = "sparse-classification.html"
ALGEBRA, EXACT_PAGE = "identities.html#sparse-regression", "identities.html#exact-inference"


def _inter_domain(panel):
    return Place("all of it again with blurred pseudo-points", f"Inter-domain pseudo-points in {panel}: only the feature map "
                 "changes, and at zero width they are the ordinary ones.", "sparse-beyond-probit.html#features-of-another-kind",
                 ("package/test_interdomain.py::test_zero_width_is_an_ordinary_pseudo_point",), ((WIDTH // 2, 302),),
                 side="alone")


REGRESSION = (
    Place("Power EP, α", "Between VFE and FITC lies Power EP: its sites are known in closed form, and the evidence is "
          "continuous down to α = 0.", "sparse-regression.html#power-ep-in-four-lines",
          ("package/test_power_ep.py::test_sites_are_the_closed_form_and_one_more_sweep_does_not_move_them",
           "package/test_power_ep.py::test_evidence_is_continuous_at_alpha_zero"), (VFE, FITC), ALGEBRA),
    Place("Power EP with blocks", "Power EP with blocks joins VFE to PITC; each block may have a power of its own.",
          "sparse-regression.html#blocks-and-a-misprint-with-consequences",
          ("package/test_power_ep.py::test_private_powers_of_blocks_equal_block_power_ep_iterated_to_convergence",
           "package/test_power_ep.py::test_blocks_with_alpha_zero_are_vfe"), (VFE, PITC), ALGEBRA),
    Place("pseudo-inputs at the data", "With Z = X nothing is left to disagree about: every α is the exact GP.",
          "gp-features.html#how-good-can-m-features-be",
          ("package/test_power_ep.py::test_pseudo_inputs_at_the_data_give_the_exact_gp",), (VFE, EXACT), ALGEBRA),
    Place("larger blocks", "Blocks of one datum are FITC, larger ones PITC.",
          "sparse-regression.html#blocks-and-a-misprint-with-consequences",
          ("package/test_power_ep.py::test_blocks_of_one_are_pointwise",), (FITC, PITC), ALGEBRA, style.colours["ep"]),
    Place("one block", "One block of all data has the exact evidence, wherever the pseudo-inputs lie.",
          "sparse-regression.html#blocks-and-a-misprint-with-consequences",
          ("package/test_power_ep.py::test_one_block_with_alpha_one_has_the_exact_evidence_whatever_the_pseudo_inputs",),
          (PITC, EXACT), ALGEBRA, style.colours["ep"]),
    Place("or one α per datum", "Every datum may have a power of its own.",
          "sparse-regression.html#a-private-power-for-each-datum",
          ("package/test_power_ep.py::test_private_powers_of_data_equal_blocks_of_one_iterated_to_convergence",),
          ((WIDTH // 2, 268),), ALGEBRA, side="alone"),
    Place("VFE", "α = 0 is VFE (Titsias 2009), whatever the blocks.", "sparse-regression.html#vfe-a-bound-and-what-it-penalises",
          ("package/test_power_ep.py::test_alpha_zero_is_vfe",), (VFE,), ALGEBRA, style.colours["vfe"], "below"),
    Place("FITC", "α = 1 is FITC (Snelson & Ghahramani 2006).", "sparse-regression.html#four-ways-to-treat-one-matrix",
          ("package/test_power_ep.py::test_alpha_one_is_fitc",), (FITC,), ALGEBRA, style.colours["ep"], "below"),
    Place("PITC", "α = 1 with blocks is PITC (Quiñonero-Candela & Rasmussen 2005).",
          "sparse-regression.html#four-ways-to-treat-one-matrix",
          ("package/test_power_ep.py::test_blocks_with_alpha_one_are_pitc",), (PITC,), ALGEBRA, style.colours["ep"], "left"),
    Place("exact GP", "The exact Gaussian process.", "gp-features.html#the-function-space-view",
          ("package/test_exact.py::test_regression_is_the_textbook",), (EXACT,), EXACT_PAGE, style.colours["exact"]),
    _inter_domain("regression"),
)

CLASSIFICATION = (
    Place("sparse Power EP, α", "Between the two lies sparse Power EP, which takes hardly more sweeps at any α than at 1.",
          f"{CHAPTER}#no-seam-at-zero", ("package/test_iterative.py::test_sweeps_hardly_depend_on_alpha",),
          (VFE_SPARSE, EP_SPARSE)),
    Place("Power EP, α", "Power EP with a site for each function value joins the two methods without sparsity.",
          "power-ep.html#a-classifier-and-the-truth", ("package/test_exact.py::test_reference_full_power_ep",),
          (VFE_FULL, EP_FULL)),
    Place("Z = X", "With the pseudo-inputs at the data, sparse VFE is variational inference on all function values.",
          f"{CHAPTER}#reproduction-with-a-pseudo-input-at-every-datum",
          ("package/test_iterative.py::test_pseudo_inputs_at_the_data_give_dense_power_ep",), (VFE_SPARSE, VFE_FULL), "",
          style.colours["vfe"]),
    Place("Z = X", "With the pseudo-inputs at the data, sparse EP is EP for Gaussian process classification.",
          f"{CHAPTER}#reproduction-with-a-pseudo-input-at-every-datum",
          ("package/test_iterative.py::test_pseudo_inputs_at_the_data_give_dense_power_ep",
           "experiments/test_classification_figures.py::test_sparse_ep_at_the_data_is_standard_ep_on_the_whole_grid"),
          (EP_SPARSE, EP_FULL), "",
          style.colours["ep"]),
    Place("sparse VFE", "α = 0 maximises the variational bound (Hensman, Matthews & Ghahramani 2015).",
          f"{CHAPTER}#the-evidence", ("package/test_iterative.py::test_alpha_zero_is_the_maximum_of_the_variational_bound",),
          (VFE_SPARSE,), "", style.colours["vfe"], "below"),
    Place("sparse EP", "α = 1 is sparse EP; the values are those of the paper's authors' own code.",
          f"{CHAPTER}#two-numbers-per-datum", ("package/test_iterative.py::test_values_of_the_authors_code_are_met",),
          (EP_SPARSE,), "", style.colours["ep"], "below"),
    Place("full VFE", "α = 0 without sparsity is the best Gaussian (Opper & Archambeau 2009).",
          "power-ep.html#the-limit-0", ("package/test_exact.py::test_alpha_zero_is_the_best_variational_bound",), (VFE_FULL,),
          EXACT_PAGE, style.colours["vfe"]),
    Place("full EP", "α = 1 without sparsity is EP for classification (Rasmussen & Williams 2006, section 3.6).",
          "ep-step-by-step.html#ep-for-gaussian-process-classification", ("package/test_exact.py::test_reference_full_ep",),
          (EP_FULL,), EXACT_PAGE, style.colours["ep"]),
    Place("with Gaussian noise:\nthe map of regression", "With Gaussian noise in place of a step, every place of this map is the "
          "one of the other map, after a single sweep.", "sparse-regression.html#power-ep-in-four-lines",
          ("package/test_iterative.py::test_gaussian_likelihood_needs_one_sweep_to_the_closed_form",),
          ((WIDTH // 2, 130),), ALGEBRA, side="alone"),
    _inter_domain("classification"),
)

PANELS = {"Regression": REGRESSION, "Classification": CLASSIFICATION}
DESCRIPTIONS = {
    "Regression": "A triangle: VFE on the left, on the right FITC at the foot, PITC half way up and the exact GP at the top. "
                  "The power α grows from left to right, the blocks from the foot to the top.",
    "Classification": "A square: the variational methods on the left and EP on the right, sparse at the foot and with all "
                      "function values at the top. The power α grows from left to right.",
}
ANCHOR = "map-of-methods"
FIGURE = "fig-sc-map"       # its name and its caption in the built book
CAPTION = ("The map of methods, after figure 1 of the paper. A corner is a method, and an edge joins two. Each leads to the "
           "section that treats it.")

CSS = """
.method-map { color: var(--pst-color-text-base, currentColor); margin: 0.5rem 0; }
.method-map .panels { display: flex; flex-wrap: wrap; gap: 0.5rem; }
.method-map .panel { flex: 1 1 320px; max-width: 520px; margin: 0; }
.method-map svg { width: 100%; height: auto; display: block; font: 13px system-ui, sans-serif; }
.method-map svg text { fill: currentColor; stroke: none; }
.method-map svg a { color: inherit; text-decoration: none; }
.method-map svg a:hover text, .method-map svg a:focus-visible text { text-decoration: underline; font-weight: 600; }
.method-map svg a:focus-visible { outline: 2px solid var(--pst-color-primary, currentColor); outline-offset: 2px; }
.method-map li { margin-bottom: 0.4rem; }
.method-map code { overflow-wrap: anywhere; font-size: 0.85em; }
html[data-theme="dark"] body .bd-content div.cell_output .text_html:has(> .method-map) {
  padding: 0; background: none; color: inherit; }
"""


def unproved():
    """How many places of the map name a test that does not exist."""
    return float(sum(not all(map(_exists, place.tests)) for places in PANELS.values() for place in places))


def _exists(test):
    file, _, function = test.partition("::")
    return f"\ndef {function}(" in (TESTS / file).read_text(encoding="utf-8")


def show():
    """The map as the output of a notebook's cell."""
    from IPython.display import HTML  # only a notebook needs it

    return HTML(html())


def html():
    """The map as one piece of HTML: two drawings, and the list of their links with the tests behind them."""
    figures = "".join(_panel(name, places) for name, places in PANELS.items())
    lists = "".join(f"<p><strong>{name}</strong></p><ul>{''.join(map(_entry, places))}</ul>"
                    for name, places in PANELS.items())
    return (f'<div class="method-map" id="{ANCHOR}"><style>{CSS}</style><div class="panels">{figures}</div>'
            f"<details><summary>All places of the map, and the tests that prove them</summary>{lists}</details></div>")


def _panel(name, places):
    key = name.lower()
    stops = "".join(f'<stop offset="{alpha}" stop-color="{style.alpha_colour(alpha)}"/>' for alpha in (0, 0.25, 0.5, 0.75, 1))
    outline = " ".join(f"{x},{y}" for x, y in _corners(places))
    return (f'<div class="panel"><svg viewBox="0 0 {WIDTH} 314" role="group" aria-labelledby="map-{key}-title map-{key}-text">'
            f'<title id="map-{key}-title">{name}</title><desc id="map-{key}-text">{DESCRIPTIONS[name]}</desc>'
            f'<defs><linearGradient id="map-{key}-alpha" gradientUnits="userSpaceOnUse" x1="{LEFT}" x2="{RIGHT}">{stops}'
            f'</linearGradient></defs><polygon points="{outline}" fill="url(#map-{key}-alpha)" opacity="0.13"/>'
            f'<text x="8" y="20" font-weight="600" font-size="15" aria-hidden="true">{name}</text>'
            f'{"".join(_drawing(place, f"url(#map-{key}-alpha)") for place in places)}</svg></div>')


def _corners(places):
    """The outline: down the left side and up the right one."""
    corners = [place.points[0] for place in places if len(place.points) == 1 and place.side != "alone"]
    left = sorted((point for point in corners if point[0] == LEFT), key=lambda point: point[1])
    right = sorted((point for point in corners if point[0] == RIGHT), key=lambda point: -point[1])
    return left + right


def _drawing(place, alpha_scale):
    shape = _edge(place, place.colour or alpha_scale) if len(place.points) == 2 else _corner(place)
    return (f'<a href="{escape(place.section)}" aria-label="{escape(f"{_words(place.label)}. {place.says}")}">'
            f"<title>{escape(place.says)}</title>{shape}</a>")


def _words(label):
    return label.replace(":", "").replace("\n", " ")


def _edge(place, colour):
    """A line, a broad invisible one for thumbs, and the label along it."""
    (x1, y1), (x2, y2) = place.points
    line = f'x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"'
    x, y = (x1 + x2) / 2, (y1 + y2) / 2
    if x1 == x2:        # beside an upright line the label stands to its inner side, low enough to clear slanted ones
        x, y, turn, anchor = (x + 8, y + 16, 0, "start") if x == LEFT else (x - 8, y + 16, 0, "end")
    else:
        y, turn, anchor = y - 8, degrees(atan2(y2 - y1, x2 - x1)), "middle"
    return (f'<line {line} stroke="transparent" stroke-width="24"/><line {line} stroke="{colour}" stroke-width="4"/>'
            f'<text text-anchor="{anchor}" transform="translate({x:g} {y:g}) rotate({turn:.1f})">{escape(place.label)}</text>')


def _corner(place):
    """A dot with its label, or the label alone."""
    x, y = place.points[0]
    dx, dy, anchor = {"above": (0, -15, "middle"), "below": (0, 26, "middle"), "left": (-16, -2, "end"),
                      "alone": (0, 4, "middle")}[place.side]
    dot = "" if place.side == "alone" else f'<circle cx="{x}" cy="{y}" r="9" fill="{place.colour}"/>'
    lines = place.label.split("\n")
    text = "".join(f'<tspan x="{x + dx:g}" dy="{17 * (i > 0)}">{escape(line)}</tspan>' for i, line in enumerate(lines))
    return f'{dot}<text y="{y + dy:g}" text-anchor="{anchor}">{text}</text>'


def _entry(place):
    tests = ", ".join(_test(place, test) for test in place.tests)
    link = f'<a href="{escape(place.section)}">{escape(_words(place.label))}</a>'
    return f"<li>{link}: {escape(place.says)} Proved by {tests}.</li>"


def _test(place, test):
    name = f"<code>{escape(test.partition('::')[2])}</code>"
    return f'<a href="{escape(place.identity)}">{name}</a>' if place.identity else name
