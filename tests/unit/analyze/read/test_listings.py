"""Listings of Microsoft's compiler and of disassemblers, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cyclescope.analyze.choose.insertion import markable_loops, marked
from cyclescope.analyze.choose.loops import hottest
from cyclescope.analyze.choose.source import Choice, read_block, read_program
from cyclescope.analyze.read import assembler
from cyclescope.analyze.read.assemblers import Tool, tools
from cyclescope.analyze.read.disassembly import is_disassembly, listed_isa
from cyclescope.analyze.read.listings import as_objdump
from cyclescope.analyze.read.masm import is_masm, translated
from cyclescope.errors import SourceError, UsageError

needs_assembler = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
WHOLE = Choice(whole=True)


# --- Microsoft's ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("include listing.inc", ""),
        ("_TEXT\tSEGMENT", ".text"),
        ("text$mn\tSEGMENT", ".text"),
        ("xdata\tSEGMENT", ".data"),
        ("f\tPROC\t\t; COMDAT", "f: #  COMDAT"),
        ("f\tENDP", ""),
        ("\tmov\teax, 0ffH\t; 255", "\tmov\teax, 0x0ff\t #  255"),
        ("\tnpad\t5", ".nops 5"),
        ("\tret\t0", "\tret"),
        ("\tret\t8", "\tret\t8"),
        ("\tjmp\tSHORT f", "\tjmp\tSHORT f"),
        ("\tmov\teax, DWORD PTR x", "\tmov\teax, DWORD PTR [rip+x]"),
        ("\tmov\teax, DWORD PTR gs:88", "\tmov\teax, DWORD PTR gs:88"),
        ("\tmov\teax, DWORD PTR [rcx]", "\tmov\teax, DWORD PTR [rcx]"),
        ("\tlea\trcx, OFFSET FLAT:x", "\tlea\trcx, [rip+x]"),
        ("x\tDB\t064H, 067H, 090H", "x: .byte 0x064, 0x067, 0x090"),
        ("x\tDD\timagerel f", "x: .skip 4"),
        ("\tDB\t'a;b', 00H", ".byte 0, 0x00"),
        ("\tDB\t4 DUP(?)", ".skip 4"),
        ("\tDW\t4 DUP(?)", ".skip 8"),
        ("\tDD\t4 DUP(?)", ".skip 16"),
        ("\tDQ\t4 DUP(?)", ".skip 32"),
        ("\tDT\t4 DUP(?)", ".skip 40"),
        ("; only words", " #  only words"),
    ],
)
def test_lines_are_put_as_gnu_assemblers_want_them(line, written):
    assert translated([line], {}) == [written]


def test_names_that_are_put_otherwise_are_shown_as_they_are():
    names = {}
    first, second = translated(["$LL4@f:", "\tjne\tSHORT $LL4@f"], names)
    assert (first, second) == (".Lmasm0:", "\tjne\tSHORT .Lmasm0")
    assert names == {"$LL4@f": ".Lmasm0"}


@needs_assembler
def test_a_listing_keeps_its_names_and_marks():
    text = (
        "f PROC\n$LL4@f:\n\tmov\tBYTE PTR gs:[111], 111\n\tadd\teax, DWORD PTR ?x@@3HA ; x\n"
        "\tmov\tBYTE PTR gs:[222], 222\n\tjne\tSHORT $LL4@f\nf ENDP\n"
    )
    block = read_block(text)
    assert [one.text for one in block] == ["add eax, DWORD PTR [rip+?x@@3HA]"]
    assert block.instructions[0].memory[1].rip_relative
    assert read_block(text, choice=Choice(region="1")) == block
    loop = read_block(text.replace("gs:[111], 111", "gs:[112], 111").replace("gs:[222]", "gs:[223]"))
    assert (loop.name, loop.instructions[-1].target) == ("$LL4@f in f", "$LL4@f")


@pytest.mark.parametrize(
    "text", ["add rax, rbx ; PROC\n", "f:\n\tret\n", "\t.section text\n# include listing.inc\n"]
)
def test_other_text_is_not_microsoft_s(text):
    assert not is_masm(text)


# --- of disassemblers -----------------------------------------------------------------------------

GNU = """\

k.o:     file format elf64-x86-64


Disassembly of section .text:

0000000000000000 <f>:
f():
k.c:3
   0:\t48 01 d8             \tadd    %rbx,%rax
   3:\tc4 e2 f9 99 05 00 00 \tvfmadd132sd 0x0(%rip),%xmm0,%xmm0        # c <f+0xc>
   a:\t00 00
   c:\t75 f2                \tjne    0 <f>
