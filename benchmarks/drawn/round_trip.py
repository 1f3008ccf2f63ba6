"""Simulated machines of known truth: model, simulated measurements, inference, and the model again.

Ports have no names that timing could tell, so usages are compared up to renaming: two ports are the
same to every experiment if the same classes of blocking instructions use them. A usage is identifiable
if each of its micro-operations may use the ports of a class, or those that two classes share, and if,
without counters, none keeps a port for more than the two cycles that vectors take of units half as wide and
it is not microcode. Ports for
memory are left out of the comparison: a store's address and its data always come together, so that no
experiment tells a port for the data from a share of the ports for addresses.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.drawn.features import with_narrow_units
from benchmarks.lib.common import Check, at_least, checks_table
from cyclescope.backend.simulated import LOUD, QUIET, Noise, SimulatedBackend
from cyclescope.infer.campaign import Campaign, Request
from cyclescope.infer.front_end.undivided import MICROCODE
from cyclescope.infer.likelihood.structure import port_sets
from cyclescope.infer.ports.approach import read_approach
from cyclescope.infer.ports.builder import PortBuilder
from cyclescope.infer.ports.in_order import TOGETHER, InOrder
from cyclescope.isa.find.pattern import select
from cyclescope.isa.form import InstructionForm, model_form_id
from cyclescope.isa.table import Table, load_table
from cyclescope.measure.plan import Planner
from cyclescope.measure.ports import PORTS
from cyclescope.measure.store import Store
from cyclescope.model.facts import HIGH, MEDIUM
from cyclescope.model.machine import BINDINGS, IDEAL, FormCost, MachineModel, Operation
from cyclescope.model.ports import issue_throughput, port_throughput
from cyclescope.session.machines import load_model
from cyclescope.simulate.cost import cost_of
from cyclescope.simulate.draw import draw_machine
from cyclescope.simulate.front_end import FEATURELESS, FrontEnd

IN_ORDER = ("cortex-a510", "spacemit-x60")
MACHINES = (
    "znver1",
    "znver2",
    "znver3",
    "znver4",
    "sandybridge",
    "haswell",
    "broadwell",
    "skylake",
    "icelake-server",
    "neoverse-v1",
    "neoverse-v2",
    "neoverse-n2",
    "a64fx",
    "sifive-p670",
    "sifive-p550",
    "xiangshan-nanhu",
    *IN_ORDER,
)  # whose model has an instruction that needs a slot and no port; LLVM's Alder Lake has none
DRAWN = (1, 2, 3, 4, 5, 6)
RIGHT = 0.99
HELD = {HIGH: 0.995, MEDIUM: 0.95}  # of the usages of a confidence: what it promises
CLAIMED = 0.85
TURNS = 2.0  # cycles for which the widest vectors keep a port of a unit that is half as wide
OFTEN = 0.5

Kind = frozenset[str]  # the classes that use a port


class Verdict(msgspec.Struct, frozen=True):
    """One form: what it is, what was found, and whether timing can tell."""

    form: str
    truth: str
    found: str
    right: bool
    identifiable: bool
    confidence: str


def measure(
    machine: MachineModel,
    table: Table,
    forms: Sequence[InstructionForm],
    noise: Noise,
    file: Path,
    counters: bool = False,
    front_end: FrontEnd = FEATURELESS,
    binding: str = IDEAL,
) -> Store:
    """A store with the port experiments of some forms on a simulated machine, with mixes of a fixed seed."""
    store = Store(file, machine.name)
    backend = SimulatedBackend(machine, binding, noise=noise, counters=counters, front_end=front_end)
    Campaign(table, backend, store, draw=random.Random(1)).run(Request(tuple(forms), frozenset((PORTS,))), {})
    backend.close()
    return store


class Comparison:
    """A machine against what was inferred of it."""

    def __init__(self, machine: MachineModel, builder: PortBuilder, counted: bool) -> None:
        self.machine = machine
        self.builder = builder
        self.counted = counted
        structure, classes = builder.facts.structure, builder.facts.classes
        memory = {name for name in structure.sets if "m" in classes.files[name]}
        moves = [name for (files, _), some in classes.blockers.items() for name in some if "m" in files]
        self.found_memory = frozenset().union(*[structure.sets[name] for name in memory])
        names = structure.sets.keys() - memory
        self.truth = {name: self._ports(name) for name in names}
        heads, every = (frozenset().union(*map(self._ports, some)) for some in (memory, moves))
        self.memory = heads | every.difference(*self.truth.values())
        if counted:  # the counters name the ports
            names_of_memory = {machine.ports[port] for port in self.memory}
            some = {port for port, name in enumerate(builder.names) if name in names_of_memory}
            self.found_memory |= some
        self.found = {name: frozenset(structure.sets[name]) for name in names}
        self.kinds = self._kinds(self.truth, range(len(machine.ports)))
        self.found_kinds = self._kinds(self.found, range(structure.ports))
        self.sets = {frozenset(s) for s in port_sets({n: tuple(p) for n, p in self.truth.items()})}

    def _ports(self, form: str) -> frozenset[int]:
        operations = _known(self.machine, form).operations or ()
        return frozenset(port for op in operations for port in op.ports)

    def _is_unit(self, op: Operation) -> bool:
        """Whether an operation keeps a port busy that no class has: a usage tells no such units."""
        return op.cycles > 1 and not any(self.kinds[port] for port in op.ports)

    @staticmethod
    def _kinds(classes: dict[str, frozenset[int]], ports: Sequence[int]) -> dict[int, Kind]:
        return {p: frozenset(name for name, some in classes.items() if p in some) for p in ports}

    def same_structure(self) -> bool:
        """Whether the ports that classes use are recovered up to renaming."""
        used = Counter(kind for kind in self.kinds.values() if kind)
        return used == Counter(kind for kind in self.found_kinds.values() if kind)

    def told_structure(self) -> bool:
        """Whether all classes together, any two of them, ... have as many ports as they should, as far as the
        front end keeps so many busy: mixes of instructions of one slot tell no more of a structure.
        """
        width = int(self.machine.core.width)
        none = frozenset[int]()
        unions = {(none, none)}
        for truth, found in {(some, self.found[name]) for name, some in self.truth.items()}:
            unions |= {(one | truth, other | found) for one, other in unions}
        return all(min(len(one), width) == min(len(other), width) for one, other in unions)

    def verdict(self, form: InstructionForm) -> Verdict | None:
        """A form's usage against the truth; None where nothing was found, with a reason."""
        usage = self.builder.usage(form, self.builder.facts.front_end.throughputs.get(form.id))
        cost = cost_of(self.machine, form)
        assert cost is not None
        if usage.ports is None or cost.operations is None:
            return None
        counted = self.counted
        truth = _without(cost.operations, self.memory)
        found = None if usage.operations is None else _without(usage.operations, self.found_memory)
        ports = [op for op in truth if counted or not self._is_unit(op)]
        right = found is not None and _usage(found, self.found_kinds) == _usage(ports, self.kinds, counted)
        known = all(frozenset(op.ports) in self.sets and (counted or op.cycles <= TURNS) for op in truth)
        told = known and self.builder.facts.knows_memory(form)
        identifiable = told and (counted or (cost.slots or 0) < MICROCODE)
        return Verdict(form.id, shown(cost, self.machine), usage.ports, right, identifiable, usage.confidence)


