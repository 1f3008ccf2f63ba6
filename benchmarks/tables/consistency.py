"""Relations that hold on every core, whatever it costs: what shipped models and analysis say against them.

    python -m benchmarks.tables.consistency [MACHINE]... [--every N]

Pairs of forms that have to cost the same, or one no less than the other, as analysis takes them from a model.
It needs no reference and no hardware. What breaks a relation is an error of the model, of its extraction or
of the analysis; examples of each are printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import product

import msgspec

from cyclescope.analyze.cost.instruction import PlacedCost, PlacedCosts
from cyclescope.analyze.cost.latencies import CostVariant
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Configuration
from cyclescope.isa.riscv64.configuration import LMULS, SEWS
from cyclescope.isa.riscv64.shapes import takes_configuration
from cyclescope.isa.riscv64.vector_types import form_under
from cyclescope.isa.table import load_table
from cyclescope.model.library import summaries
from cyclescope.model.ports import port_throughput
from cyclescope.session.machines import load_model
from tools.machines.folded import Register, registers

_EXAMPLES = 5
_ROUNDING = 1e-6
_UNMASKED = (1 << 25).to_bytes(4, "little")


class Violation(msgspec.Struct, frozen=True):
    """Two costs that break a relation, in words."""

    relation: str
    machine: str
    what: str


Relation = Callable[[PlacedCosts, Sequence[InstructionForm]], Iterator[str]]


def latencies(placed: PlacedCost) -> dict[str, float]:
    """Cycles by `source->target`, as the dependency graph has them."""
    return {
        f"{placed.sources[k].name}->{target.name}": cycles
        for target, column in zip(placed.targets, placed.column_of, strict=True)
        for k, cycles in placed.columns[column]
    }


def _placed(costs: PlacedCosts, form: InstructionForm) -> PlacedCost | None:
    return costs.get(form, CostVariant()) if costs.cost(form) is not None else None


@cache
def _register_forms() -> dict[str, Register]:
    return registers()


# --- relations ------------------------------------------------------------------------------------


def folded(costs: PlacedCosts, forms: Sequence[InstructionForm]) -> Iterator[str]:
    """Operands beside a load take no less than in the form without it, out of order no more either."""
    table = load_table("x86-64")
    for form in forms:
        register = _register_forms().get(form.id)
        if register is None:
            continue
        one, other = _placed(costs, form), _placed(costs, table[register.name])
        if one is None or other is None or other.cost.eliminated:
            continue
        own = one.cost.latencies
        if max(own.values(), default=0) < max(other.cost.latencies.values(), default=0):
            continue  # a class of its own
        known, plain = latencies(one), latencies(other)
        for pair in own:
            least = plain.get(register.pair_names.get(pair, pair))
            if least is None or pair.partition("->")[0].endswith((".address", ".index")):
                continue
            faster = known[pair] < least and not register.only_less
            slower = known[pair] > max(least, 1) and not costs.machine.core.in_order
            if faster or slower:
                yield f"{form.id} {pair} {known[pair]:g}, {register.name} {least:g}"


def loads_last(costs: PlacedCosts, forms: Sequence[InstructionForm]) -> Iterator[str]:
    """What is loaded is there no sooner than what is not: an address leads to a result by a load."""
    for form in forms:
        placed = _placed(costs, form) if form.memory >= 0 and form.operands[form.memory].read else None
        if placed is None or placed.cost.eliminated or costs.machine.core.in_order:
            continue
        known = latencies(placed)
        name = form.operands[form.memory].name
        for target in placed.targets:
            address = known.get(f"{name}.address->{target.name}")
            others = [
                cycles
                for source in placed.sources
                if source.part == "register" and (cycles := known.get(f"{source.name}->{target.name}"))
            ]
            if target.part != "data" and address is not None and others and address < max(others):
                yield f"{form.id} {name}.address->{target.name} {address:g}, a register {max(others):g}"


def stack_known(costs: PlacedCosts, forms: Sequence[InstructionForm]) -> Iterator[str]:
    """x87: every way from a register of the stack to another has a latency in the model."""
    for form in forms:
        placed = _placed(costs, form) if "x87" in form.attributes else None
        if placed is None:
            continue
        stack = {node.name for node in (*placed.sources, *placed.targets) if node.domain == "x"}
        for pair in latencies(placed):
            source, _, target = pair.partition("->")
            if {source, target} <= stack and pair not in placed.cost.latencies:
                yield f"{form.id} {pair}"


def memory_units(costs: PlacedCosts, forms: Sequence[InstructionForm]) -> Iterator[str]:
    """Units that only loads and stores use are not those of arithmetic, nor of LEA."""
    arithmetic: set[tuple[int, ...]] = set()
    for form in forms:
        if not any(op.kind in ("memory", "address") for op in form.operands):
            placed = _placed(costs, form)
            arithmetic |= {op.ports for op in placed.operations} if placed is not None else set()
    alone = costs.units.loads - arithmetic
    for form in forms:
        if any(op.kind == "address" for op in form.operands):
            placed = _placed(costs, form)
            if placed is not None and {op.ports for op in placed.operations} & alone:
                yield f"{form.id} on ports of loads"


def policies(costs: PlacedCosts, forms: Sequence[InstructionForm]) -> Iterator[str]:
    """RISC-V's policies change what a result waits for, not what it costs."""
    for form, sew, lmul in product(filter(takes_configuration, forms), SEWS, LMULS):
        found = {
            _cost(costs, form_under(form, _UNMASKED, Configuration(sew, lmul, tail, mask)))
            for tail, mask in product((False, True), repeat=2)
        }
        if len(found) > 1:
            yield f"{form.id} e{sew},m{lmul}: {sorted(found, key=str)}"


