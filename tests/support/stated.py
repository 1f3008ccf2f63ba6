"""Facts of which a test says some itself, in place of the experiments that would tell them."""

from __future__ import annotations

from typing import TypeVar

Facts = TypeVar("Facts")


def stated(facts: Facts, **known: object) -> Facts:
    """Facts that hold what is said; each name has to be one that they tell."""
    for name, value in known.items():
        assert hasattr(type(facts), name), f"no fact is called {name}"
        setattr(facts, name, value)
    return facts
