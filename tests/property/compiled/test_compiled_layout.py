"""Numbers that compiled dependencies are given and give back mean the same on both sides."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from array import array
from pathlib import Path

import pytest

from cyclescope.analyze.depend.compiled import chains, passages
from cyclescope.analyze.depend.compiled.numbers import NO_NUMBER
from cyclescope.isa.record import ResultKind
from cyclescope.model.behaviour.found import WIDE_BITS

BOUNDS = Path(__file__).parents[3] / "src/cyclescope/native/bounds"
COMPILER = shutil.which("cc") or shutil.which("gcc")


def values():
    """What C calls a number, and what Python has for it."""
    seen = passages._MEMORY, passages._REGISTER, passages._ZERO, passages._IMMEDIATE
    parts, written = chains._PARTS, passages._WRITEBACK.index
    return {
        "sizeof(double)": array("d").itemsize,
        "sizeof(int64_t)": array("q").itemsize,
        "PASSAGE_ROW": len(chains.Passed._fields) + 1,
        "TRIP": len(chains.Passed._fields),
        "FOUND_ROW": len(passages.Found._fields),
        "NONE": NO_NUMBER,
        "SOURCE_OTHER": parts["other"],
        "SOURCE_REGISTER": parts["register"],
        "SOURCE_ADDRESS": parts["address"],
        "SOURCE_DATA": parts["data"],
        "NOT_WRITTEN_BACK": written(""),
        "WRITTEN_BEFORE": written("pre"),
        "WRITTEN_AFTER": written("post"),
        "WIDE_SIZES": len(WIDE_BITS),
        "RULES": len(ResultKind) + 1,
        "SEEN_NOTHING": passages._NOTHING,
        **dict(zip(("SEEN_MEMORY", "SEEN_REGISTER", "SEEN_ZERO", "SEEN_IMMEDIATE"), seen, strict=True)),
        **{name.upper(): number for number, name in enumerate(chains.Passed._fields)},
    }


STRUCTURES = {
    "memory_core": passages._Core, "memory": passages._Memory, "chunks": passages._Chunks,
    "banks": passages._Banks, "crossing": passages._Crossing, "wide_loads": passages._WideLoads,
    "answer": chains._Answer,
}  # fmt: skip


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_layouts_are_the_same(tmp_path):
    checks = [f'_Static_assert({name} == {value}, "{name}");' for name, value in values().items()]
    for name, there in STRUCTURES.items():
        checks.append(f'_Static_assert(sizeof(struct {name}) == {ctypes.sizeof(there)}, "{name}");')
        for field, *_ in there._fields_:
            at = getattr(there, field).offset
            checks.append(f'_Static_assert(offsetof(struct {name}, {field}) == {at}, "{name}.{field}");')
    answer = re.search(r"struct answer \{.*?\n\};", (BOUNDS / "chain.c").read_text(), re.DOTALL)
    assert answer
    source = tmp_path / "check.c"
    source.write_text("\n".join(['#include "search.h"', answer[0], *checks, ""]))
    command = [str(COMPILER), "-I", str(BOUNDS), "-fsyntax-only", str(source)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_index_registers_are_parts_of_addresses():
    assert chains._PARTS["index"] == chains._PARTS["address"]
