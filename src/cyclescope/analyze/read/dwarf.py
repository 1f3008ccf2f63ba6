"""Source lines of machine code, from the debugging information (DWARF) that pyelftools reads."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from ctypes import c_uint64
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from cyclescope.analyze.decode.block import SourcePlace
from cyclescope.analyze.read.binary import ADDED, SYMBOL, SYMBOLS, Binary
from cyclescope.analyze.read.program import Located
from cyclescope.errors import CyclescopeError
from cyclescope.isa.registry import instruction_set
from cyclescope.remarks.reading import ReadAs

if TYPE_CHECKING:
    from elftools.dwarf.compileunit import CompileUnit
    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.dwarf.lineprogram import LineProgram

_MOST = 134_217_728  # 128 MiB of debugging information, compressed ones as they are unpacked
_HEADER = Struct("<IIQQQQIIQQ")  # of a section: its size is the sixth


class _Row(NamedTuple):
    """Code from an address on is of a place; None behind the end of a sequence."""

    address: int
    place: SourcePlace | None


def located(binary: Binary, bases: Mapping[int, int], addresses: Sequence[int]) -> Located:
    """Where in the source the code at some addresses is from; nothing where there is no DWARF.

    `bases` are the addresses of the sections of an object file, by number.
    """
    size = sum(s.size for s in binary.sections if s.name.startswith((".debug_", ".zdebug_")))
    if not addresses or not any(s.name in (".debug_line", ".zdebug_line") for s in binary.sections):
        return Located({})
    if size > _MOST:
        return Located({}, ReadAs.MUCH_DEBUGGING.of(size >> 20))
    try:
        return Located(_places(binary, bases, sorted(addresses)))
    except (CyclescopeError, OSError):
        return Located({}, ReadAs.BAD_DEBUGGING.of())


def _places(binary: Binary, bases: Mapping[int, int], addresses: Sequence[int]) -> dict[int, SourcePlace]:
    moved = Binary(_moved(binary, bases), binary.source) if binary.relocatable else binary
    with moved.opened() as file:
        if any(s.data_size > _MOST for s in file.iter_sections() if s.compressed):
            return {}
        info = file.get_dwarf_info(follow_links=False)
        rows = sorted(
            (row for unit in _units(info, addresses) for row in _rows(info, unit)),
            key=lambda row: (row.address, row.place is not None),
        )
        starts = [row.address for row in rows]
        found = {at: rows[bisect_right(starts, at) - 1] for at in addresses if starts and at >= starts[0]}
    return {at: row.place for at, row in found.items() if row.place is not None}


def _moved(binary: Binary, bases: Mapping[int, int]) -> bytes:
    """An object file whose symbols are where the program has its sections: they begin at 0 in the file."""
    with binary.stream() as stream:
        data = bytearray(stream.read())
    values = [c_uint64(symbol.value + bases.get(symbol.section, 0)).value for symbol in binary.symbols]
    for table in binary.sections:
        if table.kind == SYMBOLS:
            for number, value in enumerate(values):
                at = table.offset + number * SYMBOL.size
                *others, _, size = SYMBOL.unpack_from(data, at)
                SYMBOL.pack_into(data, at, *others, value, size)
    if sums := instruction_set(binary.isa).relocations.sums:
        _relocate(binary, values, data, sums)
    return bytes(data)


def _relocate(
    binary: Binary, values: Sequence[int], data: bytearray, sums: Mapping[int, tuple[int, int]]
) -> None:
    """Apply relocations of debugging information such as RISC-V's, which pyelftools does not know.

    They are sums and differences, because the linker shortens code. Their tables are empty then.
    """
    for number, section in enumerate(binary.sections):
        if not section.name.startswith(".debug_"):
            continue
        for relocation in binary.relocations(number):
            change = sums.get(relocation.kind)
            if change is None:
                continue
            sign, size = change
            at = section.offset + relocation.offset
            old = int.from_bytes(data[at : at + size], "little") if sign else 0
            new = old + (sign or 1) * (values[relocation.symbol] + relocation.addend)
            data[at : at + size] = (new & (1 << 8 * size) - 1).to_bytes(size, "little")
    for number, section in enumerate(binary.sections):
        if section.kind == ADDED and section.name.startswith(".rela.debug_"):
            at = binary.headers + number * _HEADER.size
            name, kind, flags, address, offset, _, *others = _HEADER.unpack_from(data, at)
            _HEADER.pack_into(data, at, name, kind, flags, address, offset, 0, *others)


def _units(info: DWARFInfo, addresses: Sequence[int]) -> Iterator[CompileUnit]:
    """The compilation units that have code at some addresses, as far as the file says."""
    table = info.get_aranges()
    offsets = {table.cu_offset_at_addr(at) for at in addresses} if table and table.entries else {None}
    if None not in offsets:
        yield from (info.get_CU_at(offset) for offset in offsets if offset is not None)
        return
    for unit in info.iter_CUs():
        low = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
        high = unit.get_top_DIE().attributes.get("DW_AT_high_pc")
        if low is None or high is None or _meets(low.value, high, addresses):
            yield unit


def _meets(low: int, high: Any, addresses: Sequence[int]) -> bool:
    """Whether one of the addresses is in a range; its end is an address or a length."""
    end = high.value if high.form == "DW_FORM_addr" else low + high.value
    return addresses[0] < end and addresses[-1] >= low


def _rows(info: DWARFInfo, unit: CompileUnit) -> Iterator[_Row]:
    program = info.line_program_for_CU(unit)
    names: dict[int, str] = {}
    for entry in program.get_entries() if program is not None else ():
        state = entry.state
        if program is None or state is None:
            continue
        if state.end_sequence:
            yield _Row(state.address, None)
            continue
        name = names.get(state.file)
        if name is None:
            name = names[state.file] = _name(program, state.file)
        good = name and 0 < state.line <= sys.maxsize  # what is larger is damaged, and no number in JSON
        yield _Row(state.address, SourcePlace(name, state.line) if good else None)


def _name(program: LineProgram, number: int) -> str:
    """A file's name with its folder, as the compiler had it."""
    header = program.header
    first = 0 if header.version >= 5 else 1
    entry = header.file_entry[number - first]
    folder = entry.dir_index - first
    folders = header.include_directory
    name = _text(entry.name)
    return f"{_text(folders[folder])}/{name}" if 0 <= folder < len(folders) and name[:1] != "/" else name


def _text(name: object) -> str:
    """A name; a damaged file has none."""
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name or "")
