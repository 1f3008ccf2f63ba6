"""Reading InstLatx64's dumps of x86-64: one line per instruction, `L:` latency and `T:` throughput.

Where a line writes its registers without numbers, all of one class are the same one: its latency is the most
over the sources, and of instructions that break such a dependency it says nothing. A chain that takes no
longer than the throughput, or less than a cycle, shows no more than a bound. Lines of several instructions,
and of operands with values, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from cyclescope.formats.exchange import Draft, Imported, ImportRequest, cycles, rate
from cyclescope.formats.spelled import Spelling, by_spelling
from cyclescope.formats.text import contents
from cyclescope.isa.dataflow import pairs
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.table import load_table

_LINE = re.compile(
    r"(?:Inst)?\s*(\d+)\s+\S+\s*:\s*(?:\{(\w+)\})?\s*(.*?)\s{2,}L:(.*?)T:\s*[\d.]+ns=\s*([\d.]+)c"
)
_LATENCY = re.compile(r"\s*[\d.]+ns=\s*([\d.]+)c")
_REGISTER = re.compile(r"(r)(\d_)?(8|16|32|64)|(xmm|ymm|zmm|mm|k)(\d?)")
_WORDS = re.compile(r"\[m(\d+)\]|(imm8|imm16|imm32)|(1|cl|al|ax|eax|rax)")
_KINDS = {"R8l": "r8", "R16": "r16", "R32": "r32", "R64": "r64"}
_PREFIXES = {"VEX": "vex", "EVEX": "evex"}
IDIOM = 0.9  # cycles: a chain below one cycle a link is none
_SAME = 1.05  # times the throughput: a chain no longer than that may show it instead of a latency


def read(path: Path, request: ImportRequest) -> Imported:
    """The instructions of a dump whose operands are a form's. Raises FormatError."""
    draft = Draft(load_table("x86-64"), request)
    forms = by_spelling(draft.table, _kind)
    for line in contents(path).splitlines():
        match = _LINE.match(line)
        if match:
            _add(draft, forms, match)
    return draft.imported()


def _kind(op: Operand) -> str:
    if op.fixed:
        return op.fixed.lower()
    if op.is_register:
        return _KINDS.get(op.cls, op.cls.lower())
    if op.kind == "immediate":
        return {"I8": "imm8", "I16": "imm16", "I32": "imm32", "1": "1"}.get(op.cls, "")
    return f"m{op.width}" if op.is_memory and op.cls == f"M{op.width}" else ""


def _add(draft: Draft, forms: Mapping[Spelling, Sequence[InstructionForm]], match: re.Match[str]) -> None:
    number, prefix, text = match[1], match[2] or "", match[3]
    where = f"{number} {text}"
    name, _, rest = text.partition(" ")
    words = [word.strip() for word in rest.split(",")] if rest.strip() else []
    parsed = [_parsed(word) for word in words]
    if None in parsed:
        draft.refuse(where, "not a plain instruction")
        return
    operands = [operand for operand in parsed if operand is not None]
    known = forms.get((name.lower(), tuple(kind for kind, _ in operands)), [])
    matching = [form for form in known if _has_prefix(form, prefix)]
    if not matching:
        draft.refuse(where, "no form has this name and operands")
        return
    try:
        throughput, latency = rate(match[5]), _LATENCY.match(match[4])
        for form in matching:
            draft.add(form, throughput=throughput)
            if latency:
                _add_latency(draft, form, [number for _, number in operands], cycles(latency[1]), throughput)
    except ValueError as error:
        draft.refuse(where, str(error))


def _parsed(word: str) -> tuple[str, str] | None:
    """An operand's kind, and the number of its register if it has one."""
    register = _REGISTER.fullmatch(word)
    if register:
        general = register[1] is not None
        kind = f"r{register[3]}" if general else register[4]
        return kind, (register[2] or "").rstrip("_") if general else register[5]
    other = _WORDS.fullmatch(word)
    return (f"m{other[1]}" if other[1] else word, "") if other else None


def _has_prefix(form: InstructionForm, prefix: str) -> bool:
    wanted = _PREFIXES.get(prefix)
    return wanted in form.attributes if wanted else not form.is_vex


def _add_latency(
    draft: Draft, form: InstructionForm, numbers: Sequence[str], value: float, throughput: float
) -> None:
    """The latency of the pairs that the line's registers chain; at most so much where instructions that are
    no chain take as long, as the latency may be less then.
    """
    shown = [i for i, op in enumerate(form.operands) if not op.implicit]
    number = dict(zip(shown, numbers, strict=True))
    found = [
        pair for pair in pairs(form)
        if pair.target.part == "register" and pair.source.part == "register"
        and pair.target.operand in number and pair.source.operand in number
        and pair.source.domain == pair.target.domain
        and number[pair.source.operand] == number[pair.target.operand]
    ]  # fmt: skip
    if len(found) > 1 and value < IDIOM:
        draft.refuse(form.id, "one register for all operands breaks the dependency: no latency")
        return
    is_bound = value < IDIOM or value <= _SAME * throughput
    for pair in found:
        name = f"{pair.source.name}->{pair.target.name}"
        draft.latency(form, name, 0.0 if len(found) > 1 or is_bound else value, value)
