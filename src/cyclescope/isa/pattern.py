"""Finding forms: by mnemonic, id, another tool's name, feature, or an assembly example."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from fnmatch import translate
from functools import cache

from cyclescope.errors import UsageError
from cyclescope.isa.aarch64.variants import variant, variants
from cyclescope.isa.form import InstructionForm, model_form_id
from cyclescope.isa.operand import BLOCKS, Operand
from cyclescope.isa.register import register_number
from cyclescope.isa.riscv64.legality import FEATURES
from cyclescope.isa.riscv64.vector import configured_as, default_forms
from cyclescope.isa.table import Table
from cyclescope.isa.text import ONE_OPERAND, SIZES

_SUFFIX = re.compile(r"_(?:0F|0F38|0F3A)?[0-9A-F]{2}(?=[ _]|$)")
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


def select(table: Table, patterns: Sequence[str], expand: bool = True) -> list[InstructionForm]:
    """Forms that match any of the patterns, in table order; all but RISC-V's optional ones for none.

    A pattern is a mnemonic, a form id, a name LLVM or uops.info gives the form, a glob (`*`, `?`)
    over these, `isa:` and a glob over features, or an assembly example. A vector instruction of RISC-V is
    its forms under the configurations that are measured, unless `expand` is false, and an instruction of
    AArch64 those with shifted and extended operands too; a pattern with `@` and a configuration (`e64,m2`) or
    a kind of operand (`lsl4`), or a glob over all, chooses others. Raises UsageError for a pattern that
    matches nothing.
    """
    chosen: dict[str, list[InstructionForm]] = {}
    if not patterns:  # vendors' extensions share encodings: they are measured where they are asked for
        chosen = {form.id: [form] for form in table if not (expand and "optional" in form.attributes)}
    for pattern in patterns:
        for form in _found(table, pattern.strip()):
            chosen.setdefault(model_form_id(form), []).append(form)
    found = (form for plain in table if plain.id in chosen for form in chosen[plain.id])
    if expand:
        found = (each for form in found for each in _expanded(table, form))
    return list(dict.fromkeys(found))


def select_known(table: Table, patterns: Sequence[str], known: Collection[str]) -> list[InstructionForm]:
    """As `select`, but an instruction is those of its forms whose ids are known, where there are any."""
    more: dict[str, list[InstructionForm]] = {}
    for form in filter(
        None, (table.get(form_id) for form_id in sorted(known, key=_in_order) if "@" in form_id)
    ):
        more.setdefault(model_form_id(form), []).append(form)
    asked = {form.id for form in select(table, patterns, expand=False)} if more else set()
    groups: dict[str, list[InstructionForm]] = {}
    for form in select(table, patterns):
        groups.setdefault(model_form_id(form), []).append(form)
    for plain in asked & groups.keys() & more.keys():
        usual = [form for form in groups[plain] if form.id in known]
        groups[plain] = list(dict.fromkeys([*usual, *more[plain]]))
    return [form for forms in groups.values() for form in forms]


def _in_order(form_id: str) -> list[str | int]:
    """Numbers by their value: e8 before e16."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", form_id)]


def _expanded(table: Table, form: InstructionForm) -> list[InstructionForm]:
    """A form of the table as it is measured."""
    if "@" in form.id or table.isa == "x86-64":
        return [form]
    return (default_forms(form) or [form]) if table.isa == "riscv64" else [form, *variants(form)]


def _found(table: Table, pattern: str) -> list[InstructionForm]:
    plain, at, text = pattern.partition("@") if table.isa in ("riscv64", "aarch64") else (pattern, "", "")
    found = _matching(table, plain.strip())
    if table.isa == "riscv64" and not at and plain.lower().startswith("isa:"):
        found += _configured_with(table, plain[4:], {form.id for form in found})
    if not found:
        raise UsageError(f"no instruction form matches {plain!r}", _suggest(table, plain))
    if at and table.isa == "aarch64":
        return _varied(found, text.strip().lower())
    return configured_as(found, text) if at else found


def _configured_with(table: Table, pattern: str, known: set[str]) -> list[InstructionForm]:
    """Forms that need a feature under some of their default configurations only."""
    if not any(_glob(pattern).match(name) for name in FEATURES):
        return []
    every = (form for plain in table if plain.id not in known for form in default_forms(plain))
    return [form for form in every if _has_feature(form, pattern)]


def _varied(forms: Sequence[InstructionForm], text: str) -> list[InstructionForm]:
    found = [each for form in forms for each in variants(form, (text,))]
    return found or [variant(forms[0], text)]


def _matching(table: Table, pattern: str) -> list[InstructionForm]:
    if pattern.lower().startswith("isa:"):
        return [form for form in table if _has_feature(form, pattern[4:])]
    exact = table.get(pattern)
    if exact is not None:
        return [exact]
    glob = _glob(pattern)
    found = [f for f in table if any(glob.match(name) for name in names(f))]
    spellings = _spellings(pattern.upper())
    found = found or [f for f in table if f.mnemonic in spellings] or by_example(table, pattern)
    found = found or [f for f in table if f.bits and f.mnemonic.partition(".")[0] == pattern.upper()]
    spaced = _spaced(pattern)
    return found if found or spaced == pattern else _matching(table, spaced)


