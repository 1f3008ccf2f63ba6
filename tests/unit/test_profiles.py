"""Examples of properties: the same every time, and fresh ones where they are asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).parents[2]
PROPERTY = """
from hypothesis import given, strategies

@given(strategies.integers(0, 10**6))
def test_small(number):
    print("example", number)
    assert number < 900_000
"""


def tried(folder: Path, *options: str) -> str:
    """What pytest says of a property that fails for one number of ten, which it prints."""
    (folder / "test_small.py").write_text(PROPERTY)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        "-s",
        *options,
    ]
    done = subprocess.run([*command, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_examples_are_repeatable_unless_fresh_ones_are_asked_for(tmp_path):
    said = [tried(tmp_path, *options) for options in ((), (), *[["--hypothesis-profile=fresh"]] * 2)]
    first, again, fresh, other = (re.findall(r"^example (.*)", text, re.MULTILINE) for text in said)
    assert first == again
    assert fresh != other
    assert all("number=900000," in text for text in said)  # the smallest that fails
    assert "@reproduce_failure" in said[2]


def test_fresh_examples_are_ten_times_as_many():
    profiles = [settings.get_profile(name) for name in ("repeatable", "fresh")]
    assert [profile.derandomize for profile in profiles] == [True, False]
    assert profiles[1].max_examples == 20 * profiles[0].max_examples


def test_the_nightly_script_asks_for_profiles_and_programs_that_are_there():
    text = (ROOT / ".ci" / "nightly").read_text()
    [profile] = re.findall(r"--hypothesis-profile=(\w+)", text)
    assert settings.get_profile(profile)
    for module in re.findall(r"-m (benchmarks(?:\.\w+)+)", text):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file()
