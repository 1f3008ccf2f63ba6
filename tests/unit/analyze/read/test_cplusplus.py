"""Listings of C++ programs: names with brackets, spaces and colons, and padding between the code."""

from __future__ import annotations

import re

import pytest

from cyclescope.analyze.choose.source import Choice, read_block, read_program
from cyclescope.analyze.read.assemblers import tools
from cyclescope.errors import UnsupportedInstruction

needs_assembler = pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
WHOLE = Choice(whole=True)
FIRST = "app::add(std::vector<int, std::allocator<int> > const&)"
SECOND = "std::vector<int, std::allocator<int> >::operator<<(int)"
ROWS = (
    (0x1005, "31 c0", "xor    %eax,%eax", "xor    eax,eax"),
    (0x1007, "74 20", f"je     1029 <{FIRST}+0x24>", f"je     1029 <{FIRST}+0x24>"),
    (0x1009, "66 66 66 2e 0f 1f 84 00 00 00 00 00", "data16 data16 cs nopw 0x0(%rax,%rax,1)",
     "data16 data16 cs nop WORD PTR [rax+rax*1+0x0]"),
    (0x1015, "0f 1f 80 00 00 00 00", "nopl   0x0(%rax)", "nop    DWORD PTR [rax+0x0]"),
    (0x101C, "66 0f 1f 44 00 00", "nopw   0x0(%rax,%rax,1)", "nop    WORD PTR [rax+rax*1+0x0]"),
    (0x1022, "ff c0", "inc    %eax", "inc    eax"),
    (0x1024, "39 c7", "cmp    %eax,%edi", "cmp    edi,eax"),
    (0x1026, "75 fa", f"jne    1022 <{FIRST}+0x1d>", f"jne    1022 <{FIRST}+0x1d>"),
    (0x1028, "c3", "ret", "ret"),
)  # fmt: skip
CALLER = (
    (0x1029, "e8 d7 ff ff ff", f"call   1005 <{FIRST}>", f"call   1005 <{FIRST}>"),
    (0x102E, "c3", "ret", "ret"),
    (0x102F, "66 66 2e 0f 1f 84 00 00 00 00 00", "data16 cs nopw 0x0(%rax,%rax,1)",
     "data16 cs nop WORD PTR [rax+rax*1+0x0]"),
)  # fmt: skip


def listing(syntax, with_bytes, before=""):
    def row(one):
        code = f"{one[1]:<20} \t" * with_bytes
        return f"  {one[0]:x}:\t{code}{one[2 if syntax == 'att' else 3]}\n"

    return (
        f"\nx:     file format elf64-x86-64\n\n{before}\nDisassembly of section .text:\n\n"
        f"0000000000001005 <{FIRST}>:\n{''.join(map(row, ROWS))}"
        f"\n0000000000001029 <{SECOND}>:\n{''.join(map(row, CALLER))}"
    )


@needs_assembler
@pytest.mark.parametrize("with_bytes", [True, False])
@pytest.mark.parametrize("syntax", ["att", "intel"])
def test_functions_have_their_whole_names(syntax, with_bytes):
    program = read_program(listing(syntax, with_bytes))
    assert [function.name for function in program.functions] == [FIRST, SECOND]
    block = read_block(listing(syntax, with_bytes), choice=Choice(function="app::add"))
    assert f"in {FIRST}" in block.found
    assert [one.form.mnemonic for one in block] == ["INC", "CMP", "JNE"]


@needs_assembler
@pytest.mark.parametrize("syntax", ["att", "intel"])
def test_code_behind_padding_is_where_it_was(syntax):
    """Assemblers make shorter NOPs of what disassemblers print, or refuse it."""
    before = "Disassembly of section .init:\n\n0000000000001000 <_init>:\n  1000:\tret\n"
    for text in (listing(syntax, False), listing(syntax, False, before)):
        loop = read_block(text, choice=Choice(function=FIRST))
        assert [one.address % 64 for one in loop] == [0x22, 0x24, 0x26]
        whole = read_block(text, choice=Choice(function=FIRST, whole=True))
        nops = [one for one in whole if one.form.mnemonic.startswith("NOP")]
        assert [len(one.code) for one in nops] == [12, 7, 6]


