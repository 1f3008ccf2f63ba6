"""Machine code of single lines, by GNU as."""

from __future__ import annotations

import re
import subprocess
import tempfile
from io import BytesIO
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from cyclescope.analyze.read.assembler import tools

_BEFORE = {"riscv64": [".option norvc", "1:"], "aarch64": ["1:"]}
_BEHIND = ["there:", "loop:", "f:", "memcpy:", "table:", "x:", ".L3:", "1:"]  # what lines may refer to


def machine_code(isa, lines):
    """The code of every line, nothing where it is refused; skips the test where there is no GNU as."""
    known = [tool.command for tool in tools(isa) if tool.name.endswith("as")]
    command = next((each for each in known if _assembled(isa, each, ["nop"])[0]), None)
    if command is None:
        pytest.skip(f"needs GNU as for {isa}")
    alive = list(lines)
    while True:
        data, refused = _assembled(isa, command, alive)
        if not refused:
            break
        alive = [line for number, line in enumerate(alive) if number not in refused]
    elf = ELFFile(BytesIO(data))
    text = elf.get_section_by_name(".text").data()
    at = {symbol.name: symbol["st_value"] for symbol in elf.get_section_by_name(".symtab").iter_symbols()}
    codes = {line: text[at[f"m{n}"] : at[f"m{n + 1}"]] for n, line in enumerate(alive)}
    return {line: codes.get(line, b"") for line in lines}


def _assembled(isa, command, lines):
    """The object file, and the numbers of the lines that are refused."""
    marked = [text for number, line in enumerate(lines) for text in (f"m{number}:", line)]
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "a.s", Path(folder) / "a.o"
        source.write_text("\n".join([*_BEFORE[isa], *marked, f"m{len(lines)}:", *_BEHIND, ""]))
        done = subprocess.run([*command, source, "-o", output], capture_output=True, text=True, check=False)
        numbers = map(int, re.findall(r":(\d+): Error", done.stderr))
        refused = {(number - len(_BEFORE[isa]) - 2) // 2 for number in numbers}
        return (output.read_bytes() if done.returncode == 0 else b""), refused
