"""The colours of a figure for the dark theme: greys and tints inverted, strong colours kept.

`recolour(fig)` changes a figure that was drawn for the pale card into the same figure on a dark one. A strong colour that
reads on both stays, such as those of alpha. Any other keeps its hue and has its lightness inverted, so that it stands out
from the dark card as it did from the pale one. What is coloured by a colour map and fills an area (images, heat maps)
stays as it is, with all that is written on it, since its colour bar explains it.
"""

import functools
import re

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import Collection, QuadMesh, TriMesh
from matplotlib.colors import ListedColormap, to_hex, to_rgba
from matplotlib.contour import ContourSet
from matplotlib.image import _ImageBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation, Text

from figures.drawing.style import CARD, INK

DARK_CARD = "#171b21"
DARK_INK = "#e4e6e9"
STRONG = 0.07           # distance from grey, in Oklab, above which a readable colour is kept
READABLE, LEGIBLE = 3, 4.5      # contrast of lines and of words, as WCAG defines it

# Oklab (Ottosson 2020): linear RGB to cone responses, and their cube roots to lightness and two axes of colour.
TO_CONES = np.array([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                     [0.0883024619, 0.2817188376, 0.6299787005]])
TO_LAB = np.array([[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
                   [0.0259040371, 0.7827717662, -0.8086757660]])


def dark(colour):
    """The colour for the dark theme that plays the part of `colour` on the pale card.

    Parameters
    ----------
    colour : a colour of Matplotlib, with or without opacity, or "none"

    Returns
    -------
    tuple (red, green, blue, opacity)
    """
    *rgb, opacity = to_rgba(colour)
    return (*_dark(tuple(rgb)), opacity)


@functools.cache
def _dark(rgb):
    """The colour for the dark theme, for an opaque colour."""
    if to_hex(rgb) == CARD:
        return to_rgba(DARK_CARD)[:3]
    lightness, *hue = _lab(rgb)
    if np.hypot(*hue) > STRONG and _contrast(rgb, to_rgba(DARK_CARD)[:3]) >= READABLE:
        return tuple(rgb)
    pale, deep = _lab(to_rgba(CARD)[:3])[0], _lab(to_rgba(INK)[:3])[0]
    low, high = _lab(to_rgba(DARK_CARD)[:3])[0], _lab(to_rgba(DARK_INK)[:3])[0]
    turned = np.clip(low + (pale - lightness) * (high - low) / (pale - deep), 0, 1)
    for strength in np.linspace(1, 0, 21):      # as much colour as a screen can show at this lightness
        found = _rgb([turned, *(strength * np.array(hue))])
        if np.all((found >= -1e-3) & (found <= 1 + 1e-3)):
            break
    return tuple(float(part) for part in np.clip(found, 0, 1))


def _linear(rgb):
    """RGB in proportion to the light that a screen gives."""
    rgb = np.asarray(rgb)
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _contrast(first, second):
    """The contrast ratio of WCAG, 1 to 21."""
    low, high = sorted(_linear(rgb) @ [0.2126, 0.7152, 0.0722] for rgb in (first, second))
    return (high + 0.05) / (low + 0.05)


def _lab(rgb):
    """Lightness and the two axes of colour, of RGB."""
    return TO_LAB @ np.cbrt(TO_CONES @ _linear(rgb))


def _rgb(lab):
    """RGB of lightness and colour; outside [0, 1] where no screen shows it."""
    linear = np.linalg.solve(TO_CONES, np.linalg.solve(TO_LAB, np.asarray(lab)) ** 3)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * np.abs(linear) ** (1 / 2.4) - 0.055)


def dark_map(cmap):
    """A colour map for the dark theme."""
    count = cmap.N if isinstance(cmap, ListedColormap) else 256
    return ListedColormap([dark(colour) for colour in cmap(np.linspace(0, 1, count))], name=f"{cmap.name} (dark)")


def pictures_in(fig):
    """What a colour map fills in a figure, and what therefore keeps its colours."""
    return [artist for artist in fig.findobj() if _fills_an_area(artist)]


