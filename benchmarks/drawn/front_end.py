"""The front ends of simulated cores of known truth: width, slots of forms, bytes per cycle.

Cores are drawn: 2 to 10 slots, NOPs that share a slot, moves that are fused, instructions that are not
divided, a limit by bytes, issue in order, noise and neighbours. What is stated has to be right, and most has
to be stated. The seed is fresh and printed, so that a run can be repeated.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.lib.common import Check, at_least, parser, present
from cyclescope.backend.loops import Loops
from cyclescope.backend.simulated import Noise, SimulatedBackend
from cyclescope.infer.campaign import Campaign
from cyclescope.infer.front_end.fetch import bytes_per_cycle
from cyclescope.infer.ports.approach import Approach
from cyclescope.infer.ports.front_end import FrontEndFacts
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table, load_table
from cyclescope.measure.store import Store
from cyclescope.model.behaviour.nops import is_nop
from cyclescope.model.machine import MachineModel, Narrow
from cyclescope.simulate.cost import cost_of
from cyclescope.simulate.draw import draw_machine
from cyclescope.simulate.front_end import FrontEnd

CORES, FORMS = 30, 60
RIGHT_WIDTHS, RIGHT_SLOTS = 0.98, 0.995  # of what is stated
STATED = 0.9
MICROCODE = 4  # slots: more are given as a range where they are not clear


class Drawn(msgspec.Struct, frozen=True):
    """A core of known truth, and what disturbs its samples."""

    seed: int
    machine: MachineModel
    front_end: FrontEnd
    noise: Noise

    def backend(self) -> SimulatedBackend:
        """The core as a backend."""
        loops = Loops(self.seed, self.machine.core.width)
        return SimulatedBackend(self.machine, noise=self.noise, loops=loops, front_end=self.front_end)

    def __str__(self) -> str:
        core = self.machine.core
        order = ("in order",) if core.in_order else ()
        return f"{self.seed}: {core.width:g} wide, " + ", ".join((*order, *self.front_end.features))


class Verdict(msgspec.Struct, frozen=True):
    """What came out of a core: forms by whether their slots are stated and right, and what is wrong."""

    core: Drawn
    facts: FrontEndFacts
    slots: Counter[str]
    wrong: tuple[str, ...]
    seconds: float

    @property
    def is_stated(self) -> bool:
        """Whether the width is told."""
        return self.facts.width_fact.is_told

    @property
    def is_right(self) -> bool:
        """Whether the width that is told is that of the core."""
        return self.is_stated and self.facts.width_fact.slots == self.core.machine.core.width


def draw_core(seed: int, table: Table) -> Drawn:
    """A core with drawn features, on which nothing was tuned."""
    draw = random.Random(f"front end {seed}")
    width = draw.randint(2, 10)
    front_end = FrontEnd(
        pairs=(pairs := draw.random() < 0.25), trails=pairs and draw.random() < 0.5,
        fuses=draw.random() < 0.25, whole=draw.random() < 0.2,
        fetch=draw.choice((0, 0, 0, 4 * width, 6 * width, 8 * width)),
        narrow=Narrow(("k", "v"), width - 1.0, draw.randint(0, 4)) if draw.random() < 0.25 else None,
    )  # fmt: skip
    machine = draw_machine(seed, list(table), width=width)
    core = msgspec.structs.replace(machine.core, in_order=draw.random() < 0.1)
    machine = msgspec.structs.replace(machine, core=core)
    jitter, burst, step = (
        draw.choice((0.0, 0.0015, 0.004)),
        draw.choice((0.0, 0.2, 0.35)),
        draw.choice((0, 32)),
    )
    noise = Noise(jitter, burst, step=float(step), seed=seed)
    return Drawn(seed, machine, front_end, noise)


def sample(table: Table, machine: MachineModel, seed: int, count: int) -> list[InstructionForm]:
    """Forms that are not microcode, drawn evenly, and a few that are."""
    draw = random.Random(f"forms {seed}")
    able = [form for form in table if form.encoding and (cost := cost_of(machine, form)) and cost.slots]
    return draw.sample(able, min(count, len(able)))


def approach_of(core: Drawn, table: Table, forms: Sequence[InstructionForm], file: Path) -> Approach:
    """What the front end's experiments tell of a core."""
    with closing(core.backend()) as backend, closing(Store(file, core.machine.name)) as store:
        return Campaign(table, backend, store).front_end(forms)


