"""Forms that a table does not list, and what instructions before a form make of it: protocols."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Protocol

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Configuration


class Variants(Protocol):
    """Forms that a table does not list, made of those that it does: see `Table`."""

    def named(self, plain: InstructionForm, text: str) -> InstructionForm | None:
        """The form whose id is the plain form's, `@` and the text."""

    def measured(self, plain: InstructionForm) -> list[InstructionForm]:
        """The forms that are measured for one of the table."""

    def chosen(self, forms: Sequence[InstructionForm], text: str) -> list[InstructionForm]:
        """The forms that a text or a glob names. Raises UsageError where there are none."""

    def with_features(
        self, forms: Iterable[InstructionForm], wanted: Callable[[str], object]
    ) -> Iterable[InstructionForm]:
        """Forms of those that may need a wanted feature, though the plain ones do not."""


class VectorTypes(Protocol):
    """What code sets for vectors, and what it makes of forms: a module of the instruction set."""

    def settings_in(self, codes: Sequence[bytes]) -> list[int]:
        """Which of some instructions set it, by number."""

    def types(self, codes: Sequence[bytes], start: Configuration | None) -> Iterator[Configuration | None]:
        """What each instruction finds set, None where it is not known."""

    def last_type(self, codes: Sequence[bytes]) -> Configuration | None:
        """What is set behind some instructions, None where it is not known."""

    def takes_configuration(self, form: InstructionForm) -> bool:
        """Whether a form of the table is one under every configuration."""

    def configurations(self, form: InstructionForm) -> tuple[Configuration, ...]:
        """Those that a form of the table is measured under."""

    def setup_code(self, configuration: Configuration) -> bytes:
        """Machine code that sets a configuration."""

    def form_under(self, form: InstructionForm, code: bytes, seen: Configuration | None) -> InstructionForm:
        """The form of an instruction under what is set; as it is where that makes no difference."""

    def first_form(self, form: InstructionForm, code: bytes, sew: int, lmul: Fraction) -> InstructionForm:
        """The same where only so much is known: SEW may be 0, which is the first that is legal."""

    def needs_type(self, form: InstructionForm) -> bool:
        """Whether a cost depends on what is set."""

    def has_own_cost(self, form: InstructionForm, known: Container[str]) -> bool:
        """Whether costs by name have that of a form under what is set, or that is the largest anyway."""

    def cost_names(self, form: InstructionForm) -> tuple[str, ...]:
        """Names that models have for the cost of a form under what is set, the most specific first."""

    def all_cost_names(self, form: InstructionForm) -> frozenset[str]:
        """Names of its costs under all that can be set."""
