"""Branches, code and operands of probes are what they say, on AArch64 and RISC-V under qemu-user."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import structs

from cyclescope.probe.catalogue import PROBES
from tests.support.code.traced import Traced, target

# --- where branches lead --------------------------------------------------------------------------------


@pytest.mark.parametrize("probe", ["branch-targets", "branch-rates"])
def test_jumps_are_as_many_and_as_far_apart_as_said(runs, probe):
    for case, point in runs.chosen(probe):
        found = re.match(r"(\d+) bytes apart", point.part)
        if found is None:  # not taken
            assert runs(point).jumps == [], case.subject
        elif len(point.lines) < 4000:
            jumps = runs(point).jumps
            assert jumps[: point.x - 1] == [int(found[1])] * (point.x - 1), (point.part, point.x)


def _depths(done: Traced) -> list[int]:
    """How deep calls were inside each other, behind each call."""
    depth, found = 0, []
    for step in done.steps:
        if re.match(r"bl |jal x1,", step.text):
            depth += 1
            found.append(depth)
        depth -= bool(re.match(r"ret|jalr x0,0\(x1\)|c.jr x1", step.text))
    return found


def test_calls_are_as_many_and_as_deep_as_said(runs):
    for _, point in runs.chosen("return-stack"):
        done = runs(point)
        depths = _depths(done)
        if point.part == "inside each other":
            assert depths == list(range(1, point.x + 1))
        elif point.part == "in fours":
            assert len(depths) == point.x and max(depths) == 4
        else:
            assert depths == [1] * point.count


def test_loops_run_as_often_as_said(runs):
    for _, point in runs.chosen("loop-counts"):
        if point.part not in ("loop", "without branches"):
            continue
        done = runs(point)
        back = [jump for jump in done.jumps if jump < 0]
        assert len(back) == (point.x - 1 if point.part == "loop" else 0)
        assert done.after[target(done.steps[0])] == 0


def _signs(done: Traced) -> list[bool]:
    """Whether what branches look at is below 0, in order: they lead to what follows, taken or not."""
    looks = re.compile(r"cmp (x\d+), xzr|blt (x\d+),x0")
    found = ((step, looks.match(step.text)) for step in done.steps)
    return [step.registers[one[1] or one[2]] >> 63 == 1 for step, one in found if one]


def test_random_branches_go_both_ways_and_steady_ones_one(runs):
    for _, point in runs.chosen("misprediction"):
        signs = _signs(runs(point, 16))
        assert len(signs) == 16 * point.count
        share = sum(signs) / len(signs)
        assert (0.3 < share < 0.7) if point.part == "random" else share in (0.0, 1.0)


def _places(done: Traced) -> list[int]:
    """Where a jump through a register led, each time."""
    jump = re.compile(r"br x|jalr x0,0\(x\d\d\)")
    return [two.at for one, two in pairwise(done.steps) if jump.match(one.text)]


def test_patterns_repeat_after_as_many_branches_as_said(runs):
    looks = re.compile(r"cbz (x\d+)|beq (x\d+),x0")
    for case, point in runs.chosen("branch-patterns"):
        done = runs(point)
        if case.subject == "pattern of one branch":
            found = ((step, looks.match(step.text)) for step in done.steps)
            ways = [step.registers[one[1] or one[2]] == 0 for step, one in found if one]
        else:
            ways = _places(done)
            assert len(set(ways)) == (16 if point.part == "random" else max(point.x, 1))
        assert len(ways) == point.count
        period = {"same": 1, "random": len(ways) // 2}.get(point.part, point.x)
        if period <= len(ways) // 2:
            assert (ways[period:] == ways[:-period]) == (point.part != "random"), (point.part, point.x)
        if point.part == "pattern" and 1 < period <= len(ways) // 2:
            assert ways[period // 2 :] != ways[: -(period // 2)]


def test_the_second_branch_goes_as_said_beside_the_first(runs):
    for case, point in runs.chosen("correlated-branches"):
        signs = _signs(runs(point, 8))
        pairs = list(zip(signs[::2], signs[1::2], strict=True))
        assert len(pairs) == 8 * point.count, case.subject
        same, seconds = sum(one == other for one, other in pairs), {other for _, other in pairs}
        if point.part == "same sign":
            assert same == len(pairs)
        else:
            assert 0.2 < same / len(pairs) < 0.8
            assert point.part == "another sign" or _by_turns([other for _, other in pairs])
        assert len(seconds) == 2


def _by_turns(ways: list[bool]) -> bool:
    return all(one != other for one, other in pairwise(ways))


# --- what is fetched, and operands ----------------------------------------------------------------------


def test_code_is_as_long_as_said(runs):
    for _, point in runs.chosen("decoded"):
        each = int(point.part.split()[0])
        if point.x <= 4096:
            done = runs(point)
            assert len(done.steps) == point.x
            assert {two.at - one.at for one, two in pairwise(done.steps)} == {each}


@pytest.mark.parametrize("probe", ["dispatch", "fusion", "fused-branches", "scheduler"])
def test_every_line_runs_once(runs, probe):
    for case, point in runs.chosen(probe):
        assert len(runs(point).steps) == len(point.lines), (case.subject, point.part)


def test_small_loops_hold_what_they_say(runs):
    for case, point in runs.chosen("code-lines"):
        found = re.match(r"(\d+) NOPs of (\d) bytes in a loop", case.subject)
        short = structs.replace(
            point, setting=structs.replace(point.setting, numbers=tuple(
                (number, 20 if value == 1000 else value) for number, value in point.setting.numbers))
        )  # fmt: skip
        done = runs(short)
        nops = [step for step in done.steps if re.match(r"nop|c\.nop|c?\.?addi x0,(x0,)?0", step.text)]
        assert len(nops) == 20 * int(found[1]), case.subject


_KINDS: dict[str, Callable[[float], bool]] = {
    "subnormal operand": lambda value: value != 0 and abs(value) < 2.0**-1022,
    "infinity": math.isinf,
    "NaN": math.isnan,
    "zero": lambda value: value == 0,
}


def test_operands_are_as_special_as_said(runs):
    for case, point in runs.chosen("special-values"):
        kind = _KINDS.get(case.subject.split(", ")[-1])
        if kind is None:
            continue
        step = runs(point).steps[0]
        _, *sources = re.findall(r"\b[df](\d+)", step.text.split(maxsplit=1)[1])
        values = [struct.unpack("<d", step.registers[f"f{n}"].to_bytes(8, "little"))[0] for n in sources]
        assert any(map(kind, values)) == (point.part == "asked"), (case.subject, point.part, values)


def test_chains_stand_behind_the_barrier_that_is_asked(runs):
    for case, point in runs.chosen("barriers"):
        texts = [step.text for step in runs(point).steps]
        barrier = case.subject.partition(",")[0].lower()
        chain = [text for text in texts if re.match(r"madd |mul |fmul(\.d)? ", text)]
        assert len(chain) == point.count * point.x, (case.subject, point.part, texts[:3])
        fences = [n for n, text in enumerate(texts) if text.split()[0] == barrier]
        assert len(fences) == point.count * (point.part == "behind"), (case.subject, point.part, texts[:3])
        if fences:
            assert texts[fences[0] + 1] == chain[0]


def test_every_probe_is_followed():
    """By name, here or with those of memory: all that have kernels on an instruction set that is emulated."""
    texts = [
        Path(__file__).with_name(f"test_{name}_of_probes.py").read_text() for name in ("memory", "branches")
    ]
    named = {*re.findall(r'"([a-z0-9-]+)"', "".join(texts)), "gather"}  # the latter in `test_probe_kernels`
    asked = {
        name for name, probe in PROBES.items()
        if not probe.of_pairs and any(list(probe.cases(isa)) for isa in ("aarch64", "riscv64"))
    }  # fmt: skip
    assert asked <= named
