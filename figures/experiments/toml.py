"""Read files of TOML, and write tables of it, which the standard library cannot."""

import json
import tomllib
from pathlib import Path


def read(file):
    """What a file of TOML holds, a dict.

    Raises
    ------
    ValueError
        If it is no TOML; the message names file and line.
    """
    try:
        return tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise ValueError(f"{file}: {problem}; mend that line, or restore the file from the version control") from None


def table(header, entry):
    """A table as text: an empty line, its header, and a line for each name; values are texts, numbers, or lists of these."""
    return "\n".join(["", header, *(f"{name} = {_value(value)}" for name, value in entry.items()), ""])


def _value(value):
    if isinstance(value, list):
        return "[" + "".join(f"\n  {_value(item)}," for item in value) + "\n]" if value else "[]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
