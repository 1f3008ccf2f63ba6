"""Operands of an instruction form."""

from __future__ import annotations

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