def unknown_types(costs: PlacedCosts, forms: Sequence[InstructionForm]) -> Iterator[str]:
    """RISC-V's vectors cost no more under a VTYPE that is known than without one."""
    for form, sew, lmul in product(filter(takes_configuration, forms), SEWS, LMULS):
        under = form_under(form, _UNMASKED, Configuration(sew, lmul))
        known, plain = _cost(costs, under), _cost(costs, form)
        if known is not None and plain is not None and known > plain + _ROUNDING:
            yield f"{under.id} {known:g}, {form.id} {plain:g}"


def _cost(costs: PlacedCosts, form: InstructionForm) -> float | None:
    cost = costs.cost(form)
    return None if cost is None or cost.operations is None else port_throughput(cost.operations)


@cache
def _unmasked() -> dict[tuple[object, ...], InstructionForm]:
    return {
        (form.mnemonic, form.attributes, *(op.cls for op in form.operands)): form
        for form in load_table("x86-64")
        if "evex" in form.attributes and "masked" not in form.attributes
    }


def masked(costs: PlacedCosts, forms: Sequence[InstructionForm]) -> Iterator[str]:
    """A mask makes nothing cheaper."""
    for form in forms:
        if "masked" not in form.attributes:
            continue
        attributes = form.attributes - {"masked", "zeroing"}
        key = form.mnemonic, attributes, *(op.cls for k, op in enumerate(form.operands) if k != 1)
        plain = _unmasked().get(key)
        one, other = costs.cost(form), costs.cost(plain) if plain is not None else None
        if one is None or other is None or plain is None:
            continue
        costs = [
            (port_throughput(cost.operations or ()), max(cost.latencies.values(), default=0))
            for cost in (one, other)
        ]
        if any(less < more - _ROUNDING for less, more in zip(*costs, strict=True)):
            yield f"{form.id} {costs[0]}, {plain.id} {costs[1]}"


RELATIONS: dict[str, tuple[Relation, ...]] = {
    "x86-64": (folded, loads_last, stack_known, memory_units),
    "riscv64": (policies, unknown_types),
}  # fmt: skip
# What LLVM's tables themselves contradict, and nothing published says which of the two is right.
CONTRADICTED: dict[str, tuple[Relation, ...]] = {"x86-64": (masked,)}


# --- printing -------------------------------------------------------------------------------------


def violations(machine: str, every: int = 1, relations: Iterable[Relation] = ()) -> Iterator[Violation]:
    """What breaks the relations on a shipped machine, of every n-th form."""
    model = load_model(machine)
    costs, forms = PlacedCosts(model), list(load_table(model.isa))[::every]
    for relation in relations or RELATIONS.get(model.isa, ()):
        for what in relation(costs, forms):
            yield Violation(relation.__name__, machine, what)


def main() -> None:
    """Count what breaks each relation on the machines given, or on all."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("machines", nargs="*", default=[s.name for s in summaries() if s.isa in RELATIONS])
    asked.add_argument("--every", type=int, default=1, metavar="N", help="every n-th form only")
    given = asked.parse_args()
    for machine in given.machines:
        isa = next(one.isa for one in summaries() if machine in (one.name, *one.aliases))
        every = (*RELATIONS.get(isa, ()), *CONTRADICTED.get(isa, ()))
        found = list(violations(machine, given.every, every))
        for name in dict.fromkeys(one.relation for one in found):
            own = [one for one in found if one.relation == name]
            print(f"{machine}: {len(own)} {name}")
            for one in own[:: max(1, len(own) // _EXAMPLES)][:_EXAMPLES]:
                print(f"    {one.what}")
        if not found:
            print(f"{machine}: nothing")


if __name__ == "__main__":
    main()
