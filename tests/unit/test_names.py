"""One name, one concept: no two classes of one name, and every class that users get is in the glossary."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec

import cyclescope

PACKAGE = Path(cyclescope.__file__).parent
GLOSSARY = Path(__file__).parents[2] / "docs" / "reference" / "glossary.md"
ELSEWHERE = ("formats/", "model/limits.py")  # private to a room, or named `limits.PORTS`
# What each module of a kind has under one name: of each instruction set, of each probe.
ONE_OF_A_KIND = {"BITS", "POINTERS", "POOLS", "PROBE", "RECORD", "SPELLING", "VENDORS"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text())


def constants(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Public constants with what they are."""
    for statement in module.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else ()
        for target in targets:
            many = isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple)
            pairs = (
                zip(target.elts, statement.value.elts, strict=True) if many else [(target, statement.value)]
            )
            for name, value in pairs:
                if isinstance(name, ast.Name) and name.id.isupper() and not name.id.startswith("_"):
                    yield name.id, ast.unparse(value)


def reached(found: dict[str, type], kind: object) -> dict[str, type]:
    """The package's classes in a type, and in the fields of these."""
    for part in get_args(kind):
        reached(found, part)
    if inspect.isclass(kind) and kind.__module__.startswith("cyclescope") and kind.__name__ not in found:
        found[kind.__name__] = kind
        for field in msgspec.structs.fields(kind) if issubclass(kind, msgspec.Struct) else ():
            reached(found, field.type)
    return found


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for name, module in modules():
        for statement in module.body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                places[statement.name].append(name)
    assert len(places) > 200, "all classes were found"
    assert {name for name, where in places.items() if len(where) > 1} == set()


def test_every_class_that_users_get_is_in_the_glossary():
    found: dict[str, type] = {}
    for name in cyclescope._LAZY:
        if inspect.isclass(one := getattr(cyclescope, name)):
            reached(found, one)
    assert len(found) > 25
    named = set(re.findall(r"`(\w+)`", GLOSSARY.read_text()))
    assert found.keys() - named == set()


def test_classes_of_the_glossary_exist():
    known = {s.name for _, module in modules() for s in module.body if isinstance(s, ast.ClassDef)}
    named = set(re.findall(r"`([A-Z][a-z]\w+)`", GLOSSARY.read_text()))
    assert named - known == set()


def test_constants_do_not_share_names():
    """A name is a word that no other module has for something else; what is of one module begins with _."""
    values: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, module in modules():
        if not name.startswith(ELSEWHERE):
            for constant, value in constants(module):
                values[constant][value].append(name)
    shared = {name: dict(some) for name, some in values.items() if len(some) > 1}
    assert {name: shared[name] for name in shared.keys() - ONE_OF_A_KIND} == {}, "take another name"
    assert shared.keys() == ONE_OF_A_KIND
