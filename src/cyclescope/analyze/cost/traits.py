"""What instructions are, have or do, as bits: most blocks have little of it, and are not looked at for it."""

from __future__ import annotations

from cyclescope.isa.form import InstructionForm

GOES = 1  # elsewhere, always or sometimes
GOES_SOMETIMES = 2
KEEPS_BUSY = 4  # shared resources
IS_SLOW_ALONE = 8  # slower than its ports explain
IS_LOCKED = 16
LOADS = 32
LOADS_GENERAL = 64  # and has nothing to do with vectors
STORES = 128
IS_RENAMED = 256  # its data do not go through memory
THROUGH_MEMORY = 512  # of blocks alone: something is loaded that was stored


def form_traits(form: InstructionForm) -> int:
    """What instructions of a form are, whatever they cost."""
    has = form.attributes.__contains__
    sometimes, loads = has("conditional_branch"), any(one.read for one in form.accesses)
    return (
        (sometimes or has("branch") or has("call") or has("return")) * GOES
        | sometimes * GOES_SOMETIMES
        | has("lock") * IS_LOCKED
        | loads * LOADS
        | (loads and not form.vector_width) * LOADS_GENERAL
        | any(one.write for one in form.accesses) * STORES
    )
