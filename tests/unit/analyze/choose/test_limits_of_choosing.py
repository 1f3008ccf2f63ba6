"""Both sides of the limits on what is chosen from: lines, bytes of code, marked instructions, names."""

from __future__ import annotations

from itertools import chain

import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.read.assemblers import tools
from cyclescope.errors import SourceError, UsageError

needs_assembler = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
NOP = b"\x90"
LONGEST = bytes.fromhex("66" * 5 + "48b8" + "01" * 8)  # 15 bytes: much code of few instructions
WHOLE = Choice(whole=True)


def marked(*sizes):
    """Regions of so many NOPs between IACA's markers."""
    begin, end = (bytes((0xBB, number, 0, 0, 0, 0x64, 0x67, 0x90)) for number in (111, 222))
    return b"".join(chain.from_iterable((begin, NOP * size, end) for size in sizes))


@needs_assembler
def test_a_text_has_half_a_million_lines_at_most():
    assert len(read_block("nop" + "\n" * 500_000)) == 1
    with pytest.raises(SourceError, match="text has more than 500000 lines: give a part of it"):
        read_block("nop" + "\n" * 500_001)


@pytest.mark.parametrize(
    ("size", "said"), [(2 << 20, "more than 20000"), ((2 << 20) + 1, "has 2 MiB of code")]
)
def test_two_mebibytes_of_code_are_searched(size, said):
    """What is searched has too many instructions for a block, which is said of it then."""
    code = (LONGEST * (size // len(LONGEST) + 1))[:size]
    with pytest.raises(SourceError, match=said):
        read_block(code, choice=WHOLE)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [((20_001, 29_999), "20001 instructions, more than 20000"),
     ((20_001, 30_000), "the 2 marked regions of machine code: more than 50000 instructions")],
)  # fmt: skip
def test_fifty_thousand_marked_instructions_are_analysed_together(sizes, said):
    """Fewer are refused for the first region alone: each is a block then."""
    with pytest.raises(SourceError, match=said):
        read_block(marked(*sizes))


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


@pytest.mark.parametrize(("count", "told"), [(20, "19, 20$"), (21, r"19, 20, \.\.\.$")])
def test_twenty_names_are_listed(count, told):
    with pytest.raises(UsageError, match=rf"has {count} marked regions: choose one of 1, 2, .*{told}"):
        read_block(marked(*[1] * count))


@needs_assembler
@pytest.mark.parametrize(("count", "more"), [(20, ()), (21, ("and 1 more notes",))])
def test_twenty_notes_are_shown(count, more):
    """One for every end that is missing."""
    text = "".join(f"# LLVM-MCA-BEGIN r{number}\n" for number in range(count)) + "nop\n"
    notes = read_block(text, choice=Choice(region="1")).notes
    assert (len(notes[:20]), notes[20:]) == (20, more)
