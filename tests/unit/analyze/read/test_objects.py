"""Object files and executables: functions, addresses, relocations, and files that are none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyclescope.analyze.decode.decoder import decoder
from cyclescope.analyze.read.binary import Binary
from cyclescope.analyze.read.objects import object_program
from cyclescope.analyze.read.program import Code, Function
from cyclescope.errors import SourceError

SNIPPETS = Path(__file__).parents[1] / "snippets"
CC = shutil.which("cc")

pytestmark = pytest.mark.skipif(CC is None, reason="needs a C compiler")


def compiled(folder, text, *options, name="k.s"):
    source, output = folder / name, folder / "out"
    source.write_text(text)
    subprocess.run([CC, *options, str(source), "-o", str(output)], check=True)
    return output.read_bytes()


@pytest.fixture(scope="module")
def listing():
    return (SNIPPETS / "gcc_O3_att.s").read_text()


@pytest.fixture(scope="module")
def object_file(listing, tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("object"), listing, "-c")


@pytest.fixture(scope="module")
def library(listing, tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("library"), listing, "-shared", "-nostdlib")


def forms_by_function(program):
    found = {}
    for function in program.functions:
        code = Code(program, decoder(program.isa), function.address, function.end)
        found[function.name] = [one.form.id for one in code.block(code.steps, "").instructions]
    return found


def test_functions_of_an_object_file_and_a_library_are_the_same(object_file, library):
    first, second = object_program(object_file, "k.o"), object_program(library, "k.so")
    assert first.isa == second.isa == "x86-64"
    assert list(forms_by_function(first)) == ["triad", "gemm", "count", "table"]
    assert forms_by_function(first) == forms_by_function(second)


def test_a_library_is_at_its_own_addresses(library):
    program = object_program(library, "k.so")
    elf = Binary(library, "k.so")
    text = next(section for section in elf.sections if section.name == ".text")
    assert text.address > 0
    assert {p.name: p.address for p in program.pieces}[".text"] == text.address


def test_a_file_without_sections_is_read_by_its_segments(library):
    stripped = bytearray(library)
    stripped[40:48] = bytes(8)  # the offset of the sections
    stripped[60:64] = bytes(4)
    whole, bare = object_program(library, "k.so"), object_program(bytes(stripped), "k.so")
    assert bare.functions == ()
    triad = next(f for f in whole.functions if f.name == "triad")
    both = [Code(p, decoder(p.isa), triad.address, triad.end).steps for p in (whole, bare)]
    assert both[0] == both[1] != []


def test_relocations_of_a_compiled_file_name_symbols(tmp_path):
    text = "extern double sin(double); extern int n;\ndouble f(double x) { return sin(x) + 2.5 * n; }\n"
    program = object_program(compiled(tmp_path, text, "-O2", "-c", "-fPIC", name="k.c"), "k.o")
    code = Code(program, decoder(program.isa))
    found = code.block(code.steps, "").instructions
    symbols = {address.symbol for one in found for address in one.memory if address}
    assert "n@got" in symbols
    assert any(symbol.startswith((".rodata", ".LC")) for symbol in symbols)
    assert "sin" in {one.target for one in found}


def test_data_without_a_name_of_its_own_has_that_of_its_section(tmp_path):
    """Assemblers put a local label's section into the relocation, whose symbol has no name."""
    text = ".text\nf: lea .Lthere(%rip), %rax\n.section .rodata\n.quad 1\n.Lthere: .quad 2\n"
    program = object_program(compiled(tmp_path, text, "-c"), "k.o")
    (reference,) = program.references.values()
    assert (reference.symbol, reference.addend) == (".rodata", 4)
    assert ".rodata" not in program.labels.values()


def test_a_function_has_all_its_names(tmp_path):
    text = 'int f(int x) { return x + 1; }\nextern int longer(int) __attribute__((alias("f")));\n'
    program = object_program(compiled(tmp_path, text, "-O2", "-c", name="k.c"), "k.o")
    assert [f.name for f in program.functions] == ["longer", "f"]
    assert program.functions[0][1:] == program.functions[1][1:]
    assert program.function(program.functions[0].address).name == "f"


def test_functions_without_a_type(tmp_path):
    """As people write them: what others see is one, a label is what it names if one asks for it."""
    lines = (".globl first, last", "first: nop", "within: nop; ret", "last: nop; nop; ret")
    text = ".text\n" + "\n".join(lines) + "\n.data\n.globl thing\nthing: .quad 1\n"
    program = object_program(compiled(tmp_path, text, "-c"), "k.o")
    assert program.functions == (Function("first", 0, 3), Function("last", 3, 6))
    assert program.named("within") == Function("within", 1, 3)
    assert program.named("last") == Function("last", 3, 6)
    assert program.named("thing") is None


