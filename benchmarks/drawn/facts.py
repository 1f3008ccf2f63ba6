"""Facts that probes find on simulated cores of known truth, whose features nobody tuned on.

    python -m benchmarks.drawn.facts [--seed N] [--cores N] [PROBE]...

Cores are drawn: ports, latencies, width, moves and idioms by mnemonic and width, pairs that the front end
fuses, NOPs that share a slot, when a load gets what was stored without waiting, what is not forwarded, noise
and neighbours. What is stated has to be right, and most has to be stated. The seed is fresh and printed, so
that a run can be repeated.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from benchmarks.drawn.features import draw_front_end
from benchmarks.lib.common import Check, at_least, parser, present
from cyclescope.backend.simulated import Noise, SimulatedBackend
from cyclescope.model.facts import CoreAnswer
from cyclescope.model.machine import MachineModel
from cyclescope.probe.catalogue import PROBES
from cyclescope.simulate.front_end import FrontEnd
from cyclescope.simulate.passing import Passing
from tests.support.made.probed import drawn, scored
from tests.support.made.truths import (
    BRANCHES,
    FIRSTS,
    broken,
    draw_passing,
    forwarded,
    fused,
    idle,
    moved,
    renamed,
)

CORES = 100
RIGHT, STATED = 0.98, 0.9
_PAIRED = 0.2  # share of the cores whose NOPs share slots
_SHOWN = 3  # wrong answers of a core that are printed


class Core(msgspec.Struct, frozen=True):
    """A core of known truth, and what disturbs its samples."""

    machine: MachineModel
    front_end: FrontEnd
    passing: Passing
    noise: Noise

    def __str__(self) -> str:
        features = ", ".join(self.front_end.features) or "plain front end"
        return f"{self.machine.core.width:g} wide, {features}, {self.passing}"

    def backend(self) -> SimulatedBackend:
        """The core as a backend."""
        return SimulatedBackend(
            self.machine, noise=self.noise, front_end=self.front_end, passing=self.passing
        )


Truth = Callable[[Core, str], CoreAnswer]
TRUTHS: dict[str, Truth] = {
    "move-elimination": lambda core, subject: moved(core.machine, subject),
    "dependency-breaking": lambda core, subject: broken(core.machine, subject),
    "zero-idioms": lambda core, subject: idle(core.machine, subject),
    "fusion": lambda core, subject: fused(core.front_end, subject),
    "memory-renaming": lambda core, subject: renamed(core.passing, subject),
    "store-forwarding": lambda _, subject: forwarded(subject),
}
# Whether an idiom is executed shows where ports are the limit, not the front end.
_SHAPES: dict[str, dict[str, int]] = {"zero-idioms": {"width": 8, "ports": 8}}
_NEEDED = [PROBES[name] for name in TRUTHS]


def draw_core(seed: int, probe: str = "") -> Core:
    """A core with drawn features and a drawn neighbour; what one probe needs to see anything is not drawn."""
    draw = random.Random(f"facts {seed}")
    front_end = draw_front_end(seed, FIRSTS, BRANCHES)
    front_end = msgspec.structs.replace(front_end, pairs=draw.random() < _PAIRED)
    noise = Noise(
        draw.choice((0.0, 0.0015, 0.003)),
        draw.choice((0.0, 0.2, 0.35)),
        step=draw.choice((0.0, 32.0)),
        seed=seed,
    )
    return Core(drawn(_NEEDED, seed, **_SHAPES.get(probe, {})), front_end, draw_passing(seed), noise)


def facts(seed: int, cores: int, probes: Sequence[str]) -> Iterator[Check]:
    """Ask so many cores."""
    print(f"seed {seed}")
    total = {name: Counter[str]() for name in probes}
    for number in range(seed, seed + cores):
        start = time.monotonic()
        for name in probes:
            core, truth = draw_core(number, name), TRUTHS[name]
            asked = core.backend(), lambda subject, core=core, truth=truth: truth(core, subject)
            score = scored(PROBES[name], [asked])
            total[name].update(right=score.right, wrong=len(score.wrong), open=score.open)
            for line in score.wrong[:_SHOWN]:
                print(f"   {number}, {name}: {line}")
        print(f"{number}: {draw_core(number)}, {time.monotonic() - start:.0f} s", flush=True)
    for name, count in total.items():
        told = count["right"] + count["wrong"]
        yield at_least(f"{name}: stated", told, count.total(), STATED)
        yield at_least(f"{name}: of these right", count["right"], told, RIGHT)


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("probes", nargs="*", choices=[*TRUTHS, []], help="questions; all by default")
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options.add_argument("--cores", type=int, default=CORES)
    chosen = options.parse_args()
    names = chosen.probes or list(TRUTHS)
    present("facts of drawn cores", lambda: list(facts(chosen.seed, chosen.cores, names)))


if __name__ == "__main__":
    main()
