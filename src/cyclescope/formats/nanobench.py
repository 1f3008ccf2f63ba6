"""nanoBench's lists of events: `EvtSel.UMASK(.CMSK=n)(.EDG)(.INV) Name` per line, as raw events of perf."""

from __future__ import annotations

import re

from cyclescope.errors import SourceError, shortened
from cyclescope.host.counters import RAW, Event

_LINE = re.compile(
    r"(?P<event>[0-9A-Fa-f]{2,3})\.(?P<mask>[0-9A-Fa-f]{2})(?P<more>(?:\.[\w=]+)*)(?:\s+(?P<name>.*))?"
)
_BITS = {"EDG": 1 << 18, "ANYT": 1 << 21, "INV": 1 << 23}
_MASK_AT, _LONG_AT = 24, 32  # CMSK; bits 8 to 11 of AMD's events
_ANYWHERE = ("TAKENALONE", "CTR")  # which counter: that perf chooses itself


def read_events(text: str, source: str) -> tuple[Event, ...]:
    """The events of a list. Raises SourceError for a line that is none, or that user space cannot count."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].strip()
        if words:
            found.append(_event(words, f"{source}, line {number}"))
    if not found:
        raise SourceError(f"{source} has no events", "write lines such as 0E.01 UOPS_ISSUED.ANY")
    return tuple(found)


def _event(words: str, where: str) -> Event:
    match = _LINE.fullmatch(words)
    if match is None:
        raise SourceError(
            f"{where}: {shortened(words)!r} is no event", "write EVENT.UMASK in hexadecimal, and a name"
        )
    event = int(match["event"], 16)
    config = event & 0xFF | int(match["mask"], 16) << 8 | (event >> 8) << _LONG_AT
    for option in filter(None, match["more"].split(".")):
        config |= _option(option, where)
    return (match["name"] or words).strip(), RAW, config


def _option(option: str, where: str) -> int:
    name, _, value = option.upper().partition("=")
    if name in _BITS:
        return _BITS[name]
    if name == "CMSK" and re.fullmatch(r"\d{1,3}", value) and int(value) < 1 << 8:
        return int(value) << _MASK_AT
    if name in _ANYWHERE:
        return 0
    raise SourceError(f"{where}: {shortened(option)!r} cannot be counted from user space", "leave it out")