HEAD = f"Dump of assembler code for function {FIRST}:\n"


@needs_assembler
@pytest.mark.parametrize(
    "head, row", [(HEAD, "   0x{:x} <+{}>:\t{}\n"), ("", f"   0x{{:x}} <{FIRST}+{{}}>:\t{{}}\n")]
)
def test_a_debuggers_listing(head, row):
    text = head + "".join(row.format(one[0], one[0] - 0x1005, one[2]) for one in ROWS)
    block = read_block(text)
    assert (FIRST in block.found) is bool(head)
    assert [one.form.mnemonic for one in block] == ["INC", "CMP", "JNE"]


NAMES = (
    "app::counter", "app::gl<long>", "guard variable for app::use(int)::s", "vtable for app::D",
    "typeinfo for app::use(int)::{lambda(int)#1}", "std::ctype<char>::do_widen(char) const",
    "std::map<int, int, std::less<int> >::~map()",
)  # fmt: skip
PLACES = {
    "att": ("leaq {}(%rip), %rdi", "addl 16+{}(%rip), %eax", "addq $1, {}+16(%rip)", "movq {}(,%rax,8), %rcx",
            "cmpq ${}+8, %rbx", "movl ${}, (%rdi)", "movq {}@GOTPCREL(%rip), %rax", "addl $1, %fs:{}@tpoff"),
    "intel": ("lea rdi, {}[rip]", "add eax, DWORD PTR {}[rip+16]", "mov QWORD PTR {}[rip], rax",
              "mov QWORD PTR [rax], OFFSET FLAT:{}+16", "mov edi, OFFSET FLAT:{}", "lea rcx, [rip + {}+16]",
              "mov rax, QWORD PTR {}@GOTPCREL[rip]", "add DWORD PTR fs:{}@tpoff, 1"),
}  # fmt: skip


@needs_assembler
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("syntax", "line"), [(s, line) for s, lines in PLACES.items() for line in lines])
def test_names_of_data_as_websites_have_them(name, syntax, line):
    """The same code as of a plain name, and no other line is made of it."""
    text = f"app::f(int):\n\t{line}\n\tret\n"
    found, plain = (
        read_block(text.format(one), "x86-64", WHOLE, syntax) for one in (name, re.sub(r"\W+", "_", name))
    )
    assert [one.code for one in found] == [one.code for one in plain]
    assert [len(one.memory) for one in found] == [len(one.memory) for one in plain]
    assert found.instructions[0].text == " ".join(line.format(name).split()) and not found.notes


@needs_assembler
def test_two_names_are_two_places():
    text = "f():\n addq $1, app::a(%rip)\n addq $1, app::b(%rip)\n addq $1, app::a(%rip)\n"
    first, second, third = (one.memory[0] for one in read_block(text, choice=WHOLE))
    assert first == third != second


@needs_assembler
def test_a_lambda_is_a_function():
    name = "std::_Function_handler<int (int), app::use(int)::{lambda(int)#1}>::_M_invoke(int&&)"
    program = read_program(f"{name}:\n add eax, 1\n ret\n")
    assert [function.name for function in program.functions] == [name]


@needs_assembler
@pytest.mark.parametrize(("length", "read"), [(1990, True), (2010, False)])
def test_how_long_a_line_with_names_is(length, read):
    """As long as compilers' are; of longer ones the time would grow with the square."""
    line = "leaq app::{}(%rip), %rdi"
    text = line.format("a" * (length - len(line) + 2)) + "\n ret\n"
    if read:
        assert len(read_block(text, choice=WHOLE).instructions) == 2
    else:
        with pytest.raises(UnsupportedInstruction):
            read_block(text, choice=WHOLE)
