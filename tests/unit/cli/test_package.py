"""What `import cyclescope` offers."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files

import pytest

import cyclescope as library
from tests.support.programs.processes import environment


def test_names_are_listed_before_they_are_used():
    text = "import cyclescope, sys; print(*dir(cyclescope)); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", text], env=environment(), capture_output=True, text=True, check=True
    )
    names, modules = map(str.split, done.stdout.splitlines())
    assert set(library.__all__) <= set(names)
    assert "cyclescope.infer.api" not in modules, "listing imports nothing"


def test_all_names_can_be_used():
    assert all(getattr(library, name) for name in library.__all__)


def test_a_script_can_catch_what_a_prediction_raises():
    with pytest.raises(library.UnknownInstructions):
        library.predict("vfmadd231sd xmm2, xmm3, xmm5", "atom")


def test_type_checkers_are_told_that_there_are_types():
    assert files("cyclescope").joinpath("py.typed").is_file()
