"""What there is about a kernel that models of cores, or llvm-mca, may have no words for."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from cyclescope.isa.dataflow import is_old
from cyclescope.isa.form import InstructionForm
from cyclescope.kernel.variant import SPEEDS, variant_of

_DATA = ".data"
_REPEATS = ("rep", "repne")


class Peculiar(StrEnum):
    """Why a model may answer otherwise; the first that holds is told. OPEN: none of these."""

    LOCKED = "it locks memory"
    REPEATED = "it repeats as often as a register says"
    BRANCH = "it branches"
    OLD = "it merges with a register's old value"
    MEMORY = "it hands a value on through memory"
    BY_VALUE = "it takes as long as its values say"
    LINKED = "its links count too"
    OPEN = "open"


def peculiar(form: InstructionForm, ends: tuple[str, str], variant: str, links: Sequence[str]) -> Peculiar:
    """What is peculiar about a kernel: `ends` are the source and target of a chain, empty without one."""
    holds = {
        Peculiar.LOCKED: "lock" in form.attributes,
        Peculiar.REPEATED: not form.attributes.isdisjoint(_REPEATS),
        Peculiar.BRANCH: "branch" in form.attributes,
        Peculiar.OLD: is_old(ends[0]),
        Peculiar.MEMORY: any(end.endswith(_DATA) for end in ends),
        Peculiar.BY_VALUE: variant_of(variant).kind in SPEEDS,
        Peculiar.LINKED: bool(links),
    }
    return next((one for one, is_so in holds.items() if is_so), Peculiar.OPEN)
