"""The runner on this machine: faults become records and it goes on; kernels stay where they belong."""

from __future__ import annotations

import os
import re
from contextlib import closing, suppress
from pathlib import Path

import pytest
from msgspec import structs

from cyclescope.backend.base import OK, TOO_LONG, UNCLEAN, BurstEffort, Effort, failure
from cyclescope.backend.native import NativeBackend
from cyclescope.host.counters import CYCLES, availability
from cyclescope.kernel.kernel import CANARY, FAST, Kernel
from cyclescope.kernel.state import FIRST_WINDOW, chain_start
from cyclescope.measure.bench import VECTOR_LEVELS, default_state, machine_code, time_kernel
from tests.support.programs.processes import patiently, until

pytestmark = pytest.mark.hardware

ADD, IMUL = "4801d8", "480fafc3"  # add rax, rbx; imul rax, rbx
ONCE = Effort(rounds=1)
# imul to, ebx, number: prefixes and ModRM for eight registers
DESTINATIONS = [("", 0xC3 | n << 3) for n in (0, 1, 2, 5)] + [("44", 0xC3 | n << 3) for n in range(4)]
FAULTS = {
    "0f0b": "SIGILL",  # ud2
    "488b042500000000": "SIGSEGV at 0x0",  # mov rax, [0]
    "488b042510000000": "SIGSEGV at 0x10",
    "48890425f0ffffff": "SIGSEGV at 0xfffffffffffffff0",  # mov [-16], rax
    "31c9f7f1": "SIGFPE",  # xor ecx, ecx; div ecx
    "cc": "SIGTRAP",  # int3
    "31e450": "SIGSEGV at 0xfffffffffffffff8",  # xor esp, esp; push rax
    "b83c0000000f05": "SIGSYS",  # mov eax, 60; syscall: exit
    "f4": "SIGSEGV at 0x0",  # hlt
}


def kernel(code):
    return machine_code(bytes.fromhex(code), b"", 1, 1, VECTOR_LEVELS["sse"])


def looped(code):
    """One instruction per destination."""
    return structs.replace(kernel(code), instructions=len(DESTINATIONS))


def measured(backend, *codes, effort=ONCE):
    """The first round's sample of every code."""
    backend.submit([kernel(code) for code in codes], effort)
    return [samples[0] for samples in backend.collect()]


# --- memory -------------------------------------------------------------------------------------


WRITES = "c604250000027001"  # mov byte [0x70020000], 1: what no state fills
READS = "803c2500000270007401f4"  # cmp byte [0x70020000], 0; je +1; hlt


def test_every_round_has_memory_of_its_own(native):
    """It is in another state than that of the round before: what a page makes slow, one round shows."""
    clean = []
    for seed in range(1, 41):  # of the order in each round
        native.submit([kernel(WRITES), kernel(READS)], Effort(rounds=2, maximum=4, seed=seed))
        _, read = native.collect()
        clean.append([sample.status in (OK, UNCLEAN) for sample in read])
    assert [True, True] in clean
    assert [False, False] in clean


def test_no_two_workers_in_turn_have_the_same_pages(native):
    places = []
    for _ in range(3):
        measured(native, ADD)
        maps = Path(f"/proc/{native._transport.process.pid}/maps").read_text()
        places.append(re.search(r"^70000000-\S+ rw-s \S+ \S+ (\d+)", maps, re.MULTILINE)[1])
    assert len(set(places)) == 3


# --- faults -------------------------------------------------------------------------------------


def test_faults_are_records_and_the_others_are_timed(native):
    codes = [code for fault in FAULTS for code in (fault, ADD)]
    native.submit([kernel(code) for code in codes], Effort(rounds=2))
    answers = native.collect()
    for code, (first, second) in zip(codes, answers, strict=True):
        if code == ADD:
            assert first.status in (OK, UNCLEAN)
            assert second.status in (OK, UNCLEAN)
        else:
            assert failure(first) == failure(second) == FAULTS[code]
            assert not first.usable


def test_faults_when_tried_once(native):
    outcomes = native.probe([kernel(code) for code in FAULTS])
    assert [outcome.describe() for outcome in outcomes] == list(FAULTS.values())


