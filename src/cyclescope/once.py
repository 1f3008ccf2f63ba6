"""What is asked for again and again: made once, and then an attribute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Self, TypeVar, overload

One = TypeVar("One")
Made = TypeVar("Made")


class once(Generic[One, Made]):  # noqa: N801 - a decorator
    """A cached_property without the lock that Python 3.11 takes: what two threads make, is made twice."""

    def __init__(self, make: Callable[[One], Made]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, one: None, owner: type[One]) -> Self: ...
    @overload
    def __get__(self, one: One, owner: type[One]) -> Made: ...
    def __get__(self, one: One | None, owner: type[One]) -> Self | Made:
        if one is None:
            return self
        found: Made = one.__dict__.setdefault(self._name, self._make(one))
        return found
