"""What the tests of AArch64 and RISC-V kernels have in common: forms, and the registers they touch."""

from __future__ import annotations

import random
from functools import cache

from cyclescope.isa.find.pattern import select
from cyclescope.isa.table import load_table
from cyclescope.kernel.fixed_width.blocking import touched
from cyclescope.measure.plan import Planner

ISAS = ("aarch64", "riscv64")


@cache
def planner(isa):
    """A planner for a CPU that executes every form."""
    return Planner(load_table(isa), lambda form: True)


@cache
def sample(isa, count=700, seed=7):
    """Forms that can be measured, drawn over the table; vector instructions under their configurations."""
    forms = [f for f in select(load_table(isa), []) if not planner(isa).dialect.unmeasurable(f)]
    return tuple(random.Random(seed).sample(forms, count))


def reads(instruction, isa):
    """Registers that an instruction reads."""
    return touched(instruction.form, instruction.registers, isa, write=False)


def writes(instruction, isa):
    """Registers that it writes."""
    return touched(instruction.form, instruction.registers, isa, write=True)
