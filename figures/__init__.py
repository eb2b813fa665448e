"""All that is drawn in the book: `drawing` (style, sliders), `experiments` (the runner, a folder per paper), their results."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
