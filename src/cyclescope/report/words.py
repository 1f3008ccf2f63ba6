"""Words of reports."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """`1 form`, `2 forms`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
