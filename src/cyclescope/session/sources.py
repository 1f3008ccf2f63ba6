"""A machine from whatever names one: a model's name, a store, a model's file, another tool's file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cyclescope.errors import UsageError
from cyclescope.formats.exchange import Imported, ImportRequest, shortened
from cyclescope.formats.registry import by_name, is_dump, of_contents
from cyclescope.infer.host_model import stored_model
from cyclescope.isa.registry import DEFAULT
from cyclescope.model import library
from cyclescope.model.limits import DATABASE
from cyclescope.session.machines import is_file, is_llvm, load_model


def source(text: str, format_name: str = "", column: str = "", isa: str = DEFAULT) -> Imported:
    """The machine that a text names. Raises UsageError, FormatError, StoreError.

    What exists as a file, or looks like one, is read as a store, a model or another tool's file; a `column`
    can stand behind a `#` (`instructions.xml#ZEN3`). Everything else is a machine's name; `llvm:znver4` is
    LLVM's model.
    """
    if is_llvm(text):
        return Imported(load_model(text))
    name, _, behind = text.partition("#")
    path, named = Path(name), column or behind
    if not format_name and name.lower().endswith((".json", ".xz")) and not is_dump(path):
        _check_has_several("a machine model", named, False)
        return Imported(load_model(path))
    if not path.is_file():
        if is_file(name) or path.suffix:
            raise UsageError(f"{name}: no such file", "{machines} lists machines by name")
        return Imported(load_model(text))
    if is_store(path):
        _check_has_several("a store", named, False)
        return Imported(stored_model(path))
    chosen = by_name(format_name) if format_name else of_contents(path)
    _check_has_several(chosen.about, named, chosen.is_several)
    found = chosen.read(path, ImportRequest(named or path.stem, path.name, named, isa))
    return msgspec.structs.replace(found, model=library.sound(found.model, str(path)))


def _check_has_several(about: str, named: str, is_several: bool) -> None:
    """A machine of a file can be named where files of its format have several. Raises UsageError."""
    if named and not is_several:
        raise UsageError(f"{shortened(named)!r}: {about} has one machine, and no name is needed",
                         "leave out {column} and what is behind a #")  # fmt: skip


def is_store(path: Path) -> bool:
    """Whether there is a file that is a database."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(DATABASE)) == DATABASE
