"""Sources and targets of a form: the pairs whose latencies are to be found."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from cyclescope.isa.encode import takes_index
from cyclescope.isa.form import FLAGS, InstructionForm, flag_names
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import domain

# Registers that are renamed or updated outside the execution units, or that hold machine state.
NOT_DATA = {
    "RSP": "RSP is updated by the stack engine",
    "RIP": "RIP is followed by the branch predictor",
}
STATE_CLASSES = {"SEG", "CR", "DR", "BND", "TMM"}
# Of AArch64 and RISC-V: rounding, and how many elements of what vectors have.
MODES = {"FPCR", "FPMR", "FRM", "VXRM", "VL", "VTYPE", "VG"}
AMOUNT = "GPR64pi"  # AArch64's class of registers that a base is increased by
CONFIGURED = ("VL", "VTYPE")
OLD = "old"  # part of a source: what a register held that is overwritten
_RENAMED = frozenset(("r", "h", "v", "k", "m", "p", "f"))  # register files whose values are data
_X86_FLAGS = (1 << len(FLAGS)) - 1  # others are in a register that is an operand


class Node(msgspec.Struct, frozen=True):
    """One end of a latency pair.

    `name` is what users see: `op1`, `op2.address`, `op2.index`, `op2.data`, `flags.CF`, `RAX`, `op1.old`.
    `part` is `register`, `address`, `index`, `data`, `flag` or `old`; `domain` the register file (`r`,
    `h`, `v`, `k`, `m`, `x`), `mem` for memory data, `flag` for flags; `operand` the position of the
    operand, -1 for flags.
    """

    name: str
    part: str
    domain: str
    operand: int
    flag: str = ""


class Pair(msgspec.Struct, frozen=True):
    """A source and a target; `excluded` says why no chain can measure it."""

    source: Node
    target: Node
    excluded: str = ""


def is_of_itself(form: InstructionForm, pair: Pair) -> bool:
    """Whether a register is made of itself and constants alone, as by ADD r, 1: its value is needed."""
    read = [number for number, op in enumerate(form.operands) if op.read and op.kind != "immediate"]
    same = pair.source.part == "register" and pair.source.operand == pair.target.operand
    return same and read == [pair.source.operand] and not form.flags_read


def _address_nodes(form: InstructionForm, position: int, op: Operand) -> list[Node]:
    slots = {s.part for s in form.encoding.slots if s.operand == position} if form.encoding else set()
    nodes = []
    if 1 in slots:
        nodes.append(Node(f"{op.name}.address", "address", "r", position))
    if 2 in slots:
        kind = "v" if op.cls.startswith("VSIB_") else "r"
        nodes.append(Node(f"{op.name}.index", "index", kind, position))
    elif op.is_memory and takes_index(form):
        nodes.append(Node(f"{op.name}.index", "index", "r", position))
    return nodes


def _register_node(op: Operand, position: int) -> Node:
    """A register that is read; on AArch64 and RISC-V an address is made of such operands."""
    part = {"base": "address", "index": "index"}.get(op.role, "register")
    return Node(op.name, part, op.file or domain(op.cls), position)


def sources(form: InstructionForm) -> list[Node]:
    """Everything whose value the result may depend on."""
    nodes: list[Node] = []
    for position, op in enumerate(form.operands):
        if op.kind in ("memory", "address"):
            nodes += _address_nodes(form, position, op)
        if op.is_memory and op.read:
            nodes.append(Node(f"{op.name}.data", "data", "mem", position))
        if op.is_register and op.read:
            nodes.append(_register_node(op, position))
    flags = flag_names(form.flags_read & _X86_FLAGS)
    return nodes + [Node(f"flags.{f}", "flag", "flag", -1, f) for f in flags]


def targets(form: InstructionForm) -> list[Node]:
    """Everything the form writes with a defined value."""
    nodes: list[Node] = []
    for position, op in enumerate(form.operands):
        if op.is_memory and op.write:
            nodes.append(Node(f"{op.name}.data", "data", "mem", position))
        if op.is_register and op.write:
            nodes.append(Node(op.name, "register", op.file or domain(op.cls), position))
    flags = flag_names(form.flags_written & _X86_FLAGS)
    return nodes + [Node(f"flags.{f}", "flag", "flag", -1, f) for f in flags]


def _excluded(form: InstructionForm, node: Node) -> str:
    if node.flag == "DF":
        return "DF is control state: no instruction's data depends on it in a chain"
    if node.operand < 0:
        return ""
    op = form.operands[node.operand]
    if op.is_register and op.name in NOT_DATA:
        return NOT_DATA[op.name]
    if op.is_register and op.fixed in MODES:
        return f"{op.fixed} selects a mode: no data"
    if op.is_register and op.cls in STATE_CLASSES:
        return f"{op.cls} registers are machine state, not data"
    if op.is_memory and op.implicit and op.fixed in ("RSP", "RBP"):
        return "stack memory is reached through the stack engine"
    return ""


def _no_data(form: InstructionForm) -> str:
    """Why no value passes through a form although registers are read and written, or ""."""
    if form.mnemonic == "VZEROUPPER":
        return "the lower halves stay what they are: no value passes through"
    return ""


def _is_apart(form: InstructionForm, source: Node, target: Node) -> bool:
    """Whether write-back keeps two values apart: the base is increased by an amount, and by nothing else.

    An amount that is a register is added after the access.
    """
    if "writeback" not in form.attributes or source.operand < 0 or target.operand < 0:
        return False
    one, other = form.operands[source.operand], form.operands[target.operand]
    amount = one.is_register and one.cls.startswith(AMOUNT)
    increased = other.is_register and other.role == "base"
    return not (amount or one.role in ("base", "index")) if increased else amount


@lru_cache  # a form is asked for them again and again while it is looked at
def pairs(form: InstructionForm) -> tuple[Pair, ...]:
    """Every (source, target) pair of a form, the ones without a chain marked with the reason.

    What a form's vector configuration says, VL and VTYPE, is no source of it.
    """
    result = []
    whole = _no_data(form)
    given = CONFIGURED if form.configuration else ()
    reached = [(target, _excluded(form, target)) for target in targets(form)]
    for source in sources(form):
        without = whole or _excluded(form, source)
        for target, unreached in reached:
            if source.name in given or target.name in given:
                continue
            if _is_apart(form, source, target):
                continue
            reason = without or unreached
            if source.part == "flag" and not form.attributes.isdisjoint(("rep", "repne")):
                reason = reason or "flags pass a repeated instruction only where the count is 0"
            result.append(Pair(source, target, reason))
    return tuple(result)


def register_place(form: InstructionForm, position: int) -> int:
    """Where an operand's register is among those that an instruction is made of, -1 if it has no choice."""
    if form.bits is not None:
        chosen = [field.operand for field in form.bits.fields if field.is_register]
    else:
        chosen = [-1 if s.part else s.operand for s in form.encoding.slots] if form.encoding else []
    return chosen.index(position) if position in chosen else -1


