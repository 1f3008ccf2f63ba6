"""Bit patterns of harmless and of slow values, by element type."""

from __future__ import annotations

import struct
from functools import cache

ONE = {
    "f64": struct.pack("<8d", *[1.0] * 8),
    "f32": struct.pack("<16f", *[1.0] * 16),
    "f16": struct.pack("<32e", *[1.0] * 32),
    "bf16": bytes.fromhex("803f") * 32,
}
INTEGERS = bytes(range(1, 65))

# Slow dividends, divisors and radicands: Agner Fog, Test programs for measuring clock cycles. The last
# number is the size in bytes.
SLOW_DIVIDE = {
    "f64": (0x429DA724B687DA66, 0x3FF33E97F934078B, 8),
    "f32": (0x54ED3926, 0x3F99F4C0, 4),
    "f16": (0x2769, 0x3CCF, 2),
}
SLOW_ROOT = {"f64": (0x465A61FE1ACDC21C, 8), "f32": (0x72D30FF1, 4), "f16": (0x1698, 2)}


@cache
def repeated(value: int, size: int) -> bytes:
    """64 bytes of a value of `size` bytes."""
    return value.to_bytes(size, "little") * (64 // size)


def pattern(element: str) -> bytes:
    """64 bytes of harmless values of an element type: ones, or small integers."""
    return ONE.get(element, INTEGERS)
