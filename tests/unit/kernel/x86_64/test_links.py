"""Links between vector registers: what they are made of, and that operands get their values again."""

from __future__ import annotations

import struct

import pytest

from cyclescope.isa.table import load_table
from cyclescope.kernel.kernel import Kernel
from cyclescope.kernel.place import Place
from cyclescope.kernel.x86_64.helpers.links import X86Helpers
from cyclescope.kernel.x86_64.registers import VECTOR_CONSTANT, VECTOR_ONES, VECTOR_ZERO
from cyclescope.measure.plan import Planner

TABLE = load_table("x86-64")
LACKS = {
    "sse": ("AVX", "F16C", "FMA"),
    "avx": ("AVX2", "AVX512"),
    "avx2": ("AVX512",),
    "avx512f": ("AVX512BW",),
    "avx512bw": ("none",),
}  # prefixes of features
SATURATING, LOGIC = ("PADDUSB", "PSUBUSB", "VPADDUSB", "VPSUBUSB"), ("VAND", "VOR", "VPAND", "VPOR")


def executes(cpu):
    return lambda form: not any(feature.startswith(LACKS[cpu]) for feature in form.features)


def links(cpu):
    return X86Helpers(TABLE, executes(cpu))


def saturated(instructions, value):
    """What a byte of vector register 1 becomes; the constant is 77."""
    registers = {1: value, VECTOR_ZERO: 0, VECTOR_ONES: 255, VECTOR_CONSTANT: 77}
    for instruction in instructions:
        target, *sources = instruction.registers
        first, second = (registers[n] for n in (sources if len(sources) == 2 else (target, *sources)))
        adds = "ADD" in instruction.form.mnemonic
        registers[target] = min(first + second, 255) if adds else max(first - second, 0)
    return registers[1]


@pytest.mark.parametrize(
    ("cpu", "widths"), [("sse", [128]), ("avx2", [128, 256]), ("avx512bw", [128, 256, 512])]
)
@pytest.mark.parametrize("value", [0, 1, 77, 128, 255])
def test_a_vector_gets_its_value_again_whatever_it_was(cpu, widths, value):
    for width in widths:
        vector = Place("v", 1, width)
        move, *restoring = links(cpu).step(Place("r", 1, 64), vector).instructions
        assert "MOVD" in move.form.mnemonic
        assert saturated(restoring, value) == 77
        assert saturated([links(cpu).fill(vector)[0]], value) == value


@pytest.mark.parametrize(
    ("cpu", "width", "expected"),
    [
        ("sse", 128, SATURATING), ("avx", 128, SATURATING), ("avx", 256, LOGIC), ("avx2", 256, SATURATING),
        ("avx512f", 512, LOGIC), ("avx512f", 256, SATURATING), ("avx512bw", 512, SATURATING),
    ],
)  # fmt: skip
def test_links_are_of_logic_only_where_nothing_saturates(cpu, width, expected):
    """Some cores take one or two cycles for logic, as full as the scheduler is."""
    step = links(cpu).step(Place("r", 1, 64), Place("v", 1, width))
    assert [i.form.mnemonic.startswith(expected) for i in step.instructions[1:]] == [True, True]
    assert links(cpu).has_saturating(width) is (expected is SATURATING)


@pytest.mark.parametrize("cpu", LACKS)
def test_all_links_have_closed_chains(cpu):
    """What spaces a chain through memory has one of its own, too."""
    experiments = Planner(TABLE, executes(cpu)).link_experiments()
    alone = {e.links[0] for e in experiments if len(set(e.links)) == 1}
    fills = {e.links[-1] for e in experiments if e.form.endswith("spaced")}
    assert fills <= alone
    assert all(isinstance(e.kernel, Kernel) for e in experiments)


def test_a_narrow_load_tells_how_long_a_store_of_64_bits_takes():
    chains = {e.form: e.links for e in Planner(TABLE, executes("avx2")).link_experiments()}
    assert chains["r>mem.64>16>r"] == ("r>mem.64", "mem>r.16")


@pytest.mark.parametrize("flag", ["CF", "PF", "ZF"])
def test_flags_become_floating_point_values_that_are_not_denormal(flag):
    """Loads of those are microcoded on some cores: both values that the condition chooses from are 1.0."""
    path = links("avx512bw").path(Place("flag", flag=flag), Place("x", 0, 64))
    constant, chosen, *_ = path.instructions
    assert struct.unpack("<d", constant.immediates[0].to_bytes(8, "little")) == (1.0,)
    assert constant.registers == (chosen.registers[0],)
    assert len(set(chosen.registers)) == 1
    assert path.keys[0] == f"flag>r.{flag}"
