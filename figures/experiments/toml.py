"""Write tables of TOML, which the standard library only reads."""

import json


def table(header, entry):
    """A table as text: an empty line, its header, and a line for each name; values are texts, numbers, or lists of these."""
    return "\n".join(["", header, *(f"{name} = {_value(value)}" for name, value in entry.items()), ""])


def _value(value):
    if isinstance(value, list):
        return "[" + "".join(f"\n  {_value(item)}," for item in value) + "\n]" if value else "[]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
