"""Which functions read a constant: modules are imported with a note at the beginning of each of them.

A use at the top of a module, such as a constant made of another one, is a use wherever the made one is used.
"""

from __future__ import annotations

import ast
import builtins
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from functools import cache
from pathlib import Path

from benchmarks.lib.constants import PACKAGE, ROOMS, assigned

_NOTE = "__note_use__"
_TOP = {room.partition("/")[0] for room in ROOMS}
Meanings = dict[str, frozenset[str]]  # constants that a name stands for, as `module:name`


def note_uses() -> set[str]:
    """Import the package with notes from now on; the set that constants are added to when they are read."""
    used: set[str] = set()
    setattr(builtins, _NOTE, used.add)
    sys.meta_path.insert(0, Noting())
    return used


class _Uses(ast.NodeTransformer):
    """Puts a note at the beginning of every function that has a constant in it."""

    def __init__(self, known: Meanings) -> None:
        self.known = known

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        after = 1 if ast.get_docstring(node) is not None else 0
        for name in sorted(uses(node, self.known)):
            call = ast.Expr(ast.Call(ast.Name(_NOTE, ast.Load()), [ast.Constant(name)], []))
            node.body.insert(after, call)
        return node


def uses(node: ast.AST, known: Meanings) -> set[str]:
    """Constants that a piece of code reads, by name or as an attribute of a module."""
    found: set[str] = set()
    for one in ast.walk(node):
        name = one.id if isinstance(one, ast.Name) else one.attr if isinstance(one, ast.Attribute) else ""
        found |= known.get(name, frozenset())
    return found


class Noting(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Imports the package's modules with notes."""

    def __init__(self, name: str = "", path: str = "") -> None:
        super().__init__(name, path)

    def find_spec(self, name: str, path: object, target: object = None) -> object:
        """That of any module of the package."""
        if not name.startswith("cyclescope."):
            return None
        plain = PACKAGE.parent / (name.replace(".", "/") + ".py")
        if not plain.exists() or not any(f"cyclescope.{room}" in name + plain.read_text() for room in _TOP):
            return None
        return importlib.util.spec_from_loader(name, Noting(name, str(plain)))

    def get_code(self, name: str) -> object:
        """Its code with notes."""
        module = str(Path(self.path).relative_to(PACKAGE))
        tree = ast.parse(Path(self.path).read_text())
        known = meanings(module, tree)
        changed = ast.fix_missing_locations(_Uses(known).visit(tree) if known else tree)
        return compile(changed, self.path, "exec")


def meanings(module: str, tree: ast.Module) -> Meanings:
    """Names in capitals of a module with the constants they stand for: its own, made ones, imported ones."""
    found: Meanings = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cyclescope."):
            for alias in node.names:
                found |= _imported(str(node.module), alias)
    for statement in tree.body:
        names = assigned(statement)
        if names:
            own = {f"{module}:{','.join(names)}"} if module.startswith(ROOMS) else set()
            found |= dict.fromkeys(names, frozenset(own | uses(statement, found)))
    return found


def _imported(source: str, alias: ast.alias) -> Meanings:
    """A constant of another room, or those of an imported module: these are attributes then."""
    place = source.removeprefix("cyclescope.").replace(".", "/")
    if not place.startswith(ROOMS):
        return {}
    whole = PACKAGE / place / f"{alias.name}.py"
    if whole.exists():
        return _constants(whole)
    plain = PACKAGE / f"{place}.py"
    found = _constants(plain) if plain.exists() and alias.name.strip("_").isupper() else {}
    return {alias.asname or alias.name: found[alias.name]} if alias.name in found else {}


@cache
def _constants(path: Path) -> Meanings:
    return meanings(str(path.relative_to(PACKAGE)), ast.parse(path.read_text()))
