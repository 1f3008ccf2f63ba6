"""AArch64 and RISC-V forms of an instruction as people and compilers write it.

A table has one spelling of a form. Here a line gets that spelling: what may be left out is added, registers
and conditions get their usual names, symbols become numbers, aliases what they stand for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from cyclescope.isa.aarch64.aliases import ALIASES as AARCH64_ALIASES
from cyclescope.isa.aarch64.aliases import OTHER_CONDITIONS
from cyclescope.isa.alias import Alias
from cyclescope.isa.fields import normal
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.riscv64.aliases import ALIASES as RISCV64_ALIASES
from cyclescope.isa.table import Table

ALIASES: dict[str, dict[str, list[Alias]]] = {"aarch64": AARCH64_ALIASES, "riscv64": RISCV64_ALIASES}
_LISTS = {"aarch64": ("{ ", " }"), "riscv64": ("{", "}")}  # how the tables write lists of registers
_SYMBOL = re.compile(r"(?<=[ ,])(?:[a-z_.$][\w.$@]*(?:[-+]\d+)?|\d+[fb]|\.[-+]\d+)$")
_RELOCATION = re.compile(r":\w+:[\w.$@]+(?:[-+]\d+)?|%\w+\([^)]*\)(?:[-+]\d+)?")
_CONDITION = re.compile(r"(?<=[ .])(cs|cc)(?=$|[ ,])")
_AARCH64_NAMES = {"fp": "x29", "lr": "x30", "ip0": "x16", "ip1": "x17"}
_ABI = ("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{n}" for n in range(8)),
        *(f"s{n}" for n in range(2, 12)), *(f"t{n}" for n in range(3, 7)))  # fmt: skip
_FLOAT_ABI = (*(f"ft{n}" for n in range(8)), "fs0", "fs1", *(f"fa{n}" for n in range(8)),
              *(f"fs{n}" for n in range(2, 12)), *(f"ft{n}" for n in range(8, 12)))  # fmt: skip
_RISCV64_NAMES = {
    "fp": "s0", **{f"x{n}": name for n, name in enumerate(_ABI)},
    **{f"f{n}": name for n, name in enumerate(_FLOAT_ABI)},
}  # fmt: skip
_NAMES = {"aarch64": _AARCH64_NAMES, "riscv64": _RISCV64_NAMES}
_VECTOR_LIST = re.compile(r"\{ ?v(\d+)\.(\w+) ?- ?v(\d+)\.\w+ ?\}")
_NO_OFFSET = re.compile(r"(?<= )\((\w+)\)")
_NO_SHIFT = re.compile(r"(?:(?<=[us]xt[bhwx])|, lsl) 0$")
_STACK = re.compile(r"\bw?sp\b")
_BARE_LIST = re.compile(r"(?<= )(z\d+\.\w), (?=p\d+)")
_LAST_BASE = re.compile(r"\[([^\],]+)\]$")
_ADDED = {  # what assemblers let out at the end
    "aarch64": (", uxtx", ", uxtw", ", all", ", all, mul 1", ", mul 1"),
    "riscv64": (", dyn", ", tu, mu"),
}
_ADDRESS_ONLY = ("adr", "adrp", "ldr", "ldrsw", "prfm")  # take a symbol without being branches


def forms_of(table: Table, text: str) -> list[InstructionForm]:
    """Forms of the table that a line can be; what an alias stands for may be several."""
    line = _line(table.isa, text)
    known = _by_first_word(table)
    direct = _first(known, _spelled(table.isa, line))
    if direct:
        return direct
    for alias in ALIASES[table.isa].get(line.partition(" ")[0], ()):
        for lines in alias.lines(line):
            found = [_first(known, _spelled(table.isa, each)) for each in lines]
            if all(found):
                return list(dict.fromkeys(form for forms in found for form in forms))
    return []


def aliased(table: Table, mnemonic: str) -> list[InstructionForm]:
    """Forms that an alias can stand for, whatever its operands."""
    known = _by_first_word(table)
    found: dict[InstructionForm, None] = {}
    for alias in ALIASES[table.isa].get(mnemonic, ()):
        for example in alias.examples():
            for lines in alias.lines(example):
                for line in lines:
                    found |= dict.fromkeys(_first(known, _spelled(table.isa, line)))
    return list(found)


def mnemonics(isa: str) -> list[str]:
    """Names of the aliases."""
    return list(ALIASES.get(isa, ()))


def _line(isa: str, text: str) -> str:
    """A line in the table's spelling, as far as its words alone say."""
    line = re.sub(r"\s*,\s*", ", ", " ".join(text.lower().split()))
    opening, closing = _LISTS[isa]
    line = re.sub(r"\s*\}", closing, re.sub(r"\{\s*", opening, line))
    line = _RELOCATION.sub("0", normal(line))
    line = re.sub(r"(?<=[\[(])\s+|\s+(?=[\])])", "", line)
    if isa == "aarch64":
        line = _CONDITION.sub(lambda m: OTHER_CONDITIONS[m[1]], line)
        line = _VECTOR_LIST.sub(_listed, line)
    head, _, operands = line.partition(" ")
    names = _NAMES[isa]
    return f"{head} {re.sub(r'[a-z]+[0-9]*', lambda m: names.get(m[0], m[0]), operands)}".rstrip()


def _listed(match: re.Match[str]) -> str:
    first, last = int(match[1]), int(match[3])
    count = (last - first) % 32 + 1
    return "{ " + ", ".join(f"v{(first + n) % 32}.{match[2]}" for n in range(count)) + " }"


def _spelled(isa: str, line: str) -> Iterator[tuple[str, bool]]:
    """The line, then others that may be meant; and whether a number stands for the symbol at its end."""
    for text in (line, _SYMBOL.sub("0", line)):
        variants = _aarch64_spelled(text) if isa == "aarch64" else [_NO_OFFSET.sub(r"0(\1)", text)]
        for each in (text, *variants, *(text + end for end in _ADDED[isa])):
            yield each, text != line


def _aarch64_spelled(line: str) -> Iterator[str]:
    yield _NO_SHIFT.sub("", line)
    if _STACK.search(line):  # its forms extend what others shift
        yield line.replace(" lsl ", " uxtx ")
        yield line.replace(" lsl ", " uxtw ")
    listed = _BARE_LIST.sub(r"{ \1 }, ", line)  # SVE's loads and stores
    for text in dict.fromkeys((line, listed)):
        yield text
        yield _LAST_BASE.sub(r"[\1, 0]", text)
        yield _LAST_BASE.sub(r"[\1, 0, mul vl]", text)


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
