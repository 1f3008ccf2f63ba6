"""Writing uops.info's `instructions.xml`.

The layout is that of the published file: extensions, instructions with their operands, and for every
architecture one `measurement` and one `latency` per pair of operands. What has no attribute there is in
attributes that begin with `x_`, which other readers ignore: `x_ports` is the port usage with this model's
names, `x_slots` the front-end slots, `x_pairs` the latencies of single flags, where these differ. XED's
`category`, `iclass`, `iform` and `cpl` are not known here and absent. What only a store's results tell
(`TP_loop`, `_same_reg`) is made by `sequences`.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import msgspec

from cyclescope.formats.exchange import Exported, FormatError, Item, exact
from cyclescope.formats.uops_info.sequences import same_register, throughputs
from cyclescope.infer.timing.results import FormTiming
from cyclescope.isa.dataflow import Node, overwritten, sources, targets
from cyclescope.isa.form import InstructionForm, flag_names
from cyclescope.isa.operand import Operand
from cyclescope.isa.register import REGISTERS
from cyclescope.isa.table import load_table
from cyclescope.model.facts import FUSION, HIGH, CoreAnswer, fused_forms
from cyclescope.model.machine import FormCost, MachineModel, Operation
from cyclescope.model.ports import issue_throughput, notation

SUFFIXES = {"address": "_addr", "index": "_addr_index", "data": "_mem"}
_TYPES = {"register": "reg", "memory": "mem", "immediate": "imm", "address": "agen", "branch": "relbr"}
_NAMES = {"register": "REG", "memory": "MEM", "immediate": "IMM", "address": "AGEN", "branch": "RELBR"}
_SIGNS = {"evex": "evex", "vex": "vex", "masked": "mask", "lock": "locked", "rep": "rep", "mxcsr": "mxcsr"}
DOUBTFUL = "low"  # confidence: usages of it are in `x_ports` alone
BETWEEN = " | "  # of port usages
EXTRAS = ("confidence", "idiom", "note")
FLAGS_SET = ("eliminated", "microcoded")


class Reach(msgspec.Struct, frozen=True):
    """What is known of one pair: from `least` to `most` cycles; `least` 0 of a range is an upper bound.

    `proved` is the range without conventions, where the value rests on one.
    """

    pair: str
    least: float
    most: float
    proved: tuple[float, float] | None = None

    @property
    def is_bound(self) -> bool:
        """Whether only the most is known."""
        return self.least == 0 < self.most


def write(model: MachineModel, timings: Mapping[str, FormTiming]) -> Exported:
    """A model of an x86-64 machine as `instructions.xml`. Raises FormatError for other instruction sets.

    `timings` are the results of the store that the model was made of, by form; empty where there is none.
    """
    if model.isa != "x86-64":
        raise FormatError("uops.info's XML describes x86-64 only", f"{model.name} is {model.isa}")
    root = Element("root", date=model.provenance.date[:10] or "unknown")
    extensions: dict[str, Element] = {}
    left: list[Item] = []
    fusible = _fusible(model)
    for form in load_table(model.isa):
        cost = model.forms.get(form.id)
        if cost is None:
            continue
        if not form.uops_info:
            left.append(Item(form.id, "uops.info has no name for it"))
            continue
        name = form.features[0] if form.features else "BASE"
        if name not in extensions:
            extensions[name] = SubElement(root, "extension", name=name)
        _add(extensions[name], form, cost, model, fusible.get(form.id, ""), timings.get(form.id))
    if model.resources:
        left.append(Item(model.name, f"the resource view of the machine ({len(model.resources)} resources)"))
    return Exported(_text(root), tuple(left))


def _text(root: Element) -> str:
    ElementTree.indent(root, " ")
    stream = io.BytesIO()
    ElementTree.ElementTree(root).write(stream, encoding="utf-8", xml_declaration=True)
    return stream.getvalue().decode() + "\n"


def _add(
    parent: Element,
    form: InstructionForm,
    cost: FormCost,
    model: MachineModel,
    fusible: str,
    timing: FormTiming | None,
) -> None:
    asm = form.mnemonic if "lock" not in form.attributes else f"LOCK {form.mnemonic}"
    attributes = {"asm": asm, "extension": parent.get("name", ""), "string": form.uops_info}
    attributes |= {name: "1" for ours, name in _SIGNS.items() if ours in form.attributes}
    node = SubElement(parent, "instruction", attributes, x_features=" ".join(form.features))
    for number, op in enumerate(form.operands):
        _add_operand(node, form, op, number)
    _add_flags(node, form)
    architecture = SubElement(node, "architecture", name=model.name, x_width=exact(model.core.width),
                              x_port_names=" ".join(model.ports))  # fmt: skip
    fused = {"macro_fusible": fusible} if fusible else {}
    SubElement(architecture, "measurement", _measurement(cost, model, timing) | fused)
    same = same_register(form, timing) if timing is not None else {}  # from the second register to the first
    both = [number for number, op in enumerate(form.operands, 1) if op.is_register and not op.implicit]
    for (start, target), kinds in _grouped(form, cost).items():
        known = {suffix: _cycles(suffix, reaches) for suffix, reaches in kinds.items() if any(reaches)}
        if known:
            node = SubElement(architecture, "latency", start_op=str(start), target_op=str(target))
            node.attrib.update({name: text for found in known.values() for name, text in found.items()})
            node.attrib.update(same if [target, start] == both else {})


def _add_operand(parent: Element, form: InstructionForm, op: Operand, number: int) -> None:
    same = sum(other.kind == op.kind for other in form.operands[:number])
    attributes = {"idx": str(number + 1), "name": f"{_NAMES[op.kind]}{same}", "type": _TYPES[op.kind]}
    attributes |= {"r": "1"} if op.read else {}
    attributes |= {"w": "1"} if op.write else {}
    attributes |= {"conditionalWrite": "1"} if op.conditional and op.write else {}
    attributes |= {"suppressed": "1"} if op.implicit else {}
    attributes |= {"width": str(op.width), **({"xtype": op.element} if op.element else {})}
    if op.is_memory and op.implicit:
        attributes["base"] = op.name.strip("[]")
    node = SubElement(parent, "operand", attributes)
    if op.is_register:
        node.text = op.fixed or _registers(op.cls)


@cache
def _registers(cls: str) -> str:
    """Names of the registers of a class, as the published file lists them."""
    names = [name for name, (own, _) in REGISTERS.items() if own == cls]
    return ",".join(names) or cls


def _add_flags(parent: Element, form: InstructionForm) -> None:
    read, written = (set(flag_names(mask)) for mask in (form.flags_read, form.flags_written))
    undefined = set(flag_names(form.flags_undefined))
    if not read | written | undefined:
        return
    attributes = {"idx": str(len(form.operands) + 1), "type": "flags", "suppressed": "1"}
    for flag in sorted(read | written | undefined):
        access = "undef" if flag in undefined else "/".join(
            letter for letter, those in (("r", read), ("w", written)) if flag in those
        )  # fmt: skip
        attributes[f"flag_{flag}"] = access
    attributes |= {"r": "1"} if read else {}
    attributes |= {"w": "1"} if written else {}
    SubElement(parent, "operand", attributes)


# --- measurements ------------------------------------------------------------------------------------


def _measurement(cost: FormCost, model: MachineModel, timing: FormTiming | None) -> dict[str, str]:
    found: dict[str, str] = {}
    if cost.operations is not None:
        found |= {} if cost.confidence == DOUBTFUL else _usage(cost, cost.operations, model)
        found["x_ports"] = notation(cost.operations, model.ports)
    if cost.slots is not None:
        found["x_slots"] = exact(cost.slots)
        found |= {"uops_retire_slots": f"{cost.slots:g}"} if cost.slots % 1 == 0 else {}
    if cost.throughput is not None:
        found["x_TP"] = exact(cost.throughput)
        found |= {"TP_unrolled": f"{cost.throughput:.2f}"} if timing is None else {}
    found |= throughputs(timing) if timing is not None else {}
    if cost.throughput_most is not None:
        found["x_TP_most"] = exact(cost.throughput_most)
    if cost.slot_range is not None:
        found["x_slot_range"] = "..".join(map(exact, cost.slot_range))
    if cost.alternatives:
        found["x_alternatives"] = BETWEEN.join(cost.alternatives)
    found |= {f"x_{name}": getattr(cost, name) for name in EXTRAS if getattr(cost, name)}
    return found | {f"x_{name}": "1" for name in FLAGS_SET if getattr(cost, name)}


def _usage(cost: FormCost, operations: Sequence[Operation], model: MachineModel) -> dict[str, str]:
    """What readers take for sure."""
    found = {"uops": f"{sum(op.count for op in operations):g}"}
    published = _published(operations, model.ports)
    found |= {"ports": published} if published else {}
    bound = issue_throughput(cost, model.core)
    return found | ({"TP_ports": f"{bound[0]:.2f}"} if bound is not None and bound[1] == "ports" else {})


def _fusible(model: MachineModel) -> dict[str, str]:
    """The branches that every form was found to share a slot with, in uops.info's names."""
    table = load_table(model.isa)
    found: dict[str, list[str]] = defaultdict(list)
    for fact in model.facts:
        if fact.probe != FUSION or fact.answer is not CoreAnswer.FUSED or fact.confidence != HIGH:
            continue
        first, second = fused_forms(fact.subject)
        branch = table.get(second)
        if branch is not None and "branch" in branch.attributes and branch.uops_info:
            found[first].append(branch.uops_info)
    return {form: ";".join(sorted(branches)) for form, branches in found.items()}


