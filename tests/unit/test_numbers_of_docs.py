"""Numbers of cores in the documentation: when they were measured, and what prints them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "README.md"]


def told(page: Path) -> str:
    """The path of a page, for the names of tests."""
    return str(page.relative_to(ROOT))


# What was measured of a core: a number behind its name, in one sentence.
OF_A_CORE = re.compile(
    r"(?:Zen \d|Golden Cove|EPYC|Intel core)[^.|;)]{0,120}?"
    r"\d(?:\.\d+)? ?(?:%|cycles?\b|slots?\b|s \||of \d|to \d)"
)
COMMIT = r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7}\b"
WHEN = re.compile(rf"{COMMIT}|\b20\d\d\b|[Vv]ersion \d\.\d")


def undated(text: str) -> list[str]:
    """Numbers of cores in sections without a commit, date or version, there or at the page's head."""
    head, *sections = re.split(r"^## ", text, flags=re.M)
    return [
        found[0]
        for section in [head, *sections]
        for found in OF_A_CORE.finditer(" ".join(section.split()))
        if not WHEN.search(section) and not WHEN.search(head)
    ]


@pytest.mark.parametrize("page", PAGES, ids=told)
def test_numbers_of_cores_say_when_they_were_measured(page):
    assert undated(page.read_text()) == []


def test_a_number_without_a_date_is_seen():
    text = "# Page\n\n## A\n\nA Zen 3 takes 7 cycles.\n\n## B\n\nA Zen 5 takes 9 cycles (commit 768cdae).\n"
    assert undated(text) == ["Zen 3 takes 7 cycles"]


PRINTED_BY = re.compile(r"`[^`]*(?:cyclescope|python -m|llvm-mca)[^`]*`|^```(?:sh|console)", re.MULTILINE)


def unproved(text: str) -> list[str]:
    """Numbers of cores in sections that name no program which prints them, nor does the page's head."""
    head, *sections = re.split(r"^## ", text, flags=re.M)
    return [
        found[0]
        for section in [head, *sections]
        if not PRINTED_BY.search(section) and not PRINTED_BY.search(head)
        for found in OF_A_CORE.finditer(" ".join(section.split()))
    ]


@pytest.mark.parametrize("page", PAGES, ids=told)
def test_numbers_of_cores_have_a_program_beside_them(page):
    assert unproved(page.read_text()) == []


def test_a_number_without_a_program_is_seen():
    text = (
        "# Page\n\n## A\n\nA Zen 3 takes 7 cycles.\n\n## B\n\nA Zen 5 takes 9 cycles (`cyclescope show`).\n"
    )
    assert unproved(text) == ["Zen 3 takes 7 cycles"]
