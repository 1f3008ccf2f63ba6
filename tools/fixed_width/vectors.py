"""Compare the rules for RISC-V's vector configurations and registers with what an emulator or CPU executes.

    python -m tools.fixed_width.vectors [--record] [COMMAND]...

COMMAND runs a static RISC-V program, `qemu-riscv64-static -cpu ...` without; needs riscv64-linux-gnu-gcc.
Every form runs under every SEW and LMUL with registers that suit all of them, to see which configurations are
legal, and under its default configurations with random registers. Prints how often the rules and the
executions agree. QEMU 7.2 has no vector extension but V; it lets registers be sources with two widths of
elements, which is reserved, and ends at conversions that round towards zero. `--record` writes answers down
for the tests.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand
from cyclescope.isa.riscv64.configuration import LMULS, SEWS, Configuration, setup_code
from cyclescope.isa.riscv64.legality import illegal
from cyclescope.isa.riscv64.overlap import conflict
from cyclescope.isa.riscv64.shapes import takes_configuration
from cyclescope.isa.riscv64.vector import default_forms
from cyclescope.isa.table import load_table

EMULATOR = ["qemu-riscv64-static", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=256,elen=64,Zfh=true"]
RECORDED = Path(__file__).parents[2] / "tests/unit/isa/recorded/riscv64_vectors.txt"
ELSEWHERE = ("ZVK", "ZVB", "ZVF", "ZVQ")  # extensions that QEMU 7.2 lacks; ZVFH is half a width here
BASE, OTHER = 10, 11  # registers with an address, with 8
SUITING = (8, 16, 24)  # registers where groups of every size begin
DRAWS = 24  # per form and configuration
SOME = 23  # of these many close calls, one is written down
ILLEGAL = 4  # SIGILL
DIED = 99
CONFIGURATIONS = [Configuration(sew, lmul) for sew in SEWS for lmul in LMULS if lmul * 64 >= sew]


def forms() -> list[InstructionForm]:
    """Vector forms of the table that QEMU may execute."""
    return [
        form
        for form in load_table("riscv64")
        if takes_configuration(form) and not form.features[0].startswith(ELSEWHERE) and "_RTZ_" not in form.id
    ]


def word(form: InstructionForm, registers: Sequence[int]) -> str:
    """Machine code with any registers, legal ones or not, and other fields 0; in hexadecimal."""
    assert form.bits is not None
    numbers, found = iter(registers), form.bits.base
    for field in form.bits.fields:
        found |= field.insert(next(numbers)) if field.is_register else 0
    return f"{found:08x}"


def scalar(op: Operand) -> int:
    """The register of an operand that is no vector; 1 for no mask, 0 for a carry."""
    if op.cls in ("VMaskOp", "VMaskCarryInOp"):
        return int(op.cls == "VMaskOp")
    return BASE if op.role == "base" else OTHER


def suiting(form: InstructionForm) -> list[int]:
    """Registers that no LMUL forbids."""
    assert form.bits is not None
    vectors = iter(SUITING)
    ops = [form.operands[field.operand] for field in form.bits.fields if field.is_register]
    return [next(vectors) if op.cls.startswith("VR") else scalar(op) for op in ops]


def draws(form: InstructionForm) -> Iterator[list[int]]:
    """Random registers of a configured form, most of them legal, many close to each other."""
    assert form.bits is not None
    draw = random.Random(form.id)
    fields = [field for field in form.bits.fields if field.is_register]
    for number in range(DRAWS):
        legal = [range(32) if number % 6 == 0 else field.values.legal for field in fields]
        near = [[n for n in every if n < 12] if number % 2 else every for every in legal]
        ops = [form.operands[field.operand] for field in fields]
        pairs = zip(ops, near, strict=True)
        yield [draw.choice(every) if op.file == "v" else scalar(op) for op, every in pairs]


def verdict(form: InstructionForm, registers: Sequence[int]) -> str:
    """Why registers are not possible, or ""."""
    assert form.bits is not None
    fields = [field for field in form.bits.fields if field.is_register]
    for field, number in zip(fields, registers, strict=True):
        if number not in field.values.allowed:
            return "0 is the mask" if number == 0 else f"no group begins at {number}"
    return conflict(form, registers)


def execute(command: Sequence[str], lines: Sequence[str]) -> list[int]:
    """The signal of each line, 0 for none. What ends the emulator is `DIED`."""
    found: list[int] = []
    while len(found) < len(lines):
        text = "\n".join(lines[len(found) :]) + "\n"
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        found += [int(answer) for answer in done.stdout.split()]
        found += [DIED] if len(found) < len(lines) else []
    return found


def code(form: InstructionForm, configuration: Configuration, registers: Sequence[int]) -> str:
    """Words that set a configuration, and the instruction."""
    setup = setup_code(configuration)
    return f"{int.from_bytes(setup, 'little'):08x} {word(form, registers)}"


def check_configurations(command: Sequence[str]) -> list[str]:
    """Compares legal configurations; returns a line per form with those that execute, as bits."""
    every = forms()
    tests = [(form, each) for form in every for each in CONFIGURATIONS]
    answers = execute(command, [code(form, each, suiting(form)) for form, each in tests])
    counts = Counter((not illegal(*test), answer) for test, answer in zip(tests, answers, strict=True))
    print("configurations, (legal, signal):", dict(counts))
    size = len(CONFIGURATIONS)
    bits = [
        "".join(str(int(n != ILLEGAL)) for n in answers[k : k + size]) for k in range(0, len(tests), size)
    ]
    return [f"{form.id} {int(text[::-1], 2):x}" for form, text in zip(every, bits, strict=True)]


def check_registers(command: Sequence[str]) -> list[str]:
    """Compares possible registers; returns some lines where operands are close."""
    configured = [each for form in forms() for each in default_forms(form) if "ZVFH" not in each.features]
    tests = [(form, registers) for form in configured for registers in draws(form)]
    lines = [code(form, form.configuration, numbers) for form, numbers in tests if form.configuration]
    answers = execute(command, lines)
    verdicts = [verdict(*test) for test in tests]
    agreed = Counter(
        (" ".join(why.split()[:3]) or "possible", n) for why, n in zip(verdicts, answers, strict=True)
    )
    print("registers, (verdict, signal):", *sorted(agreed.items()), sep="\n  ")
    found = [
        f"{form.id} {','.join(map(str, numbers))} {int(answer != ILLEGAL)}"
        for (form, numbers), answer, why in zip(tests, answers, verdicts, strict=True)
        if why or len(set(numbers)) < len(numbers)
    ]
    return found[::SOME]


def main() -> None:
    """Build the program, run it, print, and record."""
    arguments = sys.argv[1:]
    record = "--record" in arguments
    command = [argument for argument in arguments if argument != "--record"] or EMULATOR
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/vectors"
        source = Path(__file__).with_suffix(".c")
        compiler = ["riscv64-linux-gnu-gcc", "-static", "-O1", "-march=rv64gcv"]
        subprocess.run([*compiler, source, "-o", program], check=True)
        lines = check_configurations([*command, program])
        lines += check_registers([*command, program])
    if record:
        RECORDED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
