"""x86-64 forms of an instruction as people write it, in Intel syntax or AT&T's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import BLOCKS, Operand
from cyclescope.isa.register import register_number
from cyclescope.isa.table import Table
from cyclescope.isa.text import ONE_OPERAND, SIZES
from cyclescope.isa.x86_64.att import intel, without_suffix

_Fits = Callable[[Operand, str], bool]
_OPCODE = re.compile(r"_(?:0F|0F38|0F3A)?[0-9A-F]{2}(?= )")  # where encodings share a name
_SIZES = {name: bits for bits, name in SIZES.items()}
_PREFIXES = {"lock": "lock", "rep": "rep", "repe": "rep", "repz": "rep", "repne": "repne", "repnz": "repne"}
_ADDRESS_REGISTER = re.compile(r"r([a-ds][xpi]|\d+|ip)")
_NEED_DISPLACEMENT = ("rbp", "r13")  # as a base
_FAR = 1 << 20  # a distance that needs 32 bits
_EITHER_ORDER = {"TEST", "XCHG"}  # assemblers take the two operands in any order
_BARE_ROUNDING = re.compile(r"([^,\s])\s*(\{(?:r[nduz]-)?sae\})", re.IGNORECASE)  # without its comma
_TOP = {"ST": "ST0", "ST(0)": "ST0"}
_CONDITIONS = tuple(
    set(names.split())
    for names in (
        "B C NAE", "AE NB NC", "E Z", "NE NZ", "BE NA", "A NBE", "P PE", "NP PO", "L NGE", "GE NL",
        "LE NG", "G NLE",
    )
)  # fmt: skip
_CLASS = re.compile(r"(r|m|imm|i|rel)(\d+)?(bcst)?|[xyzt]?mm|k")  # of operands, as manuals have them
_COMPARE = re.compile(r"(V?)CMP([A-Z]\w*?)([PS][SDH])")
_SHIFTS = {"ROL", "ROR", "RCL", "RCR", "SHL", "SAL", "SHR", "SAR"}


def forms_of(table: Table, text: str) -> list[InstructionForm]:
    """Forms that a line such as `imul rax, rbx`, `imulq %rbx, %rax` or `imul r64, r/m64` can be."""
    for line in (text, *intel(text, _by_mnemonic(table))):
        found = _forms(table, line, _operand_fits)
        if found:
            return found
    return _forms(table, re.sub(r"\br/m(\d+)", r"r\1/m\1", text), _class_fits)


@cache
def _by_mnemonic(table: Table) -> dict[str, list[InstructionForm]]:
    found: dict[str, list[InstructionForm]] = {}
    for form in table:
        found.setdefault(form.mnemonic, []).append(form)
    return found


def _forms(table: Table, text: str, fits: _Fits) -> list[InstructionForm]:
    words = _BARE_ROUNDING.sub(r"\1, \2", text).split()
    prefix = ""
    while words and words[0].lower() in _PREFIXES:
        prefix = _PREFIXES[words.pop(0).lower()]
    if not words or any(text.count(a) != text.count(b) for a, b in ("[]", "()", "{}")):
        return []
    mnemonic, operands = words[0].upper(), split(" ".join(words[1:]))
    for name, given in ((mnemonic, operands), *_meant(mnemonic, operands)):
        found = _those(table, prefix, name, given, fits)
        if found:
            return found
    return []


def _those(
    table: Table, prefix: str, mnemonic: str, operands: list[str], fits: _Fits
) -> list[InstructionForm]:
    exchanged = mnemonic in _EITHER_ORDER and not re.match(r"[-+\d]", operands[0] if operands else "")
    orders = [operands, operands[::-1]] if exchanged else [operands]
    known = _by_mnemonic(table)
    return [
        form
        for name in sorted(spellings(mnemonic))
        for form in known.get(name, ())
        if all((kind in form.attributes) == (prefix == kind) for kind in ("lock", "rep", "repne"))
        and any(_fit(form, order, fits) for order in orders)
    ]


def _meant(mnemonic: str, operands: list[str]) -> Iterator[tuple[str, list[str]]]:
    """What assemblers take for another instruction, or with fewer operands than it has."""
    if mnemonic == "MOVABS":
        yield "MOV", operands
    if mnemonic == "MOVSX":
        yield "MOVSXD", operands
    if mnemonic in _SHIFTS and len(operands) == 1:
        yield mnemonic, [*operands, "1"]
    if mnemonic == "IMUL" and len(operands) == 2:
        yield mnemonic, [operands[0], *operands]
    if match := _COMPARE.fullmatch(mnemonic):  # with a predicate's name, all of which are numbers
        yield f"{match[1]}CMP{match[3]}", [*operands, "0"]


def spellings(mnemonic: str) -> set[str]:
    """The mnemonic, and others for the same: those with the same condition."""
    if mnemonic == "SAL":  # which assemblers encode as SHL
        return {"SAL", "SHL"}
    match = re.fullmatch(r"(CMOV|SET|J)(\w+)", mnemonic)
    if match:
        for names in _CONDITIONS:
            if match[2] in names:
                return {match[1] + name for name in names}
    return {mnemonic}


def also_called(table: Table, pattern: str, found: Sequence[InstructionForm]) -> list[InstructionForm]:
    """See `AssemblySyntax`: a name of the table's is no other one's.

    Else `ADD_R64_M64` is how uops.info's addresses have a form, and `imulq` what AT&T calls one size.
    """
    name = pattern.upper()
    if found or (found := same_name(table, name)):
        return list(found)
    if found := _by_address(table).get(name, []):
        return found
    return [
        form
        for known, size in without_suffix(name, _by_mnemonic(table))
        for form in same_name(table, known)
        if size and [op.width for op in form.operands[:1]] == [_SIZES[size]]
    ]


@cache
def _by_address(table: Table) -> dict[str, list[InstructionForm]]:
    found: dict[str, list[InstructionForm]] = {}
    for form in table:
        for name in {form.id, _OPCODE.sub("", form.id, count=1)}:
            found.setdefault("_".join(re.findall(r"\w+", name)).upper(), []).append(form)
    return found


def same_name(table: Table, mnemonic: str) -> list[InstructionForm]:
    """See `AssemblySyntax`."""
    names = spellings(mnemonic.upper())
    return [form for form in table if form.mnemonic in names]


def like_examples(text: str) -> str:
    """See `AssemblySyntax`: a form's id has classes of operands in parentheses."""
    name, _, operands = text.strip().partition(" ")
    if operands.startswith("(") and "%" not in operands:
        return text.upper()
    return f"{name.upper()} ({', '.join(map(_operand_class, split(operands)))})"