def _published(operations: Sequence[Operation], ports: Sequence[str]) -> str:
    """`1*p06+1*p23`, or with `FP` where all ports are so named; empty where the notation has no words."""
    parts = []
    for op in operations:
        names = [ports[p] for p in op.ports]
        prefix = "FP" if all(n.startswith("FP") for n in names) else ""
        digits = [n.removeprefix(prefix) for n in names]
        if op.cycles != 1 or op.count % 1 or any(len(d) != 1 or not d.isalnum() for d in digits):
            return ""
        parts.append(f"{op.count:g}*{prefix or 'p'}{''.join(d.upper() for d in digits)}")
    return "+".join(parts)


# --- latencies ---------------------------------------------------------------------------------------


def _grouped(form: InstructionForm, cost: FormCost) -> dict[tuple[int, int], dict[str, list[Reach | None]]]:
    """What is known of the pairs, by operand numbers and part of a start in memory; None of some flags."""
    found: dict[tuple[int, int], dict[str, list[Reach | None]]] = defaultdict(lambda: defaultdict(list))
    for source in sources(form):
        for target in targets(form):
            key = _number(form, source), _number(form, target)
            reach = _reach(f"{source.name}->{target.name}", cost)
            found[key][SUFFIXES.get(source.part, "")].append(reach)
    for pair in overwritten(form):  # a false dependency: from an operand that is only written to itself
        reach = _reach(f"{pair.source.name}->{pair.target.name}", cost)
        if reach is not None:
            found[_number(form, pair.source), _number(form, pair.target)][""].append(reach)
    return found


