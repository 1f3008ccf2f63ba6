"""Assembly text to instructions that know their lines, by every assembler that is here."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from cyclescope.analyze.decode.block import Address
from cyclescope.analyze.decode.decoder import Flow, decoder
from cyclescope.analyze.read import assembler, assemblers
from cyclescope.analyze.read.assembler import text_program
from cyclescope.analyze.read.assemblers import tools
from cyclescope.analyze.read.program import Code
from cyclescope.errors import BackendUnavailable, SourceError, UnsupportedInstruction
from cyclescope.isa.assembly import limits
from cyclescope.isa.encode import default_immediates, encode
from cyclescope.isa.text import assembly
from tests.unit.isa.decoding import choices
from tests.unit.isa.test_gnu_as import OLDEST, read_otherwise, refused_by_rule, version

SNIPPETS = Path(__file__).parents[1] / "snippets"
TEXTS = sorted(path for path in SNIPPETS.glob("*.s") if not re.match("aarch64|riscv64", path.name))
TOOLS = tools("x86-64")

pytestmark = pytest.mark.skipif(not TOOLS, reason="needs an assembler: as, llvm-mc, clang or zig")


@pytest.fixture(params=TOOLS, ids=lambda tool: tool.name)
def tool(request, monkeypatch):
    """One assembler at a time."""
    monkeypatch.setattr(assembler, "tools", lambda _: (request.param,))
    return request.param


def block(text, **more):
    program = text_program(text, "text", **more)
    code = Code(program, decoder(program.isa))
    return code.block(code.steps, "all")


def lines(text, **more):
    return [(one.line, one.text, one.form and one.form.mnemonic) for one in block(text, **more).instructions]


# --- what compilers write -------------------------------------------------------------------------


def written(path):
    """Instructions of a listing by line, read with the simplest of rules."""
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = re.sub(r"#.*", "", line)
        if re.match(r"\s+[a-z]", text):
            found[number] = " ".join(text.split())
    return found


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_every_instruction_of_a_listing_is_found_on_its_line(path, tool):
    found = block(path.read_text())
    assert not found.unknown
    padding = {one.line for one in found if ".p2align" in found.line_texts[one.line]}
    assert {one.line: one.text for one in found if one.line not in padding} == written(path)
    assert all(one.form.mnemonic == "NOP" for one in found if one.line in padding)


@pytest.mark.parametrize("name", ["gcc_O2", "gcc_O3", "llvm22_O3"])
def test_both_syntaxes_mean_the_same(name):
    att, intel = (block((SNIPPETS / f"{name}_{syntax}.s").read_text()) for syntax in ("att", "intel"))
    assert [one.form.id for one in att] == [one.form.id for one in intel]
    assert [one.memory for one in att] == [one.memory for one in intel]


def test_the_text_of_every_form_is_read_back(table):
    """All forms in one text: the same mnemonic, or the very form, on each line."""
    if version() < OLDEST:
        pytest.skip("needs as of binutils 2.40: older ones do not know all instructions")
    forms = [f for f in table if f.encoding and not refused_by_rule(f) and not read_otherwise(f)]
    forms = [f for f in forms if not any(op.kind == "branch" for op in f.operands)]
    texts, codes = [], []
    for form in forms:
        values = (next(choices(form, 1)), 64 if form.encoding.displacement else 0, default_immediates(form))
        texts.append(assembly(form, *values))
        codes.append(encode(form, *values))
    found = block("\n".join(texts), syntax="intel").instructions
    assert [one.line for one in found] == list(range(1, len(texts) + 1))
    same = [one.form is form for one, form in zip(found, forms, strict=True)]
    assert sum(same) > 0.9 * len(forms)
    wrong = {
        form.id: (one.text, one.form and one.form.id)
        for one, form, code in zip(found, forms, codes, strict=True)
        if one.form is None or not alike(form, one.form, code, one.code)
    }
    assert wrong == {}


def alike(form, other, code, found):
    """The form that was written, or another encoding of its mnemonic."""
    renamed = {form.mnemonic, other.mnemonic}
    return (
        form is other
        or len(renamed) == 1
        or renamed in ({"SAL", "SHL"}, {"NOP", "XCHG"}, {"MOVSX", "MOVSXD"})
    )


# --- lines ----------------------------------------------------------------------------------------


def test_lines_of_macros_repetitions_and_several_instructions(tool):
    text = """\
.macro pair a, b
  add \\a, \\b
  imul \\b, \\a
.endm
first: pair rax, rcx
 nop; nop
.rept 2
 inc rax
.endr

 sub rdx, 1  # the end