def recoloured(svg):
    """The SVG of a figure without pictures, as bytes, in the colours of the dark theme."""
    default = b"<style type=\"text/css\">svg{fill: #000000}"     # what is filled with black does not say so
    svg = svg.replace(b"<style type=\"text/css\">", default, 1)
    return re.sub(rb"(?<=: )#[0-9a-f]{6}\b", lambda found: to_hex(dark(found[0].decode())).encode(), svg)


def recolour(fig):
    """Change the colours of a figure that was drawn in the book's style to those of the dark theme.

    Draw the figure once beforehand, so that all its parts exist.
    """
    pictures = pictures_in(fig)
    untouched = {id(part) for axes in {artist.axes for artist in pictures} - {None} for part in _on_the_picture(axes)}
    for artist in fig.findobj(lambda artist: id(artist) not in untouched):
        _recolour(artist)
    for axes in fig.axes:
        bar = getattr(axes, "_colorbar", None)
        if bar and not any(bar.mappable is picture for picture in pictures):
            axis = bar.ax.yaxis if bar.orientation == "vertical" else bar.ax.xaxis
            ticks, words = bar.get_ticks(), [text.get_text() for text in axis.get_ticklabels()]
            if not isinstance(bar.mappable, Artist):     # a scale of its own, such as that of alpha
                bar.mappable.set_cmap(dark_map(bar.mappable.get_cmap()))
            bar.update_normal(bar.mappable)     # this brings back the usual ticks
            bar.set_ticks(ticks, labels=words)


def _fills_an_area(artist):
    """Whether a colour map fills an area of this artist, and does not only colour points and lines."""
    if isinstance(artist, _ImageBase):
        return True
    filled = isinstance(artist, QuadMesh | TriMesh) or (isinstance(artist, ContourSet) and artist.filled)
    return filled and artist.get_array() is not None


def _on_the_picture(axes):
    """What lies within the frame of these axes: everything but the axes' own parts and their titles."""
    frame = {id(part) for part in [axes, axes.patch, axes.xaxis, axes.yaxis, *axes.spines.values(), axes.title,
                                   axes._left_title, axes._right_title]}
    within = [part for part in axes.get_children() if id(part) not in frame]
    return [nested for part in within for nested in part.findobj()]


def _recolour(artist):
    """Change the colours of one artist."""
    if isinstance(artist, Line2D):
        face, edge = artist.get_markerfacecolor(), artist.get_markeredgecolor()
        artist.set(color=_turned(artist.get_color()), markerfacecolor=_turned(face), markeredgecolor=_turned(edge))
    elif isinstance(artist, Text):
        artist.set_color(_legible(artist.get_color()))
        if artist.get_bbox_patch():
            _recolour(artist.get_bbox_patch())
        if isinstance(artist, Annotation) and artist.arrow_patch:
            _recolour(artist.arrow_patch)
    elif isinstance(artist, Patch):
        face, edge = artist.get_facecolor(), artist.get_edgecolor()
        artist.set(facecolor=_turned(face), edgecolor=_turned(edge))
    elif isinstance(artist, Collection) and artist.get_array() is not None:
        artist.set_cmap(dark_map(artist.get_cmap()))
    elif isinstance(artist, Collection):
        faces, edges = artist.get_facecolor(), artist.get_edgecolor()
        artist.set(facecolor=[dark(face) for face in faces] or "none", edgecolor=[dark(edge) for edge in edges] or "none")


def _legible(colour):
    """The dark colour for words of `colour`: that of lines, made lighter until it reads."""
    *rgb, opacity = to_rgba(dark(colour))
    while _contrast(rgb, to_rgba(DARK_CARD)[:3]) < LEGIBLE:
        rgb = np.add(0.95 * np.array(rgb), 0.05)
    return (*rgb, opacity)


def _turned(colour):
    """The dark colour for `colour`; "auto" and "none" stay."""
    return colour if isinstance(colour, str) and colour in ("auto", "none") else dark(colour)
