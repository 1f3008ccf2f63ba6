"""Object files and executables (ELF) as far as code needs: sections, symbols, relocations.

pyelftools reads them. It is the one place where it meets files that may be damaged: whatever it raises is
one clear line.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from cyclescope.analyze.read.contents import ELF_MAGIC
from cyclescope.errors import CyclescopeError, SourceError
from cyclescope.isa.registry import instruction_sets

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_OTHERS = {
    "EM_386": "32-bit x86",
    "EM_MIPS": "MIPS",
    "EM_PPC": "PowerPC",
    "EM_PPC64": "PowerPC64",
    "EM_S390": "s390x",
    "EM_ARM": "32-bit Arm",
    "EM_LOONGARCH": "LoongArch",
}
CODE, SYMBOLS, ADDED, _DYNAMIC_SYMBOLS = "SHT_PROGBITS", "SHT_SYMTAB", "SHT_RELA", "SHT_DYNSYM"
UNTYPED, FUNCTION, SECTION = "STT_NOTYPE", "STT_FUNC", "STT_SECTION"  # of symbols
_STUBS = (".plt", ".iplt")
_LARGEST = 536_870_912  # 512 MiB of a section
SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_NUMBERED = re.compile("\\.?L([0-9]+)[\x01\x02][0-9]+")  # `1:` in texts, as assemblers name it


class ElfSection(NamedTuple):
    """A section, or a segment of a file without sections (named after its number)."""

    name: str
    kind: str
    executable: bool
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int = 0

    @property
    def is_code(self) -> bool:
        """Whether it holds code that is in the file, and not stubs: a linker's jumps to other files."""
        return self.kind == CODE and self.executable and self.size > 0 and not self.name.startswith(_STUBS)


class Symbol(NamedTuple):
    """A symbol; `section` is the number of its section, 0 where it is undefined.

    Other files see those that are not `local`.
    """

    name: str
    kind: str
    section: int
    value: int
    size: int
    local: bool = False

    @property
    def is_function(self) -> bool:
        """Whether code begins here that others call: assembly text that people write often has no types."""
        return self.kind == FUNCTION or (self.kind == UNTYPED and not self.local)


class Relocation(NamedTuple):
    """An address in a section that a symbol is put into."""

    offset: int
    kind: int
    symbol: int
    addend: int


class Binary:
    """An ELF file. Raises SourceError where it is none, cut off, or for another kind of machine."""

    def __init__(self, content: bytes | Path, source: str) -> None:
        self.source = source
        self._content = content
        with self.opened() as file:
            self.isa = self._machine(file)
            self.relocatable = file["e_type"] == "ET_REL"
            self.headers: int = file["e_shoff"]  # where those of sections are
            self.sections = list(_sections(file) if file["e_shoff"] else _segments(file))
        self.symbols = self._symbols()

    @contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """The file as a stream of bytes."""
        if isinstance(self._content, bytes):
            yield BytesIO(self._content)
        else:
            with self._content.open("rb") as file:
                yield file

    @contextmanager
    def opened(self) -> Iterator[ELFFile]:
        """The file as pyelftools has it. All that fails inside is a SourceError."""
        from elftools.elf.elffile import ELFFile

        with self.stream() as stream, self._guarded():
            if stream.read(len(ELF_MAGIC)) != ELF_MAGIC:
                raise SourceError(f"{self.source} is no ELF file")
            yield ELFFile(stream)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Damaged files make libraries fail in every way, an offset beyond all files OSError too."""
        try:
            yield
        except CyclescopeError:
            raise
        except Exception as error:
            raise self._damaged() from error

    def _machine(self, file: ELFFile) -> str:
        number = _machine_number(file)
        machines = {record.elf: record.name for record in instruction_sets() if record.elf}
        if file.elfclass == 64 and file.little_endian and number in machines:
            return machines[number]
        name = _OTHERS.get(file["e_machine"], f"machine {number}")
        known = ", ".join(machines.values())
        raise SourceError(f"{self.source} is an ELF file for {name}", f"files for {known} can be read")

    def _damaged(self) -> SourceError:
        return SourceError(f"{self.source} is a truncated or damaged ELF file", "build or copy it again")

    def content(self, section: ElfSection) -> bytes:
        """The bytes of a section as they are in the file."""
        if section.size > _LARGEST:
            raise SourceError(f"{self.source} has a section of {section.size >> 20} MiB", "that is too much")
        with self.stream() as stream:
            end = stream.seek(0, 2)
            if section.offset + section.size > end:
                raise self._damaged()
            stream.seek(section.offset)
            return stream.read(section.size)

    def _symbols(self) -> list[Symbol]:
        """All symbols of the file's own table, else of the dynamic linker's."""
        kinds = [SYMBOLS, _DYNAMIC_SYMBOLS]
        tables = sorted((s for s in self.sections if s.kind in kinds), key=lambda s: kinds.index(s.kind))
        if not tables:
            return []
        if not tables[0].link < len(self.sections):
            raise self._damaged()
        strings = self.content(self.sections[tables[0].link])
        kinds_by_number = _symbol_kinds()
        return [
            Symbol(
                _NUMBERED.sub(r"\1", _string(strings, name)), kinds_by_number.get(info & 15, ""), section,
                value, size, info >> 4 == 0,
            )
            for name, info, _, section, value, size in self._table(SYMBOL, tables[0])
        ]  # fmt: skip

    def _table(self, form: struct.Struct, section: ElfSection) -> Iterator[tuple[int, ...]]:
        """Entries of a section; there are too many for a library that makes an object of each."""
        content = self.content(section)
        return form.iter_unpack(content[: len(content) // form.size * form.size])

    def relocations(self, number: int) -> list[Relocation]:
        """The relocations of a section, by its number."""
        return [
            Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend)
            for table in self.sections
            if table.kind == ADDED and table.info == number
            for offset, info, addend in self._table(_RELOCATION, table)
        ]


def _machine_number(file: ELFFile) -> int:
    """That of the header: pyelftools has a name in its place where it knows one."""
    from elftools.elf.enums import ENUM_E_MACHINE

    machine = file["e_machine"]
    return machine if isinstance(machine, int) else int(ENUM_E_MACHINE[machine])


def _symbol_kinds() -> dict[int, str]:
    """Names of kinds of symbols by number."""
    from elftools.elf.enums import ENUM_ST_INFO_TYPE

    return {number: name for name, number in ENUM_ST_INFO_TYPE.items() if isinstance(number, int)}


def _sections(file: ELFFile) -> Iterator[ElfSection]:
    from elftools.elf.constants import SH_FLAGS

    for section in file.iter_sections():
        header = section.header
        executable = bool(header["sh_flags"] & SH_FLAGS.SHF_EXECINSTR)
        fields = ("sh_addr", "sh_offset", "sh_size", "sh_link", "sh_info", "sh_addralign")
        rest = (header[field] for field in fields)
        yield ElfSection(section.name, str(header["sh_type"]), executable, *rest)


def _segments(file: ELFFile) -> Iterator[ElfSection]:
    """What is loaded and executable, of a file that was stripped of its sections."""
    from elftools.elf.constants import P_FLAGS

    for number, segment in enumerate(file.iter_segments()):
        header = segment.header
        if header["p_type"] == "PT_LOAD" and header["p_flags"] & P_FLAGS.PF_X:
            place = header["p_vaddr"], header["p_offset"], header["p_filesz"]
            yield ElfSection(f"segment {number}", CODE, True, *place, 0, 0)


def _string(strings: bytes, offset: int) -> str:
    end = strings.find(b"\0", offset)
    return strings[offset : end if end >= 0 else None].decode(errors="replace")
