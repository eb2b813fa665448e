"""The chapters' Markdown as plain Markdown: what only the book can look up, such as an equation, becomes a name."""

import re

ROLE = re.compile(r"\{([a-z:]+)\}`([^`]+)`")
NAMED = re.compile(r"(.*?)\s*<([^>]+)>", re.DOTALL)
KINDS = {"eq": "equation ({})", "numref": "figure ({})", "doc": "chapter *{}*", "math": "${}$",
         "cite:t": "{}", "cite": "[{}]", "cite:p": "[{}]"}


def plain(text):
    """Markdown without the roles of MyST."""
    return ROLE.sub(lambda found: written(*found.groups()), text)


def written(role, target):
    """What a role says where its target cannot be looked up."""
    if role.startswith("py:"):
        return f"`{target.lstrip('~')}`"
    if role in ("ref", "doc") and (named := NAMED.fullmatch(target)):
        return named[1]
    return KINDS.get(role, "*{}*").format(target)
