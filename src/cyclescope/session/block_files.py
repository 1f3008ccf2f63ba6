"""Files of basic blocks: one per line, or a table; and files of blocks that were timed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from cyclescope.analyze.choose.source import read_blocks
from cyclescope.analyze.read.contents import HEXADECIMAL
from cyclescope.errors import CyclescopeError, UsageError, shortened, unreadable, unwritable
from cyclescope.host.files import write_whole
from cyclescope.measure.blocks import CLEAN, FAILED, BlockTiming
from cyclescope.remarks.blocks import Untimed
from cyclescope.session.blocks import KERNELS, NOTIONS, UNROLLED, ProgramBlock, readable

CODE_COLUMNS = ("hex", "block", "code", "bytes", "code_hex", "asm", "assembly")  # the first that a table has
TIMING_COLUMNS = (
    "hex", "notion", "cycles", "spread", "linearity", "verdict", "reason", "pages", "isa", "where",
    "address", "text",
)  # fmt: skip
_LARGEST = 1 << 30  # bytes of a file: several million blocks
_BYTES = re.compile(r"(?:0x|\\x)?([0-9a-fA-F]{2})")
_TOGETHER = 500  # blocks of assembly in one call of the assembler


class Timed(msgspec.Struct, frozen=True):
    """A block with the time it was found to take, in a notion."""

    block: ProgramBlock
    notion: str
    timing: BlockTiming


class Written(msgspec.Struct, frozen=True):
    """A block as it is in a file."""

    text: str
    where: str


class BlockFile(msgspec.Struct, frozen=True):
    """The blocks of a file, equal ones once, and what is wrong with other lines, one text per line."""

    blocks: tuple[ProgramBlock, ...]
    problems: tuple[str, ...] = ()


def read_block_file(path: Path, isa: str) -> BlockFile:
    """Blocks of machine code in hexadecimal or assembly (instructions separated by `;`).

    One per line, or in the first column of a CSV table that is called as one of CODE_COLUMNS. Empty lines and
    lines that begin with `#` are passed over. Raises UsageError for a file that cannot be read or has no
    blocks.
    """
    lines = list(_written(path))
    if not lines:
        raise UsageError(f"{path} has no blocks", "write one per line: machine code in hexadecimal, or text")
    codes, problems = _codes(lines, isa)
    blocks: dict[bytes, ProgramBlock] = {}
    for one, code in codes:
        blocks.setdefault(code, ProgramBlock(code, one.where, isa))
    if not blocks:
        raise UsageError(f"{path} has no block that can be read: {problems[0]}")
    return BlockFile(tuple(blocks.values()), tuple(problems))


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{path} is longer than {_LARGEST >> 20} MiB", "give a part of it")
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    if b"\0" in data:
        raise UsageError(f"{path} is binary", "give text: a block per line, or a CSV table")
    return data.decode("utf-8-sig", errors="replace")


def _written(path: Path) -> Iterator[Written]:
    """The blocks of a file with their places."""
    text = _text(path)
    column = _column(text)
    if column:
        for number, row in _rows(path, text):
            if (row.get(column) or "").strip():
                yield Written(row[column].strip(), f"{path}, line {number}")
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield Written(line.strip(), f"{path}, line {number}")


def _header(text: str) -> list[str]:
    first = next((line for line in text.splitlines() if line.strip()), "")
    return [name.strip() for name in next(csv.reader([first]), [])]


def _column(text: str) -> str:
    """The column of a table that has the blocks, "" for what is no table."""
    names = _header(text)
    return next((name for name in CODE_COLUMNS if name in names), "")


def _rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a table with the lines that they end in."""
    reader = csv.DictReader(io.StringIO(text), skipinitialspace=True)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise UsageError(f"{path}, line {reader.line_num}: no CSV ({error})") from error


# --- to machine code -------------------------------------------------------------------------------


def _codes(lines: Sequence[Written], isa: str) -> tuple[list[tuple[Written, bytes]], list[str]]:
    """Machine code of every line that has some, and what is wrong with the others."""
    good, problems = [], []
    for one, code in zip(lines, machine_codes(lines, isa), strict=True):
        why = code if isinstance(code, str) else readable(code, isa)
        if why or isinstance(code, str):
            problems.append(f"{one.where}: {why} ({shortened(one.text)})")
        else:
            good.append((one, code))
    return good, problems


