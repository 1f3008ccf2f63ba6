"""Operands of an instruction form, and the configuration that vectors are worked on under."""

from __future__ import annotations

from fractions import Fraction

import msgspec

BLOCKS = {"block4": 4, "pair": 2}  # consecutive registers that one operand stands for


class Operand(msgspec.Struct, frozen=True):
    """One operand of an instruction form.

    `name` is `op1`, `op2`, ... for what a programmer writes, in uops.info's order (a mask is the
    second operand), a register name (`RAX`) for an implicit register, `[RSI]` for implicit memory.
    `kind` is `register`, `memory`, `address` (of LEA), `immediate` or `branch`. `cls` is the
    register class (`R64`, `R8h`, `ZMM`, `K`, ...), the memory class (`M64`, `M32_1to8`,
    `VSIB_XMM`, ...) or the immediate's class. `width` is in bits, for memory the bits accessed.
    `conditional` marks accesses that may not happen; a conditional write is also a read, because
    the old value may pass through. `fixed` names the register when the encoding leaves no choice, or
    is one of `BLOCKS`.

    On AArch64 and RISC-V `opN` is LLVM's operand number N, counted from 1; an operand that is tied to a
    result is the result. Classes are LLVM's. Memory is implicit and has the name of its base: `[op2]`.
    `role` is `base`, `index` or `offset` for a part of an address, `mask` for a predicate; `file` the
    register file; results with `early_clobber` have no register of a source. `group` is how many registers
    the operand is: consecutive ones of a vector group of RISC-V.
    """

    name: str
    kind: str
    cls: str
    width: int
    read: bool
    write: bool
    conditional: bool
    implicit: bool
    fixed: str
    element: str
    role: str = ""
    file: str = ""
    early_clobber: bool = False
    group: int = 1

    @property
    def is_register(self) -> bool:
        """Whether the operand is a register."""
        return self.kind == "register"

    @property
    def is_memory(self) -> bool:
        """Whether the operand is accessed memory."""
        return self.kind == "memory"


class Configuration(msgspec.Struct, frozen=True):
    """What an instruction that works on vectors finds set, where others set it, as RISC-V's do.

    The width of elements in bits (SEW), how many registers a vector has (LMUL), whether elements behind the
    last one and masked-off ones stay as they were, and the number of elements. `masked` says whether
    instructions have the mask v0.t; `vl` is 0 for the longest vector there is.
    """

    sew: int
    lmul: Fraction
    tail_undisturbed: bool = False
    mask_undisturbed: bool = False
    masked: bool = False
    vl: int = 0

    def __str__(self) -> str:
        length = f"m{self.lmul}" if self.lmul >= 1 else f"mf{1 / self.lmul}"
        words = {"tu": self.tail_undisturbed, "mu": self.mask_undisturbed, "masked": self.masked}
        words[f"vl{self.vl}"] = self.vl > 0
        return ",".join([f"e{self.sew}", length, *(word for word, said in words.items() if said)])

    @property
    def plain(self) -> Configuration:
        """The same vectors for any instruction: no mask, and no policy, which not all have."""
        return Configuration(self.sew, self.lmul, vl=self.vl)