\t\t\td: R_X86_64_PC8\tx
   e:\tc3                   \tret

Disassembly of section .text.g:

0000000000000000 <g>:
   0:\t48 ff c0             \tinc    %rax
   3:\teb fb                \tjmp    0 <g>
"""


def test_a_listing_with_bytes_is_their_code():
    block = read_block(GNU, choice=Choice(function="f"))
    assert [one.line for one in block] == [10, 11, 13]
    assert next(one.text for one in block) == "add %rbx,%rax"
    assert block.instructions[1].code.hex() == "c4e2f9990500000000"
    assert block.loop
    other = read_block(GNU, choice=Choice(function="g"))
    assert [one.form.mnemonic for one in other] == ["INC", "JMP"]
    assert other.instructions[0].address == 64  # behind the other section, whose addresses it has


@needs_assembler
def test_without_bytes_the_text_is_assembled():
    bare = "\n".join(line[:5] + line[27:] if "\t" in line[:6] else line for line in GNU.splitlines())
    assert "48 01" not in bare
    block, same = (read_block(text, choice=Choice(function="f")) for text in (bare, GNU))
    assert [one.form for one in block] == [one.form for one in same]
    assert read_block(bare, choice=Choice(function="g")).loop
    named = bare.replace(bare.splitlines()[1].partition(":")[0] + ":", "a:", 1)  # hexadecimal, too
    assert "a:     file format" in named
    assert read_block(named, choice=Choice(function="g")).loop


def test_a_part_of_a_listing_is_one_by_its_addresses():
    lines = GNU.splitlines()[9:15]
    assert is_disassembly([line for line in lines if "R_X86" not in line])
    assert not is_disassembly(
        ["1: fadd d0, d1, d2", "2: add x0, x0, x1"]
    )  # labels, and mnemonics that are digits


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("   0:\t91002000 \tadd\tx0, x0, #0x8", "00200091"),
        ("       0: 00 20 00 91  \tadd\tx0, x0, #8", "00200091"),
    ],
)
def test_words_of_aarch64_are_numbers(line, code):
    text = f"k.o: file format elf64-littleaarch64\n\n0000000000000000 <f>:\n{line}\n"
    block = read_block(text, choice=WHOLE)
    assert (block.isa, block.instructions[0].code.hex(), block.instructions[0].form.id) == (
        "aarch64", code, "ADDXri",
    )  # fmt: skip


def test_a_mnemonic_of_hexadecimal_digits_is_no_code():
    listing = ["0000000000000000 <f>:", "   0:\tfadd\td0, d1, d2"]
    assert listed_isa(listing) == "aarch64"
    if tools("aarch64"):
        assert read_block("\n".join(listing), choice=WHOLE).instructions[0].form.mnemonic == "FADD"


def test_the_instruction_set_of_a_listing_is_checked():
    with pytest.raises(SourceError, match="text is code for x86-64, not aarch64"):
        read_block(GNU, "aarch64")


@needs_assembler
@pytest.mark.parametrize("style", ["objdump", "objdump_text", "msvc", "explorer"])
def test_markers_that_were_put_in_are_read_again(style):
    path = Path(__file__).parents[1] / "conformance" / f"{style}.x86intel.s"
    program = read_program(path)
    loop = hottest(markable_loops(program))
    again = read_block(marked(program, loop, "llvm-mca"))
    assert again.found.startswith("between the LLVM-MCA markers")
    assert [one.form for one in again] == [one.form for one in read_block(path)]


# --- digits, macros, extensions -------------------------------------------------------------------


@pytest.mark.parametrize(("digits", "mnemonic"), [("cc", "INT3"), ("90", "NOP"), ("fc\n", "CLD")])
def test_machine_code_may_be_letters_alone(digits, mnemonic, tmp_path):
    assert read_block(digits).instructions[0].form.mnemonic == mnemonic
    path = tmp_path / "code"
    path.write_text(digits)
    assert read_block(path).instructions[0].form.mnemonic == mnemonic


def test_a_name_of_no_file_is_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert read_block(Path("cc")).instructions[0].form.mnemonic == "INT3"
    with pytest.raises(UsageError, match="abc cannot be read"):
        read_block(Path("abc"))


@needs_assembler
def test_macros_are_shown_in_the_syntax_of_the_text():
    macro = ".macro twice a\nadd {0}, {1}\nadd {0}, {1}\n.endm\n"
    att = read_block(macro.format("\\\\a".replace("\\\\", "\\"), "%rbx") + "twice %rax\n")
    assert [one.text for one in att] == ["add %rax, %rbx"] * 2
    intel = read_block(macro.format("rbx", "\\a") + "twice rax\n")
    assert [one.text for one in intel] == ["add rbx, rax"] * 2


@needs_assembler
def test_extensions_that_an_assembler_does_not_know_are_left_out(tmp_path, monkeypatch):
    """It refuses `lzcnt` until one of three directives allows it, and one of these itself."""
    path = tmp_path / "as"
    path.write_text(
        '#!/bin/sh\nfor file in "$@"; do case $file in *.s) text=$file;; esac; done\n'
        "bad=$(grep -n nonsense $text | cut -d: -f1)\n"
        'if [ "$bad" ]; then echo "x.s:$bad: Error: no"; exit 1; fi\n'
        "if ! grep -q good $text; then echo 'x.s:2: Error: not allowed'; exit 1; fi\n"
        f"grep -v good $text > $text.2; exec {tools('x86-64')[0].command[0]} --64 $text.2 -o $4\n"
    )
    path.chmod(0o755)
    tool = Tool("made", (str(path), "--"), False, True, ("# nonsense", "# good"))
    monkeypatch.setattr(assembler, "tools", lambda _: (tool,))
    assert [one.text for one in read_block("lzcnt %rax, %rbx")] == ["lzcnt %rax, %rbx"]


@pytest.mark.skipif(not tools("riscv64"), reason="needs an assembler for riscv64")
def test_extensions_of_riscv_are_allowed_one_by_one():
    from cyclescope.analyze.read.assemblers import tools as found

    first = found("riscv64")[0]
    offered = " ".join((*first.extensions, *first.more)).replace(",", " ").split()
    for name in (
        "zvkned",
        "zvknhb",
        "zvksed",
        "zvksh",
        "zvkg",
        "zvbc",
        "zvbb",
        "zicond",
        "zfa",
        "zcb",
        "zacas",
    ):
        assert f"+{name}" in offered
    text = "aes64es a0, a1, a2\nxperm4 a0, a1, a2\nsha256sum0 a0, a1\n"  # in no assembler's plain options
    assert [one.form.id for one in read_block(text, "riscv64")] == ["AES64ES", "XPERM4", "SHA256SUM0"]


@needs_assembler
@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("add %rax, %rbx; what is this\n", "line 1: what follows a semicolon is taken for a comment"),
        ("nop\n.unheard_of 5\n.unheard_of 6\n", "lines 2, 3: .unheard_of left out, "),
        ("; all of it\nnop\n", ""),
        ("\t.seh_proc f\n\tnop\n\t.cfi_endproc\n", ""),
        ('nop\n.section .debug_loclists,"",@progbits\n.uleb128 .LVU2\n', ""),  # gcc -g
    ],
)
def test_what_is_left_out_is_said(text, note):
    notes = read_block(text).notes
    assert len(notes) == bool(note)
    assert not note or notes[0].startswith(note)


@pytest.mark.parametrize("spaces", ["\t", "    ", "  ", "          "])
def test_a_listing_whose_tabs_were_made_spaces(spaces):
    """As websites and terminals do."""
    listing = (
        "\nk.o:     file format elf64-x86-64\n\n\nDisassembly of section .text:\n\n0000000000000000 <f>:\n"
        "   0:\t48 01 c3             \tadd    %rax,%rbx\n"
        "   3:\tc3                   \tret\n"
        "   4:\t48 b8 88 77 66 55 44 \tmovabs $0x1122334455667788,%rax\n"
        "   b:\t33 22 11 \n"
        "   e:\tfc                   \tcld\n"
    )
    block = read_block(listing.replace("\t", spaces), "x86-64", Choice(whole=True))
    assert [one.form.mnemonic for one in block] == ["ADD", "RET", "MOV", "CLD"]


@pytest.mark.parametrize("function", ["sum", ""])
def test_local_labels_are_no_ends_of_functions(function):
    """RISC-V's object files have them among their symbols."""
    listing = (
        "k.o:     file format elf64-littleriscv\n\nDisassembly of section .text:\n\n"
        "0000000000000000 <sum>:\n   0:\t4501                \tli\ta0,0\n\n"
        "0000000000000002 <.L3>:\n   2:\t4398                \tlw\ta4,0(a5)\n"
        "   4:\t0791                \taddi\ta5,a5,4\n   6:\tfed79ee3          \tbne\ta5,a3,2 <.L3>\n"
        "   a:\t8082                \tret\n\n000000000000000c <other>:\n   c:\t8082                \tret\n"
    )
    block = read_block(listing, choice=Choice(function=function))
    assert (block.loop, len(block.instructions), block.name) == (True, 3, ".L3 in sum")
    assert len(read_block(listing, choice=Choice(function="sum", whole=True)).instructions) == 5


