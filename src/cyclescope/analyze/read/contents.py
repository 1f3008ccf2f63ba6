"""Reading what users name: files, standard input, pipes and devices, up to a limit."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from cyclescope.errors import SourceError, unreadable

ELF_MAGIC = b"\x7fELF"
_LONGEST = 33_554_432  # 32 MiB: several times what a compiler writes for the 2 MiB of code that are searched
HEXADECIMAL = re.compile(r"(?:(?:0x|\\x)?[0-9a-fA-F]{2}[\s,;]*)+")  # machine code as digits


def read(path: Path, source: str) -> bytes | Path:
    """The content of a file, of standard input where the path is `-`; the path itself of an ELF file.

    Where there is no such file, the name may be machine code in hexadecimal.

    Of a file that is neither ELF nor text its beginning, which says what it is. Raises UsageError where it
    cannot be read, SourceError where it is too long.
    """
    try:
        if str(path) == "-":
            return _content(sys.stdin.buffer, source)
        with path.open("rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode) and file.read(len(ELF_MAGIC)) == ELF_MAGIC:
                return path
            if file.seekable():
                file.seek(0)
            return _content(file, source)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and HEXADECIMAL.fullmatch(str(path)):
            return str(path).encode()  # the code itself
        raise unreadable(source, error) from error


def _content(file: BinaryIO, source: str) -> bytes:
    content = file.read(_LONGEST + 1)
    if len(content) > _LONGEST and (content.startswith(ELF_MAGIC) or b"\0" not in content):
        raise SourceError(f"{source} is longer than {_LONGEST >> 20} MiB", "give a part of it")
    return content
