"""Events by name: the kernel's general ones and its own, and those that event sources of cores name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import NamedTuple

from cyclescope.errors import UsageError, shortened
from cyclescope.host.counters import DEVICES, GENERAL, OF_CACHES, Event, counts
from cyclescope.host.files import Read, files_of
from cyclescope.host.perf import SOFTWARE, open_event, why_not

_KERNEL = ("cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults",
           "major-faults")  # fmt: skip
_CODED = re.compile(r"([\w.\-+]{1,63})=(\d{1,9}):(?:0x)?([0-9a-fA-F]{1,16})")
_PLACE = re.compile(r"(config\d?):([\d,-]+)")


class NamedEvent(NamedTuple):
    """An event, where its name comes from, and why it cannot be counted here, or ""."""

    name: str
    source: str
    kind: int
    config: int
    why_not: str = ""

    @property
    def of_core(self) -> bool:
        """Whether a counter of the core counts it, and not the kernel."""
        return self.kind != SOFTWARE

    @property
    def code(self) -> str:
        """As `cyclescope.h` takes it."""
        return f"{self.name}={self.kind}:{self.config:x}"


def named_events(read: Read | None = None) -> list[NamedEvent]:
    """Every event that has a name here, whether it can be counted or not."""
    found = [NamedEvent(name, "general", kind, config) for name, kind, config in GENERAL]
    found += [NamedEvent(name, "caches", kind, config) for name, kind, config in OF_CACHES]
    found += [NamedEvent(name, "kernel", SOFTWARE, n) for n, name in enumerate(_KERNEL)]
    known = {event.name for event in found}
    found += [event for event in _of_sources(read or files_of()) if event.name not in known]
    return found


def tried_events() -> list[NamedEvent]:
    """Named events, each opened once to see whether it can be counted."""
    return [event._replace(why_not=_refusal(event)) for event in named_events()]


def event_code(text: str) -> Event:
    """The event of a name, or of NAME=TYPE:CONFIG. Raises UsageError."""
    if coded := _CODED.fullmatch(text):
        return coded[1], int(coded[2]), int(coded[3], 16)
    named = {event.name: event for event in named_events()}
    if text not in named:
        close = get_close_matches(text, named, n=1)
        advice = f"did you mean {close[0]}?" if close else "{events} has the names"
        raise UsageError(f"{shortened(text)!r} is no event", advice)
    return text, named[text].kind, named[text].config


def _refusal(event: NamedEvent) -> str:
    try:
        os.close(open_event(event.kind, event.config))
    except OSError as error:
        return why_not(error)
    return ""


# --- event sources ---------------------------------------------------------------------------------


def _of_sources(read: Read) -> Iterator[NamedEvent]:
    for source in filter(counts, (read([DEVICES])[0] or "").split()):
        folder = f"{DEVICES}/{source}"
        kind, names, fields = read([f"{folder}/type", f"{folder}/events", f"{folder}/format"])
        if kind is None or not kind.strip().isdecimal():
            continue
        places = dict(_places(read, folder, (fields or "").split()))
        for name in (names or "").split():
            config = _config(read([f"{folder}/events/{name}"])[0] or "", places)
            if config is not None:
                yield NamedEvent(name, source, int(kind), config)


def _places(read: Read, folder: str, fields: list[str]) -> Iterator[tuple[str, list[int]]]:
    """Bits of the event's code that each field of a source has, the lowest first."""
    texts = read([f"{folder}/format/{field}" for field in fields])
    for field, text in zip(fields, texts, strict=True):
        place = _PLACE.fullmatch((text or "").strip())
        if place and place[1] == "config":
            yield field, [bit for part in place[2].split(",") for bit in _bits(part)]


def _bits(part: str) -> range:
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)


def _config(text: str, places: dict[str, list[int]]) -> int | None:
    """The code of an event such as `event=0xc0,umask=0x1`; None where it needs more than a code."""
    config = 0
    for term in text.strip().split(","):
        name, _, value = term.partition("=")
        try:
            number = int(value or "1", 0)
        except ValueError:
            return None
        if name not in places:
            return None
        config |= sum((number >> n & 1) << bit for n, bit in enumerate(places[name]))
    return config
