"""How RISC-V is written otherwise than the table has it."""

from __future__ import annotations

import re

from cyclescope.isa.find.spelling import Spelling
from cyclescope.isa.riscv64.aliases import ALIASES

_ABI = ("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{n}" for n in range(8)),
        *(f"s{n}" for n in range(2, 12)), *(f"t{n}" for n in range(3, 7)))  # fmt: skip
_FLOAT_ABI = (*(f"ft{n}" for n in range(8)), "fs0", "fs1", *(f"fa{n}" for n in range(8)),
              *(f"fs{n}" for n in range(2, 12)), *(f"ft{n}" for n in range(8, 12)))  # fmt: skip
_NO_OFFSET = re.compile(r"(?<= )\((\w+)\)")


def _alternatives(line: str) -> list[str]:
    return [_NO_OFFSET.sub(r"0(\1)", line)]


SPELLING = Spelling(
    names={
        "fp": "s0", **{f"x{n}": name for n, name in enumerate(_ABI)},
        **{f"f{n}": name for n, name in enumerate(_FLOAT_ABI)},
    },
    endings=(", dyn", ", tu, mu"),
    aliases=ALIASES,
    alternatives=_alternatives,
)  # fmt: skip
