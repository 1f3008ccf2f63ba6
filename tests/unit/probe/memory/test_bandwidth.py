"""Walks that move as much as they can: what they touch, and what readings say."""

from __future__ import annotations

import pytest

from cyclescope.isa.table import load_table
from cyclescope.kernel.state import CHAIN_BASE, FIRST_WINDOW
from cyclescope.probe.catalogue import PROBES
from cyclescope.probe.code import NUMBERS
from cyclescope.probe.interval import Interval
from cyclescope.probe.memory import bandwidth
from cyclescope.probe.question import Readings, Unresolved

PROBE = PROBES["bandwidth"]
CASES = {case.subject: case for case in PROBE.cases("x86-64")}


def judged(subject, cycles, error=0.01, is_steady=True):
    found = {
        ("walk", size): Interval(value * (1 - error), value * (1 + error), is_steady)
        for size, value in zip(bandwidth.WALK_SIZES, cycles, strict=True)
    }
    return PROBE.judge(CASES[subject], Readings(found, {})).value


def test_bytes_a_cycle_of_the_size_that_is_asked_about():
    cycles = [8.0 * (n + 1) for n in range(len(bandwidth.WALK_SIZES))]
    for subject in CASES:
        size = int(subject.split(", ")[1].split()[0]) * 1024
        right = 1024 / cycles[bandwidth.WALK_SIZES.index(size)]
        value = judged(subject, cycles)
        assert value.low <= right <= value.high
        assert value.value == pytest.approx(right, rel=0.02)


def test_processes_of_one_core_agree_on_memory_that_others_share():
    """4 MiB of a Zen 5 in two processes, and less of what is its own."""
    for size, differs in ((4096, True), (1024, True), (256, False)):
        subject = f"loads of 512 bits, {size} KiB"
        one, other = (judged(subject, [1024 / rate] * len(bandwidth.WALK_SIZES)) for rate in (25.2, 29.7))
        assert one.meets(other) is differs
        assert one.is_steady is not differs
        assert one.error < 0.13 * one.value


def test_runs_of_one_core_agree_on_caches_of_its_own():
    """16 KiB of a Zen 4 in two runs, whose looks agree within less."""
    one, other = (judged("loads of 256 bits, 16 KiB", [1024 / rate] * 11, 0.002) for rate in (60.6, 64.1))
    assert one.meets(other)
    assert one.is_steady
    assert one.error < 0.045 * one.value


def test_how_well_a_bandwidth_has_to_be_known():
    cycles = [16.0] * len(bandwidth.WALK_SIZES)
    for error in (0.055, 0.095):
        assert judged("loads of 256 bits, 16 KiB", cycles, error).value == pytest.approx(64, rel=0.02)
    for error, is_steady in ((0.11, True), (0.01, False)):
        with pytest.raises(Unresolved, match="differ"):
            judged("loads of 256 bits, 16 KiB", cycles, error, is_steady)


@pytest.mark.parametrize("isa", ["x86-64", "aarch64", "riscv64"])
def test_every_byte_of_a_walk_is_touched_once_and_nothing_else(isa):
    for point in {p.lines: p for case in PROBE.cases(isa) for p in case.points if p.x < 20_000}.values():
        seen = touched(isa, point, bodies=point.x // bandwidth.BODY_BYTES)
        assert sorted(seen) == list(range(CHAIN_BASE, CHAIN_BASE + point.x, seen.width))


class Touched(list):
    width = 0


def touched(isa, point, bodies):
    """Where loads and stores of so many bodies are, by what the lines add."""
    numbers, table = NUMBERS[isa], load_table(isa)
    held = dict(point.setting.numbers) | {n: FIRST_WINDOW + at for n, at in point.setting.pointers}
    found, a = Touched(), numbers["a"]
    held[a] = 0
    for _ in range(bodies):
        for line in point.lines[:-1]:
            form = table[line.form]
            data = next((op for op in form.operands if op.is_memory), None)
            registers = line.registers
            if data is not None and not form.mnemonic.upper().startswith("LEA"):
                base = next(n for n in registers if n in held and held[n] >= CHAIN_BASE)
                found.append(held[base] + line.at)
                found.width = data.width // 8
            elif registers[0] == a:
                other = held[registers[-1]]
                held[a] = held[a] + other if other == bandwidth.BODY_BYTES else held[a] & other
            else:
                held[registers[0]] = held[registers[1]] + held[registers[2]]
    return found


def test_walks_go_on_where_they_ended():
    for isa in ("x86-64", "aarch64", "riscv64"):
        for case in PROBE.cases(isa):
            for point in case.points:
                assert point.setup[0].at == point.lines[-1].at
                assert point.setting.chain[0] * point.setting.chain[1] == point.x


@pytest.mark.parametrize(("isa", "bits"), [("x86-64", {256, 512}), ("aarch64", {128}), ("riscv64", {64})])
def test_the_quick_set_has_what_cpus_without_the_widest_vectors_execute(isa, bits):
    quick = [case.subject for case in PROBE.cases(isa) if case.is_quick]
    assert {int(subject.split()[2]) for subject in quick} == bits
    assert all(subject.startswith("loads") for subject in quick)
