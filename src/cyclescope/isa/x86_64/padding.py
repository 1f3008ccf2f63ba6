"""NOPs of every length, as both vendors' manuals recommend them."""

from __future__ import annotations

from cyclescope.isa.x86_64.record import RECORD

_PREFIX = "66"
_PLAIN = (
    "90",
    "6690",
    "0f1f00",
    "0f1f4000",
    "0f1f440000",
    "660f1f440000",
    "0f1f8000000000",
    "0f1f840000000000",
)


def nop(length: int) -> bytes | None:
    """One NOP of so many bytes, None where there is none: beyond eight bytes it has more prefixes."""
    if not 1 <= length <= RECORD.longest:
        return None
    more = max(length - len(_PLAIN), 0)
    return bytes.fromhex(_PREFIX * more + _PLAIN[length - more - 1])