def _known(machine: MachineModel, form: str) -> FormCost:
    """The cost of a form by its id, that of the plain form where a configuration has none."""
    return machine.forms.get(form) or machine.forms[form.partition("@")[0]]


def _without(operations: Sequence[Operation], ports: frozenset[int]) -> list[Operation]:
    """The operations that use none of some ports."""
    return [op for op in operations if ports.isdisjoint(op.ports)]


def _usage(
    operations: Sequence[Operation], kinds: dict[int, Kind], counted: bool = False
) -> Counter[frozenset[tuple[Kind, int]]]:
    """Micro-operations by what their ports are, whatever their names; timed ones by the cycles they take."""
    found: Counter[frozenset[tuple[Kind, int]]] = Counter()
    for op in operations:
        kind = frozenset(Counter(kinds[p] for p in op.ports).items())
        found[kind] += round(op.count * (1 if counted else op.cycles))
    return found


def shown(cost: FormCost, machine: MachineModel) -> str:
    """Port usage with the machine's own names."""
    parts = [f"{op.count:g}*[{' '.join(machine.ports[p] for p in op.ports)}]" for op in cost.operations or ()]
    return "+".join(parts) or "-"


def sample(table: Table, machine: MachineModel, count: int) -> list[InstructionForm]:
    """Forms that the machine has, drawn evenly; vectors of RISC-V in one of their configurations each."""
    draw = random.Random(1)
    able: dict[str, list[InstructionForm]] = {}
    for form in select(table, ()):
        if model_form_id(form) in machine.forms and (form.encoding or form.bits):
            able.setdefault(model_form_id(form), []).append(form)
    chosen = draw.sample(list(able.values()), min(count, len(able))) if count else able.values()
    return [draw.choice(some) for some in chosen]


