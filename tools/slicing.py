"""Which statements of a program some of its names depend on.

An exercise needs a few of a chapter's many definitions. `needed` finds the statements that make them, backwards from
the place where they are used: the last one that binds a name, those that change it later, and what these depend on.
"""

import ast
import symtable
from dataclasses import dataclass, field
from functools import cached_property

VALUES = {"value", "iter", "generators"}                     # parts of a statement that run before the others
AT_ONCE = {"listcomp", "setcomp", "dictcomp", "genexpr"}     # scopes that run where they stand, unlike functions


@dataclass(frozen=True)
class Statement:
    """A statement at the top level of a program, and where it comes from."""

    source: str
    origin: object = field(default=None, compare=False)

    @cached_property
    def tree(self):
        return ast.parse(self.source)

    @cached_property
    def table(self):
        return symtable.symtable(self.source, "statement", "exec")

    @cached_property
    def binds(self):
        """Names that have a new value after it."""
        return set(bound(self.tree))

    @cached_property
    def uses(self):
        """Names that must have their values before it."""
        return (globals_of(self.table, AT_ONCE) | self.first("read")) - self.first("bound")

    def first(self, event):
        """Names that the statement, as it runs, first reads (or first binds)."""
        return {name for name, what in self.events.items() if what == event}

    @cached_property
    def events(self):
        """What happens first to each name: it is read or bound."""
        found = {}
        for name, what in run(self.tree):
            found.setdefault(name, what)
        return found

    @cached_property
    def uses_later(self):
        """Names that its functions need once they are called."""
        return {name for table in self.table.get_children() for name in globals_of(table, None)}

    @cached_property
    def changes(self):
        """Names whose objects it changes: by storing into them, or by a method whose result is not used."""
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
                found.add(root(node))
            elif isinstance(node, ast.Expr) and isinstance(getattr(node.value, "func", None), ast.Attribute):
                found.add(root(node.value.func))
        return found - {None}

    @property
    def is_import(self):
        return isinstance(self.tree.body[0], ast.Import | ast.ImportFrom)

    @property
    def makes_random_numbers(self):
        """Whether it makes a random generator, which changes with each use."""
        return "default_rng(" in self.source and isinstance(self.tree.body[0], ast.Assign)


def statements(source, origin=None):
    """The statements of a program, with the comments inside them."""
    lines, found = source.split("\n"), []
    for node in ast.parse(source).body:
        first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
        found.append(Statement("\n".join(lines[first - 1:node.end_lineno]), origin))
    return found


def needed(program, wanted, before):
    """Places of the statements among the first `before` of the program that the names wanted depend on, in order."""
    chosen, asked = set(), set()

    def ask(name, before):
        if (name, before) in asked:
            return
        asked.add((name, before))
        place = next((place for place in reversed(range(before)) if name in program[place].binds), None)
        if place is None:
            return
        take(place, before)
        if not program[place].is_import:
            random = program[place].makes_random_numbers
            for later in range(place + 1, before):
                if name in program[later].changes or (random and name in program[later].uses):
                    take(later, before)

    def take(place, before):
        chosen.add(place)
        for name in program[place].uses:
            ask(name, place)
        for name in program[place].uses_later:
            ask(name, place)
            ask(name, before)

    for name in wanted:
        ask(name, before)
    return sorted(chosen)


def globals_of(table, only):
    """Names of outer scopes that a scope refers to, with the scopes inside it of the given names (None for all)."""
    found = {symbol.get_name() for symbol in table.get_symbols()
             if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module")}
    for child in table.get_children():
        if only is None or child.get_name() in only:
            found |= globals_of(child, only)
    return found


def run(node):
    """(name, "read" or "bound") in the order in which a piece of code does it as it runs; a function is not called."""
    if isinstance(node, ast.Name):
        yield node.id, "bound" if isinstance(node.ctx, ast.Store) else "read"
    elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
        return
    else:
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, "read"
        for _, part in sorted(ast.iter_fields(node), key=lambda field: field[0] not in VALUES):
            for child in part if isinstance(part, list) else [part]:
                if isinstance(child, ast.AST):
                    yield from run(child)


def bound(node):
    """The names that a piece of code binds in its own scope."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield child.name
        elif isinstance(child, ast.alias):
            yield (child.asname or child.name).split(".")[0]
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield child.id
        elif not isinstance(child, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            yield from bound(child)


def names(expression):
    """The names in an expression."""
    return {node.id for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Name)}


def root(node):
    """The name at the root of a.b[c].d, if it is one."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
