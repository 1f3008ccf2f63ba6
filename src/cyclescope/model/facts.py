"""Facts about a core that are about no single form: what the renamer, the front end and the memory do.

Every fact is the answer to one question about one subject, with how sure it is, or why there is none.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

HIGH, MEDIUM = "high", "medium"  # confidence: readings agree, or leave one answer though they do not


class CoreAnswer(StrEnum):
    """What a question about a core can be answered with; NONE where it is not resolved."""

    NONE = ""
    ELIMINATED = "eliminated"  # a move that the renamer executes
    EXECUTED = "executed"
    ZERO = "zero idiom"  # neither waits for its sources nor is executed
    BREAKING = "breaks dependency"  # does not wait for its sources, whether it is executed or not
    DEPENDENT = "dependent"
    FUSED = "fused"  # two instructions in one slot
    SEPARATE = "separate"
    RENAMED = "renamed"  # a load that gets the value of a store without waiting for memory
    FORWARDED = "forwarded"
    FAILED = "not forwarded"  # the load waits until the store is in the cache
    MERGED = "merged"  # a narrow write waits for the rest of its register
    APART = "renamed apart"
    PRESENT = "present"
    ABSENT = "absent"
    ALIASED = "aliased"  # a load waits for a store to another page, at the same place in it
    VALUE = "value"  # the value is the answer


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer of `probe` for `subject`: `value` with an error in `unit`, or the reason why there is none.

    95 of 100 independent looks give a value within `error`. `detail` is what a reason says of this subject
    alone, such as the readings.
    """

    probe: str
    subject: str
    answer: CoreAnswer = CoreAnswer.NONE
    value: float | None = None
    error: float | None = None
    unit: str = ""
    confidence: str = ""
    reason: str = ""
    detail: str = ""

    @property
    def is_resolved(self) -> bool:
        """Whether there is an answer."""
        return self.answer is not CoreAnswer.NONE
