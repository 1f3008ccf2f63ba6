"""What starting costs: the modules that each command's help loads, and those of commands that only read.

Time is that of modules, nearly: to ask which are loaded depends on no machine.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from cyclescope.cli.main import COMMANDS
from tests.support.programs.processes import environment

# Modules of this package that the help of a command may load: what its options say comes from some of them.
MOST = 55
MORE = {"predict": 180, "validate": 190}  # their options list what other rooms have
HEAVY = {"rich", "highspy", "numpy", "sqlite3", "hashlib", "asyncio", "iced_x86", "elftools", "jinja2"}
HASHES = {"export", "import"}  # the formats there are are named in their help
RUNS_NOTHING = ("backend.native", "infer.ports", "infer.likelihood", "analyze.predict", "session.replay")


def loaded_by(*args):
    """The modules that a command leaves loaded."""
    code = (
        "import sys\n"
        "from cyclescope.cli.main import main\n"
        f"try: main({[str(arg) for arg in args]!r})\n"
        "finally: print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    return set(done.stderr.splitlines()[-1].split())


def ours(modules):
    return {name for name in modules if name.startswith("cyclescope.")}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_loads_what_its_options_need_alone(command):
    loaded = loaded_by(command, "--help")
    assert len(ours(loaded)) <= MORE.get(command, MOST), sorted(ours(loaded))
    if command in MORE:
        return
    assert not loaded & HEAVY - ({"hashlib"} if command in HASHES else set())
    assert not [name for name in loaded if name.removeprefix("cyclescope.").startswith(RUNS_NOTHING)]


NEEDLESS = ("backend", "formats", "infer.timing", "infer.ports", "measure", "probe", "session.loops")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_analysis_loads_what_predicts_alone(tmp_path, options):
    """Neither what measures, nor what reads stores, nor what solves or draws."""
    source = tmp_path / "k.s"
    source.write_text("imul rax, rax\n")
    loaded = loaded_by("analyze", "--mcpu", "znver3", *options, source)
    assert len(ours(loaded)) <= 165, sorted(ours(loaded))
    assert loaded & HEAVY <= {"iced_x86", "elftools"}
    assert not [name for name in loaded if name.removeprefix("cyclescope.").startswith(NEEDLESS)]


def test_looking_up_forms_loads_the_table_alone():
    loaded = loaded_by("forms", "imul")
    assert len(ours(loaded)) <= 60, sorted(ours(loaded))
    assert not loaded & HEAVY
