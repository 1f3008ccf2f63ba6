"""What a format could not express, or what of a file was refused, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cyclescope.formats.exchange import Item
from cyclescope.report.words import counted

_SHOWN = 5  # reasons, the most frequent first


def left_out_text(items: Sequence[Item], word: str, whole: bool = False) -> str:
    """Counts by reason, or every item; empty where there is none. Ends with a line break."""
    if not items:
        return ""
    if whole:
        return "".join(f"{word}: {item.place}: {_told(item)}\n" for item in items)
    reasons = Counter(item.reason for item in items).most_common()
    shown = [f"  {number:6} {reason}" for reason, number in reasons[:_SHOWN]]
    rest = sum(number for _, number in reasons[_SHOWN:])
    more = [f"  {rest:6} for other reasons"] if rest else []
    return "\n".join([f"{counted(len(items), 'item')} {word}:", *shown, *more]) + "\n"


def _told(item: Item) -> str:
    return f"{item.reason} ({item.detail})" if item.detail else item.reason
