"""Lists in the style of the test programs: which forms a line means, and why some mean none."""

from __future__ import annotations

import pytest

from cyclescope.errors import SourceError
from cyclescope.formats.lists import read_list
from cyclescope.isa.table import load_table
from cyclescope.measure.plan import LATENCY, THROUGHPUT

TABLE = load_table("x86-64")


def forms(line):
    return set(read_list(line, "list.csv", TABLE).forms)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("paddd,x,2,,LT,SSE2", {"PADDD (XMM, XMM)"}),
        ("paddd,v128,2,0,LTM,SSE2", {"PADDD (XMM, XMM)", "PADDD (XMM, M128)"}),
        ("vpaddd,y,3,,T,AVX2", {"VPADDD (YMM, YMM, YMM)"}),
        ("imul,r64,2,,LT", {"IMUL (R64, R64)"}),
        ("imul,64,2,3,LT", {"IMUL (R64, R64, I8)", "IMUL (R64, R64, I32)", "IMUL (R64, R64, 0)"}),
        ("IMUL,32/64,2,no", {"IMUL (R32, R32)", "IMUL (R64, R64)"}),
        ("kaddb,k,3", {"KADDB (K, K, K)"}),
    ],
)
def test_lines(line, expected):
    assert forms(line) == expected


def test_a_group_of_registers():
    assert {"VPADDD (XMM, XMM, XMM)", "VPADDD (YMM, YMM, YMM)", "VPADDD (ZMM, ZMM, ZMM)"} <= forms(
        "vpaddd,v,3"
    )


def test_a_list():
    found = read_list(
        "Instruction,Register,Operands,Immediate,Mode,Set,Options\n# comment\n\npaddd,x,2,,T,SSE2,\n"
        "paddd,x,2,,RNDTR2\nnosuch,x,2\npaddd,q7,2\npaddd,x,9\npaddd,x,two\nimul,r64,2,,T\n",
        "list.csv",
        TABLE,
    )
    assert found.forms == ("PADDD (XMM, XMM)", "IMUL (R64, R64)")
    assert found.quantities == {THROUGHPUT}
    assert [(one.line, one.reason.split(" ")[-1]) for one in found.left_out] == [
        (5, "such"), (6, "NOSUCH"), (7, "register"), (8, "operands"), (9, "operands"),
    ]  # fmt: skip


def test_modes():
    assert read_list("paddd,x,2", "l", TABLE).quantities == {THROUGHPUT, LATENCY}
    assert read_list("paddd,x,2,,L", "l", TABLE).quantities == {LATENCY}


@pytest.mark.parametrize("text", ["", "# nothing\n", "nosuch,x,2\n"])
def test_a_list_of_nothing(text):
    with pytest.raises(SourceError, match="names no instruction form"):
        read_list(text, "list.csv", TABLE)
