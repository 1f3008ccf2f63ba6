"""What instructions are, have or do: most blocks have little of it, and are not looked at for it."""

from __future__ import annotations

from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set, mnemonics

GOES = "goes"  # always or sometimes
GOES_SOMETIMES = "goes_sometimes"
KEEPS_BUSY = "keeps_busy"  # shared resources
IS_SLOW_ALONE = "slow_alone"  # slower than its ports explain
IS_LOCKED = "locked"
BARRIER = "barrier"
LOADS = "loads"
LOADS_GENERAL = "loads_general"  # and has nothing to do with vectors
STORES = "stores"
STORES_VECTORS = "stores_vectors"
USES_VECTORS = "uses_vectors"
IS_RENAMED = "renamed"  # its data do not go through memory
POINTED = "pointed"  # with the stack pointer as an operand, where such operations wait for each other
STORES_CONSTANTS = "stores_constants"  # which take longer alone than registers
THROUGH_MEMORY = "through_memory"  # of blocks alone: something is loaded that was stored


def form_traits(form: InstructionForm) -> frozenset[str]:
    """What instructions of a form are, whatever they cost."""
    has = form.attributes.__contains__
    sometimes, loads = has("conditional_branch"), any(one.read for one in form.accesses)
    stores = any(one.write for one in form.accesses)
    return having({
        GOES: sometimes or has("branch") or has("call") or has("return"),
        GOES_SOMETIMES: sometimes,
        IS_LOCKED: has("lock"),
        BARRIER: form.mnemonic in mnemonics("ordered"),
        LOADS: loads,
        LOADS_GENERAL: loads and not form.vector_width,
        STORES: stores,
        STORES_VECTORS: stores and form.vector_width > 0,
        USES_VECTORS: form.vector_width > 0,
    })  # fmt: skip


def is_division(form: InstructionForm) -> bool:
    """Whether a form divides or takes a root, by its name; estimates of a root (RSQRT) do not."""
    kinds = instruction_set(form.isa).arithmetic.costs.divisions
    stem = form.mnemonic.removeprefix("V")
    return stem.startswith(tuple(kind for kind in kinds if "RSQRT" not in kind))


def unit_of(form: InstructionForm) -> str:
    """What different forms keep busy that no port shows, "" where none is known.

    Divisions of general registers have one unit, all others another one. Locks go one after the other.
    """
    if "lock" in form.attributes:
        return "lock"
    if not is_division(form):
        return ""
    return "reals" if form.vector_width or form.mnemonic.startswith("F") else "integers"


def having(found: dict[str, bool]) -> frozenset[str]:
    """The traits that were found."""
    return frozenset(trait for trait, is_there in found.items() if is_there)
