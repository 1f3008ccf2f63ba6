"""Which register plays which role in a kernel of RISC-V."""

from __future__ import annotations

from cyclescope.kernel.fixed_width.registers import CHAIN, RING, SOURCE, Pools

POOLS = Pools(
    "riscv64", 2, 9, 8, 24, 22, 23, 27,
    {
        RING: {
            "r": (10, 11, 12, 13, 15, 5, 6, 7, 16, 17, 25, 28, 29, 30, 1),
            "f": (*range(10, 18), *range(8), 28, 29, 30, 31),
            "v": (*range(8, 32), 0),
        },
        CHAIN: {
            "r": (10, 11, 12, 13, 5, 6, 7),
            "f": (10, 11, 12, 13, 5, 6, 7),
            "v": (8, 24, 16, 12, 20, 28, 10, 14, 9),
        },
        SOURCE: {
            "r": (18, 19, 20, 21, 15, 13, 12),
            "f": (18, 19, 20, 21, 15, 14, 13),
            "v": (24, 8, 28, 12, 20, 26, 16),
        },
    },
    ones=-1, nought=24, value=-1, scratch=16, addresses=-1, indices=-1, others=(28, 29, 30, 25),
)  # fmt: skip
POINTERS = POOLS.pointers
