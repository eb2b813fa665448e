"""The style: one colour scale for alpha, seen by everybody on every page."""

import itertools

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from figures.drawing import dark, style

LIGHT_PAGE, DARK_PAGE = "#ffffff", "#14181e"

# How a screen's linear RGB looks to colour-blind readers of three kinds: Machado, Oliveira & Fernandes 2009, severity 1
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour):
    rgb = np.array(mpl.colors.to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def luminance(colour):
    return linear(colour) @ [0.2126, 0.7152, 0.0722]


def contrast(colour, background):
    """WCAG contrast ratio, 1 to 21."""
    low, high = sorted([luminance(colour), luminance(background)])
    return (high + 0.05) / (low + 0.05)


def lab(rgb):
    """CIE L*a*b* of linear RGB."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    f = [np.cbrt(t) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def difference(first, second, deficiency):
    """How far apart two colours look; about 2 is just visible."""
    see = np.array(DEFICIENCIES[deficiency])
    return np.linalg.norm(lab(see @ linear(first)) - lab(see @ linear(second)))


def test_the_scale_runs_from_blue_to_red():
    r, _, b = mpl.colors.to_rgb(style.alpha_colour(0))
    assert b > 2 * r
    r, _, b = mpl.colors.to_rgb(style.alpha_colour(1.0))
    assert r > 2 * b
    assert style.alpha_colour([0, 1]) == [style.colours["vfe"], style.colours["ep"]]


def test_lightness_grows_with_alpha():
    lightness = [luminance(style.alpha_colour(alpha)) for alpha in np.linspace(0, 1, 5)]
    assert np.all(np.diff(lightness) > 0)


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colour_blind_readers_tell_powers_apart(deficiency):
    colours = style.alpha_colour(np.linspace(0, 1, 5))
    steps = [difference(a, b, deficiency) for a, b in itertools.pairwise(colours)]
    assert min(steps) > 25
    assert difference(colours[0], colours[-1], deficiency) > 40


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colour_blind_readers_tell_roles_apart(deficiency):
    roles = [style.colours[name] for name in ("vfe", "ep", "exact", "truth")]
    assert min(difference(a, b, deficiency) for i, a in enumerate(roles) for b in roles[:i]) > 15
    assert difference(style.colours["positive"], style.colours["negative"], deficiency) > 40


def test_lines_stand_out_from_card_and_both_pages():
    for alpha in np.linspace(0, 1, 21):
        for background in (style.CARD, LIGHT_PAGE, DARK_PAGE):
            assert contrast(style.alpha_colour(alpha), background) >= 3
    for colour in [*style.CYCLE, *(style.colours[name] for name in ("data", "truth", "exact", "pseudo"))]:
        assert contrast(colour, style.CARD) >= 3
    assert contrast(style.INK, style.CARD) >= 7


@pytest.mark.parametrize("alpha", [-0.1, 1.5, np.nan, [0.5, 2.0]])
def test_a_power_outside_its_range_is_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha must lie in \[0, 1\]"):
        style.alpha_colour(alpha)


def test_the_ends_of_alpha_have_their_methods_names():
    assert [style.alpha_label(alpha) for alpha in (0, 0.5, 1.0)] == ["α = 0 (VFE)", "α = 0.5", "α = 1 (EP)"]
    assert style.alpha_label(1, ends=("VFE", "FITC")) == "α = 1 (FITC)"


def test_use_changes_figures_and_context_puts_them_back():
    with mpl.rc_context():
        mpl.rcdefaults()
        plain = mpl.rcParams["font.size"]
        with style.context():
            assert mpl.rcParams["font.size"] != plain
        assert mpl.rcParams["font.size"] == plain
        style.use()
        assert mpl.colors.same_color(Figure().get_facecolor(), style.CARD)


def test_helpers_draw_what_they_say():
    with style.context():
        ax = Figure().add_subplot()
    x, mean, variance = np.linspace(0, 1, 5), np.zeros(5), np.full(5, 0.25)
    line = style.band(ax, x, mean, variance, "red", label="f")
    np.testing.assert_array_equal(line.get_ydata(), mean)
    ys = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (ys.min(), ys.max()) == (-1.0, 1.0)       # two standard deviations
    marks = style.pseudo_inputs(ax, np.array([[0.2], [0.4]]))
    np.testing.assert_array_equal(marks.get_xdata(), [0.2, 0.4])
    with style.context():
        style.label(ax, "x", "y", "t")
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")) == ("x", "y", "t")


def test_every_pseudo_input_is_accounted_for():
    """Three in one place, one alone, two to the left of the frame and one to the right: eight in sum with the one at an end."""
    with style.context():
        ax = Figure().add_subplot()
    Z = np.array([[-3.0], [0.5], [2.0], [2.01], [2.015], [-2.0], [7.0], [4.0]])
    marks = style.pseudo_inputs(ax, Z, limits=(-1, 4))
    np.testing.assert_array_equal(marks.get_xdata(), [0.5, 2.0, 2.01, 2.015, 4.0])
    assert sorted(text.get_text() for text in ax.texts) == ["1 ▶", "×3", "◀ 2"]


def test_pseudo_inputs_take_the_frame_from_the_axes():
    with style.context():
        free, fixed = Figure().subplots(1, 2)
    assert len(style.pseudo_inputs(free, [0.0, 5.0]).get_xdata()) == 2
    assert not free.texts
    fixed.set_xlim(0, 1)
    assert len(style.pseudo_inputs(fixed, [0.0, 5.0]).get_xdata()) == 1
    assert [text.get_text() for text in fixed.texts] == ["1 ▶"]


def test_the_dark_theme_keeps_what_stands_out():
    """Each colour stands out from the dark card as lines must, or as much as from the pale one, and keeps its hue."""
    for name in [*style.CYCLE, *style.colours.values(), *style.alpha_colour(np.linspace(0, 1, 11))]:
        light, turned = contrast(name, style.CARD), contrast(dark.dark(name)[:3], dark.DARK_CARD)
        assert turned >= min(3, 0.75 * light), name
    assert mpl.colors.to_hex(dark.dark(style.CARD)) == dark.DARK_CARD
    assert contrast(dark.dark(style.INK)[:3], dark.DARK_CARD) > 10
    r, _, b = dark.dark(style.colours["vfe"])[:3]
    assert b > 1.5 * r
    assert dark.dark(("#1a5ceb", 0.16))[3] == 0.16
    assert dark.dark("none")[3] == 0


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colour_blind_readers_tell_powers_apart_in_the_dark(deficiency):
    colours = [dark.dark(colour)[:3] for colour in style.alpha_colour(np.linspace(0, 1, 5))]
    assert min(difference(a, b, deficiency) for a, b in itertools.pairwise(colours)) > 25


def test_every_part_of_a_figure_is_recoloured():
    with style.context():
        fig = Figure()
        ax = fig.add_subplot()
        line = ax.plot([0, 1], color=style.INK, marker="o", label="a")[0]
        band = ax.fill_between([0, 1], 0, 1, color=style.INK, alpha=0.2)
        points = ax.scatter([0, 1], [0, 1], c=[0.1, 0.9], cmap="Greys")
        note = ax.annotate("here", (0, 0), (1, 1), arrowprops={"color": style.INK})
        ax.legend()
        fig.draw_without_rendering()
    dark.recolour(fig)
    fig.draw_without_rendering()
    ink = dark.dark(style.INK)
    assert mpl.colors.to_rgba(line.get_color()) == ink == mpl.colors.to_rgba(line.get_markerfacecolor())
    np.testing.assert_allclose(band.get_facecolor()[0], (*ink[:3], 0.2))
    assert mpl.colors.to_rgba(note.get_color()) == ink == note.arrow_patch.get_edgecolor()
    assert mpl.colors.to_rgba(ax.get_legend().get_texts()[0].get_color()) == ink
    assert mpl.colors.to_hex(fig.get_facecolor()) == dark.DARK_CARD
    assert mpl.colors.to_rgba(ax.xaxis.get_majorticklabels()[0].get_color()) == ink
    assert contrast(points.get_facecolor()[1][:3], dark.DARK_CARD) > 5       # the darkest grey is now the lightest


@pytest.mark.parametrize("name", [*style.CYCLE, "#8a8f94", "#1a5ceb", "#6e7277", style.INK])
def test_words_read_in_the_dark(name):
    with style.context():
        fig = Figure()
        words = fig.text(0.5, 0.5, "words", color=name)
    dark.recolour(fig)
    assert contrast(mpl.colors.to_rgba(words.get_color())[:3], dark.DARK_CARD) >= 4.5


def test_heat_maps_keep_their_colours_and_what_is_written_on_them():
    with style.context():
        fig = Figure()
        ax = fig.add_subplot()
        picture = ax.imshow([[0, 1]])
        word = ax.text(0, 0, "0", color="black")
        bar = fig.colorbar(picture)
        fig.draw_without_rendering()
    before = picture.get_cmap()
    dark.recolour(fig)
    assert picture.get_cmap() is before and word.get_color() == "black"
    assert mpl.colors.to_rgba(bar.ax.yaxis.get_majorticklabels()[0].get_color()) == dark.dark(style.INK)


def test_the_colour_bar_of_alpha_follows_the_theme():
    with style.context():
        fig = Figure()
        bar = style.alpha_colourbar(fig, fig.add_subplot())
        fig.draw_without_rendering()
    dark.recolour(fig)
    fig.draw_without_rendering()
    assert [text.get_text() for text in bar.ax.get_yticklabels()] == ["0 · VFE", "½", "1 · EP"]
    np.testing.assert_allclose(bar.mappable.to_rgba(1.0), dark.dark(style.alpha_colour(1.0)), atol=0.02)