def judge(core: Drawn, table: Table, count: int) -> Verdict:
    """Measure a core and compare."""
    start = time.monotonic()
    forms = sample(table, core.machine, core.seed, count)
    with tempfile.TemporaryDirectory() as folder:
        approach = approach_of(core, table, forms, Path(folder) / "store.sqlite")
    facts = approach.front_end
    slots: Counter[str] = Counter()
    wrong = []
    for form in forms if not approach.in_order else ():
        truth, (told, _) = _slots(core, form), facts.told(form)
        if form.id not in facts.counts or truth is None:
            continue
        verdict = "not stated" if told is None else "right" if told == truth else "wrong"
        slots[verdict] += 1
        if verdict == "wrong":
            wrong.append(f"{form.id} {told} for {truth}: {facts.counts[form.id]}")
    return Verdict(core, facts, slots, tuple(wrong), time.monotonic() - start)


def _slots(core: Drawn, form: InstructionForm) -> float | None:
    """Slots that a form has; None of microcode, and of NOPs where they share what stands beside."""
    cost = cost_of(core.machine, form)
    if cost is None or cost.microcoded or (core.front_end.pairs and is_nop(form)):
        return None
    return cost.slots


def front_end(seed: int, cores: int, forms: int) -> Iterator[Check]:
    """Judge so many cores."""
    table = load_table("x86-64")
    print(f"seed {seed}")
    found = []
    for number in range(seed, seed + cores):
        found.append(one := judge(draw_core(number, table), table, forms))
        width = one.facts.width_fact
        said = f"{width.slots:g}" if width.is_told else f"not told: {width.reason.text[:200]}"
        print(f"{one.core}: width {said}, slots {dict(one.slots)}, {one.seconds:.1f} s", flush=True)
        for line in one.wrong[:3]:
            print(f"   {line}")
    yield from _checks(found)


def _checks(found: Sequence[Verdict]) -> Iterator[Check]:
    stated = [one for one in found if one.is_stated]
    slots = sum((one.slots for one in found), Counter[str]())
    told = slots["right"] + slots["wrong"]
    yield at_least("widths stated", len(stated), len(found), STATED)
    yield at_least("of these right", sum(one.is_right for one in stated), len(stated), RIGHT_WIDTHS)
    yield at_least("slots stated", told, slots.total(), STATED)
    yield at_least("of these right", slots["right"], told, RIGHT_SLOTS)
    fetched = [one for one in found if (limit := _limit(one.facts)) and limit]
    right = sum(abs(_limit(one.facts) / (one.core.front_end.fetch or 1e9) - 1) < 0.03 for one in fetched)
    yield at_least("bytes per cycle right where stated", right, len(fetched), RIGHT_WIDTHS)
    limited = [one for one in found if one.core.front_end.fetch]
    yield Check("bytes per cycle stated, of cores with a limit", f"{len(fetched)} of {len(limited)}")


def _limit(facts: FrontEndFacts) -> float:
    width = facts.width_fact
    return bytes_per_cycle(facts.fetch, width.slots) if width.is_told else 0.0


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options.add_argument("--cores", type=int, default=CORES)
    options.add_argument("--forms", type=int, default=FORMS, help="forms per core")
    chosen = options.parse_args()
    present("front ends", lambda: list(front_end(chosen.seed, chosen.cores, chosen.forms)))


if __name__ == "__main__":
    main()
