"""The runner and the package number locations alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cyclescope.kernel import locations
from cyclescope.kernel.locations import NAMES, location_set, members

HEADER = Path(__file__).parents[3] / "src/cyclescope/native/protocol.h"
PAIRS = {
    "AT_FIRST": "FIRST_PAGE",
    "AT_SECOND": "SECOND_PAGE",
    "AT_STACK": "STACK_PAGE",
    "AT_EXIT": "EXIT",
    "AT_FAULT": "FAULT",
    "X86_GENERAL": "GENERAL",
    "X86_FLAGS": "FLAG",
    "X86_XMM": "XMM",
    "X86_YMM": "YMM",
    "X86_ZMM": "ZMM",
    "X86_MASK": "MASK",
    "X86_X87": "X87",
    "X86_MXCSR": "MXCSR",
    "X86_FCW": "X87_CONTROL",
    "X86_FSW": "X87_STATUS",
    "X86_END": "END",
}


@pytest.fixture(scope="module")
def header():
    text = HEADER.read_text()
    found = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+),", text)}
    found |= {name: int(value) for name, value in re.findall(r"#define (LOCATIONS) (\d+)", text)}
    return found


@pytest.mark.parametrize(("theirs", "ours"), PAIRS.items())
def test_numbers_are_those_of_the_protocol(header, theirs, ours):
    assert header[theirs] == getattr(locations, ours)


def test_sets_have_the_size_of_the_protocol(header):
    assert header["LOCATIONS"] == locations.BYTES * 8


def test_every_location_has_a_name_of_its_own():
    assert len(NAMES) == locations.END == len(set(NAMES))


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (locations.GENERAL + 4, "RSP"),
        (locations.FLAG + 6, "flags.DF"),
        (locations.XMM + 9, "XMM9"),
        (locations.YMM + 31, "ZMM31[255:128]"),
        (locations.ZMM, "ZMM0[511:256]"),
        (locations.MASK + 7, "K7"),
        (locations.MXCSR, "MXCSR"),
    ],
)
def test_names(number, name):
    assert NAMES[number] == name


def test_sets_give_back_their_members():
    numbers = [0, 5, 63, 64, 142]
    assert list(members(location_set(numbers))) == numbers
