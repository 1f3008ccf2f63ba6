"""Aliases of instructions: other names that assemblers take, as rules from one line to others.

A rule such as `mov {d:R}, {m:R} = orr {d}, {zr}, {m}` has places for operands, each of a kind, on its left,
and lines made of them on its right: `|` stands between lines of which one is meant, `;` between those that an
assembler makes of one. What a line has no value for is left out. `values` of an instruction set adds what
follows from the operands, such as `zr`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, product

Values = Callable[[dict[str, str]], dict[str, str]]
_PLACE = re.compile(r"\{(\w+):(\w+)\}")
_SAMPLES = 64  # lines that a rule is tried with


class OperandKind:
    """Operands of one kind: a regular expression, and some of them."""

    def __init__(self, pattern: str, *samples: str) -> None:
        self.pattern = pattern
        self.samples = samples


class Alias:
    """One rule."""

    def __init__(self, rule: str, kinds: Mapping[str, OperandKind], values: Values) -> None:
        self._left, _, self._right = (part.strip() for part in rule.partition(" = "))
        self._kinds = kinds
        self._values = values
        self.mnemonic = self._left.partition(" ")[0]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        pieces = _PLACE.split(self._left)
        text = re.escape(pieces[0])
        for name, kind, literal in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            text += f"(?P<{name}>{self._kinds[kind].pattern})" + re.escape(literal)
        return re.compile(text)

    def lines(self, line: str) -> list[tuple[str, ...]]:
        """What a line in normal spelling may stand for: each one or more instructions."""
        match = self._pattern.fullmatch(line)
        if match is None:
            return []
        operands = {name: text or "" for name, text in match.groupdict().items()}
        values = operands | self._values(operands)
        made = (tuple(_filled(part, values) for part in one.split(";")) for one in self._right.split("|"))
        return [lines for lines in made if all(lines)]

    def examples(self) -> Iterator[str]:
        """Lines that the rule is about, with samples of its operands."""
        places = [(name, self._kinds[kind].samples) for name, kind in _PLACE.findall(self._left)]
        for chosen in islice(product(*(samples for _, samples in places)), _SAMPLES):
            texts = iter(chosen)
            yield _PLACE.sub(lambda _, texts=texts: next(texts), self._left)  # type: ignore[misc]


def _filled(template: str, values: Mapping[str, str]) -> str:
    """A line, or nothing where a value is missing."""
    try:
        return template.strip().format_map(values)
    except KeyError:
        return ""


def aliases(rules: Sequence[str], kinds: Mapping[str, OperandKind], values: Values) -> dict[str, list[Alias]]:
    """Rules by the name that they begin with."""
    found: dict[str, list[Alias]] = {}
    for rule in rules:
        alias = Alias(rule, kinds, values)
        found.setdefault(alias.mnemonic, []).append(alias)
    return found
