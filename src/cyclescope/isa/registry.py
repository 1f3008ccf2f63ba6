"""The instruction sets there are: one line to register each."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module

from cyclescope.errors import UsageError
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.record import InstructionSet

SHIPPED = ("x86_64", "aarch64", "riscv64")  # folders in `isa`, each with a `record`
DEFAULT = "x86-64"  # what is taken where neither a text nor a caller names one
_added: dict[str, InstructionSet] = {}


@cache
def _shipped() -> dict[str, InstructionSet]:
    records = [import_module(f"cyclescope.isa.{folder}.record").RECORD for folder in SHIPPED]
    return {record.name: record for record in records}


def instruction_sets() -> tuple[InstructionSet, ...]:
    """The records of all instruction sets, those that ship first."""
    return (*_shipped().values(), *_added.values())


def isa_names() -> tuple[str, ...]:
    """Their names."""
    return tuple(record.name for record in instruction_sets())


def instruction_set(name: str) -> InstructionSet:
    """The record of one. Raises UsageError for another name."""
    found = _shipped().get(name) or _added.get(name)
    if found is None:
        raise UsageError(
            f"{name} is no instruction set known here", f"choose one of {', '.join(isa_names())}"
        )
    return found


@cache
def mnemonics(kind: str) -> tuple[str, ...]:
    """Mnemonics, or their beginnings, of a kind in all instruction sets: see `MnemonicKinds`."""
    every = (getattr(record.arithmetic.kinds, kind) for record in instruction_sets())
    return tuple(dict.fromkeys(name for some in every for name in some))


def streams_out(form: InstructionForm) -> bool:
    """Whether a form's stores bypass the cache."""
    streams = form.mnemonic.startswith(mnemonics("streaming"))
    return streams and any(op.is_memory and op.write for op in form.operands)


@cache
def unfit(form: InstructionForm) -> str:
    """Why user space cannot run copies of a form, or ""."""
    with suppress(ModuleNotFoundError):  # of an instruction set that is not measured
        why: str = instruction_set(form.isa).module("isa", "unmeasurable").unfit(form)
        return why
    return ""


def register(record: InstructionSet) -> None:
    """Add an instruction set that does not ship; what was read of another of that name stays read."""
    _added[record.name] = record
    mnemonics.cache_clear()


def unregister(name: str) -> None:
    """Take one away that was added."""
    _added.pop(name, None)
    mnemonics.cache_clear()
