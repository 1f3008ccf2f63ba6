"""How many loads are on their way, by what the probe `banks` found of chains of them."""

from __future__ import annotations

import random
import shutil

import msgspec
import pytest

from cyclescope.backend.simulated import SimulatedBackend
from cyclescope.model.behaviour.found import measured_behaviour
from cyclescope.model.behaviour.late_loads import CHAIN_LENGTHS, ENDLESS, chained_loads, late_loads
from cyclescope.model.facts import BANKS, CoreAnswer, Fact, loads_apart
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import CHAIN_PLACE
from tests.support.code.blocks import predicted
from tests.support.made.probed import NOISE, drawn, facts

X86 = "x86-64"
SEED = random.SystemRandom().randrange(1 << 30)
SLOW = 0.85  # of the fastest, as `found` has it


def told(entries, held, latency=4.0, fastest=4.0, error=0.01):
    """What the probe finds on a core on which so many loads are on their way."""
    rates = {
        loads: min(fastest, (entries + (loads - 1) / 2) / (latency * (loads - 1) / 2 + held))
        for loads in CHAIN_LENGTHS
    }
    found = {chained_loads(loads): rate for loads, rate in rates.items()}
    found |= {ENDLESS: 1 / latency, loads_apart(0): fastest}
    return [Fact(BANKS, subject, CoreAnswer.VALUE, value, error) for subject, value in found.items()]


def test_drawn_cores_are_found_out():
    draw = random.Random(SEED)
    for _ in range(50):
        latency, fastest = draw.choice((3.0, 4.0, 5.0)), draw.choice((2.0, 3.0, 4.0))
        held = draw.uniform(0, 12)
        entries = draw.uniform(1.02 * held * fastest, 0.8 * fastest * (2.5 * latency + held) - 2.5)
        found = late_loads(told(entries, held, latency, fastest), fastest, SLOW)
        assert found is not None, f"seed {SEED}"
        assert (found.entries, found.held) == pytest.approx((entries, held), abs=1e-6), f"seed {SEED}"
        assert (found.each, found.late, found.mixed) == (1 / fastest, 0.0, 0.0), f"seed {SEED}"


@pytest.mark.parametrize("left_out", [(ENDLESS,), [chained_loads(loads) for loads in CHAIN_LENGTHS[2:]]])
def test_nothing_is_known_where_too_little_is(left_out):
    found = [fact for fact in told(60, 10) if fact.subject not in left_out]
    assert late_loads(found, 4.0, SLOW) is None
    assert late_loads(told(60, 10), 0.0, SLOW) is None


def test_chains_that_are_nearly_as_fast_as_ports_say_nothing_of_room():
    assert late_loads(told(80, 10), 4.0, SLOW) is None
    both = late_loads(told(68, 14), 4.0, SLOW)
    rates = {fact.subject: fact for fact in told(68, 14)}
    rates[chained_loads(CHAIN_LENGTHS[0])] = Fact(
        BANKS, chained_loads(CHAIN_LENGTHS[0]), CoreAnswer.VALUE, 3.5, 0.01
    )
    assert late_loads([*rates.values()], 4.0, SLOW).entries == pytest.approx(both.entries)


def asked(entries, seed):
    """What chains tell of a drawn core with so many entries for what uses memory, all else being roomy."""
    banks = PROBES[BANKS]
    names = {ENDLESS, loads_apart(0), *map(chained_loads, CHAIN_LENGTHS)}
    probe = msgspec.structs.replace(
        banks, cases=lambda isa: (case for case in banks.cases(isa) if case.subject in names)
    )
    machine = drawn([banks], seed)
    queues = [
        msgspec.structs.replace(one, entries=entries if one.name == "memory" else one.entries)
        for one in machine.core.schedulers
    ]
    core = msgspec.structs.replace(
        machine.core, schedulers=tuple(queues), reorder_buffer=1 << 12, load_buffer=1 << 12, width=8
    )
    found = facts(probe, SimulatedBackend(msgspec.structs.replace(machine, core=core), noise=NOISE))
    return measured_behaviour(found, X86).late_loads


def test_simulated_cores_have_as_many_entries_as_their_queue():
    """It is emptied in turns, and three or four rates tell two numbers: one answer in twenty is far off."""
    told_of = []
    for number in range(60):
        entries = random.Random(SEED + number).randint(12, 24)
        late = asked(entries, SEED + number)
        told_of += [late.entries / entries] if late else []
        assert asked(1 << 10, SEED + number) is None, f"seed {SEED + number}"
    near = sum(0.75 < share < 1.33 for share in told_of)
    assert len(told_of) >= 4 and near >= 0.6 * len(told_of), f"seed {SEED}: {told_of}"


FOUND = told(56, 8)  # the law has the numbers of the core that tells them
needs_binutils = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)


@needs_binutils
@pytest.mark.parametrize(
    ("text", "waits", "later"),
    [
        ("mov rax, [rdi]; mov rbx, [rax]", 1, 1 / 2),
        ("mov rax, [rdi]; mov rbx, [rax]; mov rcx, [rbx]", 1 + 2, 1 / 3 + 2 / 3),
        ("mov rax, [rdi]; mov rbx, [rax]; mov rcx, [rax]; nop", 1 + 1, 1 / 4 + 2 / 4),
        ("nop; mov rax, [rdi]; cmp rbx, [rax]", 1, 1 / 3),
        ("mov rax, [rdi]; mov rbx, [rdi + 8]", None, 0),
        ("mov rbx, [rax]; mov rax, [rdi]", None, 0),  # it was loaded an iteration ago
        ("mov rax, [rdi]; mov [rax], rbx", None, 0),
        ("mov rax, [rdi]; movups xmm0, [rax]", None, 0),
    ],
)
def test_loads_wait_on_their_way(text, waits, later):
    found, latency = predicted(text, *FOUND), 4
    loads = sum("[" in line for line in text.split(";"))
    wanted = None if waits is None else pytest.approx((waits * latency + loads * 8) / (56 + later))
    assert found.bounds.get("late_loads") == wanted
    assert found.lower <= predicted(text).cycles


def test_the_probe_asks_for_chains_of_pages_of_their_own():
    cases = {case.subject: case for case in PROBES[BANKS].cases(X86)}
    for loads in CHAIN_LENGTHS:
        (point,) = cases[chained_loads(loads)].points
        assert (len(point.lines), point.count, point.setting.chain) == (loads, loads, (loads, 4096))
        assert [line.at for line in point.lines] == [CHAIN_PLACE, *[0] * (loads - 1)]
