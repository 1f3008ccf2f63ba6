"""A command that ends soon looks for no garbage, and no command with many objects does at its end."""

from __future__ import annotations

import gc
import subprocess
import sys
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from cyclescope.cli.commands import validate
from tests.support.programs.processes import environment

CODE = """
import atexit, gc
atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 0))  # called after what comes later
from cyclescope.cli.{} import {} as prepare
prepare()
"""


@pytest.mark.parametrize(
    ("module", "prepares", "collects"),
    [("short_life", "keep_everything", False), ("commands.measure", "_collect_seldom", True)],
)
def test_nothing_is_looked_at_for_garbage_at_the_end(module, prepares, collects):
    code = CODE.format(module, prepares)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(collects), "True"]


def test_a_validation_leaves_its_objects_to_the_end(monkeypatch):
    asked = []
    monkeypatch.setattr(validate, "end_at_once", lambda: asked.append(True))
    CliRunner().invoke(validate.command, ["--predictors", ","])
    assert asked


def test_what_predicts_is_made_without_looking_for_garbage(monkeypatch):
    looked = []
    monkeypatch.setattr(
        validate, "predictors", lambda names, machine: looked.append(gc.isenabled()) or ([], {})
    )
    validate._models(SimpleNamespace(names=["analytic"], arch="znver4", ablation=False), "")
    assert looked == [False]
    assert gc.isenabled()