GDB = """Dump of assembler code for function {name}:
a.c:
7\tlong sum(long n) {{
   0x0000000000001a90 <+0>:\t{0}xor    %eax,%eax
8\tfor (;;) {{
=> 0x0000000000001a92 <+2>:\t{1}add    $0x1,%rax
   0x0000000000001a96 <+6>:\t{2}cmp    %rax,%rdi
   0x0000000000001a99 <+9>:\t{3}jne    0x1a92 <sum+2>
   0x0000000000001a9b <+11>:\t{4}ret
End of assembler dump.
"""
BYTES = ("31 c0\t", "48 83 c0 01          \t", "48 39 c7\t", "75 f7\t", "c3\t")
EXAMINED = """   0x1a90 <sum>:\txor    %eax,%eax
   0x1a92 <sum+2>:\tadd    $0x1,%rax
=> 0x1a96 <sum+6>:\tcmp    %rax,%rdi
   0x1a99 <sum+9>:\tjne    0x1a92 <sum+2>
   0x1a9b <sum+11>:\tret
"""
PERF = """ Percent |\tSource code & Disassembly of t for cpu-clock (23 samples, percent: local period)
------------------------------------------------------------------------------------------------
         :
         : 3    Disassembly of section .text:
         :
         : 5    0000000000001a90 <sum>:
         : 6    sum():
         : 21   long sum(long n) { long k = 0; do { k++; } while (k != n); }
    0.00 :   1a90:   xor    %eax,%eax
   12.50 :   1a92:   add    $0x1,%rax
  100.00 :   1a96:   cmp    %rax,%rdi
         : 22   return k;
    0.00 :   1a99:   jne    1a92 <sum+0x2>
    0.00 :   1a9b:   ret
"""
LISTINGS = {
    "disassemble": GDB.format(*("",) * 5, name="sum"), "disassemble /r": GDB.format(*BYTES, name="sum"),
    "x/i": EXAMINED, "perf annotate": PERF,
}  # fmt: skip


