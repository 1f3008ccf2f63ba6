"""A command that ends soon looks for no garbage, at its end neither."""

from __future__ import annotations

import subprocess
import sys

from tests.support.programs.processes import environment

CODE = """
import atexit, gc
atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 0))  # called after what comes later
from cyclescope.cli.short_life import keep_everything
keep_everything()
"""


def test_nothing_is_looked_at_for_garbage():
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]
