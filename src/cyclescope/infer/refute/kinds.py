"""How often forms of a kind spoil the mixes that they are in.

A form is in one or two fresh mixes, which say little of it, but its kind, all forms of a mnemonic with the
same ports, is in more, and all forms with those ports are in many. A mix holds if none of its forms spoils
it, so that the chance of it is a product over its forms (a noisy-or); whom a mix that does not hold is to
blame on follows from how often each is in such mixes (expectation maximisation). What is not in enough
mixes is as likely to spoil one as what it belongs to: a form as its kind, a kind as its ports, ports as any
form.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from cyclescope.model.facts import HIGH, LOW, MEDIUM

# What is believed before any mix.
SPOILING = 0.02  # chance with which a form spoils a mix
KNOWN_MIXES = 10.0  # mixes that say as much of any form as that does, of ports as any, of a kind as ports
OWN_MIXES = 4.0  # mixes of its own that say as much of a form as its kind does
MOSTLY = 0.5  # of the mixes of a form, or a unit: if more fail, or hold, it is for what they have in common
LIMITS = 0.8  # of the mixes that tell a unit from none: if fewer take as long as it says, it is no limit
PROVED = 2  # mixes that say the same: what one says, with one neighbour or one bad partner, is chance
FEWEST_FORMS, MOST_FORMS = 3, 6  # forms of a mix
# Of mixes of such forms alone that take what ports let them take, and of those that are predicted: the
# worst that a level has, which says more of all of its forms. Where more are not predicted none is left.
_SURE = 0.9
HELD_AT_WORST = {"high": _SURE, "medium": 0.75}
PREDICTED_AT_WORST = {"high": _SURE, "medium": MOSTLY}
SETTLED = 0.0002  # by which a step changes a chance: a hundredth of what is believed before any mix

Mix = tuple[Sequence[str], bool]  # different forms, and whether it holds
Kind = tuple[str, str]  # ports, and a mnemonic
_Key = TypeVar("_Key", str, tuple[str, str])


class Blame(msgspec.Struct, frozen=True):
    """The chance with which a form spoils a mix: by ports, kind, forms that were in mixes, and of any."""

    ports: Mapping[str, float] = {}
    kinds: Mapping[Kind, float] = {}
    forms: Mapping[str, float] = {}
    every: float = SPOILING

    def of(self, form: str, kind: Kind) -> float:
        """The chance of one form; where it was in no mix that of its kind, or of its ports."""
        for chance in (self.forms.get(form), self.kinds.get(kind), self.ports.get(kind[0])):
            if chance is not None:
                return chance
        return self.every

    def level(self, form: str, kind: Kind, at_worst: Mapping[str, float]) -> str:
        """The highest confidence that mixes leave a form."""
        chance = self.of(form, kind)
        if chance > most_spoiled(at_worst[MEDIUM]):
            return LOW
        return MEDIUM if chance > most_spoiled(at_worst[HIGH]) else HIGH


def most_spoiled(held: float) -> float:
    """Share of its mixes that a form may spoil, if so many mixes of such forms alone hold."""
    usual = (FEWEST_FORMS + MOST_FORMS) // 2
    return 1.0 - math.pow(held, 1 / usual)


class MixCounts(NamedTuple):
    """How many mixes have each form, how many times forms with some ports and of a kind are in them, and the
    forms of those that do not hold.
    """

    forms: Mapping[str, int]
    ports: Mapping[str, float]
    kinds: Mapping[Kind, float]
    spoiled: Sequence[Sequence[str]]

    @property
    def suspects(self) -> set[str]:
        """Forms of mixes that do not hold."""
        return {form for forms in self.spoiled for form in forms}


def counts_of(mixes: Sequence[Mix], kinds: Mapping[str, Kind]) -> MixCounts:
    """What all steps of the maximisation have in common."""
    number = Counter(form for forms, _ in mixes for form in forms)
    of_ports = _sums((kinds[form][0], count) for form, count in number.items())
    of_kinds = _sums((kinds[form], count) for form, count in number.items())
    return MixCounts(number, of_ports, of_kinds, [forms for forms, holds in mixes if not holds])


def blame(mixes: Sequence[Mix], kinds: Mapping[str, Kind]) -> Blame:
    """Whom the mixes that do not hold are to blame on."""
    some = counts_of(mixes, kinds)
    suspects = some.suspects  # what steps ask for; the last one is for all forms
    found, better = Blame(), improved(Blame(), some, kinds, suspects)
    while changed(found, better) > SETTLED:
        found, better = better, improved(better, some, kinds, suspects)
    return improved(found, some, kinds, some.forms)


def improved(now: Blame, mixes: MixCounts, kinds: Mapping[str, Kind], forms: Iterable[str]) -> Blame:
    """One step of the maximisation: likelier than what is believed now. Of some forms the chance is told."""
    wrong = _wrong(now, mixes.spoiled, kinds)
    ports = _sums((kinds[form][0], count) for form, count in wrong.items())
    known = _sums((kinds[form], count) for form, count in wrong.items())
    every = _chance(sum(wrong.values()), sum(mixes.forms.values()), SPOILING)
    by_ports = {p: _chance(ports.get(p, 0.0), n, every) for p, n in mixes.ports.items()}
    by_kind = {k: _chance(known.get(k, 0.0), n, by_ports[k[0]]) for k, n in mixes.kinds.items()}
    own = {f: _own(wrong.get(f, 0.0), mixes.forms[f], by_kind[kinds[f]]) for f in forms}
    return Blame(by_ports, by_kind, own, every)


def changed(one: Blame, other: Blame) -> float:
    """By how much the chances of some ports differ most."""
    return max((abs(p - one.ports.get(name, 1.0)) for name, p in other.ports.items()), default=0.0)


def _wrong(now: Blame, spoiled: Iterable[Sequence[str]], kinds: Mapping[str, Kind]) -> dict[str, float]:
    """How many mixes each form has spoiled: each is shared out among its forms."""
    wrong: dict[str, float] = defaultdict(float)
    for forms in spoiled:
        chances = {form: now.of(form, kinds[form]) for form in forms}
        any_of_them = 1 - math.prod(1 - chance for chance in chances.values())
        for form, chance in chances.items():
            wrong[form] += chance / any_of_them
    return wrong


def _sums(some: Iterable[tuple[_Key, float]]) -> dict[_Key, float]:
    found: dict[_Key, float] = defaultdict(float)
    for key, value in some:
        found[key] += value
    return found


def _chance(wrong: float, number: float, believed: float) -> float:
    """Of all forms, ports or a kind, from so many mixes and what was believed before."""
    return (wrong + KNOWN_MIXES * believed) / (number + KNOWN_MIXES)


def _own(wrong: float, number: int, of_kind: float) -> float:
    """The same of a form."""
    return (wrong + OWN_MIXES * of_kind) / (number + OWN_MIXES)
