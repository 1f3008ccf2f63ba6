"""Compare the tables and the decoder of AArch64 and RISC-V with LLVM's disassembler, word by word.

    python -m tools.fixed_width.verify [--record] [ISA]...

Needs g++ and llvm-22-dev. Words are made of every form with legal values, and drawn at random. Of those that
LLVM takes for an instruction, prints how many the decoder takes for the same one, and how often registers or
text differ: LLVM never writes some forms but by their aliases (BFM, SBFM, UBFM, MOVZ, MOVN), and writes a
shift where an index has none. `--record` writes some of the answers down for the tests, `RECORDED`.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cyclescope.isa.decode import Decoded, decoder
from cyclescope.isa.table import Table, load_table

from .probe import Answer, Probe, build
from .rules import optional

PER_FORM = 12
RANDOM = 400_000
REQUIRED = 0.999
RECORDED = Path(__file__).parents[2] / "tests/unit/isa/fixed_width/recorded"
SOME = 601  # of these many answers, one is written down


def standard_features(table: Table) -> str:
    """What LLVM needs to know the forms that the decoder knows."""
    if table.isa == "aarch64":
        return "+all"
    known = (name for form in table if "optional" not in form.attributes for name in form.features)
    parts = {part for name in known for part in name.replace("|", "+").split("+")}
    names = {part.lower() for part in parts - {"BASE", "RV64"} if not optional([part])}
    unstable = {f"experimental-{name}" for name in names}
    return ",".join(f"+{name}" for name in sorted(names | unstable))


def words(table: Table) -> Iterator[bytes]:
    """Machine code: every form with random legal values, and anything."""
    draw = random.Random("verify")
    for form in table:
        if form.bits and "optional" not in form.attributes:
            for _ in range(PER_FORM):
                yield form.bits.encode([draw.choice(f.values.legal) for f in form.bits.fields])
    for _ in range(RANDOM):
        word = draw.getrandbits(32) | (0 if table.isa == "aarch64" else 3)
        if table.isa == "aarch64" or word & 0x1F != 0x1F:
            yield word.to_bytes(4, "little")
    if table.isa == "riscv64":
        yield from (n.to_bytes(2, "little") for n in range(1 << 16) if n & 3 != 3)


def differences(found: Decoded | None, answer: Answer) -> Iterator[str]:
    """What is not as LLVM says."""
    if found is None:
        yield "not decoded"
    elif found.form.id != answer.opcode:
        yield "another form"
    else:
        if _registers(found) != _expected(found, answer):
            yield "registers"
        if found.text.lower() != answer.text.lower():
            yield "text"


def _registers(found: Decoded) -> list[str]:
    ops = found.form.operands
    return [found.register(k) for k, op in enumerate(ops) if op.is_register and not op.implicit]


def _expected(found: Decoded, answer: Answer) -> list[str]:
    ops = [op for op in found.form.operands if op.is_register and not op.implicit]
    names = [answer.operands[int(op.name[2:]) - 1] for op in ops]
    return ["" if name == "?" else name for name in names]


def ask(isa: str, program: Path) -> list[tuple[bytes, Answer | None]]:
    """What LLVM says about the words."""
    table = load_table(isa)
    codes = list(words(table))
    features = standard_features(table)
    answers = Probe(program, isa).decode((features, code) for code in codes)
    return list(zip(codes, answers, strict=True))


def record(isa: str, asked: list[tuple[bytes, Answer | None]]) -> None:
    """Write some answers down: code, opcode, registers and numbers, text."""
    known = [(code, answer) for code, answer in asked if answer][::SOME]
    lines = (f"{c.hex()}\t{a.opcode}\t{' '.join(a.operands)}\t{a.text}\n" for c, a in known)
    (RECORDED / f"{isa}.txt").write_text("".join(lines))


def compare(isa: str, asked: list[tuple[bytes, Answer | None]]) -> bool:
    """Print the agreement of one ISA; whether it is as good as it has to be."""
    known = decoder(isa)
    counts: Counter[str] = Counter()
    examples: dict[str, Counter[str]] = {}
    for code, answer in asked:
        found = known.decode(code)
        if answer is None:
            counts["only decoded here"] += found is not None
            continue
        counts["valid"] += 1
        for what in differences(found, answer):
            counts[what] += 1
            examples.setdefault(what, Counter())[f"{answer.opcode} {code.hex()}: {answer.text}"] += 1
    return _report(isa, counts, examples)


def _report(isa: str, counts: Counter[str], examples: dict[str, Counter[str]]) -> bool:
    wrong = counts["not decoded"] + counts["another form"]
    share = 1 - wrong / counts["valid"]
    print(f"{isa}: {counts['valid']} words, {share:.4%} the same instruction; {dict(counts)}")
    for what, found in examples.items():
        opcodes = Counter(text.split()[0] for text in found)
        print(f"  {what}: {dict(opcodes.most_common(12))}", *list(found)[:6], sep="\n    ")
    return share >= REQUIRED


def main() -> None:
    """Compare the ISAs given, or both; ends with 1 where one is worse than it has to be."""
    wanted = [name for name in sys.argv[1:] if name != "--record"]
    good = True
    with tempfile.TemporaryDirectory() as directory:
        program = build(Path(directory))
        for isa in wanted or ("aarch64", "riscv64"):
            asked = ask(isa, program)
            good &= compare(isa, asked)
            if "--record" in sys.argv:
                record(isa, asked)
    sys.exit(not good)


if __name__ == "__main__":
    main()
