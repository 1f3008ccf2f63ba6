"""Opcodes that a program of LLVM knows."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from cyclescope.formats.exchange import FormatError
from cyclescope.formats.llvm.opcodes import known_opcodes, with_opcodes
from cyclescope.isa.table import load_table
from tests.support.made.models import exchanged

EVERY = sorted({form.llvm for form in load_table("x86-64") if form.llvm})


def program(tmp_path, names):
    path = tmp_path / "llvm"
    path.write_bytes(b"\x7fELF\xff" + b"\0".join(name.encode() for name in names) + b"\0\xff\xfe")
    return path


def test_names_that_end_others_are_known(tmp_path):
    """LLVM keeps one string for both."""
    names = [f"V{name}" if name == "ADD64rr" else name for name in EVERY if name != "IMUL64rr"]
    found = known_opcodes(program(tmp_path, names), "x86-64")
    assert "ADD64rr" in found
    assert "IMUL64rr" not in found
    assert len(found) == len(EVERY) - 1


@pytest.mark.parametrize(("share", "taken"), [(0.45, False), (0.55, True)])
def test_another_program_is_refused(share, taken, tmp_path):
    backwards = sorted(name[::-1] for name in EVERY[: int(len(EVERY) * share)])
    ends = [name for name, longer in pairwise([*backwards, ""]) if not longer.startswith(name)]
    path = program(tmp_path, [name[::-1] for name in ends])  # those that end no other
    if taken:
        assert known_opcodes(path, "x86-64")
    else:
        with pytest.raises(FormatError, match=r"has \d+ of \d+ opcodes.*llvm-exegesis"):
            known_opcodes(path, "x86-64")


def test_forms_whose_opcodes_are_not_known_are_left_out():
    model = exchanged(1)
    cost = next(iter(model.forms.values()))
    model = msgspec.structs.replace(
        model, forms=dict.fromkeys(("IMUL (R64, R64)", "ADC_11 (R64, R64)"), cost)
    )
    found, left = with_opcodes(model, frozenset({"IMUL64rr"}))
    assert list(found.forms) == ["IMUL (R64, R64)"]
    assert [(item.place, item.detail) for item in left] == [("ADC_11 (R64, R64)", "ADC64rr")]
