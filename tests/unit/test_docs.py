"""The documentation is true to the code: files that it names exist, and numbers are the constants'."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cyclescope
from cyclescope.measure import sampling

ROOT = Path(__file__).parents[2]
PACKAGE = Path(cyclescope.__file__).parent
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "README.md"]
NAMED = re.compile(r"`((?:[\w.]+/)*[\w.]+/?\w+\.(?:py|c|h))`")  # a file; NAME stands for any
MADE_UP = {"a.py", "kernels.py"}  # of examples


def is_there(name: str) -> bool:
    """Whether a file is in the package or the repository, wherever its folder is."""
    if "NAME" in name:
        name = name.replace("NAME", "aarch64") if name.startswith(("isa", "kernel", "native", "host")) else ""
    places = (PACKAGE / name, ROOT / name, PACKAGE / "native" / name)
    return (
        not name
        or any(place.exists() for place in places)
        or any(any(place.rglob(name)) for place in (PACKAGE, ROOT / "tools"))
    )


def lost(text: str) -> list[str]:
    """Files that a page names and nobody has."""
    return sorted({name for name in NAMED.findall(text) if name not in MADE_UP and not is_there(name)})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_that_a_page_names_exist(page):
    assert lost(page.read_text()) == []


def test_a_file_that_is_lost_is_seen():
    assert lost("`infer/nowhere.py` and `measure/sampling.py`, `kernel/NAME/dialect.py`") == [
        "infer/nowhere.py"
    ]


def test_rooms_of_the_architecture_exist():
    """In tables of rooms, the words in code of the first column are modules or folders."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    for title, room in re.findall(r"^\| rooms? of `(\w+)`(.*)$", text, re.MULTILINE):
        del room
        table = text.partition(f"of `{title}`")[2].partition("\n\n")[0]
        rows = [row.split("|")[1] for row in table.splitlines()[2:] if row.startswith("| `")]
        for name in (name for row in rows for name in re.findall(r"`(\w+)`", row)):
            assert (PACKAGE / title / name).is_dir() or (PACKAGE / title / f"{name}.py").is_file(), name


NOISE = " ".join((ROOT / "docs" / "method" / "noise.md").read_text().split())
WORDS = {4: "four", 10: "ten"}


@pytest.mark.parametrize(
    "told",
    [
        f"agree within {sampling.AGREE:.0%}".replace("%", " %"),
        f"(or {sampling.GRAIN:g} cycles)",
        f"{WORDS[sampling.MOST_ROUNDS]} rounds without that",
        f"after {WORDS[sampling.CROWDED_ROUNDS]} rounds instead of {WORDS[sampling.MOST_ROUNDS]}",
        f"of at most {sampling.CROWDED_TRIES} tries",
        f"about the last {sampling.REMEMBERED} samples",
    ],
)
def test_numbers_of_the_page_on_noise(told):
    assert told in NOISE


DEFINED = re.compile(r"#define (\w+) ([\d.]+)")
SOURCES = {
    name: float(value)
    for file in (
        "sampling.c",
        "clock.c",
        "canary.c",
        "clusters.c",
        "inside/cycle.c",
        "inside/entries.c",
        "inside/result.c",
        "inside/inside.h",
        "inside/program.c",
    )
    for name, value in DEFINED.findall((PACKAGE / "native" / file).read_text())
}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("WAITED_PART", 0.5, "waits for a quiet moment at most half of its time"),
        ("NEW_READINGS", 3, "Three pairs of chains before the region and three behind it"),
        ("MOMENT", 0.0005, "with others of the last 0.5 ms"),
        ("READINGS", 24, "24 at most"),
        ("EMPTY_ENTRIES", 100, "is the median of 100 entries"),
        ("FIRST_CALIBRATIONS", 5, "of 5 calibrations before the first entry"),
        ("MOST_CALIBRATIONS", 50, "or of the first of 50 that finds one"),
        ("ERRORS", 2, "two standard errors of the median"),
    ],
)
def test_numbers_of_the_runner_are_those_of_the_page(name, value, told):
    assert SOURCES[name] == value
    assert told in NOISE
