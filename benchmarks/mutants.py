"""Tests that notice: every numeric constant of inference and analysis halved and doubled, one at a time.

A constant is a number in an assignment to a name in capitals, at the top of a module of `infer` (its `ports`
apart) or `analyze`. Each mutant runs the tests of its room in a process of its own, with the module's source
changed when it is imported; it is killed where one of them fails. Survivors are listed: their tests are
missing, or the constant decides nothing.

    python -m benchmarks.mutants [PATTERN ...] [--jobs 2] [--seconds N]

A pattern is a part of `infer/timing/laws.py:NEAR`. What was found so far is printed where time runs out.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing import get_context
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "cyclescope"
FACTORS = (0.5, 2.0)
# Rooms, and the tests that know what comes out of them, the quickest first.
TESTS = {
    "infer/timing/laws": ("infer/timing/test_limits.py", "infer/timing"),
    "infer/timing/results": ("infer/timing/test_limits.py", "infer/timing"),
    "analyze/cost/cores": ("analyze/test_core_behaviour.py", "analyze/test_kernels.py", "analyze/depend"),
    "analyze/predict/uncertainty": ("analyze/predict/test_uncertainty.py",),
    "infer/timing": ("infer/timing", "infer/test_known_results.py"),
    "infer/front_end": ("infer/front_end", "test_fourth_isa.py"),
    "infer": ("infer/test_gaps.py", "infer/test_snippets.py", "infer/test_known_results.py",
              "infer/test_machine_model.py", "infer/test_campaign.py"),
    "analyze/decode": ("analyze/test_kernels.py", "analyze/decode"),
    "analyze/read": ("analyze/test_kernels.py", "analyze/read"),
    "analyze/choose": ("analyze/test_kernels.py", "analyze/choose"),
    "analyze": ("analyze/test_kernels.py", "analyze/test_aarch64_kernels.py", "analyze/predict",
                "analyze/depend", "../golden"),
}  # fmt: skip
LEFT_OUT = ("infer/ports",)  # asked by counted cores, and of its own benchmark


class Place(msgspec.Struct, frozen=True):
    """A number in a module: in the assignment to `name`, at a line and a column."""

    module: str
    name: str
    line: int
    column: int
    value: float


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
        return f"{self.place.module}:{self.place.name} {self.place.value:g} -> {self.changed:g}"


def places(package: Path = PACKAGE) -> Iterator[Place]:
    """All numbers of constants."""
    for room in ("infer", "analyze"):
        for path in sorted((package / room).rglob("*.py")):
            module = str(path.relative_to(package))
            if not module.startswith(LEFT_OUT):
                yield from numbers(module, path.read_text())


def numbers(module: str, source: str) -> Iterator[Place]:
    """Numbers of a module's constants; 0 is neither halved nor doubled."""
    for statement in ast.parse(source).body:
        target = _target(statement)
        if target is None:
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value:
                yield Place(module, target, node.lineno, node.col_offset, node.value)


def _target(statement: ast.stmt) -> str | None:
    """The name in capitals that a statement assigns to."""
    targets = statement.targets if isinstance(statement, ast.Assign) else ()
    first = statement.target if isinstance(statement, ast.AnnAssign) else next(iter(targets), None)
    names = [node.id for node in ast.walk(first) if isinstance(node, ast.Name)] if first else []
    return ",".join(names) if names and all(name.strip("_").isupper() for name in names) else None


class Mutating(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Imports one module with another number in it."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.wanted = "cyclescope." + mutant.place.module.removesuffix(".py").replace("/", ".")
        super().__init__(self.wanted, str(PACKAGE / mutant.place.module))

    def find_spec(self, name: str, path: object, target: object = None) -> object:
        """That of the wanted module."""
        return importlib.util.spec_from_loader(name, self) if name == self.wanted else None

    def get_code(self, name: str) -> object:
        """Its code with the other number."""
        place = self.mutant.place
        tree = ast.parse(Path(self.path).read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and (node.lineno, node.col_offset) == (
                place.line,
                place.column,
            ):
                node.value = self.mutant.changed
        return compile(tree, self.path, "exec")


def tests_of(module: str) -> tuple[str, ...]:
    """The tests of a module's room."""
    room = max((room for room in TESTS if module.startswith(room)), key=len)
    return tuple(str(ROOT / "tests" / "unit" / name) for name in TESTS[room])


def _killed(mutant: Mutant) -> bool:
    """Whether a test of its room fails."""
    import pytest

    sys.meta_path.insert(0, Mutating(mutant))
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    os.chdir(ROOT)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return any(pytest.main([*options, one]) != 0 for one in tests_of(mutant.place.module))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants that patterns choose."""
    parsed = _options(arguments)
    chosen = [
        Mutant(place, factor)
        for place in places()
        if not parsed.patterns or any(p in f"{place.module}:{place.name}" for p in parsed.patterns)
        for factor in FACTORS
    ]
    end = time.monotonic() + parsed.seconds
    import pytest  # noqa: F401 - once for all of them

    killed, survived, left = 0, [], 0
    with get_context("fork").Pool(parsed.jobs, maxtasksperchild=1) as pool:
        for mutant, dead in zip(chosen, pool.imap(_killed, chosen, chunksize=1), strict=True):
            if dead:
                killed += 1
            else:
                survived.append(mutant)
                print(f"survived  {mutant}", flush=True)
            if time.monotonic() > end:
                left = len(chosen) - killed - len(survived)
                pool.terminate()
                break
    print(f"{len(chosen)} mutants: {killed} killed, {len(survived)} survived, {left} not run")
    return 1 if survived else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("patterns", nargs="*", help="parts of MODULE:NAME; all without")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