@pytest.mark.parametrize("name", LISTINGS)
def test_listings_of_debuggers_and_profilers(name):
    found = read_block(LISTINGS[name])
    texts = [one.text.split()[0] for one in found]
    assert (found.isa, found.loop, texts) == ("x86-64", True, ["add", "cmp", "jne"])
    lines = LISTINGS[name].splitlines()
    assert all(one.text.split()[0] in lines[one.line - 1] for one in found)
    assert ("sum" in found.found) is (name != "x/i")


def test_functions_of_a_debugger_are_found_by_name():
    both = (
        LISTINGS["disassemble /r"].replace("sum", "first").replace("1a9", "0a9") + LISTINGS["disassemble /r"]
    )
    found = read_block(both, choice=Choice(function="first"))
    assert [one.address for one in found] == [0xA92, 0xA96, 0xA99]


def test_a_percentage_or_an_address_alone_is_no_such_listing():
    assert as_objdump(["  12.50 : 1a92: add $0x1,%rax"]) is None
    assert as_objdump(["0x1a92: add $0x1,%rax", "", "mov <b>, 0x1a92 <x>: c"]) is None


@pytest.mark.parametrize("name", ["disassemble", "x/i", "perf annotate"])
@pytest.mark.parametrize("begin", ["1a90", "ffffffff81001ab0"])
def test_code_without_bytes_lies_in_the_lines_that_the_listing_says(name, begin):
    """Branches go to what they went to; the address itself may be one of the kernel."""
    text = LISTINGS[name]
    for offset in range(12):
        text = text.replace(f"{0x1A90 + offset:x}", f"{int(begin, 16) + offset:x}")
    text = text.replace("0x000000000000ffff", "0xffff")
    found = read_block(text)
    assert (found.loop, found.alignment) == (True, 0)
    assert found.instructions[0].address % 64 == (int(begin, 16) + 2) % 64
