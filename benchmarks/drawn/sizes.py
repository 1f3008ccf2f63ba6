"""Sizes and times that probes find on cores whose structures are drawn, beside a neighbour.

    python -m benchmarks.drawn.sizes [--seed N] [--cores N] [PROBE]...

Caches, translations, jump targets, return addresses, loops, patterns and decoded code are structures with
sets and ways (`lib/drawn_cores.py`), which answer to what kernels touch; what is in flight is of simulated
cores. A size has to be within two of what was drawn and its own error, a time within its error and half a
cycle; or the probe says why not. The seed is fresh and printed, so that a run can be repeated.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.drawn.cores import DrawnCore
from benchmarks.lib.common import Check, parser, present, share, table
from cyclescope.backend.base import Backend
from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.model.facts import Fact
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.question import CYCLES, Probe
from cyclescope.probe.run import ask
from tests.support.made.probed import NOISE
from tests.support.made.queues import ANY, SIZES, draw, expected

CORES = 200
IN_FLIGHT = "in-flight"
NAMES = (
    "caches", "cache-sets", "pages", "branch-targets", "return-stack", "loop-counts", "branch-patterns",
    "decoded", IN_FLIGHT,
)  # fmt: skip
WITHIN, WITHIN_CYCLES = 2.0, 0.5  # of a size; of what takes cycles, or is done in a cycle
_ISA = "x86-64"
_RATES = (CYCLES, "per cycle")
Truth = tuple[float, float]


def kept(name: str) -> Probe:
    """A probe whose kernels are made once for all cores."""
    probe = PROBES[name]
    cases = [case for case in probe.cases(_ISA) if name != IN_FLIGHT or case.subject in (*SIZES, ANY)]
    return msgspec.structs.replace(probe, cases=lambda isa: cases)


def answers(probe: Probe, seed: int) -> Iterator[tuple[Fact, Truth | None]]:
    """What a probe finds on the core of a seed, and what is right."""
    if probe.name == IN_FLIGHT:
        machine = draw(seed)
        noisy = msgspec.structs.replace(NOISE, seed=seed)
        for fact in _facts(probe, SimulatedBackend(machine, noise=noisy)):
            yield fact, expected(machine, fact.subject)
        return
    core = DrawnCore(seed)
    for fact in _facts(probe, core):
        yield fact, core.truth(probe.name, fact.subject)


def _facts(probe: Probe, backend: Backend) -> Sequence[Fact]:
    (asked,) = ask([probe], backend, load_table(_ISA))
    return asked.facts


def is_right(fact: Fact, truth: Truth | None) -> bool:
    """Whether an answer is as near to what was drawn as it says, and a little."""
    if truth is None or fact.value is None:
        return False
    within = WITHIN_CYCLES if fact.unit in _RATES else WITHIN
    return max(truth[0] - fact.value, fact.value - truth[1]) <= (fact.error or 0.0) + within


def judged(seed: int, cores: int, names: Sequence[str]) -> list[Check]:
    """All probes on so many cores."""
    counts: Counter[tuple[str, str, str]] = Counter()
    reasons: dict[tuple[str, str], Counter[str]] = {}
    wrong = []
    start = time.monotonic()
    for probe in map(kept, names):
        for number in range(seed, seed + cores):
            for fact, truth in answers(probe, number):
                question = probe.name, fact.subject
                kind = ("right" if is_right(fact, truth) else "wrong") if fact.is_resolved else "open"
                counts[*question, kind] += 1
                if kind == "open":
                    reasons.setdefault(question, Counter())[fact.reason] += 1
                if kind == "wrong":
                    wrong.append((str(number), *question, f"{fact.value:g}+-{fact.error:g}", str(truth)))
    print(table(("core", "probe", "subject", "found", "drawn"), wrong))
    rows = [
        (
            *question,
            *(str(counts[*question, kind]) for kind in ("right", "wrong", "open")),
            _most(reasons, question),
        )
        for question in dict.fromkeys(key[:2] for key in counts)
    ]
    print(table(("probe", "subject", "right", "wrong", "open", "why not, mostly"), rows))
    told = sum(count for key, count in counts.items() if key[-1] != "open")
    return [
        Check("seed", str(seed)),
        Check("cores", f"{cores}, {time.monotonic() - start:.0f} s"),
        Check("questions answered", share(told, counts.total())),
        Check("wrong answers", str(len(wrong)), "0", not wrong),
    ]


def _most(reasons: dict[tuple[str, str], Counter[str]], question: tuple[str, str]) -> str:
    return next((f"{text} ({n})" for text, n in reasons.get(question, Counter()).most_common(1)), "")


def main() -> None:
    """Command line."""
    options = parser(__doc__)
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options.add_argument("--cores", type=int, default=CORES)
    options.add_argument("probes", nargs="*", metavar="PROBE", help=f"of {', '.join(NAMES)}; default: all")
    chosen = options.parse_args()
    names = chosen.probes or NAMES
    present("sizes of drawn cores", lambda: judged(chosen.seed, chosen.cores, names))


if __name__ == "__main__":
    main()