def machine_codes(lines: Sequence[Written], isa: str) -> list[bytes | str]:
    """The machine code of every line, or why there is none."""
    found: dict[str, bytes | str] = {}
    texts = []
    for one in lines:
        if HEXADECIMAL.fullmatch(one.text):
            found[one.where] = bytes.fromhex("".join(_BYTES.findall(one.text)))
        else:
            texts.append(one)
    for first in range(0, len(texts), _TOGETHER):
        found |= _assembled(texts[first : first + _TOGETHER], isa)
    return [found[one.where] for one in lines]


def _assembled(lines: Sequence[Written], isa: str) -> dict[str, bytes | str]:
    """All in one call; where something is refused each half alone, down to the line that is."""
    if not lines:
        return {}
    marked = (
        f"# LLVM-MCA-BEGIN b{n}\n{one.text.replace(';', chr(10))}\n# LLVM-MCA-END b{n}"
        for n, one in enumerate(lines)
    )
    try:
        blocks = read_blocks("\n".join(marked) + "\n", isa, source="the blocks")
        if len(blocks) == len(lines):
            codes = (b"".join(i.code for i in block) for block in blocks)
            return {one.where: code for one, code in zip(lines, codes, strict=True)}
        why = "no instructions"
    except CyclescopeError as error:
        why = error.message
    if len(lines) == 1:
        return {lines[0].where: re.sub(r"^the blocks(, line \d+)?: ", "", why)}
    half = len(lines) // 2
    return _assembled(lines[:half], isa) | _assembled(lines[half:], isa)


# --- blocks that were timed ------------------------------------------------------------------------


def read_timings(path: Path, isa: str) -> tuple[list[Timed], list[str]]:
    """Timed blocks that `write_timings` or another harness wrote, and what is wrong with other lines.

    A table without verdicts may have `clean` (1 or 0); without notions blocks are unrolled. Raises UsageError
    for what is no such table.
    """
    text = _text(path)
    names = _header(text)
    if "hex" not in names or "cycles" not in names:
        raise UsageError(f"{path} has no columns hex and cycles", "give a table of timed blocks")
    found, problems = [], []
    for number, row in _rows(path, text):
        try:
            found.append(_timed(row, f"{path}, line {number}", isa))
        except (ValueError, TypeError, CyclescopeError) as error:
            problems.append(f"{path}, line {number}: {error}")
    if not found:
        raise UsageError(f"{path} has no timed block", problems[0] if problems else "")
    return found, problems


def _timed(row: dict[str, str], where: str, isa: str) -> Timed:
    """A row. Raises ValueError."""
    code = bytes.fromhex(row["hex"].strip())
    if why := readable(code, row.get("isa") or isa):
        raise ValueError(why)
    notion = row.get("notion") or UNROLLED
    if notion not in (*NOTIONS, KERNELS):
        raise ValueError(f"no notion {notion!r}")
    cycles = float(row.get("cycles") or 0)
    verdict = row.get("verdict") or (CLEAN if row.get("clean", "1") == "1" else FAILED)
    if not 0 <= cycles < 1e9 or (verdict == CLEAN and not cycles):
        raise ValueError(f"{cycles:g} cycles")
    timing = BlockTiming(
        cycles, float(row.get("spread") or 0), float(row.get("linearity") or 1), verdict,
        row.get("reason") or ("" if verdict == CLEAN else Untimed.NOT_CLEAN.value),
        int(row.get("pages") or 0),
    )  # fmt: skip
    address = int(row.get("address") or "0", 0)
    return Timed(
        ProgramBlock(code, row.get("where") or where, row.get("isa") or isa, address), notion, timing
    )


def write_timings(path: Path, rows: Sequence[dict[str, object]], more: Sequence[str] = ()) -> None:
    """A CSV table of TIMING_COLUMNS and `more` columns. Raises UsageError where it cannot be written."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [*TIMING_COLUMNS, *more], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    try:
        write_whole(path, text.getvalue().encode())
    except OSError as error:
        raise unwritable(path, error) from error