def test_the_faulting_instruction_is_named(native):
    (outcome,) = native.probe([kernel("90" * 5 + "0f0b")])
    assert outcome.instruction == 5


NOP, READ_0, ENDLESS = "90", "488b042500000000", "ebfe"


@pytest.mark.parametrize("flags", [0, CANARY, FAST, CANARY | FAST])
def test_where_timed_code_broke(native, flags):
    """A byte of the instruction, counted in setup and body, whatever the copy."""
    codes = [("", NOP * 3 + code) for code in (READ_0, ENDLESS, "cc", "b83c0000000f05")]
    codes += [(NOP * 2 + READ_0, NOP), (NOP * 2, NOP * 3 + READ_0), ("", "ffd0")]
    made = [structs.replace(kernel(body), setup=bytes.fromhex(setup), flags=flags) for setup, body in codes]
    native.submit(made, ONCE)
    assert [rounds[0].instruction for rounds in native.collect()] == [3, 3, 3, 9, 2, 5, -1]


@pytest.mark.parametrize("loop", [0, 5])
def test_where_copies_broke(native, loop):
    whole = kernel(NOP * 2 + READ_0 + NOP + READ_0 + NOP * 3 + READ_0)
    read = lambda *instructions: b"".join(map(bytes.fromhex, instructions))  # noqa: E731
    once, late, body = (READ_0, NOP), (NOP, READ_0), (NOP * 3, READ_0)
    for parts, setup, place in (
        ((once, late, body), b"", 0), (((NOP,), late, body), b"", 2), (((NOP,), (NOP,), body), b"", 5),
        (((NOP,), (NOP,), body), read(NOP, READ_0), 1), (((NOP,), (NOP,), body), read(NOP), 6),
    ):  # fmt: skip
        first, second, third = (read(*part) for part in parts)
        made = structs.replace(whole, code=first + second + third, setup=setup)
        plan = BurstEffort(2, 7, loop, one_time=len(first), late=len(second))
        assert native.burst(made, plan).instruction == place


def test_canaries_behind_long_code_are_as_quick_as_ever(native):
    """Of 27 KB of NOPs, which push out what is kept decoded, as of a few: half of the samples are clean."""
    few, many = kernel("0f1f4000" * 8), kernel("0f1f4000" * 6900)

    def check():
        native.submit([few, many], Effort(rounds=4))
        for samples in native.collect():
            assert any(sample.disturbed <= sample.accepted for sample in samples)

    patiently(check)


def test_a_hang_is_a_record_and_the_others_are_timed(native):
    before, endless, after = measured(native, ADD, "ebfe", ADD)
    assert failure(endless) == "hang"
    assert before.usable
    assert after.usable
    assert [outcome.describe() for outcome in native.probe([kernel("ebfe"), kernel(ADD)])] == ["hang", "ok"]


def test_a_body_that_does_not_fit_is_a_record(native):
    sample, _ = measured(native, "90" * 60000, ADD)
    assert sample.status in (TOO_LONG, OK, UNCLEAN)
    fits = kernel(ADD)
    for size in (65_000, 70_000):  # bytes: no room in the code area; none in a request
        far = Kernel(b"\x90" * size, 1, default_state(1), b"", 0)
        native.submit([far, fits, far], ONCE)
        (first,), (second,), (third,) = native.collect()
        assert first.status == third.status == TOO_LONG
        assert second.usable
    native.submit([far], ONCE)
    assert native.collect()[0][0].status == TOO_LONG


@pytest.mark.parametrize(
    "code",
    [
        "fd",  # std
        "dbe3d9e8d9e8d9e8d9e8d9e8d9e8d9e8d9e8d9e8",  # fninit; nine times fld1: the stack overflows
        "4831e4488b2425000000704831ed31db31f631ff",  # every register of a caller is lost
        "0fae142500000070",  # ldmxcsr of zero: every exception unmasked
    ],
)
def test_state_that_a_kernel_changes_does_not_reach_the_next(native, code):
    measured(native, code)
    (sample,) = measured(native, ADD)
    assert sample.usable
    assert native.calibrate().ticks_per_cycle > 0


