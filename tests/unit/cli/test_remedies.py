"""What errors advise: options on the command line, arguments in Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import cyclescope as library
from cyclescope import errors
from cyclescope.errors import ADVICE, CyclescopeError, Remedy, UsageError

PACKAGE = Path(library.__file__).parent
LIBRARY = [p for p in PACKAGE.rglob("*.py") if p.relative_to(PACKAGE).parts[0] not in ("cli", "report")]
OPTION = re.compile(r"(?<![\w-])--(?!isa)[a-z]")  # `cyclescope runner build --isa` is a command
ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and kind is not Remedy}


def test_the_two_wordings_of_a_remedy():
    error = UsageError("no store", "run {measure} first, or name one with {store}")
    assert str(error).endswith("run `cyclescope.measure_forms()` first, or name one with `store`")
    assert error.told.endswith("run `cyclescope measure` first, or name one with --store")
    assert isinstance(error.remedy, str)
    more = error.remedy.also("try {fresh}")
    assert more.endswith("name one with `store`; try `fresh=True`")
    assert more.command.endswith("name one with --store; try --fresh")


def test_other_braces_are_left_alone():
    assert Remedy("put {k1} behind {nothing}").command == "put {k1} behind {nothing}"


def test_without_a_remedy_there_is_only_the_message():
    assert str(CyclescopeError("what")) == CyclescopeError("what").told == "what"
    assert Remedy("").also("this") == "this"


def _texts(call):
    """Constant texts in an error's arguments."""
    return [node.value for argument in call.args for node in ast.walk(argument)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)]  # fmt: skip


def _calls(path):
    for node in ast.walk(ast.parse(path.read_text())):
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if name in ERRORS or name.endswith("Error"):
            yield node


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_error_of_the_library_advises_an_option(path):
    """`{store}` in a remedy is --store on the command line only: see `cyclescope.errors.ADVICE`."""
    wrong = [(call.lineno, text) for call in _calls(path) for text in _texts(call) if OPTION.search(text)]
    assert not wrong


def test_what_is_advised_in_python_exists():
    from cyclescope.analyze.choose.source import Choice
    from cyclescope.measure.store import Store
    from cyclescope.model.library import summaries

    assert {"addresses", "function"} <= set(Choice.__struct_fields__)
    assert hasattr(Store, "evidence")
    assert callable(summaries)
    parameters = library.measure_forms.__kwdefaults__ | {"store": None}
    assert {"store", "cpu", "target", "fresh", "what"} <= parameters.keys()
    assert all(python != command for command, python in ADVICE.values())


def test_the_command_line_names_options(cyclescope, tmp_path):
    done = cyclescope("show", "imul", "--store", tmp_path / "none.sqlite")
    assert done.error.endswith("run `cyclescope measure` first, or name one with --store")
