"""Locations and forms by number, as compiled code knows them."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from threading import Lock
from typing import Generic, TypeVar

from cyclescope.analyze.decode.locations import Location

NO_NUMBER = -1  # no place, no name, no trip: as native/bounds/bounds.h has it
Thing = TypeVar("Thing", bound=Hashable)


class Numbering(Generic[Thing]):
    """Numbers things from 0 on, each once."""

    def __init__(self) -> None:
        self._numbers: dict[Thing, int] = {}
        self._lock = Lock()

    def of(self, thing: Thing) -> int:
        """The number of a thing, less than how many there are."""
        number = self._numbers.get(thing)
        if number is None:
            with self._lock:
                number = self._numbers.setdefault(thing, len(self._numbers))
        return number

    def __len__(self) -> int:
        return len(self._numbers)


PLACE_NUMBERS = Numbering[Location]()  # the same in all of a process
FORM_NUMBERS = Numbering[str]()


def location_number(location: Location | None) -> int:
    """The number of a location, or that of nothing."""
    return NO_NUMBER if location is None else PLACE_NUMBERS.of(location)


def location_words(locations: Iterable[Location | None]) -> bytes:
    """The numbers of locations for compiled code."""
    return array("d", [location_number(one) for one in locations]).tobytes()
