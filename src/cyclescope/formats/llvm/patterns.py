"""LLVM's patterns of opcodes (`instregex`), matched in a time that their writer cannot make long.

They are regular expressions that match the beginning of a name. Those of Python try one way after the
other, which a pattern in a file from elsewhere can make last for ever; here all ways go at once.
"""

from __future__ import annotations

from collections.abc import Callable

Places = frozenset[int]  # in a name: where a part of a pattern may end
Matcher = Callable[[str, Places], Places]

LONGEST = 2000  # characters: LLVM's longest has some hundred
DEEPEST = 20  # parentheses in each other
_MOST_TIMES = 64  # of `*` and `+`: opcodes have no more characters
_SPECIAL = frozenset("()|?*+{}")
_SIGNS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}  # least, most


def opcode_pattern(text: str) -> Callable[[str], bool]:
    """Whether a name begins as a pattern says. Raises ValueError for what is no such pattern."""
    if len(text) > LONGEST:
        raise ValueError(f"a pattern of {len(text)} characters")
    reader = _Reader(text)
    matcher = reader.alternatives(0)
    if reader.rest():
        raise ValueError("a parenthesis without its partner")
    start, needed = frozenset((0,)), _needed(text)
    return lambda name: needed in name and bool(matcher(name, start))


def _needed(text: str) -> str:
    """Letters that are in every name that a pattern fits, as far as is easily seen: most names lack them."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and (sign == "|" or sign in "[\\{"):
            return ""
        if depth == 0 and sign in "?*":
            parts[-1] = parts[-1][:-1]
        if depth == 0 and (sign.isalnum() or sign == "_"):
            parts[-1] += sign
        else:
            parts.append("")
    return max(parts, key=len)


class _Reader:
    """Makes a matcher of a pattern, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def rest(self) -> str:
        return self._text[self._at :]

    def alternatives(self, depth: int) -> Matcher:
        if depth > DEEPEST:
            raise ValueError(f"more than {DEEPEST} parentheses in each other")
        found = [self._sequence(depth)]
        while self._taken("|"):
            found.append(self._sequence(depth))
        return lambda name, places: frozenset().union(*(one(name, places) for one in found))

    def _sequence(self, depth: int) -> Matcher:
        parts = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            parts.append(self._repeated(depth))
        return _all_of(parts)

    def _repeated(self, depth: int) -> Matcher:
        one = self._one(depth)
        if self._taken("{"):
            return _times(one, *self._times())
        sign = next((sign for sign in _SIGNS if self._taken(sign)), "")
        return _times(one, *_SIGNS[sign]) if sign else one

    def _one(self, depth: int) -> Matcher:
        if self._taken("("):
            inside = self.alternatives(depth + 1)
            if not self._taken(")"):
                raise ValueError("a parenthesis without its partner")
            return inside
        sign = self._next()
        if sign == "^":
            return lambda _, places: places & frozenset((0,))
        if sign == "$":
            return lambda name, places: places & frozenset((len(name),))
        if sign == ".":
            return _of(lambda _: True)
        if sign == "[":
            return self._set()
        if sign in _SPECIAL:
            raise ValueError(f"{sign!r} where a name goes on")
        wanted = self._escaped() if sign == "\\" else sign
        return _of(lambda letter: letter == wanted)

    def _escaped(self) -> str:
        sign = self._next()
        if sign.isalnum():
            raise ValueError(f"an escaped {sign!r}")
        return sign

    def _set(self) -> Matcher:
        """What is in brackets: letters, ranges of them, none of them behind a caret."""
        without = self._taken("^")
        found: set[str] = set()
        while not self._taken("]") or not found:
            first = self._next()
            last = (
                self._next() if self.rest()[:1] == "-" and self.rest()[1:2] != "]" and self._next() else first
            )
            if ord(last) - ord(first) > ord("~"):
                raise ValueError("a range over more than names are made of")
            found.update(map(chr, range(ord(first), ord(last) + 1)))
        return _of(lambda letter: (letter in found) != without)

    def _times(self) -> tuple[int, int | None]:
        """The numbers of `{2}`, `{2,}` and `{2,3}`."""
        inside, closed, _ = self.rest().partition("}")
        low, comma, high = inside.partition(",")
        if not closed or not low.isdecimal() or (high and not high.isdecimal()) or len(inside) > len("10,20"):
            raise ValueError("braces without numbers")
        self._at += len(inside) + 1
        return int(low), int(high or low) if high or not comma else None

    def _taken(self, sign: str) -> bool:
        found = self._text.startswith(sign, self._at)
        self._at += found
        return found

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise ValueError("a pattern that stops within a part")
        self._at += 1
        return self._text[self._at - 1]


def _of(fits: Callable[[str], bool]) -> Matcher:
    """One letter."""
    return lambda name, places: frozenset(at + 1 for at in places if at < len(name) and fits(name[at]))


def _all_of(parts: list[Matcher]) -> Matcher:
    def match(name: str, places: Places) -> Places:
        for part in parts:
            if not places:
                break
            places = part(name, places)
        return places

    return match


def _times(one: Matcher, least: int, most: int | None) -> Matcher:
    """A part so many times."""

    def match(name: str, places: Places) -> Places:
        for _ in range(least):
            before, places = places, one(name, places)
            if places == before:  # none, or all that there are: no further time finds another
                break
        every = places
        for _ in range(_MOST_TIMES if most is None else most - least):
            places = one(name, places) - every
            if not places:
                break
            every |= places
        return every

    return match
