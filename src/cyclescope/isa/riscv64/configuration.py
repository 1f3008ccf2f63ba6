"""Vector configurations of RISC-V: what vsetvli sets, and whether an instruction is masked.

As text `e32,m1`: width of elements, length multiplier; then `tu`, `mu`, `masked` and `vl4` where policies are
not agnostic, there is a mask, or vectors are not the longest.
"""

from __future__ import annotations

import re
from fractions import Fraction

from cyclescope.errors import UsageError
from cyclescope.isa.operand import Configuration

RISCV64 = "riscv64"  # the name of the instruction set
SEWS = (8, 16, 32, 64)
LMULS = tuple(Fraction(2) ** power for power in range(-3, 4))
_CODES = {Fraction(2) ** power: power & 7 for power in range(-3, 4)}
_SCRATCH = 31  # x31: t6
_LONGEST = 2047  # what one ADDI loads
_TEXT = re.compile(r"e(\d+)(?:,(mf?)(\d+))?((?:,\w+)*)")


def vtype(configuration: Configuration) -> int:
    """The value of the register `vtype`."""
    agnostic = (not configuration.tail_undisturbed) << 6 | (not configuration.mask_undisturbed) << 7
    return _CODES[configuration.lmul] | (configuration.sew.bit_length() - 4) << 3 | agnostic


def parse(text: str) -> Configuration:
    """A configuration of its text; LMUL is 1 where it says none. Raises UsageError for anything else."""
    match = _TEXT.fullmatch(text.strip().lower().replace(" ", ""))
    words = match[4].split(",")[1:] if match else ["?"]
    length = next((word for word in words if re.fullmatch(r"vl[1-9]\d{0,3}", word)), "")
    flags = {"ta", "tu", "ma", "mu", "masked", length}
    if match is None or not flags.issuperset(words) or len(set(words)) < len(words):
        raise UsageError(f"{text!r} is no vector configuration", "e32,m1 or e8,mf2,tu,masked are some")
    number = Fraction(match[3] or 1)
    lmul = 1 / number if match[2] == "mf" and number else number
    vl = int(length[2:] or 0)
    if int(match[1]) not in SEWS or lmul not in LMULS or (match[2] == "mf" and number == 1):
        raise UsageError(f"{text!r} is no vector configuration", "e8 to e64 and mf8 to m8 are")
    if {"ta", "tu"} <= set(words) or {"ma", "mu"} <= set(words) or vl > _LONGEST:
        raise UsageError(f"{text!r} is no vector configuration", f"one of each; at most vl{_LONGEST}")
    return Configuration(int(match[1]), lmul, "tu" in words, "mu" in words, "masked" in words, vl)


def setup_code(configuration: Configuration) -> bytes:
    """The machine code that sets a configuration; it changes x31."""
    if not configuration.vl:
        return _vsetvli(configuration, 0)
    load = configuration.vl << 20 | _SCRATCH << 7 | 0x13  # addi x31, x0, vl
    return load.to_bytes(4, "little") + _vsetvli(configuration, _SCRATCH)


def _vsetvli(configuration: Configuration, source: int) -> bytes:
    word = vtype(configuration) << 20 | source << 15 | 7 << 12 | _SCRATCH << 7 | 0x57
    return word.to_bytes(4, "little")
