"""How assemblers write the values of fields that no simple rule covers."""

from __future__ import annotations

from collections.abc import Callable

_MULTIPLIERS = ("m1", "m2", "m4", "m8", "", "mf8", "mf4", "mf2")


def bit_mask(value: int, width: int) -> int:
    """The repeated, rotated run of ones that AArch64 encodes as N:immr:imms. Raises ValueError for none."""
    n, rotation, run = value >> 12, value >> 6 & 63, value & 63
    length = (n << 6 | ~run & 63).bit_length() - 1
    size = 1 << max(length, 0)
    run, rotation = run & size - 1, rotation & size - 1
    if length < 1 or size > width or run == size - 1:
        raise ValueError(f"{value:#x} encodes no bit mask")
    ones = (1 << run + 1) - 1
    element = (ones >> rotation | ones << size - rotation) & (1 << size) - 1
    return sum(element << at for at in range(0, width, size))


def _bit_mask(width: int) -> Callable[[int], str]:
    return lambda value: f"#{bit_mask(value, width):#x}"


def _shifted(value: int) -> str:
    return f"#{value & 0xFFF}" + (", lsl #12" if value >> 12 else "")


def _system_register(value: int) -> str:
    return f"S{value >> 14}_{value >> 11 & 7}_C{value >> 7 & 15}_C{value >> 3 & 15}_{value & 7}"


def _vector_type(value: int) -> str:
    multiplier = _MULTIPLIERS[value & 7]
    if value >> 8 or value >> 5 & 1 or not multiplier:
        return str(value)
    policy = "ta" if value >> 6 & 1 else "tu", "ma" if value >> 7 & 1 else "mu"
    return f"e{8 << (value >> 3 & 7)}, {multiplier}, {', '.join(policy)}"


FUNCTIONS: dict[str, Callable[[int], str]] = {
    "bit_mask_32": _bit_mask(32),
    "bit_mask_64": _bit_mask(64),
    "shifted": _shifted,
    "system_register": _system_register,
    "vector_type": _vector_type,
}
