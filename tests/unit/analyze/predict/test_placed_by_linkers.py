"""Loops in files that are not linked: which lines their code will lie in is not known."""

from __future__ import annotations

import shutil
import subprocess

import msgspec
import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.cost.instruction import PlacedCosts
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model.behaviour.lines import CodeLines
from tests.support.code.blocks import block, measured

pytestmark = pytest.mark.skipif(
    shutil.which("as") is None or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils"
)
TEXT = "add rax, rbx; add rcx, 1; cmp rcx, rdx; jne 0"  # 12 bytes


@pytest.fixture
def found(monkeypatch):
    """Predicts the loop at an address, by the alignment that is asked for, where each line takes a cycle."""
    lines = CodeLines(64, 12, 1.0, apart=True)
    real = PlacedCosts.__init__

    def init(self, machine, ends="", stand_in=None):
        real(self, machine, ends, stand_in)
        self.behaviour = msgspec.structs.replace(self.behaviour, lines=lines)

    monkeypatch.setattr(PlacedCosts, "__init__", init)

    def predict(at, alignment, text=TEXT):
        some = block(text, True)
        moved = (msgspec.structs.replace(one, address=one.address + at) for one in some)
        placed = msgspec.structs.replace(some, instructions=tuple(moved), alignment=alignment)
        return Predictor(measured()).predict(placed, simulate=False)

    return predict


def told(prediction):
    return [note for note in prediction.notes if "linker" in note]


@pytest.mark.parametrize(
    ("at", "alignment", "cycles", "interval"),
    [
        (0, 0, 4 / 3, (4 / 3, None)),  # linked
        (56, 0, 2, (2, None)),
        (0, 16, 4 / 3, (4 / 3, None)),  # in one line wherever it is
        (8, 16, 4 / 3, (4 / 3, 2)),
        (56, 16, 2, (4 / 3, 2)),
        (56, 32, 2, (4 / 3, 2)),
        (56, 64, 2, (2, None)),  # the linker keeps it there
        (0, 1, 4 / 3, (4 / 3, None)),  # a text that asks for nothing
    ],
)
def test_the_interval_has_every_place(found, at, alignment, cycles, interval):
    prediction = found(at, alignment)
    assert prediction.cycles == pytest.approx(cycles, rel=0.01)
    assert prediction.interval[0] == pytest.approx(interval[0], rel=0.05)
    assert prediction.interval[1] == pytest.approx(interval[1] or prediction.cycles, rel=0.1)
    assert told(prediction) == (
        ["which lines of 64 bytes the loop lies in is up to the linker: it takes 1.33 to 2.00 cycles"]
        if interval[1]
        else []
    )


def test_nothing_is_said_where_something_else_takes_longer(found):
    assert told(found(56, 16, f"imul rax, rax; {TEXT}")) == []


@pytest.mark.parametrize(("asked", "alignment"), [(".p2align 4", 16), (".p2align 5", 32), ("nop", 1)])
def test_texts_and_objects_say_their_alignment(tmp_path, asked, alignment):
    text = f"{asked}\n.L1:\n addq %rax, %rbx\n jne .L1\n"
    assert read_block(text).alignment == alignment
    source = tmp_path / "a.s"
    source.write_text(text)
    subprocess.run(["as", str(source), "-o", str(tmp_path / "a.o")], check=True)
    assert read_block(tmp_path / "a.o").alignment == alignment
    subprocess.run(["ld", str(tmp_path / "a.o"), "-e", "0", "-o", str(tmp_path / "a")], check=True)
    assert read_block(tmp_path / "a").alignment == 0


@pytest.mark.parametrize("with_bytes", [True, False])
@pytest.mark.parametrize(
    ("first", "second", "alignment"),
    [(0, 16, 16), (0, 32, 16), (0, 8, 8), (0, 3, 1), (64, 80, 0), (0x1000, 0x1010, 0)],
)
def test_a_listing_of_an_object_file_is_not_linked(first, second, alignment, with_bytes):
    """Code at the beginning of a file's addresses is where no linker puts any: the file's head is there."""
    code = "48 ff c8 \t" if with_bytes else ""
    listing = "".join(f"{at:016x} <f{at}>:\n  {at:x}:\t{code}dec    %rax\n" for at in (first, second))
    assert read_block(listing, choice=Choice(whole=True)).alignment == alignment