def test_memory_that_a_kernel_writes_does_not_reach_the_next(native):
    """Where the second one faults shows what it found."""
    store, load = "498906", "498b06488b00"  # mov [r14], rax; mov rax, [r14] and mov rax, [rax]
    clean = native.probe([kernel(load)])
    assert native.probe([kernel(store), kernel(load)])[1:] == clean


# --- times --------------------------------------------------------------------------------------


def cycles(backend, code, unroll):
    once = machine_code(bytes.fromhex(code), b"", 1, unroll, VECTOR_LEVELS["sse"])
    return time_kernel(backend, once, 3).cycles / unroll


def test_chains_are_whole_multiples_of_an_addition(native):
    """A multiplication takes a whole number of additions on every CPU, however often it is repeated."""

    def check():
        ratios = [cycles(native, IMUL, n) / cycles(native, ADD, n) for n in (1, 4, 16)]
        assert max(ratios) < 1.03 * min(ratios)
        assert abs(ratios[0] - round(ratios[0])) < 0.05 * ratios[0]
        assert round(ratios[0]) >= 2

    patiently(check)


def test_twice_the_code_takes_twice_the_time(native):
    def check():
        assert cycles(native, IMUL + IMUL, 4) == pytest.approx(2 * cycles(native, IMUL, 4), rel=0.03)
        assert cycles(native, IMUL + ADD, 4) == pytest.approx(
            cycles(native, IMUL, 4) + cycles(native, ADD, 4), rel=0.03
        )

    patiently(check)


def test_independent_additions_overlap(native):
    def check():
        chain = cycles(native, ADD * 4, 4)
        independent = cycles(native, "4801d84801d94801da4901d8", 4)  # to RAX, RCX, RDX, R8
        assert independent < 0.6 * chain

    patiently(check)


def test_loops_near_the_dispatch_width(native):
    """Eight instructions take eight times as long as one, and NOPs a whole number of slots."""

    def check():
        nop = cycles(native, "90", 1)
        assert 1 / nop == pytest.approx(round(1 / nop), rel=0.01)
        assert cycles(native, "90" * 8, 1) == pytest.approx(8 * nop, rel=0.005)
        compare = "4839d8"
        assert cycles(native, compare * 6, 1) == pytest.approx(6 * cycles(native, compare, 1), rel=0.005)

    patiently(check)


