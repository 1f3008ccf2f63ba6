"""Both sides of what decoders look at, and of what they remember."""

from __future__ import annotations

import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.decode import fixed_width
from cyclescope.analyze.decode.fixed_width import FixedWidthDecoder
from cyclescope.analyze.decode.x86_64 import X86Decoder
from cyclescope.analyze.read.assemblers import tools

WHOLE = Choice(whole=True)


@pytest.mark.parametrize(
    ("code", "problem"),
    [("62f47c0801c3", "62 is of APX, which is not read"), ("62f37c0801c3", "62 is no instruction"),
     ("d5001234", "d5 is of APX, which is not read")],
)  # fmt: skip
def test_two_bytes_tell_a_prefix_of_apx(code, problem):
    assert read_block(bytes.fromhex(code), choice=WHOLE).unknown[0].problem == problem


@pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
def test_code_does_not_go_on_with_the_data_behind_it():
    """48 begins an instruction of three bytes, but two of them are no code."""
    block = read_block('nop\n.byte 0x48\n.ascii "\\x01\\xd8\\x90"\n', choice=WHOLE)
    assert [one.problem for one in block.unknown] == ["48 is no instruction"]


class Counting:
    """A table in which no word is an instruction."""

    def __init__(self):
        self.asked = 0

    def decode(self, code):
        self.asked += 1


@pytest.fixture
def room(monkeypatch):
    monkeypatch.setattr("cyclescope.analyze.decode.kept.MOST_KEPT", 8)


@pytest.mark.parametrize(("words", "asked"), [(8, 0), (9, 2)])
def test_instructions_are_remembered(room, words, asked, monkeypatch):
    """Code of loops comes again; what has more would take too much memory, and is forgotten all at once."""
    table = Counting()
    monkeypatch.setattr(fixed_width, "table_decoder", lambda isa: table)
    reader = FixedWidthDecoder("aarch64")
    first, *_ = codes = [number.to_bytes(4, "little") for number in range(words)]
    assert sum(1 for _ in reader.steps(b"".join(codes), 0)) == table.asked == words
    list(reader.steps(codes[1], 0))
    list(reader.steps(first, 0))
    assert table.asked - words == asked


def test_instructions_of_x86_are_remembered(room):
    reader = X86Decoder("", "intel")
    codes = [bytes((0x48, 0x01, 0xC0 + number)) for number in range(9)]
    remembered = [reader.instruction(code, 0) for code in codes[:8]]
    assert all(reader.instruction(code, 0) is one for code, one in zip(codes, remembered, strict=False))
    reader.instruction(codes[8], 0)
    assert list(reader._known) == [codes[8]]
