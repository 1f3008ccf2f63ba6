"""What `cyclescope analyze` prints of kernels with published or measured analyses, word for word.

`python -m tests.golden.cases` writes the expected texts; read the difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from cyclescope.cli.commands.analyze import command

FOLDER = Path(__file__).parent


class Case(NamedTuple):
    """A kernel in a folder of the ISA and the machine, the options, and the file with what is expected."""

    folder: str
    kernel: str
    options: tuple[str, ...]
    expected: str

    @property
    def isa(self) -> str:
        """The instruction set."""
        return self.folder.partition("/")[0]


_PAPER = ("--arch", "./model.json", "--unroll-factor", "4")
CASES = (
    Case("aarch64/thunderx2", "gauss_seidel.s", (*_PAPER, "--fixed"), "gauss_seidel.fixed.txt"),
    Case("aarch64/thunderx2", "gauss_seidel.s", _PAPER, "gauss_seidel.txt"),
    Case("aarch64/neoverse-v2", "recurrence.s", ("--arch", "V2"), "recurrence.txt"),
    Case("x86-64/sandybridge", "triad.s", ("--arch", "SNB"), "triad.txt"),
    Case("x86-64/cascadelake", "triad.s", ("--arch", "CLX", "--unroll-factor", "4"), "triad.txt"),
    Case("x86-64/znver3", "triad.s", ("--arch", "ZEN3", "--unroll-factor", "4"), "triad.txt"),
    Case("x86-64/znver3", "triad.s", ("--arch", "ZEN3", "--markdown"), "triad.md"),
    Case("riscv64/sifive-p670", "triad.s", ("--arch", "sifive-p670"), "triad.txt"),
)


def printed(case: Case) -> str:
    """What the command prints, in the folder of the kernel."""
    before = Path.cwd()
    os.chdir(FOLDER / case.folder)
    try:
        done = CliRunner().invoke(command, [case.kernel, *case.options], catch_exceptions=False)
    finally:
        os.chdir(before)
    return done.output


if __name__ == "__main__":
    for one in CASES:
        (FOLDER / one.folder / one.expected).write_text(printed(one))