def spaced(pattern: str) -> str:
    """See `AssemblySyntax`."""
    match = re.fullmatch(r"([^\s(]+)\s*\((.*)\)", pattern)
    return f"{match[1]} ({', '.join(split(match[2]))})" if match else pattern


def mnemonics(isa: str) -> list[str]:
    """See `AssemblySyntax`: other names are conditions', of which the table has the likes."""
    return []


def _operand_class(text: str) -> str:
    """What an id has for an operand, roughly: `R64`, `M`, `I`."""
    if "[" in text or "(" in text:
        return "M"
    try:
        return register_number(text.lstrip("%").upper())[0]
    except KeyError:
        return "I"


def split(text: str) -> list[str]:
    """Operands, which commas outside of brackets separate."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return [*parts, current.strip()] if current.strip() else parts


def _fit(form: InstructionForm, texts: list[str], fits: _Fits) -> bool:
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
        fits(op, text) for op, text in zip(explicit, plain, strict=True)
    )


def _class_fits(op: Operand, text: str) -> bool:
    """Whether an operand is of what manuals write: `r64`, `xmm2/m128/m32bcst`, `imm8`, `rel32`."""
    for part in text.lower().split("/"):
        match = _CLASS.fullmatch(part)
        if match is None:
            found = _operand_fits(op, part)
        elif match[1] is None:
            found = op.is_register and op.cls == part.upper()
        elif match[1] == "m":
            bits, told = op.cls[1:].partition("_")[::2]
            found = op.is_memory and bool(match[3]) == bool(told) and match[2] in (None, bits)
            found |= op.kind == "address" and match[2] is None
        else:
            kind = {"r": "R", "rel": "Rel"}.get(match[1], "I")
            found = not op.fixed and op.cls.rstrip("lh") == kind + (match[2] or str(op.width))
        if found:
            return True
    return False


def _operand_fits(op: Operand, text: str) -> bool:
    if "[" in text:
        return _address_fits(op, text.lower())
    if re.fullmatch(r"[-+]?(0x[0-9a-f]+|[0-9]+)", text, re.IGNORECASE):
        return _number_fits(op, int(text, 16 if "x" in text.lower() else 10))
    name = _TOP.get(text.upper(), text.upper())
    try:
        cls, _ = register_number(name)
    except KeyError:
        return op.kind == "branch"  # to a label
    if op.fixed and op.fixed not in BLOCKS:
        return op.fixed == name
    return op.is_register and op.cls == cls


def _address_fits(op: Operand, text: str) -> bool:
    if op.kind == "address":
        return op.cls in _lea_classes(text)
    if not op.is_memory:
        return False
    size, kind = _told_size(text)
    broadcast = re.search(r"\{(1to\d+)\}", text)
    if ("_1to" in op.cls) != bool(broadcast or kind == "bcst"):
        return False
    if broadcast and not op.cls.endswith(broadcast[1]):
        return False
    vector = re.search(r"\b([xyz]mm)\d", text)
    if op.cls.startswith("VSIB_") != bool(vector):
        return False
    if "_1to" in op.cls:
        return not kind or op.cls.startswith(f"M{size}_")
    return not kind or size == op.width


def _told_size(text: str) -> tuple[int, str]:
    """Bits that are said of what is in memory, and the word behind them: NASM has no `ptr`."""
    match = re.match(r"(\w+)(?:\s+(ptr|bcst)\b|\s*\[|\s+\ws:|\s+rel\b)", text)
    if match is None or not (match[2] or match[1] in _SIZES):
        return 0, ""
    return _SIZES.get(match[1], 0), match[2] or "ptr"


def _lea_classes(text: str) -> set[str]:
    """Classes of LEA's operand that an address can be encoded as."""
    before, _, inside = re.sub(r"\s", "", text).partition("[")
    outside = re.sub(r"^\w+ptr|^\w+:", "", before)  # a distance may stand in front of the bracket
    inside = inside.rstrip("]") + (outside if outside[:1] in ("", "+", "-") else f"+{outside}")
    inside = re.sub(r"\b(\d+)\*(\w+)", r"\2*\1", inside)
    terms = [(sign, *term.partition("*")[::2]) for sign, term in re.findall("([-+]?)([^-+]+)", inside)]
    distance = sum(_distance(sign + name) for sign, name, _ in terms if not _is_register(name))
    registers = [(name, scale) for _, name, scale in terms if _is_register(name)]
    if not terms or not all(_ADDRESS_REGISTER.fullmatch(name) for name, _ in registers):
        return set()
    bases = [name for name, scale in registers if not scale]
    scales = [scale for _, scale in registers if scale]
    index = "_I" if scales or len(bases) > 1 else ""
    index += "S" if scales and scales != ["1"] else ""
    if bases == ["rip"]:
        return {"LEA_R_D32"}
    if not bases:
        return {f"LEA{index}_D32"}
    if distance == 0 and bases[0] not in _NEED_DISPLACEMENT:
        return {f"LEA_B{index}"}
    small = {f"LEA_B{index}_D8"} if -128 <= distance < 128 else set()
    return small | {f"LEA_B{index}_D32"}


def _distance(term: str) -> int:
    try:
        return int(term, 0)
    except ValueError:
        return _FAR  # a symbol


def _is_register(name: str) -> bool:
    try:
        register_number(name.upper())
    except KeyError:
        return name == "rip"
    return True


def _number_fits(op: Operand, value: int) -> bool:
    if op.kind == "branch":
        return True
    if op.kind != "immediate":
        return False
    if op.cls in ("0", "1"):
        return value == int(op.cls)
    return -(1 << op.width - 1) <= value < 1 << op.width
