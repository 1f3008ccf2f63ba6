"""Object files and executables as programs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from cyclescope.analyze.decode.decoder import Reference
from cyclescope.analyze.read.binary import SECTION, Binary, Relocation, Symbol
from cyclescope.analyze.read.program import SECTION_PLACES, Function, Located, Piece, Program
from cyclescope.errors import SourceError
from cyclescope.isa.registry import instruction_set

# x86-64: fields that count from their own address, and those of an entry in the global offset table.


def bases(binary: Binary) -> dict[int, int]:
    """The address of every section with code, by its number; in object files they follow each other."""
    found, at = {}, 0
    for number, section in enumerate(binary.sections):
        if not section.is_code:
            continue
        if not binary.relocatable:
            found[number] = section.address
            continue
        found[number] = at
        at = -(-(at + section.size) // SECTION_PLACES) * SECTION_PLACES
    return found


def alignment(binary: Binary) -> int:
    """Bytes that the sections with code are aligned to, of which a linker makes addresses; 0 where it has."""
    asked = [one.alignment for one in binary.sections if one.is_code and one.size]
    return min(asked, default=0) if binary.relocatable else 0


def object_program(content: bytes | Path, source: str) -> Program:
    """The program of an ELF file. Raises SourceError where it cannot be read or has no code."""
    binary = Binary(content, source)
    places = bases(binary)
    if not places:
        is_later = any(one.name.startswith(".gnu.lto_") for one in binary.sections)
        remedy = "compile it without -flto" if is_later else "give an object file or an executable"
        raise SourceError(f"{source} has no code", remedy)
    return Program(
        binary.isa,
        source,
        pieces(binary, places),
        functions=tuple(_functions(binary, places)),
        labels=_labels(binary, places),
        references=references(binary, places),
        locate=partial(_located, binary, places),
        alignment=alignment(binary),
    )


def _located(binary: Binary, places: dict[int, int], addresses: Sequence[int]) -> Located:
    from cyclescope.analyze.read.dwarf import located  # slow to import

    return located(binary, places, addresses)


def pieces(binary: Binary, places: dict[int, int]) -> tuple[Piece, ...]:
    """The code of a file, by address."""
    found = [
        Piece(binary.sections[n].name, at, binary.content(binary.sections[n])) for n, at in places.items()
    ]
    return tuple(sorted(found, key=lambda piece: piece.address))


def symbol_address(binary: Binary, places: dict[int, int], symbol: Symbol) -> int | None:
    """Where a symbol is in the program, None outside the code."""
    if symbol.section not in places:
        return None
    return symbol.value + (places[symbol.section] if binary.relocatable else 0)


def _functions(binary: Binary, places: dict[int, int]) -> list[Function]:
    """Named functions, with all names of each; one without a size ends where the next begins."""
    found: dict[str, tuple[int, int]] = {}
    ends = {n: places[n] + binary.sections[n].size for n in places}
    for symbol in binary.symbols:
        at = symbol_address(binary, places, symbol)
        if at is not None and symbol.is_function and at < ends[symbol.section]:
            found.setdefault(symbol.name, (at, symbol.size))
    following = dict(pairwise(sorted({*(at for at, _ in found.values()), *ends.values()})))
    functions = [
        Function(name, at, at + size if size else following.get(at, at)) for name, (at, size) in found.items()
    ]
    return sorted(functions, key=lambda one: (one.address, -len(one.name), one.name))


def _labels(binary: Binary, places: dict[int, int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for symbol in binary.symbols:
        at = symbol_address(binary, places, symbol)
        made_up = symbol.name.startswith("$") or symbol.name.endswith(" ")  # the latter by GNU as
        if at is not None and symbol.name and symbol.kind != SECTION and not made_up:
            found.setdefault(at, symbol.name)
    return found


def references(binary: Binary, places: dict[int, int]) -> dict[int, Reference]:
    """What relocations put into the code, by address."""
    if not binary.relocatable:
        return {}
    found = {}
    hints = instruction_set(binary.isa).relocations.hints
    for number, base in places.items():
        for relocation in binary.relocations(number):
            if relocation.symbol < len(binary.symbols) and relocation.kind not in hints:
                found[base + relocation.offset] = _reference(binary, places, relocation)
    return found


def _reference(binary: Binary, places: dict[int, int], relocation: Relocation) -> Reference:
    symbol = binary.symbols[relocation.symbol]
    name = symbol.name
    if symbol.kind == SECTION and symbol.section < len(binary.sections):
        name = binary.sections[symbol.section].name
    known = instruction_set(binary.isa).relocations.relative
    relative, suffix = relocation.kind in known, known.get(relocation.kind, "")
    target = symbol_address(binary, places, symbol)
    return Reference(name + suffix, relocation.addend, relative, target)
