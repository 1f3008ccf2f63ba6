"""Probes on simulated cores: what was asked, and what of it is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from benchmarks.drawn.features import with_drawn_renamer
from cyclescope.backend.base import Backend
from cyclescope.backend.simulated import Noise, SimulatedBackend
from cyclescope.isa.table import load_table
from cyclescope.kernel.state import FIRST_WINDOW
from cyclescope.model.facts import CoreAnswer, Fact
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import Assembler, Setting
from cyclescope.probe.interval import Interval
from cyclescope.probe.question import Probe
from cyclescope.probe.run import ask
from cyclescope.probe.slots import move_points, slot_points
from cyclescope.simulate.draw import draw_machine

_SIMPLE = "ADD_01 (R64, R64)", "PADDD (XMM, XMM)"  # whose ports moves have that are executed
NOISE = Noise(jitter=0.0015, burst=0.35, step=32.0)


class Score(NamedTuple):
    """Answers to all questions of some cores: those that are wrong, how many are right, and how many open."""

    wrong: list[str]
    right: int
    open: int

    @property
    def stated(self) -> float:
        """Share of the questions that have an answer."""
        return (self.right + len(self.wrong)) / (self.right + len(self.wrong) + self.open)


def forms_of(probes: list[Probe], isa: str):
    """Every form that kernels of probes have."""
    points = [point for p in probes for case in p.cases(isa) for point in case.points]
    names = dict.fromkeys(line.form for point in (*points, *move_points(isa)) for line in point.lines)
    table = load_table(isa)
    return list({table[name].id: table[name] for name in names}.values())


def drawn(probes: list[Probe], seed: int, **more: int):
    """A drawn core with the forms of the probes, and a renamer of its own."""
    forms = forms_of(probes, "x86-64")
    known, table = {form.id for form in forms}, load_table("x86-64")
    forms += [table[name] for name in _SIMPLE if name not in known]
    return with_drawn_renamer(draw_machine(seed, forms, **more), forms, seed)


def facts(probe: Probe, backend: SimulatedBackend) -> list[Fact]:
    """What a probe finds on a simulated core."""
    table = load_table(backend.capabilities().isa)
    (asked,) = ask([probe], backend, table)
    return list(asked.facts)


def scored(
    probe: Probe, cores: list[tuple[SimulatedBackend, Callable[[str], CoreAnswer | float | None]]]
) -> Score:
    """How a probe does on cores whose truth is known by subject."""
    wrong: list[str] = []
    right = unanswered = 0
    for backend, truth in cores:
        for fact in facts(probe, backend):
            expected = truth(fact.subject)
            if not fact.is_resolved:
                unanswered += 1
            elif _agrees(fact, expected):
                right += 1
            else:
                wrong.append(f"{backend.machine.name}: {fact} is {expected}")
    return Score(wrong, right, unanswered)


def _agrees(fact: Fact, expected: CoreAnswer | float | None) -> bool:
    if isinstance(expected, CoreAnswer):
        return fact.answer is expected
    return expected is not None and fact.value is not None and abs(fact.value - expected) <= (fact.error or 0)


ODD_RUNS, EVEN_RUNS = "odd runs of NOPs", "even runs of NOPs"


def shared_slots(
    every: float, *pairs: float, nops: float = 12.0, differ: float = 0.17
) -> dict[tuple[str, int], Interval]:
    """Readings by which NOPs share slots: rates of all units, of pairs of them and of NOPs alone.

    Orders of NOPs differ by a part of the time.
    """
    points = tuple(slot_points("x86-64"))
    parts = [point.part for point in points if point.part.startswith("units")]
    rates = dict(zip(parts, (every, *pairs), strict=True)) | {"NOPs alone": nops}
    found = {(part, 0): Interval(0.998 / rate, 1.002 / rate) for part, rate in rates.items()}
    for point in points:
        if point.part.startswith((ODD_RUNS, EVEN_RUNS)):
            cycles = 1.0 + (differ if point.part.startswith(ODD_RUNS) else 0)
            found[point.part, point.x] = Interval(cycles - 0.001, cycles + 0.001)
    return found


WILD = 0x7000000  # bytes from the data, where nothing is


def misled_gathers(backend: Backend, isa: str) -> Iterator[str]:
    """What gathers do other than to fault where an index leads nowhere, unless a mask leaves it out."""
    assembler = Assembler(load_table(isa))
    for case in PROBES["gather"].cases(isa):
        (point,) = case.points
        for element in range(2):
            wide = 8 if "64 bits" in case.subject or "QQ" in case.subject else 4
            setting = _with_index(point.setting, element, wide)
            (outcome,) = backend.probe([assembler.kernel(point.lines, point.flags, setting, point.setup)])
            kept = "empty" not in case.subject and ("half" not in case.subject or element == 0)
            expected = f"SIGSEGV at {FIRST_WINDOW + WILD:#x}" if kept else "ok"
            if outcome.describe() not in (expected, "SIGILL"):
                yield f"{case.subject}, {element}: {outcome.describe()}, expected {expected}"


def _with_index(setting: Setting, element: int, width: int) -> Setting:
    """A setting whose register of indices leads elsewhere in an element."""
    number, values = setting.vectors[0]
    changed = bytearray(values)
    changed[element * width : (element + 1) * width] = WILD.to_bytes(width, "little")
    return msgspec.structs.replace(setting, vectors=((number, bytes(changed)), *setting.vectors[1:]))
