"""Meaning is typed: nothing takes apart the sentences that users read, nor the names of kernels elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cyclescope

PACKAGE = Path(cyclescope.__file__).parent
TAKES_APART = re.compile(
    r"\b(note|reason|remark|sentence|idiom|verdict|status)\.(startswith|endswith|split|r?partition|remove(pre|suf)fix)\("
    r"|[\"'] in \w*\.?(note|reason|remark|sentence)\b"
    r"|\bvariant\.(startswith|endswith|split|r?partition|remove(pre|suf)fix)\("
    r"|\bvariant\[|\bkey\[\d*:|GLOB '\* again'"
)
READERS = {"measure/ports.py"}  # reads how many instructions or cycles of blocking it has written


def test_sentences_are_not_parsed():
    found = [
        f"{name}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if (name := str(path.relative_to(PACKAGE))) not in READERS
        for line in path.read_text().splitlines()
        if TAKES_APART.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        'lat.note.startswith("eliminated")',
        'form.reason.split(" at ")[0]',
        'if "hidden" in found.note:',
        "int(record.variant[1:])",
        'r.variant.endswith("again")',
        'timing.status.startswith("SIGILL: this CPU lacks")',
        "key[4:]",
    ],
)
def test_parsing_is_seen(line):
    assert TAKES_APART.search(line)


@pytest.mark.parametrize(
    "line", ['"note" in data', "if found.note:", "note = remark.text", "variant_of(text)"]
)
def test_other_code_is_not_parsing(line):
    assert not TAKES_APART.search(line)
