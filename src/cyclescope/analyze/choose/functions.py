"""Functions by what people call them: the names of C++ and Rust as they are written in the source."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache

from cyclescope.analyze.read.program import Function, Program
from cyclescope.errors import UsageError, shortened

_MANGLED = re.compile(r"_{1,2}Z|_R")
_FILTERS = ("c++filt", "llvm-cxxfilt")  # of the binutils, which have the assembler, too
_ARGUMENTS = re.compile(r"<[^<>]*>")  # of templates
_CLONE = " [clone "  # a part that a compiler made of a function
_PATIENCE = 10.0  # seconds: a million names take two


def shown_names(names: Sequence[str]) -> list[str]:
    """Names as they are in the source, if a program that knows is installed; of long ones the beginning."""
    return [shortened(name) for name in _written(tuple(names))]


def function_named(program: Program, name: str) -> Function:
    """A function by its name, or by a part of it that only one has. Raises UsageError."""
    exact = program.named(name)
    if exact is not None:
        return exact
    written = _written(tuple(function.name for function in program.functions))
    called = dict(zip(program.functions, written, strict=True))
    found = [one for one, text in called.items() if name in one.name or name in text]
    whole = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    alone = [one for one in found if whole.search(called[one])]
    own = [one for one in alone if _own_name(called[one]).endswith((f" {name}", f":{name}"))]
    uncut = [one for one in own if _CLONE not in called[one]]
    for some in (found, alone, own, uncut):
        if len(some) == 1:
            return some[0]
    names = [shortened(called[one]) for one in found or program.functions]
    close = [] if found else get_close_matches(name, names, n=3)
    if not close:
        close = names[:5] if len(names) <= 5 else [*names[:5], f"and {len(names) - 5} more"]
    what = (
        f"several functions of {program.source} are called like"
        if found
        else f"{program.source} has no function"
    )
    raise UsageError(
        f"{what} {shortened(name)}", f"there is {', '.join(close)}" if close else "it names none"
    )


def _own_name(written: str) -> str:
    """A function's name without its parameters, and without arguments of templates, which have names, too."""
    outer = _ARGUMENTS.sub("", written)
    while outer != written:
        written, outer = outer, _ARGUMENTS.sub("", outer)
    return " " + written.partition("(")[0]


@cache
def _written(names: Sequence[str]) -> Sequence[str]:
    """Names as they are in the source, as they are where nothing here knows how."""
    tool = next(filter(None, map(shutil.which, _FILTERS)), None)
    if tool is None or not any(map(_MANGLED.match, names)):
        return names
    try:
        done = subprocess.run(
            [tool], input="\n".join(names), capture_output=True, text=True, errors="surrogateescape",
            timeout=_PATIENCE, check=False,
        )  # fmt: skip
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return names
    found = tuple(done.stdout.split("\n"))
    return found if len(found) == len(names) and not done.returncode else names
