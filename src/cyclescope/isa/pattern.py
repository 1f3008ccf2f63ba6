"""Finding forms: by mnemonic, id, another tool's name, feature, or an assembly example."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from fnmatch import translate

from cyclescope.errors import UsageError
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import BLOCKS, Operand
from cyclescope.isa.register import register_number
from cyclescope.isa.table import Table
from cyclescope.isa.text import ONE_OPERAND, SIZES

_SUFFIX = re.compile(r"_(?:0F|0F38|0F3A)?[0-9A-F]{2}(?=[ _]|$)")
_SIZES = {name: bits for bits, name in SIZES.items()}
_PREFIXES = {"lock": "lock", "rep": "rep", "repe": "rep", "repz": "rep", "repne": "repne", "repnz": "repne"}
_TOP = {"ST": "ST0", "ST(0)": "ST0"}
_CONDITIONS = tuple(
    set(names.split())
    for names in (
        "B C NAE", "AE NB NC", "E Z", "NE NZ", "BE NA", "A NBE", "P PE", "NP PO", "L NGE", "GE NL",
        "LE NG", "G NLE",
    )
)  # fmt: skip


def select(table: Table, patterns: Sequence[str]) -> list[InstructionForm]:
    """Forms that match any of the patterns (all forms for none), in table order.

    A pattern is a mnemonic, a form id, a name LLVM or uops.info gives the form, a glob (`*`, `?`)
    over these, `isa:` and a glob over features, or an assembly example. Raises UsageError for a
    pattern that matches nothing.
    """
    if not patterns:
        return list(table)
    chosen: set[str] = set()
    for pattern in patterns:
        found = _matching(table, pattern.strip())
        if not found:
            raise UsageError(f"no instruction form matches {pattern!r}", _suggest(table, pattern))
        chosen.update(form.id for form in found)
    return [form for form in table if form.id in chosen]


def _matching(table: Table, pattern: str) -> list[InstructionForm]:
    if pattern.lower().startswith("isa:"):
        glob = _glob(pattern[4:])
        return [f for f in table if any(glob.match(name) for name in f.features)]
    exact = table.get(pattern)
    if exact is not None:
        return [exact]
    glob = _glob(pattern)
    found = [f for f in table if any(glob.match(name) for name in names(f))]
    spellings = _spellings(pattern.upper())
    return found or [f for f in table if f.mnemonic in spellings] or by_example(table, pattern)


def names(form: InstructionForm) -> Iterable[str]:
    """Every name that finds a form."""
    yield form.mnemonic
    yield form.id
    yield _SUFFIX.sub("", form.id, count=1)
    yield form.id.partition(" ")[0]
    yield from filter(None, (form.llvm, form.uops_info))


def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.replace("[", "[[]")), re.IGNORECASE)


def _suggest(table: Table, pattern: str) -> str:
    word = re.split(r"[\s(*?]", pattern.strip())[0].upper()
    known = {f.mnemonic for f in table} | {f.id for f in table}
    if pattern.lower().startswith("isa:"):
        known = {name for f in table for name in f.features}
        word = pattern[4:].upper()
    close = difflib.get_close_matches(word, known, n=3)
    if close:
        return f"did you mean {', '.join(close)}?"
    return "`cyclescope forms` lists them; patterns are mnemonics, form ids, globs or isa:FEATURE"


# --- assembly examples --------------------------------------------------------------------------


def by_example(table: Table, text: str) -> list[InstructionForm]:
    """Forms that an Intel-syntax instruction such as `imul rax, rbx` can be."""
    words = text.split()
    prefix = ""
    while words and words[0].lower() in _PREFIXES:
        prefix = _PREFIXES[words.pop(0).lower()]
    if not words:
        return []
    mnemonic = words[0].upper()
    operands, spellings = _split(" ".join(words[1:])), _spellings(mnemonic)
    return [
        form
        for form in table
        if form.mnemonic in spellings
        and ("lock" in form.attributes) == (prefix == "lock")
        and ("rep" in form.attributes) == (prefix == "rep")
        and ("repne" in form.attributes) == (prefix == "repne")
        and _fits(form, operands)
    ]


def _spellings(mnemonic: str) -> set[str]:
    match = re.fullmatch(r"(CMOV|SET|J)(\w+)", mnemonic)
    if match:
        for names in _CONDITIONS:
            if match[2] in names:
                return {match[1] + name for name in names}
    return {mnemonic}


def _split(text: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return [*parts, current.strip()] if current.strip() else parts


def _fits(form: InstructionForm, texts: list[str]) -> bool:
    target = texts[0] if texts else ""
    masked, zeroing = bool(re.search(r"\{k\d\}", target)), "{z}" in target
    if ("masked" in form.attributes, "zeroing" in form.attributes) != (masked, zeroing):
        return False
    rounding = [t for t in texts if t.endswith("sae}")]
    if bool(rounding) != (not form.attributes.isdisjoint(("rounding", "sae"))):
        return False
    plain = [re.sub(r"\{(k\d|z)\}", "", t).strip() for t in texts if t not in rounding]
    explicit = [
        op for position, op in enumerate(form.operands) if not op.implicit and not (masked and position == 1)
    ]
    if form.mnemonic in ONE_OPERAND and len(plain) < len(explicit):
        del explicit[0]  # the top of the stack, unsaid
    return len(plain) == len(explicit) and all(
        _operand_fits(op, text) for op, text in zip(explicit, plain, strict=True)
    )


def _operand_fits(op: Operand, text: str) -> bool:
    if "[" in text:
        return _address_fits(op, text.lower())
    if re.fullmatch(r"[-+]?(0x[0-9a-f]+|[0-9]+)", text, re.IGNORECASE):
        return _number_fits(op, int(text, 16 if "x" in text.lower() else 10))
    if op.kind == "branch":
        return True
    name = _TOP.get(text.upper(), text.upper())
    try:
        cls, _ = register_number(name)
    except KeyError:
        return False
    if op.fixed and op.fixed not in BLOCKS:
        return op.fixed == name
    return op.is_register and op.cls == cls


def _address_fits(op: Operand, text: str) -> bool:
    if op.kind == "address":
        return True
    if not op.is_memory:
        return False
    broadcast = re.search(r"\{(1to\d+)\}", text)
    if ("_1to" in op.cls) != bool(broadcast) or (broadcast and not op.cls.endswith(broadcast[1])):
        return False
    vector = re.search(r"\b([xyz]mm)\d", text)
    if op.cls.startswith("VSIB_") != bool(vector):
        return False
    size = re.match(r"(\w+)\s+ptr", text)
    return size is None or _SIZES.get(size[1]) == op.width


def _number_fits(op: Operand, value: int) -> bool:
    if op.kind == "branch":
        return True
    if op.kind != "immediate":
        return False
    if op.cls in ("0", "1"):
        return value == int(op.cls)
    return -(1 << op.width - 1) <= value < 1 << op.width
