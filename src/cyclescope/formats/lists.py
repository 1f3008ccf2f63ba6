"""Lists of instructions in the style of Agner Fog's test programs, as forms to measure.

A line is `instruction,register,operands,immediate,mode,instruction set,options`; columns at the end may be
missing, lines that begin with # and a head are left out. The register is a size (`32`, `r32`, `v256`, `x`,
`k`, `mmx`, `x87`) or several with a slash between them, empty for any; operands are counted without
constants; the mode has T for throughput, L for latency and M for forms with memory.

Lists of our own are in `instructions/`, a folder for each instruction set; first lines say what is in them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from cyclescope.errors import SourceError, UsageError, shortened, unreadable
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import Table
from cyclescope.measure.plan import LATENCY, THROUGHPUT

_COLUMNS = 7
_HEADS = ("instruction", "instruct", "name")
_CLASSES = {
    "8": "R8", "16": "R16", "32": "R32", "64": "R64", "mmx": "MM", "128": "XMM", "256": "YMM", "512": "ZMM",
    "x": "XMM", "y": "YMM", "z": "ZMM", "xmm": "XMM", "ymm": "YMM", "zmm": "ZMM", "k": "K", "mm": "MM",
    "x87": "ST", "st": "ST",
}  # fmt: skip
_VECTORS, _GENERAL = ("XMM", "YMM", "ZMM"), ("R8", "R16", "R32", "R64")
_GROUPS = {"v": _VECTORS, "r": _GENERAL, "": (), "any": ()}
_MODES = {"L": LATENCY, "T": THROUGHPUT}
_MEMORY = "M"


class LeftOut(NamedTuple):
    """A line of a list that no form is measured for, and why."""

    line: int
    text: str
    reason: str


class InstructionList(NamedTuple):
    """Forms by their ids, in the order of the list; what is to be measured of them; what is left out."""

    forms: tuple[str, ...]
    quantities: frozenset[str]
    left_out: tuple[LeftOut, ...]


class _Line(NamedTuple):
    name: str
    registers: tuple[str, ...]
    operands: int | None
    has_immediate: bool
    modes: frozenset[str]
    features: str


class _Unreadable(Exception):
    """Why a line is left out."""


def shipped_lists(isa: str) -> dict[str, str]:
    """What the lists of our own for an instruction set are about, by their names."""
    return {path.stem: _title(path) for path in sorted(_folder(isa).glob("*.csv"))}


def find_list(name: str, isa: str) -> tuple[str, str]:
    """The text of a list and what to call it: one of our own by its name, or a file.

    Raises UsageError for a name of neither, and for a file that cannot be read.
    """
    own = shipped_lists(isa)
    if name in own:
        return (_folder(isa) / f"{name}.csv").read_text(), name
    path = Path(name)
    if not name.strip() or (not path.exists() and not path.suffix and path.name == name):
        raise UsageError(f"there is no list {shortened(name)!r} for {isa}", f"{', '.join(own)}, or a file")
    try:
        return path.read_text(), name
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(shortened(name), error) from error


def _folder(isa: str) -> Path:
    return Path(str(resources.files("cyclescope"))) / "formats/instructions" / instruction_set(isa).folder


def _title(path: Path) -> str:
    with path.open() as file:
        return file.readline().lstrip("# ").rstrip(".\n")


def read_list(text: str, source: str, table: Table) -> InstructionList:
    """The forms that a list names. Raises SourceError for a list that names none."""
    forms: dict[str, None] = {}
    quantities: set[str] = set()
    left_out: list[LeftOut] = []
    for number, cells in _rows(text):
        try:
            line = _line(cells)
            found = list(_forms(line, table))
        except _Unreadable as why:
            left_out.append(LeftOut(number, shortened(",".join(cells)), str(why)))
            continue
        forms |= dict.fromkeys(form.id for form in found)
        quantities |= {_MODES[mode] for mode in line.modes if mode in _MODES}
    if not forms:
        why_not = f": line {left_out[0].line}: {left_out[0].reason}" if left_out else ""
        raise SourceError(
            f"{source} names no instruction form{why_not}", "write lines such as paddd,x,2,,LT,SSE2"
        )
    return InstructionList(tuple(forms), frozenset(quantities or _MODES.values()), tuple(left_out))


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, cells in enumerate(csv.reader(io.StringIO(text)), 1):
        words = [cell.strip() for cell in cells]
        if words and words[0] and not words[0].startswith("#") and words[0].lower() not in _HEADS:
            yield number, words + [""] * (_COLUMNS - len(words))


def _line(cells: list[str]) -> _Line:
    name, registers, operands, immediate, modes, features = cells[:6]
    letters = modes.upper() or "LT"
    if not set(letters) <= {*_MODES, _MEMORY}:
        raise _Unreadable(f"there is no way to measure {shortened(modes)!r} as such")
    if operands and not operands.isdecimal():
        raise _Unreadable(f"{shortened(operands)!r} is no number of operands")
    has_immediate = immediate.lower() not in ("", "0", "n", "no", "none")
    classes = tuple(one for word in registers.split("/") for one in _classes(word.strip().lower()))
    return _Line(
        name.upper(),
        classes,
        int(operands) if operands else None,
        has_immediate,
        frozenset(letters),
        features,
    )


def _classes(word: str) -> tuple[str, ...]:
    if word in _GROUPS:
        return _GROUPS[word]
    plain = word if word in _CLASSES else re.sub(r"^[rv]", "", word)
    if plain not in _CLASSES:
        raise _Unreadable(f"{shortened(word)!r} is no kind of register")
    return (_CLASSES[plain],)


def _forms(line: _Line, table: Table) -> Iterable[InstructionForm]:
    named = [form for form in table if form.mnemonic == line.name]
    if not named:
        raise _Unreadable(f"there is no instruction {shortened(line.name)}")
    found = [form for form in named if _fits(form, line)]
    if not found:
        raise _Unreadable("it has no such operands")
    wanted = re.sub(r"\W", "", line.features).upper()
    of_set = [form for form in found if not wanted or wanted in map(_plain, form.features)]
    return of_set or found  # sets have many names: operands say which form is meant


def _plain(feature: str) -> str:
    return re.sub(r"\W|_", "", feature).upper()


def _fits(form: InstructionForm, line: _Line) -> bool:
    written = [op for op in form.operands if not op.implicit]
    others = [op for op in written if op.kind not in ("immediate", "branch")]
    if line.operands is not None and len(others) != line.operands:
        return False
    if any(op.kind == "immediate" for op in written) != line.has_immediate:
        return False
    if _MEMORY not in line.modes and any(op.is_memory for op in form.operands):
        return False
    classes = [op.cls for op in others if op.is_register]
    return not line.registers or any(cls.startswith(line.registers) for cls in classes)
