"""The runner and the package number locations alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cyclescope.kernel import locations
from cyclescope.kernel.aarch64.locations import A64
from cyclescope.kernel.locations import location_set, members, names
from cyclescope.kernel.riscv64.locations import RISCV
from cyclescope.kernel.x86_64.locations import X86

HEADER = Path(__file__).parents[3] / "src/cyclescope/native/protocol.h"
COMMON = {
    "AT_FIRST": "FIRST_PAGE",
    "AT_SECOND": "SECOND_PAGE",
    "AT_STACK": "STACK_PAGE",
    "AT_EXIT": "EXIT",
    "AT_FAULT": "FAULT",
    "AT_REGISTERS": "REGISTERS",
    "LOCATIONS": "LOCATIONS",
}
OWN = {"x86-64": X86, "aarch64": A64, "riscv64": RISCV}


@pytest.fixture(scope="module")
def header():
    text = HEADER.read_text()
    found = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+),", text)}
    return found | {name: int(value) for name, value in re.findall(r"#define (LOCATIONS) (\d+)", text)}


@pytest.mark.parametrize(("theirs", "ours"), COMMON.items())
def test_common_numbers_are_those_of_the_protocol(header, theirs, ours):
    assert header[theirs] == getattr(locations, ours)


@pytest.mark.parametrize("numbers", OWN.values())
def test_numbers_of_registers_are_those_of_the_protocol(header, numbers):
    theirs = {
        name.partition("_")[2]: value for name, value in header.items() if name.startswith(numbers.__name__)
    }
    assert theirs == {member.name: member.value for member in numbers}


def test_sets_have_the_size_of_the_protocol(header):
    assert header["LOCATIONS"] == locations.BYTES * 8


@pytest.mark.parametrize(("isa", "numbers"), OWN.items())
def test_every_location_has_a_name_of_its_own(isa, numbers):
    assert len(names(isa)) == numbers.END == len(set(names(isa)))
    assert numbers.END <= locations.LOCATIONS


@pytest.mark.parametrize(
    ("isa", "number", "name"),
    [
        ("x86-64", X86.GENERAL + 4, "RSP"),
        ("x86-64", X86.FLAGS + 6, "flags.DF"),
        ("x86-64", X86.XMM + 9, "XMM9"),
        ("x86-64", X86.YMM + 31, "ZMM31[255:128]"),
        ("x86-64", X86.ZMM, "ZMM0[511:256]"),
        ("x86-64", X86.MASK + 7, "K7"),
        ("x86-64", X86.MXCSR, "MXCSR"),
        ("aarch64", A64.GENERAL + 30, "X30"),
        ("aarch64", A64.FLAGS + 1, "flags.Z"),
        ("aarch64", A64.VECTOR + 31, "V31"),
        ("aarch64", A64.WIDE, "Z0[VL:128]"),
        ("aarch64", A64.PREDICATE + 15, "P15"),
        ("aarch64", A64.FPSR, "FPSR"),
        ("riscv64", RISCV.GENERAL + 1, "x1"),
        ("riscv64", RISCV.FLOAT + 31, "f31"),
        ("riscv64", RISCV.VECTOR, "v0"),
        ("riscv64", RISCV.VTYPE, "vtype"),
    ],
)
def test_names(isa, number, name):
    assert names(isa)[number] == name


def test_sets_give_back_their_members():
    numbers = [0, 5, 63, 64, 142]
    assert list(members(location_set(numbers))) == numbers
