"""A slider in a live notebook: it draws the picture for the value that the reader asks for."""

import base64
import functools
import html
import numbers

import ipywidgets as widgets

from figures.drawing import frames

STEPS = 200       # of a slider between its smallest and its largest value


def widget(slider):
    """Handles above a picture. Where `slider.draw` can do it, the handles also take values between the frames.

    Parameters
    ----------
    slider : slider.Slider
    """
    between = [_draws_between(slider, place) for place in range(len(slider.parameters))]
    handles = [_handle(p, free) for p, free in zip(slider.parameters, between)]
    picture = widgets.HTML(_img(slider.start_png, slider.start_alt, slider.size))

    @functools.lru_cache(maxsize=200)
    def drawn(values):
        return _img(frames.png(slider.figure(values)), slider.describe(values), slider.size)

    def show(change):
        picture.value = drawn(tuple(handle.value for handle in handles))

    for handle in handles:
        handle.observe(show, "value")
    return widgets.VBox([*handles, picture], layout=widgets.Layout(max_width=f"{slider.size[0] * frames.DPI:.0f}px"))


def _draws_between(slider, place):
    """Whether a picture can be drawn at a value between two of the frames' values."""
    values = slider.parameters[place].values
    pairs = [(low, high) for low, high in zip(values, values[1:]) if isinstance(low, numbers.Real) and high > low
             and not (isinstance(low, numbers.Integral) and high - low == 1)]
    if slider.parameters[place].kind != "range" or not pairs or list(values) != sorted(values):
        return False
    low, high = pairs[-1]
    middle = (low + high) // 2 if isinstance(low, numbers.Integral) else (low + high) / 2
    asked = (*slider.start[:place], middle, *slider.start[place + 1:])
    try:
        slider.describe(asked)
        slider.figure(asked)
    except Exception:       # whatever stops it: its pictures were computed for the values of the frames only
        return False
    return True


def _handle(parameter, free):
    """The widget for one parameter; the tab key reaches it and the arrow keys move it."""
    shared = {"description": parameter.label, "value": parameter.start,
              "style": {"description_width": "initial"}, "layout": widgets.Layout(width="98%")}
    low, high = parameter.values[0], parameter.values[-1]
    if free and all(isinstance(value, numbers.Integral) for value in parameter.values):
        return widgets.IntSlider(min=low, max=high, **shared)
    if free:
        form = parameter.format if isinstance(parameter.format, str) and parameter.format else ".3g"
        return widgets.FloatSlider(min=low, max=high, step=(high - low) / STEPS, readout_format=form, **shared)
    kind = {"range": widgets.SelectionSlider, "radio": widgets.RadioButtons, "list": widgets.Dropdown}[parameter.kind]
    return kind(options=list(zip(parameter.texts, parameter.values)), **shared)


def _img(png, alt, size):
    """The picture as an HTML element that shrinks with the page."""
    return (f'<img alt="{html.escape(alt, quote=True)}" width="{size[0] * frames.DPI:.0f}" '
            f'height="{size[1] * frames.DPI:.0f}" style="max-width: 100%; height: auto" '
            f'src="data:image/png;base64,{base64.b64encode(png).decode()}">')
