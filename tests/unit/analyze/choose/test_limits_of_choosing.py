"""Both sides of the limits on what is chosen from: lines, bytes of code, marked instructions, names."""

from __future__ import annotations

from itertools import chain

import pytest

from cyclescope.analyze.choose import source as choosing
from cyclescope.analyze.choose.markers import Marked, MarkedRegion
from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.read.assemblers import tools
from cyclescope.errors import SourceError, UsageError

needs_assembler = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
NOP = b"\x90"


def marked(*sizes):
    """Regions of so many NOPs between IACA's markers."""
    begin, end = (bytes((0xBB, number, 0, 0, 0, 0x64, 0x67, 0x90)) for number in (111, 222))
    return b"".join(chain.from_iterable((begin, NOP * size, end) for size in sizes))


class Reached(Exception):
    """What comes next was begun."""


def reached(*_):
    raise Reached("a region is put together")


class NoCode:
    """A decoder for which no byte is an instruction."""

    def steps(self, code, address):
        return iter(())


def test_a_text_has_half_a_million_lines_at_most():
    """What is said of fewer is said behind the limit."""
    with pytest.raises(UsageError, match="code of mips cannot be decoded"):
        read_block("nop" + "\n" * 500_000, "mips")
    with pytest.raises(SourceError, match="text has more than 500000 lines: give a part of it"):
        read_block("nop" + "\n" * 500_001, "mips")


@pytest.mark.parametrize(
    ("size", "said"), [(2 << 20, "has no instructions"), ((2 << 20) + 1, "has 2 MiB of code")]
)
def test_two_mebibytes_of_code_are_searched(size, said, monkeypatch):
    monkeypatch.setattr(choosing, "decoder", lambda *_: NoCode())
    with pytest.raises(SourceError, match=said):
        read_block(bytes(size), choice=Choice(whole=True))


@pytest.mark.parametrize(
    ("size", "error", "said"),
    [
        (49_999, Reached, "a region is put together"),
        (50_000, SourceError, "the 2 marked regions of .*: more than 50000 instructions"),
    ],
)
def test_fifty_thousand_marked_instructions_are_analysed_together(size, error, said, monkeypatch):
    regions = [MarkedRegion("", count, reached, "marked") for count in (1, size)]
    monkeypatch.setattr(choosing, "marked_regions", lambda code, part: Marked(regions, []))
    with pytest.raises(error, match=said):
        read_block(NOP)


def test_one_of_many_marked_instructions_is_analysed_alone():
    assert len(read_block(marked(40_000, 3, 40_000), choice=Choice(region="2"))) == 3


@needs_assembler
def test_regions_that_overlap_are_made_when_they_are_chosen():
    """As many steps as the square of the lines: none of them are put together before one region is chosen."""
    names = [f"r{number}" for number in range(1000)]
    begins = "".join(f"# LLVM-MCA-BEGIN {name}\nnop\n" for name in names)
    text = begins + "".join(f"# LLVM-MCA-END {name}\n" for name in names)
    assert len(read_block(text, choice=Choice(region="r997"))) == 3
    with pytest.raises(SourceError, match="the 1000 marked regions of text: more than 50000 instructions"):
        read_block(text)


@pytest.mark.parametrize(("count", "told"), [(8, "7, 8$"), (9, r"7, 8, \.\.\.$")])
def test_eight_names_are_listed(count, told):
    with pytest.raises(UsageError, match=rf"has {count} marked regions: choose one of 1, 2, .*{told}"):
        read_block(marked(*[1] * count))


@needs_assembler
@pytest.mark.parametrize(("count", "more"), [(8, ()), (9, ("and 1 more notes",))])
def test_eight_notes_are_shown(count, more):
    """One for every end that is missing."""
    text = "".join(f"# LLVM-MCA-BEGIN r{number}\n" for number in range(count)) + "nop\n"
    notes = read_block(text, choice=Choice(region="1")).notes
    assert (len(notes[:8]), notes[8:]) == (8, more)
