"""Object files and executables as programs."""

from __future__ import annotations

from itertools import pairwise

from cyclescope.analyze.decode import Reference
from cyclescope.analyze.elf import FUNCTION, SECTION, Elf, Relocation, Symbol
from cyclescope.analyze.program import Function, Piece, Program
from cyclescope.errors import SourceError

_ALIGNED = 64
# x86-64: fields that count from their own address, and those of an entry in the global offset table.
_HINTS = {"riscv64": (43, 51)}  # how a linker may shorten the code
_RELATIVE = {2: "", 4: "", 9: "@got", 13: "", 15: "", 22: "@gottpoff", 24: "", 41: "@got", 42: "@got"}


def bases(elf: Elf) -> dict[int, int]:
    """The address of every section with code, by its number; in object files they follow each other."""
    found, at = {}, 0
    for number, section in enumerate(elf.sections):
        if not section.is_code:
            continue
        if not elf.relocatable:
            found[number] = section.address
            continue
        found[number] = at
        at = -(-(at + section.size) // _ALIGNED) * _ALIGNED
    return found


def object_program(data: bytes, source: str) -> Program:
    """The program of an ELF file. Raises SourceError where it cannot be read or has no code."""
    elf = Elf(data, source)
    places = bases(elf)
    if not places:
        raise SourceError(f"{source} has no code", "give an object file or an executable")
    return Program(
        elf.isa,
        source,
        pieces(elf, places),
        functions=tuple(_functions(elf, places)),
        labels=_labels(elf, places),
        references=references(elf, places),
    )


def pieces(elf: Elf, places: dict[int, int]) -> tuple[Piece, ...]:
    """The code of a file, by address."""
    found = [Piece(elf.sections[n].name, at, elf.content(elf.sections[n])) for n, at in places.items()]
    return tuple(sorted(found, key=lambda piece: piece.address))


def symbol_address(elf: Elf, places: dict[int, int], symbol: Symbol) -> int | None:
    """Where a symbol is in the program, None outside the code."""
    if symbol.section not in places:
        return None
    return symbol.value + (places[symbol.section] if elf.relocatable else 0)


def _functions(elf: Elf, places: dict[int, int]) -> list[Function]:
    """Named functions, with all names of each; one without a size ends where the next begins."""
    found: dict[str, tuple[int, int]] = {}
    for symbol in elf.symbols:
        at = symbol_address(elf, places, symbol)
        if at is not None and symbol.kind == FUNCTION:
            found.setdefault(symbol.name, (at, symbol.size))
    ends = {places[n] + elf.sections[n].size for n in places}
    following = dict(pairwise(sorted({*(at for at, _ in found.values()), *ends})))
    functions = [
        Function(name, at, at + size if size else following.get(at, at)) for name, (at, size) in found.items()
    ]
    return sorted(functions, key=lambda one: (one.address, -len(one.name), one.name))


def _labels(elf: Elf, places: dict[int, int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for symbol in elf.symbols:
        at = symbol_address(elf, places, symbol)
        if at is not None and symbol.name and symbol.kind != SECTION and not symbol.name.startswith("$"):
            found.setdefault(at, symbol.name)
    return found


def references(elf: Elf, places: dict[int, int]) -> dict[int, Reference]:
    """What relocations put into the code, by address."""
    if not elf.relocatable:
        return {}
    found = {}
    for number, base in places.items():
        for relocation in elf.relocations(number):
            if relocation.symbol < len(elf.symbols) and relocation.kind not in _HINTS.get(elf.isa, ()):
                found[base + relocation.offset] = _reference(elf, places, relocation)
    return found


def _reference(elf: Elf, places: dict[int, int], relocation: Relocation) -> Reference:
    symbol = elf.symbols[relocation.symbol]
    name = symbol.name
    if symbol.kind == SECTION and symbol.section < len(elf.sections):
        name = elf.sections[symbol.section].name
    relative = elf.isa == "x86-64" and relocation.kind in _RELATIVE
    suffix = _RELATIVE[relocation.kind] if relative else ""
    target = symbol_address(elf, places, symbol)
    return Reference(name + suffix, relocation.addend, relative, target)
