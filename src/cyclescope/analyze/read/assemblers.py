"""The assemblers that are installed, with the options that make each take all instructions it knows."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cyclescope.host.uname import isa_of_machine
from cyclescope.isa.record import Toolchain
from cyclescope.isa.registry import instruction_set

_KNOWN = re.compile(
    r"/(?:llvm-mc|clang|[\w-]*-?as)[-.\d]*$"
)  # programs that do not go by their names: ccache does


class Tool(NamedTuple):
    """An assembler: its name, and its command without input and output."""

    name: str
    command: tuple[str, ...]
    defines_local: bool  # whether it wants local labels to be defined
    knows_all: bool  # whether its options allow all instructions, whatever the text says
    extensions: tuple[str, ...] = ()  # directives that allow more of them, some of which it may not know
    more: tuple[str, ...] = ()  # options that do the same


@cache
def tools(isa: str) -> tuple[Tool, ...]:
    """The assemblers for an instruction set that are installed, the fastest first."""
    return tuple(_tools(isa))


def _tools(isa: str) -> Iterator[Tool]:
    chain = instruction_set(isa).toolchain
    more = tuple(chain.allowing.format(name) for name in chain.extensions)
    native = sys.platform == "linux" and isa_of_machine(os.uname().machine) == isa
    for name, path in _distinct(("as",) * native + chain.gnu_names):
        for options in chain.gnu_options:
            yield Tool(name, (path, *options), False, True, more if chain.gnu_extensions else ())
    for name in _newest_first("llvm-mc"):
        command = (name, f"-triple={chain.triple}", "-filetype=obj", *chain.llvm_mc_options)
        # Older versions know neither `+all` nor all of the directives that allow extensions.
        yield Tool(name, command, True, True, more=_features(chain))
    for name in _newest_first("clang"):
        target = (f"--target={chain.triple}", "-c", "-x", "assembler", *chain.clang_options)
        yield Tool(name, (name, *target), True, chain.fixed_options, more)
    zig = shutil.which("zig")
    if zig:
        target = ("-target", chain.triple.replace("-gnu", "-musl"), "-c", "-x", "assembler")
        yield Tool("zig cc", (zig, "cc", *target), True, False, more)


def _features(chain: Toolchain) -> tuple[str, ...]:
    """What makes LLVM allow all extensions. Those that it does not know it ignores."""
    return ("-mattr=" + ",".join(f"+{name}" for name in chain.features),) if chain.features else ()


def _newest_first(name: str) -> list[str]:
    """The program and its versioned names (`clang-19`) that are on the path."""
    found = {path.name for path in _programs() if re.fullmatch(rf"{name}-\d+", path.name)}
    versioned = sorted(found, key=lambda one: int(one.rpartition("-")[2]), reverse=True)
    return [one for one, _ in _distinct((*versioned, name))]


def _distinct(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Names of programs that are installed, with their paths; of several names of one program the first."""
    seen: set[str] = set()
    for name in names:
        path = shutil.which(name)
        program = str(Path(path).resolve()) if path else ""
        if path and program not in seen:
            seen.add(program if _KNOWN.search(program) else path)
            yield name, path


@cache
def _programs() -> tuple[Path, ...]:
    folders = [Path(folder) for folder in os.get_exec_path() if folder]
    found = (path for folder in folders if folder.is_dir() for path in folder.glob("*-[0-9]*"))
    return tuple(path for path in found if path.name.startswith(("llvm-mc-", "clang-")))
