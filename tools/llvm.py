"""Programs that ask LLVM's library."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path


def build(source: Path, directory: Path) -> Path:
    """Compile such a program into a folder; its path."""
    flags, libraries = (
        shlex.split(
            subprocess.run(["llvm-config-22", option], check=True, capture_output=True, text=True).stdout
        )
        for option in ("--cxxflags", "--ldflags")
    )
    program = directory / source.stem
    command = ["g++", *flags, "-O1", "-std=c++17", source, "-o", program, *libraries, "-lLLVM-22"]
    subprocess.run(command, check=True)
    return program