def _reach(pair: str, cost: FormCost) -> Reach | None:
    if pair in cost.latencies:
        return Reach(pair, cost.latencies[pair], cost.latencies[pair], cost.ranges.get(pair))
    return Reach(pair, *cost.ranges[pair]) if pair in cost.ranges else None


def _number(form: InstructionForm, node: Node) -> int:
    """Operands count from 1; the flags are the one behind them."""
    return node.operand + 1 if node.operand >= 0 else len(form.operands) + 1


def _cycles(suffix: str, every: Sequence[Reach | None]) -> dict[str, str]:
    """The attributes of one group of pairs: several only where flags are read or written."""
    reaches = [reach for reach in every if reach is not None]
    most = max(reach.most for reach in reaches)
    exact = [reach for reach in reaches if not reach.is_bound]
    least = min(reach.least for reach in exact) if exact else most
    names = ["cycles"] if least == most else ["min_cycles", "max_cycles"]
    found = {f"{name}{suffix}": _rounded(v) for name, v in zip(names, (least, most), strict=False)}
    if any(reach.is_bound and reach.most == most for reach in reaches):
        found[f"{names[-1]}{suffix}_is_upper_bound"] = "1"
    if len(reaches) < len(every) or not _is_plain(reaches):
        found[f"x_pairs{suffix}"] = ";".join(map(_spelled, reaches))
    return found


def _is_plain(reaches: Sequence[Reach]) -> bool:
    """Whether uops.info's attributes say all of it."""
    first = reaches[0]
    same = all((r.least, r.most, r.proved) == (first.least, first.most, None) for r in reaches)
    return same and all(float(_rounded(value)) == value for value in (first.least, first.most))


def _spelled(reach: Reach) -> str:
    value = "..".join(dict.fromkeys(map(exact, (reach.least, reach.most))))
    proved = "~" + "..".join(map(exact, reach.proved)) if reach.proved else ""
    return f"{reach.pair}={value}{proved}"


def _rounded(value: float) -> str:
    return f"{value:g}" if value % 1 == 0 else f"{value:.2f}"
