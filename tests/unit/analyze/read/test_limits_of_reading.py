"""Both sides of what is read: bytes of files, lines and characters that tell, steps in front of a block."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.decode.decoder import Flow, FlowStep, decoder
from cyclescope.analyze.read import assembler
from cyclescope.analyze.read.assembler import text_program
from cyclescope.analyze.read.assemblers import Tool, tools
from cyclescope.analyze.read.binary import CODE, Binary, ElfSection
from cyclescope.analyze.read.contents import read
from cyclescope.analyze.read.objects import object_program
from cyclescope.analyze.read.program import Code, Piece, Program
from cyclescope.analyze.read.syntax import likely_isa
from cyclescope.errors import SourceError, UnsupportedInstruction

CC = shutil.which("cc")
needs_assembler = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
needs_compiler = pytest.mark.skipif(CC is None, reason="needs a C compiler")
MIB = 1 << 20
FUNCTIONS = "long f(long x) { return x + 1; }\nlong g(long x) { return x * x; }\n"


def compiled(folder, text, *options, name="k.c"):
    source, output = folder / name, folder / "out"
    source.write_text(text)
    subprocess.run([CC, "-O1", *options, str(source), "-o", str(output)], check=True)
    return output.read_bytes()


def resized(data, name, size):
    """An ELF file that says that a section has so many bytes."""
    number = next(n for n, one in enumerate(Binary(data, "k.o").sections) if one.name == name)
    at = int.from_bytes(data[40:48], "little") + 64 * number + 32
    return data[:at] + size.to_bytes(8, "little") + data[at + 8 :]


# --- files ----------------------------------------------------------------------------------------


class Stream:
    """Standard input of so many bytes: new lines, then zeros from a position on."""

    def __init__(self, length, zeros):
        self.buffer, self._left, self._text = self, length, zeros

    def read(self, size):
        size = min(size, self._left)
        text = min(size, self._text)
        self._left, self._text = self._left - size, self._text - text
        return b"\n" * text + bytes(size - text) if text else bytes(size)


def piped(monkeypatch, length, zeros):
    monkeypatch.setattr("sys.stdin", Stream(length, zeros))
    return read(Path("-"), "standard input")


def test_a_text_has_32_mebibytes_at_most(monkeypatch):
    assert len(piped(monkeypatch, 32 * MIB, 33 * MIB)) == 32 * MIB
    with pytest.raises(SourceError, match="standard input is longer than 32 MiB: give a part of it"):
        piped(monkeypatch, 32 * MIB + 1, 33 * MIB)


def test_of_what_is_binary_the_beginning_is_enough(monkeypatch):
    """As much is read of what has no end; what looks like text is too long."""
    assert len(piped(monkeypatch, 33 * MIB, 31 * MIB)) == 32 * MIB + 1
    with pytest.raises(SourceError, match="longer than"):
        piped(monkeypatch, 33 * MIB, 33 * MIB)


@pytest.mark.parametrize(
    ("number", "name"),
    [(3, "32-bit x86"), (8, "MIPS"), (20, "PowerPC"), (21, "PowerPC64"), (22, "s390x"), (40, "32-bit Arm"),
     (258, "LoongArch")],
)  # fmt: skip
def test_machines_of_elf_files_by_name(number, name):
    data = b"\x7fELF\x02\x01\x01" + bytes(11) + number.to_bytes(2, "little") + bytes(60)
    with pytest.raises(SourceError, match=f"k.o is an ELF file for {name}: files for"):
        Binary(data, "k.o")


@pytest.mark.parametrize(
    ("size", "said"), [(512, "truncated or damaged"), (513, "a section of 513 MiB: that is")]
)
def test_a_section_has_half_a_gibibyte_at_most(size, said):
    data = b"\x7fELF\x02\x01\x01" + bytes(11) + b"\x3e\0" + bytes(60)
    with pytest.raises(SourceError, match=said):
        Binary(data, "k.o").content(ElfSection(".text", CODE, True, 0, 0, size * MIB, 0, 0))


@needs_compiler
def test_debugging_information_has_128_mebibytes_at_most(tmp_path):
    """As the file says: what is not there is not missed here."""
    path, data = tmp_path / "k.o", compiled(tmp_path, FUNCTIONS, "-c", "-g", "-gz=none")
    path.write_bytes(resized(data, ".debug_info", 127 * MIB))
    block = read_block(path, choice=Choice(function="f"))
    assert ({one.place.line for one in block}, block.notes) == ({1}, ())
    path.write_bytes(resized(data, ".debug_info", 129 * MIB))
    block = read_block(path, choice=Choice(function="f"))
    assert {one.place for one in block} == {None}
    assert block.notes == ("129 MiB of debugging information are too many: no source lines",)


@needs_compiler
def test_functions_of_a_stripped_library_are_those_it_exports(tmp_path):
    data = compiled(tmp_path, FUNCTIONS, "-shared", "-nostdlib", "-fPIC", "-s")
    assert [one.name for one in object_program(data, "k.so").functions] == ["f", "g"]


@needs_compiler
@pytest.mark.parametrize(("nops", "second"), [(20, 64), (64, 64), (65, 128)])
def test_sections_begin_at_lines_of_the_cache(nops, second, tmp_path):
    """So loops lie in them as they did."""
    text = f'.text\n.skip {nops}, 0x90\n.section .text.g,"ax"\nret\n'
    program = object_program(compiled(tmp_path, text, "-c", name="k.s"), "k.o")
    assert [piece.address for piece in program.pieces] == [0, second]


# --- text -----------------------------------------------------------------------------------------

LOAD = "ldr x0, [x1, x2]"


@pytest.mark.parametrize(("lines", "isa"), [(1999, "aarch64"), (2000, "")])
def test_two_thousand_lines_tell_the_instruction_set(lines, isa):
    assert likely_isa([*["# nothing"] * lines, LOAD]) == isa


@pytest.mark.parametrize(("blanks", "isa"), [(200 - len(LOAD), "aarch64"), (200, "")])
def test_two_hundred_characters_of_a_line_do(blanks, isa):
    assert likely_isa([" " * blanks + LOAD]) == isa


@needs_assembler
@pytest.mark.parametrize(("between", "count"), [(0, 1), (4, 1), (5, 2)])
def test_the_address_of_a_table_is_made_in_two_steps_of_five_lines(between, count):
    """Further apart they are two uses of it, of two jumps."""
    load, nop = "mov rax, .Ltable[rip]\n", "nop\n"
    text = f"{load}{between * nop}{load}jmp rax\n.L1: ret\n.Ltable: .quad .L1\n"
    assert len(text_program(text, "text").tables) == count


@needs_assembler
def test_what_is_refused_line_after_line_is_put_otherwise(tmp_path, monkeypatch):
    """An assembler may stop at the first line that it does not know."""
    path = tmp_path / "as"
    path.write_text(
        "#!/bin/sh\nfor one; do case $one in *text.s) file=$one;; esac; done\n"
        "number=$(grep -n '[.]unknown' $file | head -1 | cut -d: -f1)\n"
        'if [ -n "$number" ]; then echo "$file:$number: Error: no"; exit 1; fi\n'
        f'exec {shutil.which("as")} "$@"\n'
    )
    path.chmod(0o755)
    monkeypatch.setattr(assembler, "tools", lambda _: (Tool("made", (str(path),), False, True),))
    block = read_block("nop\n" + ".unknown\n" * 13)
    assert block.notes == ("lines 2, 3, 4, 5, 6, 7, 8, 9 and 5 more: .unknown left out, made refuses it",)


@needs_assembler
def test_a_header_that_is_refused_again_and_again_is_said(tmp_path, monkeypatch):
    path = tmp_path / "as"
    path.write_text("#!/bin/sh\necho 'x.s:1: Error: no'\nexit 1\n")
    path.chmod(0o755)
    monkeypatch.setattr(assembler, "tools", lambda _: (Tool("made", (str(path),), False, True),))
    with pytest.raises(UnsupportedInstruction, match=r"text: made fails: x\.s:1: Error: no"):
        read_block("nop")


# --- programs -------------------------------------------------------------------------------------


class Reached(Exception):
    """An instruction was read."""


class Decoding:
    """A decoder that tells when it is asked for an instruction."""

    isa = "x86-64"

    def steps(self, code, address):
        return iter(())

    def instruction(self, *_):
        raise Reached("an instruction is read")


@pytest.mark.parametrize(
    ("count", "error", "said"),
    [
        (20_000, Reached, "an instruction is read"),
        (20_001, SourceError, "20001 instructions, more than 20000: choose a smaller part"),
    ],
)
def test_a_block_has_twenty_thousand_instructions_at_most(count, error, said):
    code = Code(Program("x86-64", "code", (Piece("", 0, b"\x90"),)), Decoding())
    with pytest.raises(error, match=said):
        code.block([FlowStep(0, 1, Flow.NEXT, None)] * count, "all")


@pytest.mark.parametrize(("between", "form"), [(199, "VADD_VV@e64,m4"), (200, "VADD_VV")])
def test_a_type_is_looked_for_in_two_hundred_instructions(between, form):
    set_type, other = bytes.fromhex("d7f7a60d"), bytes.fromhex("93061600")  # vsetvli a5, a3, e64, m4; addi
    add, branch = bytes.fromhex("57040c03"), bytes.fromhex("e39e06fe")  # vadd.vv; bnez a3, -4
    block = read_block(set_type + other * between + add + branch, "riscv64")
    assert block.instructions[0].form.id == form


@needs_compiler
def test_a_relocation_by_a_section_names_it(tmp_path):
    text = ".text\nmovsd .Lhere(%rip), %xmm0\n.section .rodata\n.double 1\n.Lhere: .double 2\n"
    program = object_program(compiled(tmp_path, text, "-c", name="k.s"), "k.o")
    (one,) = (
        Code(program, decoder(program.isa)).block(Code(program, decoder(program.isa)).steps, "").instructions
    )
    assert [address.symbol for address in one.memory if address] == [".rodata"]