def test_what_is_slow_to_decode_is_not_read_as_fast(native):
    """Both regions are the same code: where decoded instructions are kept, for both or for neither.

    A 16-bit immediate takes some decoders longer; no multiplier is faster for it, in any round.
    """
    short = "".join(f"66{prefix}69{modrm:02x}3412" for prefix, modrm in DESTINATIONS)
    plain = "".join(f"{prefix}69{modrm:02x}34120000" for prefix, modrm in DESTINATIONS)

    def check():
        native.submit([looped(short), looped(plain)], Effort(rounds=8))
        slow, fast = ([s.cycles for s in row if s.status == OK] for row in native.collect())
        assert len(slow) > 1 and len(fast) > 1
        assert min(slow) > 0.95 * sorted(fast)[len(fast) // 2]

    patiently(check)


@pytest.mark.parametrize("movable", [False, True])
def test_a_disturbed_cpu_is_left_for_another(runner, movable):
    """Against a base that no core reaches, every sample is disturbed."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("needs a second CPU")
    nops = machine_code(bytes.fromhex("90"), b"", 1, 1, VECTOR_LEVELS["sse"])
    with closing(NativeBackend(usable[-1], movable=movable)) as backend:
        assert backend.calibrate(nop=1 / 16).clean_share < 0.5
        backend.submit([nops] * 50, Effort(rounds=2))
        process = backend._transport.process.pid
        children = Path(f"/proc/{process}/task/{process}/children")

        seen = set()

        def look():
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                for worker in children.read_text().split():
                    text = Path(f"/proc/{worker}/status").read_text()
                    cpus = re.search(r"Cpus_allowed_list:\s*(\S+)", text)[1]
                    seen.update({cpus} if cpus.isdigit() else ())  # one just forked is not pinned yet
            return len(seen) > 1

        until(look, 5.0 if movable else 0.5)  # beside neighbours it begins late
        samples = [sample for row in backend.collect() for sample in row]
        assert {sample.status for sample in samples} == {UNCLEAN}
        assert all(sample.disturbed for sample in samples)
    assert (len(seen) > 1) == movable


# --- set up -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cpu", sorted(os.sched_getaffinity(0))[:4])
def test_kernels_run_on_the_cpu_they_are_told(runner, cpu):
    """Seen from outside, while a kernel hangs."""
    with closing(NativeBackend(cpu)) as backend:
        assert backend.capabilities().cpu == cpu
        backend.submit([kernel("ebfe")] * 3, ONCE)  # beside neighbours the first may have ended unseen
        supervisor = backend._transport.process.pid
        seen = set()

        def found():
            for worker in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split():
                with suppress(OSError):  # it ends at any moment
                    lines = Path(f"/proc/{worker}/status").read_text().splitlines()
                    seen.update(line.split()[1] for line in lines if "Cpus_allowed_list" in line)
            return str(cpu) in seen

        assert until(found)
        backend.collect()


@pytest.mark.parametrize("cpu", [5000, 1023])
def test_a_cpu_that_is_not_there_is_a_note(runner, cpu):
    with closing(NativeBackend(cpu)) as backend:
        capabilities = backend.capabilities()
        assert capabilities.cpu == -1
        assert capabilities.notes[0].startswith(f"not pinned to CPU {cpu}")
        assert measured(backend, ADD)[0].usable


def test_counters_or_a_note_but_always_a_measurement(runner):
    events = (CYCLES, ("nonsense", 77, 1))
    with closing(NativeBackend(max(os.sched_getaffinity(0)), events)) as backend:
        capabilities = backend.capabilities()
        assert capabilities.counters in ((), ("cycles",))
        assert len(capabilities.notes) == 1
        assert "performance counters" in capabilities.notes[0]
        if availability():
            assert capabilities.counters == ()
            assert capabilities.clock == "time-stamp counter"
        (sample,) = measured(backend, ADD)
        assert sample.usable
        assert sample.counters == ()


def test_a_stored_pointer_is_loaded_as_any_other(native):
    """What the setup stores has left before the loop begins: a load takes less while it is on its way."""
    load, store = bytes.fromhex("4d8b36"), bytes.fromhex("4d8936")  # mov r14, [r14]; mov [r14], r14
    stored = machine_code(load, store, 1, 1, VECTOR_LEVELS["sse"])
    there = structs.replace(stored.state, pokes=((FIRST_WINDOW, FIRST_WINDOW),))
    found = structs.replace(stored, state=there, setup=b"")

    def agree():
        readings = [time_kernel(native, kernel, 5) for kernel in (stored, found)]
        assert readings[0].cycles == pytest.approx(readings[1].cycles, rel=0.1)  # undrained: by a third less

    patiently(agree)


@pytest.mark.parametrize(("count", "spacing"), [(2, 64), (7, 64), (50, 4160), (100, 192)])
def test_a_chain_is_one_circle_through_all_its_elements(native, count, spacing):
    """As many loads lead back to its beginning, and no fewer; else the kernel ends in UD2."""
    begin = chain_start(spacing)
    to_first = b"\x49\xbd" + begin.to_bytes(8, "little") + b"\x4d\x89\xee"  # mov r13, start; mov r14, r13
    load, check = bytes.fromhex("4d8b36"), bytes.fromhex("4d39ee74020f0b")  # cmp r14, r13; je +2; ud2
    for loads, status in ((count, (OK, UNCLEAN)), (count - 1, (1,)), (count + 1, (1,))):
        made = machine_code(load * loads + check, to_first, loads, 1, VECTOR_LEVELS["sse"])
        state = structs.replace(made.state, chain=(count, spacing))
        native.submit([structs.replace(made, state=state)], ONCE)
        assert native.collect()[0][0].status in status


def test_one_cpu_for_everything(runner):
    mask = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {max(mask)})
        with closing(NativeBackend(max(mask))) as backend:
            assert all(sample.usable for sample in measured(backend, ADD, IMUL))
    finally:
        os.sched_setaffinity(0, mask)
