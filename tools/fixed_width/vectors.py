"""Compare the rules for RISC-V's vector configurations and registers with what an emulator or CPU executes.

    python -m tools.fixed_width.vectors [--record] [COMMAND]...

COMMAND runs a static RISC-V program; without, QEMU 7.2 does. From 8 on `-cpu max,vlen=256,elen=64` is the CPU
to ask for. Needs riscv64-linux-gnu-gcc.

Every form runs under every SEW and LMUL with registers that suit all of them, to see which configurations are
legal, and under its default configurations with random registers. Prints how often the rules and the
executions agree. Features of which nothing runs, and forms that end the emulator, are left out and printed:
QEMU 7.2 has no extension but V and ends at conversions that round towards zero, QEMU 10 lacks three. QEMU
lets some registers be sources with two widths of elements, 7.2 all, which is reserved. `--record` writes
answers down for the tests.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Configuration, Operand
from cyclescope.isa.riscv64.configuration import LMULS, SEWS, setup_code
from cyclescope.isa.riscv64.legality import ELEMENT_GROUPS, configurations, features, illegal
from cyclescope.isa.riscv64.overlap import conflict
from cyclescope.isa.riscv64.shapes import takes_configuration
from cyclescope.isa.riscv64.vector import configured
from cyclescope.isa.table import load_table

EMULATOR = ["qemu-riscv64-static", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=256,elen=64,Zfh=true"]
RECORDED = Path(__file__).parents[2] / "tests/unit/isa/fixed_width/recorded/riscv64_vectors.txt"
BASE, OTHER = 10, 11  # registers with an address, with 8
SUITING = (8, 16, 24)  # registers where groups of every size begin
DRAWS = 24  # per form and configuration
SOME = 23  # of these many close calls, one is written down
ILLEGAL = 4  # SIGILL
DIED = 99
CONFIGURATIONS = [Configuration(sew, lmul) for sew in SEWS for lmul in LMULS if lmul * 64 >= sew]


def forms(command: Sequence[str]) -> list[InstructionForm]:
    """Vector forms of the table that the command executes."""
    every = [form for form in load_table("riscv64") if takes_configuration(form)]
    tests = [(form, each) for form in every for each in configurations(form)]
    answers = execute(command, [code(form, each, suiting(form)) for form, each in tests])
    there = {form.features for (form, _), answer in zip(tests, answers, strict=True) if answer != ILLEGAL}
    died = {form.id for (form, _), answer in zip(tests, answers, strict=True) if answer == DIED}
    absent = {"+".join(form.features) for form in every if form.features not in there}
    print("features that are not there:", *sorted(absent))
    print("forms that end the emulator:", *sorted(died))
    return [form for form in every if form.features in there and form.id not in died]


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


def known(form: InstructionForm, configuration: Configuration) -> bool:
    """Whether QEMU has it: ZVBC32E not, groups of elements only where registers are long enough."""
    part = configuration.lmul < 1 and re.fullmatch(ELEMENT_GROUPS, form.mnemonic)
    return not part and "ZVBC32E" not in features(form, configuration)


def check_configurations(command: Sequence[str], every: list[InstructionForm]) -> list[str]:
    """Compares legal configurations; returns a line per form with those that execute, as bits."""
    tests = [(form, each) for form in every for each in CONFIGURATIONS if known(form, each)]
    answers = execute(command, [code(form, each, suiting(form)) for form, each in tests])
    counts: Counter[tuple[bool, int]] = Counter()
    bits = {form.id: 0 for form in every}
    for (form, each), answer in zip(tests, answers, strict=True):
        counts[not illegal(form, each), answer] += 1
        bits[form.id] |= (answer != ILLEGAL) << CONFIGURATIONS.index(each)
    print("configurations, (legal, signal):", dict(counts))
    return [f"{form_id} {number:x}" for form_id, number in bits.items()]


def check_registers(command: Sequence[str], every: list[InstructionForm]) -> list[str]:
    """Compares possible registers; returns some lines where operands are close."""
    pairs = [(form, each) for form in every for each in configurations(form) if known(form, each)]
    tests = [
        (form, numbers)
        for plain, each in pairs
        for form in [configured(plain, each)]
        for numbers in draws(form)
    ]
    lines = [code(form, form.configuration, numbers) for form, numbers in tests if form.configuration]
    answers = execute(command, lines)
    verdicts = [verdict(*test) for test in tests]
    words = [" ".join(why.split()[:3]) or "possible" for why in verdicts]
    print(
        "registers, (verdict, signal):",
        *sorted(Counter(zip(words, answers, strict=True)).items()),
        sep="\n  ",
    )
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
        command = [*command, program]
        every = forms(command)
        lines = check_configurations(command, every) + check_registers(command, every)
    if record:
        RECORDED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