def test_a_name_for_the_end_of_the_code_is_no_function(tmp_path):
    program = object_program(compiled(tmp_path, ".text\n.globl f, end\nf: nop\nend:\n", "-c"), "k.o")
    assert [one.name for one in program.functions] == ["f"]


def test_stubs_of_a_linker_are_no_code(tmp_path):
    """They jump to each other, and no time is spent there."""
    text = 'int puts(const char *);\nint f(int x) { while (x--) puts(""); return x; }\n'
    data = compiled(tmp_path, text, "-O2", "-shared", "-fPIC", "-Wl,-z,lazy", name="k.c")
    assert any(section.name == ".plt" for section in Binary(data, "k.so").sections)
    program = object_program(data, "k.so")
    assert ".text" in {piece.name for piece in program.pieces}
    assert not any(piece.name.startswith(".plt") for piece in program.pieces)


def test_labels_that_an_assembler_makes_up_are_no_names(tmp_path):
    """GNU as has one for every line of RISC-V code with debugging information, with a space at its end."""
    data = compiled(tmp_path, '.text\n"L0 ":\nloop:\n nop\n"L1 ":\n nop\n', "-c")
    assert set(object_program(data, "k.o").labels.values()) == {"loop"}


def test_labels_that_are_numbers_have_their_numbers(tmp_path):
    """GNU as calls `12:` so, and keeps it in objects for RISC-V."""
    data = compiled(tmp_path, ".text\neightlet: nop\n nop\n", "-c")
    data = data.replace(b"\0eightlet\0", b"\0.L12\x02345\0")
    assert set(object_program(data, "k.o").labels.values()) == {"12"}


def test_sections_of_functions_follow_each_other(tmp_path):
    text = "int f(int x) { return x + 1; }\nint g(int x) { return x * x; }\n"
    data = compiled(tmp_path, text, "-O2", "-c", "-ffunction-sections", name="k.c")
    program = object_program(data, "k.o")
    assert [f.name for f in program.functions] == ["f", "g"]
    assert program.functions[0].end <= program.functions[1].address


def test_a_section_beyond_the_file(object_file):
    elf = Binary(object_file, "k.o")
    number = next(n for n, section in enumerate(elf.sections) if section.is_code)
    offset = int.from_bytes(object_file[40:48], "little") + 64 * number + 32
    longer = object_file[:offset] + (1 << 20).to_bytes(8, "little") + object_file[offset + 8 :]
    with pytest.raises(SourceError, match=r"k\.o is a truncated or damaged ELF file"):
        object_program(longer, "k.o")


def test_an_offset_beyond_all_files(object_file, tmp_path):
    path = tmp_path / "k.o"
    path.write_bytes(object_file[:40] + b"\xff" * 8 + object_file[48:])  # of the sections
    with pytest.raises(SourceError, match=r"k\.o is a truncated or damaged ELF file"):
        object_program(path, "k.o")


@given(st.data())
def test_a_cut_or_damaged_file_is_one_clear_line(object_file, data):
    """Whatever is missing or wrong, there is code or a SourceError."""
    broken = bytearray(object_file)
    for _ in range(data.draw(st.integers(0, 4))):
        broken[data.draw(st.integers(4, len(broken) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(broken[: data.draw(st.integers(4, len(broken)))])
    try:
        program = object_program(cut, "k.o")
        steps = Code(program, decoder("x86-64")).steps if program.isa == "x86-64" else ()
    except SourceError as error:
        assert "\n" not in str(error)
    else:
        assert sum(step.length for step in steps) <= len(cut)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is no ELF file"),
        (b"\x7fELF\x02\x01", "truncated or damaged"),
        (b"\x7fELF\x01\x01" + bytes(12) + b"\x03\0" + bytes(60), "for 32-bit x86"),
        (b"\x7fELF\x02\x02" + bytes(12) + b"\0\x16" + bytes(60), "for s390x"),
        (b"\x7fELF\x02\x01" + bytes(12) + b"\x99\x99" + bytes(60), "machine 39321"),
        (b"\x7fELF\x02\x01" + bytes(12) + b"\x3e\0" + bytes(60), "has no code"),
    ],
)
def test_what_cannot_be_read(data, said):
    with pytest.raises(SourceError, match=said):
        object_program(data, "k.o")


def test_an_object_whose_code_comes_with_linking(tmp_path):
    data = compiled(tmp_path, '.section .gnu.lto_.opts,"e"\n.byte 1\n', "-c")
    with pytest.raises(SourceError, match="has no code") as raised:
        object_program(data, "k.o")
    assert raised.value.remedy == "compile it without -flto"
