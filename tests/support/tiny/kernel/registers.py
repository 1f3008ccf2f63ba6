"""Which register plays which role in a kernel of the tiny instruction set."""

from __future__ import annotations

from cyclescope.kernel.fixed_width.registers import CHAIN, RING, SOURCE, Pools

POOLS = Pools(
    "tiny", stack=30, base=20, alias=21, zero=22, constant=23, temporary=24, counter=31,
    pools={RING: {"r": tuple(range(14))}, CHAIN: {"r": (1, 2, 3, 5)}, SOURCE: {"r": (15, 16, 17, 18)}},
    ones=-1, nought=-1, value=-1, scratch=-1, addresses=-1, indices=-1, others=(25, 26, 27, 28),
)  # fmt: skip
POINTERS = POOLS.pointers