def _has_feature(form: InstructionForm, pattern: str) -> bool:
    glob = _glob(pattern)
    return any(glob.match(name) for name in _single(form.features))


def _single(features: Iterable[str]) -> Iterable[str]:
    """Features, and those that form a choice."""
    for feature in features:
        yield feature
        if "|" in feature:
            yield from re.split(r"[|+]", feature)


def names(form: InstructionForm) -> Iterable[str]:
    """Every name that finds a form."""
    yield form.mnemonic
    yield form.id
    yield _SUFFIX.sub("", form.id, count=1)
    yield form.id.partition(" ")[0]
    yield from filter(None, (form.llvm, form.uops_info))


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.replace("[", "[[]")), re.IGNORECASE)


def _spaced(pattern: str) -> str:
    """What looks like an id, with the spaces that ids have."""
    match = re.fullmatch(r"([^\s(]+)\s*\((.*)\)", pattern)
    return f"{match[1]} ({', '.join(_split(match[2]))})" if match else pattern


def _suggest(table: Table, pattern: str) -> str:
    word = re.split(r"[\s(*?]", pattern.strip())[0].upper()
    known = {f.mnemonic for f in table} | {f.id for f in table}
    features = {name for f in table for name in _single(f.features)}
    if pattern.lower().startswith("isa:"):
        known = features
        word = pattern[4:].upper()
    elif word in features:
        return f"isa:{word} finds the forms of this feature"
    upper = {name.upper(): name for name in known}
    if table.isa != "x86-64" and " " in pattern.strip():
        return "examples are read as the form is written: the instruction itself, none of its aliases"
    close = [upper[name] for name in difflib.get_close_matches(word, upper, n=3)]
    if close:
        return f"did you mean {', '.join(close)}?"
    return "`cyclescope forms` lists them; patterns are mnemonics, form ids, globs or isa:FEATURE"


# --- assembly examples --------------------------------------------------------------------------


def by_example(table: Table, text: str) -> list[InstructionForm]:
    """Forms that an instruction such as `imul rax, rbx` (in Intel syntax) or `add x1, x2, x3` can be."""
    if table.isa != "x86-64":
        line = re.sub(r"\s*,\s*", ", ", " ".join(text.lower().split()))
        lists = {"aarch64": ("{ ", " }"), "riscv64": ("{", "}")}[table.isa]
        line = re.sub(r"\s*\}", lists[1], re.sub(r"\{\s*", lists[0], line))
        return [form for form in table if _can_be(form, line)]
    words = _BARE_ROUNDING.sub(r"\1, \2", text).split()
    prefix = ""
    while words and words[0].lower() in _PREFIXES:
        prefix = _PREFIXES[words.pop(0).lower()]
    if not words or any(text.count(a) != text.count(b) for a, b in ("[]", "()", "{}")):
        return []
    mnemonic = words[0].upper()
    operands, spellings = _split(" ".join(words[1:])), _spellings(mnemonic)
    exchanged = mnemonic in _EITHER_ORDER and not re.match(r"[-+\d]", operands[0] if operands else "")
    orders = [operands, operands[::-1]] if exchanged else [operands]
    return [
        form
        for form in table
        if form.mnemonic in spellings
        and ("lock" in form.attributes) == (prefix == "lock")
        and ("rep" in form.attributes) == (prefix == "rep")
        and ("repne" in form.attributes) == (prefix == "repne")
        and any(_fits(form, order) for order in orders)
    ]


def _can_be(form: InstructionForm, line: str) -> bool:
    """Whether a line is an AArch64 or RISC-V form as its template says, not by an alias."""
    if form.syntax is None or form.bits is None:
        return False
    name = form.syntax.template.partition(" ")[0]
    if line.partition(" ")[0] != name and not ("{" in name and line.startswith(form.mnemonic.lower())):
        return False
    try:
        values = form.syntax.read(line, len(form.bits.fields))
        form.bits.encode(values)
    except ValueError:
        return False
    return True


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
    broadcast = re.search(r"\{(1to\d+)\}", text)
    if ("_1to" in op.cls) != bool(broadcast) or (broadcast and not op.cls.endswith(broadcast[1])):
        return False
    vector = re.search(r"\b([xyz]mm)\d", text)
    if op.cls.startswith("VSIB_") != bool(vector):
        return False
    size = re.match(r"(\w+)\s+ptr", text)
    return size is None or _SIZES.get(size[1]) == op.width


def _lea_classes(text: str) -> set[str]:
    """Classes of LEA's operand that an address can be encoded as."""
    inside = re.sub(r"\s", "", text).partition("[")[2].rstrip("]")
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
