"""Which register plays which role in a kernel of AArch64."""

from __future__ import annotations

from cyclescope.kernel.fixed_width.registers import CHAIN, RING, SOURCE, Pools

POOLS = Pools(
    "aarch64", 31, 20, 21, 22, 23, 24, 28,
    {
        RING: {"r": (*range(18), 19, 25, 26, 27), "v": tuple(range(24)), "p": (*range(1, 7), *range(8, 15))},
        CHAIN: {"r": (1, 2, 3, 5, 6, 7, 4, 0, 8), "v": (1, 2, 3, 5, 6, 7, 4, 0), "p": (1, 2, 3, 4, 5, 8, 9)},
        SOURCE: {"r": (9, 10, 11, 12, 13), "v": (16, 17, 18, 15, 14, 13, 7, 6, 5), "p": (7, 6, 12, 5, 13)},
    },
    ones=31, nought=30, value=29, scratch=26, addresses=28, indices=27, mask=7, truths=(15, 0),
    others=(19, 25, 26, 27),
)  # fmt: skip
POINTERS = POOLS.pointers
