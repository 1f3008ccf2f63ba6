"""ELF files, as far as code needs: sections, symbols, relocations. 64 bits, little endian."""

from __future__ import annotations

import struct
from typing import NamedTuple

from cyclescope.errors import SourceError

MAGIC = b"\x7fELF"
MACHINES = {62: "x86-64", 183: "aarch64", 243: "riscv64"}
OTHERS = {
    3: "32-bit x86",
    8: "MIPS",
    20: "PowerPC",
    21: "PowerPC64",
    22: "s390x",
    40: "32-bit Arm",
    258: "LoongArch",
}
RELOCATABLE = 1
EXECUTABLE = 4  # section flag
CODE, SYMBOLS, DYNAMIC_SYMBOLS, ADDED = 1, 2, 11, 4  # section types: PROGBITS, SYMTAB, DYNSYM, RELA
FUNCTION, SECTION = 2, 3  # symbol types
_LOADED, _RUN = 1, 1  # PT_LOAD, PF_X
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")


class Section(NamedTuple):
    """A section, or a segment of a file without sections (named after its number)."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int

    @property
    def is_code(self) -> bool:
        """Whether it holds code that is in the file."""
        return self.kind == CODE and bool(self.flags & EXECUTABLE) and self.size > 0


class Symbol(NamedTuple):
    """A symbol; `section` is the number of its section, 0 where it is undefined."""

    name: str
    kind: int
    section: int
    value: int
    size: int


class Relocation(NamedTuple):
    """An address in a section that a symbol is put into."""

    offset: int
    kind: int
    symbol: int
    addend: int


class Elf:
    """An ELF file. Raises SourceError where it is none, cut off, or for another kind of machine."""

    def __init__(self, data: bytes, source: str) -> None:
        self._data = data
        self._source = source
        if not data.startswith(MAGIC):
            raise SourceError(f"{source} is no ELF file")
        if len(data) < _HEADER.size:
            raise self._cut()
        head = _HEADER.unpack_from(data)
        self.isa = self._machine(head)
        self.relocatable = head[1] == RELOCATABLE
        self.sections = (
            self._sections(*head[6:7], *head[11:14]) if head[6] else self._segments(head[5], head[10])
        )
        self.symbols = self._symbols()

    def _machine(self, head: tuple[int, ...]) -> str:
        machine = head[2]
        if self._data[4:6] == b"\x02\x01" and machine in MACHINES:
            return MACHINES[machine]
        name = OTHERS.get(machine, f"machine {machine}")
        known = ", ".join(MACHINES.values())
        raise SourceError(f"{self._source} is an ELF file for {name}", f"files for {known} can be read")

    def _cut(self) -> SourceError:
        return SourceError(f"{self._source} is a truncated or damaged ELF file", "build or copy it again")

    def content(self, section: Section) -> bytes:
        """The bytes of a section."""
        found = self._data[section.offset : section.offset + section.size]
        if len(found) != section.size:
            raise self._cut()
        return found

    def _table(self, form: struct.Struct, section: Section) -> list[tuple[int, ...]]:
        content = self.content(section)
        return list(form.iter_unpack(content[: len(content) // form.size * form.size]))

    def _sections(self, offset: int, size: int, count: int, names: int) -> list[Section]:
        data = self._data
        if size != _SECTION.size or offset + count * size > len(data) or names >= max(count, 1):
            raise self._cut()
        raw = [_SECTION.unpack_from(data, offset + i * size) for i in range(count)]
        plain = [Section("", r[1], r[2], r[3], r[4], r[5], r[6], r[7]) for r in raw]
        strings = self.content(plain[names]) if raw else b""
        return [s._replace(name=self._string(strings, r[0])) for s, r in zip(plain, raw, strict=True)]

    def _segments(self, offset: int, count: int) -> list[Section]:
        """What is loaded and executable, of a file that was stripped of its sections."""
        if offset + count * _SEGMENT.size > len(self._data):
            raise self._cut()
        raw = [_SEGMENT.unpack_from(self._data, offset + i * _SEGMENT.size) for i in range(count)]
        return [
            Section(f"segment {i}", CODE, EXECUTABLE, r[3], r[2], r[5], 0, 0)
            for i, r in enumerate(raw)
            if r[0] == _LOADED and r[1] & _RUN
        ]

    @staticmethod
    def _string(strings: bytes, offset: int) -> str:
        end = strings.find(b"\0", offset)
        return strings[offset : end if end >= 0 else None].decode(errors="replace")

    def _symbols(self) -> list[Symbol]:
        kinds = [SYMBOLS, DYNAMIC_SYMBOLS]
        tables = sorted((s for s in self.sections if s.kind in kinds), key=lambda s: kinds.index(s.kind))
        if not tables:
            return []
        if not tables[0].link < len(self.sections):
            raise self._cut()
        strings = self.content(self.sections[tables[0].link])
        return [
            Symbol(self._string(strings, name), info & 15, section, value, size)
            for name, info, _, section, value, size in self._table(_SYMBOL, tables[0])
        ]

    def relocations(self, number: int) -> list[Relocation]:
        """The relocations of a section, by its number."""
        found = []
        for table in self.sections:
            if table.kind == ADDED and table.info == number:
                for offset, info, addend in self._table(_RELOCATION, table):
                    found.append(Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend))
        return found