"""
    assert lines(text) == [
        (5, "add rax, rcx", "ADD"), (5, "imul rcx, rax", "IMUL"), (6, "nop", "NOP"), (6, "nop", "NOP"),
        (7, "inc rax", "INC"), (7, "inc rax", "INC"), (11, "sub rdx, 1", "SUB"),
    ]  # fmt: skip


def test_a_prefix_on_a_line_of_its_own():
    assert lines("rep\nret\nlock\nincl (%rax)\nnop") == [
        (1, "rep ret", "RET"), (3, "lock inc dword ptr [rax]", "INC"), (5, "nop", "NOP"),
    ]  # fmt: skip


def test_data_between_instructions_is_stepped_over(tool):
    text = ' jmp .L2\n .long .L2-.L1\n .quad 0\n.L1:\n .string "abc"\n.L2:\n ret\n .byte 0x0f, 0x0b\n'
    assert lines(text) == [(1, "jmp .L2", "JMP"), (7, "ret", "RET"), (8, "ud2", "UD2")]


def test_sections_are_one_program(tool):
    text = (
        ' .text\nf: nop\n jne .L9\n ret\n .section .text.unlikely,"ax",@progbits\n'
        ".L9: ud2\n jmp .L1\n .text\n.L1: nop\n ret\n"
    )
    found = block(text)
    by_line = {one.line: one for one in found}
    assert len({one.address for one in found}) == len(found) == 7
    assert (by_line[3].target, by_line[7].target) == (".L9", ".L1")
    program = text_program(text, "text")
    code = Code(program, decoder("x86-64"))
    targets = {code.line(step): step.target for step in code.steps if step.target is not None}
    assert targets == {3: by_line[6].address, 7: by_line[9].address}


def test_leaving_the_code_is_its_end(tool):
    """A jump to a symbol of another file is no indirect jump."""
    program = text_program("f:\n call g\n je f\n jmp g\nh:\n jmp *%rax\n jmp f\n", "text")
    code = Code(program, decoder("x86-64"))
    found = [(step.flow, step.target) for step in code.steps]
    assert found == [(Flow.CALL, None), (Flow.BRANCH, 0), (Flow.END, None), (Flow.JUMP, None), (Flow.JUMP, 0)]


def test_references_keep_their_symbols(tool):
    text = """\
 movsd .LC0(%rip), %xmm0
 addl $7, counter(%rip)
 movl array+8(,%rax,4), %ecx
 movq stderr@GOTPCREL(%rip), %rdx
 call sin@PLT
 leaq .LC0(%rip), %rdi
 .section .rodata
