"""Vector instructions of RISC-V under configurations, as the variants of a table's forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cyclescope.errors import UsageError
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.riscv64.configuration import parse
from cyclescope.isa.riscv64.legality import FEATURES
from cyclescope.isa.riscv64.vector import configured, configured_as, default_forms
from cyclescope.isa.variants import Variants


class _Variants:
    """See `isa.variants.Variants`."""

    def named(self, plain: InstructionForm, text: str) -> InstructionForm | None:
        """The form under a configuration, None where it has none such."""
        try:
            return configured(plain, parse(text))
        except UsageError:
            return None

    def measured(self, plain: InstructionForm) -> list[InstructionForm]:
        """The form under the usual configurations."""
        return default_forms(plain) or [plain]

    def chosen(self, forms: Sequence[InstructionForm], text: str) -> list[InstructionForm]:
        """See `configured_as`."""
        return configured_as(forms, text)

    def with_features(
        self, forms: Iterable[InstructionForm], wanted: Callable[[str], object]
    ) -> Iterable[InstructionForm]:
        """Forms under their usual configurations, some of which need more than others do."""
        if not any(map(wanted, FEATURES)):
            return ()
        return (form for plain in forms for form in default_forms(plain))


VARIANTS: Variants = _Variants()
