"""Numeric constants of the package, and the same modules with another number in one of them.

python -m benchmarks.lib.constants  # how many decide results of inference, its ports apart, and of analysis
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import msgspec

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "cyclescope"
JUDGES = ("edges", "interval", "layout", "levels", "looks", "pairs", "plateaus", "run", "turns",
          "sizes/in_flight", "sizes/fillers", "sizes/issue_order")  # fmt: skip
ROOMS = ("infer", "analyze", "session", "host/noise", *(f"probe/{one}" for one in JUDGES))
JUDGED = ("infer", "analyze")  # whose numbers are counted: fewer is better
LEFT_OUT = ("infer/ports",)  # asked by counted cores, and of its own benchmark: `port_constants`
FACTORS = (0.5, 2.0)


class Place(msgspec.Struct, frozen=True):
    """A number in a module: the nth in what is assigned to `name`, at a line and a column."""

    module: str
    name: str
    nth: int
    value: float
    line: int
    column: int

    @property
    def imported(self) -> str:
        """The module as it is imported."""
        return "cyclescope." + self.module.removesuffix(".py").replace("/", ".")

    @property
    def constant(self) -> str:
        """The name with its module."""
        return f"{self.module}:{self.name}"


class Mutant(msgspec.Struct, frozen=True):
    """A number, and what it is multiplied by."""

    place: Place
    factor: float

    @property
    def changed(self) -> float | int:
        """The other number: a whole one stays whole, and is at least another."""
        value = self.place.value
        if isinstance(value, int):
            return int(value * self.factor) if int(value * self.factor) != value else value + 1
        return value * self.factor

    def __str__(self) -> str:
        nth = f"[{self.place.nth}]" if self.place.nth else ""
        return f"{self.place.constant}{nth} {self.place.value:g} -> {self.changed:g}"


def mutants(rooms: tuple[str, ...] = ROOMS, left_out: tuple[str, ...] = LEFT_OUT) -> Iterator[Mutant]:
    """Every number of a constant of some rooms halved, and doubled."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = str(path.relative_to(PACKAGE))
        if module.startswith(rooms) and not (left_out and module.startswith(left_out)):
            for place in numbers(module, path.read_text()):
                yield from (Mutant(place, factor) for factor in FACTORS)


def counted(rooms: tuple[str, ...]) -> Counter[str]:
    """How many numbers the constants of some rooms have, by room."""
    found = {mutant.place for mutant in mutants(rooms)}
    return Counter(place.module.rpartition("/")[0] for place in found)


def numbers(module: str, source: str) -> Iterator[Place]:
    """Numbers of a module's constants; 0 is neither halved nor doubled."""
    seen: Counter[str] = Counter()
    for statement in ast.parse(source).body:
        name = ",".join(assigned(statement))
        if not name:
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value:
                yield Place(module, name, seen[name], node.value, node.lineno, node.col_offset)
                seen[name] += 1


def assigned(statement: ast.stmt) -> list[str]:
    """The names that a statement assigns to, where all are in capitals."""
    targets = statement.targets if isinstance(statement, ast.Assign) else ()
    first = statement.target if isinstance(statement, ast.AnnAssign) else next(iter(targets), None)
    names = [node.id for node in ast.walk(first) if isinstance(node, ast.Name)] if first else []
    return names if all(name.strip("_").isupper() for name in names) else []


class Mutating(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Imports one module with another number in it."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        super().__init__(mutant.place.imported, str(PACKAGE / mutant.place.module))

    def find_spec(self, name: str, path: object, target: object = None) -> object:
        """That of the wanted module."""
        return importlib.util.spec_from_loader(name, self) if name == self.name else None

    def get_code(self, name: str) -> object:
        """Its code with the other number."""
        return compile(mutated(self.mutant), self.path, "exec")


def mutated(mutant: Mutant) -> ast.Module:
    """The module with the other number."""
    place = mutant.place
    tree = ast.parse((PACKAGE / place.module).read_text())
    for node in ast.walk(tree):
        at = getattr(node, "lineno", None), getattr(node, "col_offset", None)
        if isinstance(node, ast.Constant) and at == (place.line, place.column):
            node.value = mutant.changed
    return tree


def mutate(mutant: Mutant) -> None:
    """Assign the constant anew in the loaded module, with what is made of it there, and where it is imported.

    What a function or a class took when it was made stays: its default arguments.
    """
    module = importlib.import_module(mutant.place.imported)
    names = set(mutant.place.name.split(","))
    for statement in mutated(mutant).body:
        own = assigned(statement)
        used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if own and names & (used | set(own)):
            exec(compile(ast.Module([statement], []), module.__name__, "exec"), module.__dict__)
            names |= set(own)
    for other, name, there in importers(mutant.place.imported):
        if name in names:
            setattr(other, there, getattr(module, name))
    for room in ("analyze", "infer", "session", "probe"):
        forget(f"cyclescope.{room}")


def importers(source: str) -> Iterator[tuple[ModuleType, str, str]]:
    """Loaded modules that import names from one, with these names and what they call them."""
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None) or ""
        if path.startswith(str(ROOT)) and path.endswith(".py"):
            yield from ((module, name, there) for where, name, there in _imports(path) if where == source)


@cache
def _imports(path: str) -> tuple[tuple[str, str, str], ...]:
    nodes = [n for n in ast.walk(ast.parse(Path(path).read_text())) if isinstance(n, ast.ImportFrom)]
    return tuple((n.module or "", one.name, one.asname or one.name) for n in nodes for one in n.names)


def forget(room: str) -> None:
    """Empty the caches of functions of a room."""
    for name, module in list(sys.modules.items()):
        if name.startswith(room):
            for one in vars(module).values():
                if callable(clear := getattr(one, "cache_clear", None)):
                    clear()


def main() -> None:
    """Print the numbers that decide results, by room."""
    found = counted(JUDGED)
    for room, number in sorted(found.items()):
        print(f"{number:5} {room}")
    print(f"{found.total():5} in all")


if __name__ == "__main__":
    main()
