"""What nanoBench's documentation and probes' kernels show, typed as there: the same numbers within 1 %.

Values are those of every core that adds in a cycle; others are compared with readings of the same core.
"""

from __future__ import annotations

import json
import platform
import shutil

import pytest

from cyclescope.measure.record import STABLE
from tests.support.programs.processes import NOISY, patiently

pytestmark = [
    pytest.mark.hardware,
    pytest.mark.skipif(not shutil.which("as"), reason="needs binutils"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is for x86-64"),
]

WITHIN = 0.01
CHASE = ("-asm", "mov R14, [R14]", "-asm_init", "mov [R14], R14")


def cycles(cyclescope, *words):
    """Core cycles per copy of a reading that is `ok`, and its error."""
    done, out, err = cyclescope.run("bench", *words, "--json")
    assert done == 0, err
    data = json.loads(out)
    assert data["verdict"] == STABLE
    return data["cycles"], data["spread"]


def calmly(check):
    """With patience; where rounds never agree there is nothing to compare, which `bench` says itself."""
    try:
        patiently(check, 4)
    except AssertionError as error:
        if NOISY in str(error):
            pytest.skip(f"neighbours: {error}")
        raise


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("-asm", "ADD RAX, RBX; add RBX, RAX"), 2.0),
        (("-asm", "ADD RAX, RBX; add RBX, RAX", "-unroll_count", "10", "-loop_count", "100"), 2.0),
        (("-asm", "MOV R15, 10000; L: DEC R15; JNZ L", "-unroll_count", "1", "-loop_count", "0"), 10_000.0),
        (("-asm", "inc al; inc ax"), 2.0),
        (("--asm", "100*|add rax, rbx; add rax, rcx;|"), 200.0),
    ],
)
def test_chains_of_cycles(cyclescope, words, value):
    def is_so():
        assert cycles(cyclescope, *words)[0] == pytest.approx(value, rel=WITHIN)

    calmly(is_so)


def test_the_ways_of_a_pointer_that_leads_to_itself(cyclescope):
    """Going on and on, as copies, in a loop of copies, and less what no copies take."""

    def is_so():
        usual, _ = cycles(cyclescope, *CHASE)
        assert usual > 2
        for more in (("-loop_count", "0"), ("-unroll_count", "100", "-loop_count", "100")):
            assert cycles(cyclescope, *CHASE, *more)[0] == pytest.approx(usual, rel=WITHIN), more
        basic, error = cycles(cyclescope, *CHASE, "-basic_mode")
        assert abs(basic - usual) <= error + WITHIN * usual

    calmly(is_so)


def test_nops_of_nanobench(cyclescope):
    def is_so():
        one, _ = cycles(cyclescope, "-asm", "nop")
        assert cycles(cyclescope, "-asm", "12*|nop|")[0] == pytest.approx(12 * one, rel=WITHIN)
        _, long, _ = cyclescope.run("bench", "-asm", "|4", "--json")  # its cycles may depend on its place
        assert len(bytes.fromhex(json.loads(long)["bytes"])) == 4

    calmly(is_so)


def test_a_sweep_and_its_bars(cyclescope):
    def is_so():
        done, out, err = cyclescope.run("bench", "--asm", "{N}*|add rax, rbx;|", "--sweep", "N=2..4")
        assert done == 0, err
        rows = [line.split() for line in out.splitlines()[1:]]
        assert [row[0] for row in rows] == ["N=2", "N=3", "N=4"]
        for row, value in zip(rows, (2, 3, 4), strict=True):
            assert float(row[1]) == pytest.approx(value, rel=WITHIN)
        assert [row[-1].count("\u2588") for row in rows] == [20, 30, 40]

    calmly(is_so)