.LC0: .quad 0
"""
    found = block(text).instructions
    addresses = [
        next((a for a in one.memory if a is not None and a.base != ("R64", 4)), None) for one in found
    ]
    constant = addresses[0]
    assert constant.rip_relative
    assert constant == addresses[5]
    assert addresses[1] == Address(displacement=0, rip_relative=True, symbol="counter")
    assert addresses[2] == Address(index=("R64", 0), scale=4, displacement=8, symbol="array")
    assert addresses[3].symbol == "stderr@got"
    assert found[4].target == "sin"


# --- filtered and foreign text --------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "f(double*, double*):\n mulsd .LC0(%rip), %xmm0\n jne .L3\n call g(int)\n ret",  # labels lost
        ".L3:\n vmovsd xmm1, QWORD PTR .LC0[rip]\n add rax, 8\n cmp rax, rdx\n jne .L3",
        "\t.cfi_endproc\n\t.loc 1 5 3 is_stmt 0 view .LVU9\n\tnop\n\t.cfi_def_cfa_offset 16\n",
        "\t.seh_proc f\n\t.weird_directive 5\n\tnop\n\t.unheard_of\n",
        "\t.section\t__TEXT,__text,regular,pure_instructions\n_f:\n\tnop\n\t.subsections_via_symbols\n",
        "add rax, rbx ; adds\nsub rcx, rdx ; subtracts",
        "add dword [rdi + 4], 1\nvmovups ymm0, ymmword[rsi]",
        "ADD RAX, RBX\nMOV EAX, DWORD PTR [RCX]",
        "nop\r\nadd rax, rbx\r\n",
        '\tmovl %eax, %ebx\t## imm = 0x1\n#APP\n# 5 "x.c" 1\n\tnop\n#NO_APP\n',
    ],
)
def test_listings_that_lost_something(text, tool):
    found = block(text)
    assert found.instructions
    assert not found.unknown


def test_a_refused_line_is_named_with_the_message(tool):
    text = "start:\n nop\n frobnicate %rax, %rbx\n nop\n addq %rax\n"
    with pytest.raises(UnsupportedInstruction) as raised:
        text_program(text, "k.s")
    said = str(raised.value)
    assert said.startswith(f"k.s, line 3: {tool.name} refuses 'frobnicate %rax, %rbx' (")
    assert "\n" not in said


def test_another_assembler_is_asked_when_one_refuses(monkeypatch, tmp_path):
    refusing = tmp_path / "as"
    refusing.write_text("#!/bin/sh\necho 'x.s:2: Error: no such instruction' >&2\nexit 1\n")
    refusing.chmod(0o755)
    broken = TOOLS[0]._replace(name="broken", command=(str(refusing),))
    monkeypatch.setattr(assembler, "tools", lambda _: (broken, TOOLS[0]))
    assert lines("nop") == [(1, "nop", "NOP")]
    monkeypatch.setattr(assembler, "tools", lambda _: (broken,))
    with pytest.raises(
        UnsupportedInstruction, match=r"text, line 1: broken refuses 'nop' \(no such instruction\)"
    ):
        block("nop")


def test_an_assembler_that_says_nothing_useful(monkeypatch):
    failing = TOOLS[0]._replace(name="failing", command=(shutil.which("false"),))
    monkeypatch.setattr(assembler, "tools", lambda _: (failing,))
    with pytest.raises(UnsupportedInstruction, match="text: failing fails: no message"):
        block("nop")


def test_an_assembler_that_never_ends(monkeypatch, tmp_path):
    endless = tmp_path / "as"
    endless.write_text("#!/bin/sh\nexec sleep 1000\n")
    endless.chmod(0o755)
    hanging = TOOLS[0]._replace(name="hanging", command=(str(endless),))
    monkeypatch.setattr(assembler, "tools", lambda _: (hanging,))
    monkeypatch.setattr(limits, "_SECONDS", 0.01)
    with pytest.raises(
        SourceError, match="text is too much to assemble: hanging is not done after 0 seconds"
    ):
        block("nop")


def test_an_option_that_is_refused_is_no_error_of_the_text(monkeypatch, tmp_path):
    """An assembler too old for its options; what the next one says of the line counts."""
    old = tmp_path / "as"
    old.write_text(
        "#!/bin/sh\necho 'Error: unknown architecture' >&2\necho 'x.s:2: Error: all' >&2\nexit 1\n"
    )
    old.chmod(0o755)
    first = TOOLS[0]._replace(name="old", command=(str(old),))
    monkeypatch.setattr(assembler, "tools", lambda _: (first, TOOLS[0]))
    assert lines("nop") == [(1, "nop", "NOP")]
    with pytest.raises(UnsupportedInstruction, match=f"text, line 1: {TOOLS[0].name} refuses 'frobnicate'"):
        block("frobnicate")
    monkeypatch.setattr(assembler, "tools", lambda _: (first,))
    with pytest.raises(UnsupportedInstruction, match="text: old fails: Error: unknown architecture"):
        block("nop")


@pytest.mark.parametrize(("here", "named"), [("x86_64", "as"), ("aarch64", "x86_64-linux-gnu-as")])
def test_without_an_assembler_the_ways_out_are_named(monkeypatch, here, named):
    """The machine's own has a short name."""
    monkeypatch.setattr(assembler, "tools", lambda _: ())
    monkeypatch.setattr("platform.machine", lambda: here)
    with pytest.raises(
        BackendUnavailable, match=f"no assembler for x86-64 found: install one of {named}, clang"
    ):
        block("nop")


def test_nothing_is_found_on_an_empty_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assemblers.tools.cache_clear()
    assemblers._programs.cache_clear()
    try:
        assert tools("x86-64") == ()
    finally:
        monkeypatch.undo()
        assemblers.tools.cache_clear()
        assemblers._programs.cache_clear()


def test_a_program_of_several_names_is_asked_once(monkeypatch, tmp_path):
    """But not one that goes by its names, as ccache does."""
    for name in ("clang-18", "ccache"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "clang").symlink_to("clang-18")
    (tmp_path / "llvm-mc-19").symlink_to("ccache")
    (tmp_path / "llvm-mc").symlink_to("ccache")
    monkeypatch.setenv("PATH", str(tmp_path))
    assemblers.tools.cache_clear()
    assemblers._programs.cache_clear()
    try:
        assert [tool.name for tool in tools("x86-64")] == ["llvm-mc-19", "llvm-mc", "clang-18"]
    finally:
        monkeypatch.undo()
        assemblers.tools.cache_clear()
        assemblers._programs.cache_clear()


def test_a_text_without_instructions():
    with pytest.raises(SourceError, match=r"k\.s has no instructions"):
        text_program("# nothing\n\t.text\nf:\n", "k.s")


def test_functions_and_labels_of_a_listing():
    program = text_program((SNIPPETS / "gcc_O3_att.s").read_text(), "k")
    assert [f.name for f in program.functions] == ["triad", "gemm", "count", "table"]
    assert all(a.end <= b.address for a, b in zip(program.functions, program.functions[1:], strict=False))
    assert ".L4" in program.labels.values()
