"""Forms of tables with fields, as people and compilers write an instruction.

A table has one spelling of a form. Here a line gets that spelling: what may be left out is added, registers
and conditions get their usual names, symbols become numbers, aliases what they stand for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from cyclescope.isa.fields import normal
from cyclescope.isa.find.spelling import Spelling
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import Table

_SYMBOL = re.compile(r"(?<=[ ,])(?:[a-z_.$][\w.$@]*(?:[-+]\d+)?|\d+[fb]|\.[-+]\d+)$")
_RELOCATION = re.compile(r":\w+:[\w.$@]+(?:[-+]\d+)?|%\w+\([^)]*\)(?:[-+]\d+)?")
_ADDRESS_ONLY = ("adr", "adrp", "ldr", "ldrsw", "prfm")  # take a symbol without being branches


@cache
def spelling(isa: str) -> Spelling:
    """How an instruction set is written: `isa/NAME/spelling.py`."""
    found: Spelling = instruction_set(isa).module("isa", "spelling").SPELLING
    return found


def forms_of(table: Table, text: str) -> list[InstructionForm]:
    """Forms of the table that a line can be; what an alias stands for may be several."""
    line = _line(table.isa, text)
    known = _by_first_word(table)
    direct = _first(known, _spelled(table.isa, line))
    if direct:
        return direct
    for alias in spelling(table.isa).aliases.get(line.partition(" ")[0], ()):
        for lines in alias.lines(line):
            found = [_first(known, _spelled(table.isa, each)) for each in lines]
            if all(found):
                return list(dict.fromkeys(form for forms in found for form in forms))
    return []


def aliased(table: Table, mnemonic: str) -> list[InstructionForm]:
    """Forms that an alias can stand for, whatever its operands."""
    known = _by_first_word(table)
    found: dict[InstructionForm, None] = {}
    for alias in spelling(table.isa).aliases.get(mnemonic, ()):
        for example in alias.examples():
            for lines in alias.lines(example):
                for line in lines:
                    found |= dict.fromkeys(_first(known, _spelled(table.isa, line)))
    return list(found)


def also_called(table: Table, pattern: str, found: Sequence[InstructionForm]) -> list[InstructionForm]:
    """See `AssemblySyntax`: aliases may have the names of other instructions."""
    more = [] if " " in pattern else aliased(table, pattern.lower())
    return list(dict.fromkeys([*found, *more]))


def same_name(table: Table, mnemonic: str) -> list[InstructionForm]:
    """See `AssemblySyntax`: of forms that every CPU reads so."""
    own = [f for f in table if f.mnemonic == mnemonic.upper() and "optional" not in f.attributes]
    return own + aliased(table, mnemonic.lower())


def like_examples(text: str) -> str:
    """See `AssemblySyntax`: examples are in lower case."""
    return text.lower()


def spaced(pattern: str) -> str:
    """See `AssemblySyntax`: ids have no spaces."""
    return pattern


def mnemonics(isa: str) -> list[str]:
    """Names of the aliases."""
    return list(spelling(isa).aliases)


def _line(isa: str, text: str) -> str:
    """A line in the table's spelling, as far as its words alone say."""
    line = re.sub(r"\s*,\s*", ", ", " ".join(text.lower().split()))
    own = spelling(isa)
    opening, closing = own.lists
    line = re.sub(r"\s*\}", closing, re.sub(r"\{\s*", opening, line))
    line = _RELOCATION.sub("0", normal(line))
    line = re.sub(r"(?<=[\[(])\s+|\s+(?=[\])])", "", line)
    head, _, operands = own.line(line).partition(" ")
    names = own.names
    return f"{head} {re.sub(r'[a-z]+[0-9]*', lambda m: names.get(m[0], m[0]), operands)}".rstrip()


def _spelled(isa: str, line: str) -> Iterator[tuple[str, bool]]:
    """The line, then others that may be meant; and whether a number stands for the symbol at its end."""
    for text in (line, _SYMBOL.sub("0", line)):
        own = spelling(isa)
        for each in (text, *own.alternatives(text), *(text + end for end in own.endings)):
            yield each, text != line


def _first(
    known: Mapping[str, Sequence[InstructionForm]], lines: Iterable[tuple[str, bool]]
) -> list[InstructionForm]:
    """Forms of the first spelling that is one; of alternatives those that every CPU reads so."""
    for line, symbol in dict.fromkeys(lines):
        found = [form for form in _candidates(known, line) if _can_be(form, line)]
        if symbol:
            found = [form for form in found if _takes_symbol(form, line)]
        if found:
            return [form for form in found if "optional" not in form.attributes] or found
    return []


def _takes_symbol(form: InstructionForm, line: str) -> bool:
    branch = any(op.kind == "branch" for op in form.operands)
    return branch or line.partition(" ")[0] in _ADDRESS_ONLY


def _candidates(known: Mapping[str, Sequence[InstructionForm]], line: str) -> Iterator[InstructionForm]:
    head = line.partition(" ")[0]
    yield from known.get(head, ())
    yield from (form for form in known.get("", ()) if line.startswith(form.mnemonic.lower()))


def _can_be(form: InstructionForm, line: str) -> bool:
    """Whether a line is a form as its template says, with legal values."""
    assert form.syntax is not None
    assert form.bits is not None
    try:
        form.bits.encode(form.syntax.read(line, len(form.bits.fields)))
    except ValueError:
        return False
    return True


@cache
def _by_first_word(table: Table) -> Mapping[str, Sequence[InstructionForm]]:
    """Forms by the first word of their template, by nothing where that has a place."""
    found: dict[str, list[InstructionForm]] = {}
    for form in table:
        if form.syntax is not None and form.bits is not None:
            head = form.syntax.template.partition(" ")[0]
            found.setdefault("" if "{" in head else head, []).append(form)
    return found
