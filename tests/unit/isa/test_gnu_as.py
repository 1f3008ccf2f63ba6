"""The assembly text of every form, read back by GNU as, means the form.

The assembler picks its own encoding (a shorter branch, VEX for EVEX), so equal bytes or equal meaning
are asked for: same mnemonic, registers, address, width, immediates, mask and rounding.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from iced_x86 import Instruction, Mnemonic, Register, RegisterExt

from cyclescope.isa.encode import default_immediates, encode, takes_index
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.text import assembly
from tests.unit.isa.decoding import REGISTERS, Decoded, Memory, Values, choices, decode, read

AS = shutil.which("as")
OLDEST = (2, 40)  # later versions know more
CELL = 16  # bytes per instruction in the assembled section

# --- what GNU as 2.40 cannot be told ------------------------------------------------------------

UNKNOWN = {
    "CCS_ENCRYPT", "CCS_HASH", "FSTPNCE", "GETSECQ", "PCMPESTRI64", "PCMPESTRM64", "PCOMMIT",
    "RESERVEDNOP", "TCMMIMFP16PS", "TCMMRLFP16PS", "UNDOC", "VPCMPESTRI64", "VPCMPESTRM64", "VPDPWSUD",
    "VPDPWSUDS", "VPDPWUSD", "VPDPWUSDS", "VPDPWUUD", "VPDPWUUDS", "VSHA512MSG1", "VSHA512MSG2",
    "VSHA512RNDS2", "VSM3MSG1", "VSM3MSG2", "VSM3RNDS2", "VSM4KEY4", "VSM4RNDS4", "XSHA512",
    "XSHA512_ALT", "XSTORE_ALT",
}  # fmt: skip
# Legal encodings that as refuses, with the operands it wants instead.
REFUSED = {
    "BSWAP (R16)": "undefined result",
    "UD0": "an address after it",
    "CALL_NEAR (M80)": "an address without a size",
    "JMP (M80)": "an address without a size",
    "LSS (R64, M80)": "an address without a size",
    "LFS (R64, M80)": "an address without a size",
    "LGS (R64, M80)": "an address without a size",
    "MOVSXD (R16, R16)": "a 32-bit source",
    "MOVSXD (R16, M16)": "a 32-bit source",
    "TPAUSE (R64)": "a 32-bit register",
    "UMWAIT (R64)": "a 32-bit register",
    "VERR (R32)": "a 16-bit register",
    "VERR (R64)": "a 16-bit register",
    "VERW (R32)": "a 16-bit register",
    "VERW (R64)": "a 16-bit register",
    "VMOVW (XMM, R64)": "a 32-bit register",
    "VMOVW (R64, XMM)": "a 32-bit register",
}
EXACT_ROUNDING = re.compile(r"VCVTU?(DQ2PD|SI2SD)(_EVEX)?_ER(_Z)? .*(YMM|R32)\)")  # nothing to round

# --- where as reads the text as another encoding's meaning ---------------------------------------

SHORT = re.compile(r"PUSHFW|POPFW|IRETW|F\w+_M(14|94)BYTE|MONTMUL_32|.*_ECX")
ZERO_EXTENDED = re.compile(
    r"(MOV|SLDT|STR|SMSW|V?P?MOVMSK\w+|V?PINSR[BW]|V?PEXTR[BW]|V?EXTRACTPS|VERR|VERW)\b"
)  # with a 64-bit register they do what they do with its low half


def refused_by_rule(form: InstructionForm) -> bool:
    if form.mnemonic in UNKNOWN or form.id in REFUSED:
        return True
    return bool(EXACT_ROUNDING.match(form.id))


def read_otherwise(form: InstructionForm) -> bool:
    """Forms whose 16-bit operands, or 32-bit addresses, the text does not say."""
    relative = any(op.kind == "branch" for op in form.operands)
    return ("operand16" in form.attributes and relative) or bool(SHORT.fullmatch(form.code))


class Case(NamedTuple):
    """A form with values, the code of the encoder and the text."""

    form: InstructionForm
    values: Values
    code: bytes
    text: str


def case(form: InstructionForm, registers: list[int], displacement: int, index: int | None) -> Case:
    assert form.encoding is not None
    displacement = displacement if form.encoding.displacement else 0
    values = Values(registers, displacement, default_immediates(form), index)
    return Case(form, values, encode(form, *values), assembly(form, *values))


def assembled(texts: list[str], folder: Path) -> tuple[bytes, dict[int, str]]:
    """The section with one text per cell, and the errors by position in the list."""
    source, target, binary = (folder / name for name in ("a.s", "a.o", "a.bin"))
    lines = "".join(f"{text}\n.balign {CELL}, 0x90\n" for text in texts)
    source.write_text(f".intel_syntax noprefix\n{lines}")
    command = [str(AS), "--64", "-mnaked-reg", str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = re.findall(r":(\d+): Error: (.*)", done.stderr)
    if done.returncode:
        return b"", {(int(line) - 2) // 2: message for line, message in errors}
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", str(target), str(binary)], check=True)
    return binary.read_bytes(), {}


def full(operand: object) -> object:
    """A general register by its 64-bit name."""
    number = getattr(Register, operand, 0) if isinstance(operand, str) else 0
    return REGISTERS[RegisterExt.full_register(number)] if RegisterExt.is_gpr(number) else operand


def meaning(form: InstructionForm, ins: Instruction) -> tuple[int, Decoded]:
    """Mnemonic and operands, whatever the encoding."""
    what = read(form, ins)
    operands = [_from_end(op, what.length) for op in what.operands]
    if ZERO_EXTENDED.match(form.mnemonic):
        operands = [full(op) for op in operands]
    mnemonic = Mnemonic.SHL if ins.mnemonic == Mnemonic.SAL else ins.mnemonic
    return mnemonic, what._replace(code="", length=0, operands=tuple(operands))


def _from_end(operand: object, length: int) -> object:
    """RIP-relative addresses count from the end of an instruction, whose length may differ."""
    if isinstance(operand, Memory) and operand.base == "RIP":
        return operand._replace(displacement=operand.displacement - length)
    return operand


def means_the_same(one: Case, cell: bytes) -> bool:
    if cell.startswith(one.code):
        return True
    ours, theirs = decode(one.form, one.code), decode(one.form, cell)
    return meaning(one.form, ours) == meaning(one.form, theirs)


def cases(table, turn: int) -> list[Case]:
    """One case per form; every turn has other registers, a displacement and an index of its own."""
    result = []
    for form in (f for f in table if f.encoding is not None):
        registers = list(choices(form, turn + 1))[turn]
        index = 1 if turn == 2 and takes_index(form) else None
        result.append(case(form, registers, (64, 0, -128)[turn], index))
    return result


def version() -> tuple[int, int]:
    if AS is None:
        return (0, 0)
    shown = subprocess.run([AS, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.search(r" (\d+)\.(\d+)", shown.partition("\n")[0])
    return (int(match[1]), int(match[2])) if match else (0, 0)


pytestmark = pytest.mark.skipif(
    version() < OLDEST or shutil.which("objcopy") is None, reason="needs as and objcopy of binutils 2.40"
)


@pytest.mark.parametrize("turn", [0, 1, 2])
def test_the_text_of_every_form_means_the_form(table, turn, tmp_path):
    every = cases(table, turn)
    _, errors = assembled([c.text for c in every], tmp_path)
    unexpected = {every[i].text: m for i, m in errors.items() if not refused_by_rule(every[i].form)}
    assert unexpected == {}
    accepted = [c for i, c in enumerate(every) if i not in errors]
    section, errors = assembled([c.text for c in accepted], tmp_path)
    assert (errors, len(section)) == ({}, CELL * len(accepted))
    cells = [section[i : i + CELL] for i in range(0, len(section), CELL)]
    wrong = {
        one.form.id: (one.text, one.code.hex(), cell.hex())
        for one, cell in zip(accepted, cells, strict=True)
        if not means_the_same(one, cell)
    }
    assert {i for i in wrong if not read_otherwise(table[i])} == set()
