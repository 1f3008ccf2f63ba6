from __future__ import annotations

import json

from cyclescope.backend.base import Depth
from cyclescope.measure.verify import Coverage, Finding, NotRun, Verification
from cyclescope.report.verify import verification_json, verification_text


def verification(**parts):
    return Verification(Depth(), checked=["ADD", "SUB"], trials=10, seconds=1.0, **parts)


VIOLATIONS = [
    Finding("ADD", "read", "RAX", ("RCX", "flags.CF")),
    Finding("ADD", "write", "RDX"),
    Finding("EMMS", "write", "x87 register 0", reason="only tags"),
    Finding("EMMS", "write", "x87 register 1", reason="only tags"),
]
LEFT_OUT = [
    NotRun("A (R32)", "A", "SIGILL"),
    NotRun("B (R32)", "B", "SIGSEGV at 0x10"),
    NotRun("B (R64)", "B", "SIGSEGV at 0x20"),
]


def test_nothing_undeclared():
    assert "undeclared reads and writes: none" in verification_text(verification())


def test_violations_are_listed_with_what_showed_them():
    text = verification_text(verification(findings=VIOLATIONS))
    assert "undeclared reads and writes: 2 in 1 form" in text
    assert "  ADD reads RAX (seen in RCX, flags.CF)" in text
    assert "  ADD writes RDX\n" in text


def test_exceptions_are_grouped_by_reason():
    assert "  EMMS: only tags" in verification_text(verification(findings=VIOLATIONS)).splitlines()


def test_forms_not_run_are_grouped_by_reason():
    text = verification_text(verification(not_run=LEFT_OUT))
    assert "3 forms not run:" in text
    assert "  1 SIGILL: not executed by this CPU" in text
    assert "  2 SIGSEGV: B" in text.splitlines()


def test_coverage_in_percent():
    text = verification_text(verification(coverage=Coverage(4, 3, 2, 1, 8, 3)))
    assert "75.0% of the reads and 50.0% of the writes were seen, and 3 of 8 pairs" in text


def test_json_has_everything():
    found = verification(findings=VIOLATIONS, not_run=LEFT_OUT, unstable={"RDTSC": ("RAX",)})
    data = json.loads(verification_json("a machine", found))
    assert data["schema_version"] == 1
    assert data["machine"] == "a machine"
    assert data["checked"] == ["ADD", "SUB"]
    assert [f["location"] for f in data["undeclared"]] == ["RAX", "RDX"]
    assert len(data["documented"]) == 2
    assert data["not_run"][0] == {"form": "A (R32)", "mnemonic": "A", "reason": "SIGILL"}
    assert data["unstable"] == {"RDTSC": ["RAX"]}