def compare(
    machine: MachineModel,
    table: Table,
    forms: Sequence[InstructionForm],
    noise: Noise,
    counters: bool = False,
    front_end: FrontEnd = FEATURELESS,
    binding: str = IDEAL,
) -> tuple[Comparison, list[Verdict], float]:
    """Run a machine through measuring and inference; with the seconds it took."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store.sqlite"
        store = measure(machine, table, forms, noise, file, counters, front_end, binding)
        try:
            builder = read_approach(store, table).ports
            assert builder is not None, f"nothing fills the front end of {machine.name}"
            comparison = Comparison(machine, builder, counters)
        finally:
            store.close()
    verdicts = [v for v in map(comparison.verdict, forms) if v is not None]
    return comparison, verdicts, time.monotonic() - start


def checks(name: str, comparison: Comparison, verdicts: Sequence[Verdict]) -> list[Check]:
    """What the round trip has to show for one machine."""
    sure = [v for v in verdicts if v.identifiable]
    wrong = [v for v in verdicts if not v.right and v.confidence == HIGH]
    return [
        at_least(f"{name}: structure recovered", int(comparison.same_structure()), 1, 1.0),
        at_least(f"{name}: as far as the front end shows it", int(comparison.told_structure()), 1, 1.0),
        at_least(f"{name}: identifiable usages right", sum(v.right for v in sure), len(sure), RIGHT),
        Check(f"{name}: wrong with high confidence", str(len(wrong)), "0", not wrong),
    ]


def levels(verdicts: Sequence[Verdict]) -> list[Check]:
    """Whether each level of confidence held what it promises, and how much is claimed at all."""
    found = []
    for level, least in HELD.items():
        some = [v for v in verdicts if v.confidence == level]
        found.append(
            at_least(f"usages of {level} confidence right", sum(v.right for v in some), len(some), least)
        )
    known = [v for v in verdicts if v.identifiable]
    sure = sum(v.confidence in HELD for v in known)
    return [*found, at_least("identifiable usages of high or medium confidence", sure, len(known), CLAIMED)]


def in_order(
    machine: MachineModel, table: Table, forms: Sequence[InstructionForm], noise: Noise
) -> list[Check]:
    """What a core that issues in order has to show: that it does, and which forms issue together."""
    with tempfile.TemporaryDirectory() as folder:
        store = measure(machine, table, forms, noise, Path(folder) / "store.sqlite")
        try:
            approach = read_approach(store, table)
        finally:
            store.close()
    usages = [approach.usage(form, Planner(table, lambda form: True)) for form in forms]
    pairs = approach.rules if isinstance(approach, InOrder) else None
    said = [rule for form in forms if pairs for rule in _rules(machine, pairs(form.id), form)]
    claimed = sum(usage.ports is not None for usage in usages)
    print(f"{machine.name}: {len(said)} pairs of {len(forms)} forms")
    return [
        Check(f"{machine.name}: in order", str(approach.in_order).lower(), "true", approach.in_order),
        Check(f"{machine.name}: forms with ports", str(claimed), "0", claimed == 0),
        at_least(f"{machine.name}: pairing rules right", sum(said), len(said), RIGHT),
    ]


def _rules(
    machine: MachineModel, rules: tuple[Sequence[str], Sequence[str]], form: InstructionForm
) -> Iterator[bool]:
    """Whether each pairing rule of a form is what its ports and slots say."""
    for found, others in zip((True, False), rules, strict=True):
        for other in others:
            yield _issue_together(machine, form.id, other) == found


def _issue_together(machine: MachineModel, form: str, other: str) -> bool:
    """Whether two forms in turn take no longer than the slower of them."""
    both = [_known(machine, name) for name in (form, other)]
    alone = [issue_throughput(cost, machine.core) for cost in both]
    operations = [op for cost in both for op in cost.operations or ()]
    slots = sum(cost.slots or 0 for cost in both)
    cycles = max(port_throughput(operations), slots / machine.core.width, 1.0)
    return cycles <= max([1.0, *(a[0] for a in alone if a)]) + TOGETHER


def core_named(name: str) -> tuple[MachineModel, FrontEnd]:
    """LLVM's by its name, or `drawn:` and a seed.

    Half of those have units half as wide as the widest vectors. On every fourth a NOP takes no slot of its
    own beside another one, or behind what works on registers.
    """
    if not name.startswith("drawn:"):
        return load_model(name), FEATURELESS
    seed, forms = int(name[6:]), list(load_table("x86-64"))
    draw, machine = random.Random(f"core {seed}"), draw_machine(seed, forms)
    narrow, trails = draw.random() < OFTEN, draw.random() < OFTEN**2
    front_end = FrontEnd(pairs=True, trails=True) if trails else FEATURELESS
    return with_narrow_units(machine, forms) if narrow else machine, front_end


def main() -> None:
    """Print what every machine shows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("machines", nargs="*", help="LLVM's names, or drawn:SEED")
    parser.add_argument("--forms", type=int, default=600, help="forms per machine, 0 for all")
    parser.add_argument("--fresh", type=int, default=0, help="so many machines of seeds never used before")
    parser.add_argument("--quiet", action="store_true", help="no noise")
    parser.add_argument("--counters", action="store_true", help="with performance counters per port")
    parser.add_argument("--binding", choices=BINDINGS, default=IDEAL, help="how operations get their ports")
    parser.add_argument("--wrong", type=int, default=10, help="wrong usages to list")
    options = parser.parse_args()
    found: list[Check] = []
    every: list[Verdict] = []
    fresh = [f"drawn:{random.SystemRandom().randrange(10**6)}" for _ in range(options.fresh)]
    noise = QUIET if options.quiet else LOUD
    for name in [*options.machines, *fresh] or [*MACHINES, *(f"drawn:{seed}" for seed in DRAWN)]:
        machine, front_end = core_named(name)
        table = load_table(machine.isa)
        forms = sample(table, machine, options.forms)
        if machine.core.in_order:
            found += in_order(machine, table, forms, noise)
            continue
        told = options.counters, front_end, options.binding
        comparison, verdicts, seconds = compare(machine, table, forms, noise, *told)
        print(f"{name}: {len(verdicts)} of {len(forms)} forms with a usage, {seconds:.0f} s")
        wrong = [v for v in verdicts if not v.right and (v.identifiable or v.confidence == HIGH)]
        for v in sorted(wrong, key=lambda v: v.confidence != HIGH)[: options.wrong]:
            print(f"  {v.form}: {v.truth}, found {v.found} ({v.confidence})")
        found += checks(name, comparison, verdicts)
        every += verdicts
    found += levels(every) if every else []
    print(checks_table(found))


if __name__ == "__main__":
    main()