def overwritten(form: InstructionForm) -> list[Pair]:
    """Pairs from what a register held to what a form writes into it without reading it.

    No program can tell; a core that waits for the old value all the same has a false dependency. Registers
    that a form always writes have no pair: its throughput includes what they make it wait for.
    """
    found = []
    for position, op in enumerate(form.operands):
        file = op.file or domain(op.cls)
        written = op.is_register and op.write and not op.read and file in _RENAMED
        if written and register_place(form, position) >= 0:
            target = Node(op.name, "register", file, position)
            found.append(Pair(Node(f"{op.name}.{OLD}", OLD, file, position), target, _excluded(form, target)))
    return found


def is_in_memory(name: str) -> bool:
    """Whether the name of a source or target is that of data in memory."""
    return name.endswith(".data")


def has_old(pairs: Iterable[str]) -> bool:
    """Whether a pair begins with what a register held before."""
    mark = f".{OLD}->"
    return any([mark in pair for pair in pairs])  # noqa: C419 - quicker


def is_old(name: str) -> bool:
    """Whether a node's name, or that of a pair, begins with what a register held before."""
    return name.partition("->")[0].endswith(f".{OLD}")


def pairs_by_form(isa: str, names: Iterable[str]) -> dict[str, set[str]]:
    """The names of all pairs of those forms that the table knows."""
    from cyclescope.isa.table import load_table  # tables are slow to import

    table = load_table(isa)
    by_kind: dict[object, set[str]] = {}
    found: dict[str, set[str]] = {}
    for name in names:
        plain, at, _ = name.partition("@")
        both = (name, plain) if at else (name,)  # under a VTYPE, a form may have the pairs of the plain one
        for one in both:
            kind = table.kind(one)
            if kind is None:
                continue
            if kind not in by_kind:
                by_kind[kind] = _pair_names(table[one])
            found[name] = found[name] | by_kind[kind] if name in found else by_kind[kind]
    return found


def _pair_names(form: InstructionForm) -> set[str]:
    made = targets(form)
    ends = [(source, target) for source in sources(form) for target in made]
    ends += [(pair.source, pair.target) for pair in overwritten(form)]
    return {f"{source.name}->{target.name}" for source, target in ends}
