"""Examples of instructions, and assemblers: the rules of aliases say what one makes of the line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cyclescope.analyze.choose.source import read_program
from cyclescope.analyze.decode.decoder import decoder as decoder_of
from cyclescope.analyze.read import assembler
from cyclescope.analyze.read.assembler import tools
from cyclescope.analyze.read.example import assembled_forms
from cyclescope.analyze.read.program import Code
from cyclescope.errors import BackendUnavailable, UnsupportedInstruction, UsageError
from cyclescope.isa.decode import decoder
from cyclescope.isa.find.pattern import by_example, select
from cyclescope.isa.find.written import forms_of, spelling
from cyclescope.isa.form import model_form_id
from cyclescope.isa.table import load_table
from tests.support.code.assembling import machine_code
from tests.unit.isa.test_written import AARCH64, RISCV64, X86_64

EXAMPLES = {"aarch64": AARCH64, "riscv64": RISCV64}
# newer instructions; those whose extension assemblers want to see; wide operands on the other side
NOT_EVERYWHERE = re.compile(
    r"pause|c\.|f\w+\.q |cm[pn] x4, w2$|cmp(le|lt|lo|ls) \S+ \S+ z\d+\.d, z\d+\.[bhs]"
)
TARGET = re.compile(
    r"^((?:b\w+|la|lla|j|jal|call|tail)(?: a1,)*) 0$"
)  # of RISC-V: a number would be far away


def _lines(isa):
    of_rules = (
        line for rules in spelling(isa).aliases.values() for rule in rules for line in rule.examples()
    )
    return list(dict.fromkeys([*(TARGET.sub(r"\1 there", line) for line in of_rules), *EXAMPLES[isa]]))


@pytest.mark.parametrize("isa", EXAMPLES)
def test_rules_say_what_an_assembler_makes(isa):
    lines, table = _lines(isa), load_table(isa)
    code = machine_code(isa, lines)
    assert sum(map(bool, code.values())) > 150, "most are understood"
    wrong = []
    for line in lines:
        ours = {form.id for form in forms_of(table, line)}
        if code[line]:
            theirs = {one.form.id for one in decoder(isa).decode_all(code[line])}
            wrong += [(line, ours, theirs)] * (ours != theirs)
        else:
            wrong += [(line, ours, "refused")] * bool(ours and not NOT_EVERYWHERE.match(line))
    assert not wrong


@pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
@pytest.mark.parametrize("line", [line for line in X86_64 if not re.search("[.]L3|memcpy", line)])
def test_what_x86_code_is_read_as_is_among_what_the_example_finds(line):
    syntax = ".intel_syntax noprefix\n" * ("%" not in line and "q" not in line.split()[0])
    (theirs,) = assembled_forms("x86-64", f"{syntax}{line}")
    assert theirs in select(load_table("x86-64"), [line])


@pytest.mark.skipif(not tools("x86-64"), reason="needs an assembler")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("imul rax, rbx, rcx", "refuses|of APX"),  # newer assemblers know it
        ("mov rax, cr0", "privileged"),
        ("frob rax", "no such instruction|refuses"),
    ],
)
def test_why_a_line_is_no_form_is_said(line, reason):
    with pytest.raises(UsageError, match=reason):
        assembled_forms("x86-64", line)


def test_a_machine_without_an_assembler_says_so(monkeypatch):
    monkeypatch.setattr(assembler, "tools", lambda _: ())
    with pytest.raises(UsageError, match=r"no instruction form matches .*\(no assembler for aarch64 found"):
        select(load_table("aarch64"), ["frob x0, x1"], False, assembled_forms)


SNIPPETS = sorted(Path(__file__).parents[1].glob("snippets/*.s"))


@pytest.mark.parametrize("path", SNIPPETS, ids=lambda path: path.stem)
def test_what_compilers_write_is_found_as_it_is_analysed(path):
    """A form of the machine code is among those of the line; RISC-V's compressed ones have other names."""
    try:
        program = read_program(path)
    except (BackendUnavailable, UnsupportedInstruction) as error:
        pytest.skip(str(error))
    code, table = Code(program, decoder_of(program.isa)), load_table(program.isa)
    lines = {
        one.text: one.form for one in code.block(code.steps, "all").instructions if one.text and one.form
    }
    assert len(lines) > 10
    wrong = []
    for text, form in lines.items():
        found = {each.id for each in by_example(table, text)}
        if not found or not (form.id.startswith("C_") or model_form_id(form) in found):
            wrong.append((text, form.id, sorted(found)))
    assert [one for one in wrong if one[0] != "xchg ax, ax"] == []  # which is called NOP when it is read
