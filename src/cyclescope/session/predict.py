"""The library's way to predictions: code in, machine by any name people use, prediction out."""

from __future__ import annotations

from contextlib import closing
from functools import cache
from pathlib import Path

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.decode.block import Block, BlockInstruction
from cyclescope.analyze.predict.prediction import MeasuredLoop, Prediction
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.errors import UnsupportedInstruction, UsageError
from cyclescope.host.uname import host_isa
from cyclescope.model import library
from cyclescope.model.machine import MachineModel
from cyclescope.session.blocks import NOTIONS, ProgramBlock, case_of
from cyclescope.session.machines import is_file, load_model, stand_in_for, vendor_of


@cache
def _named_predictor(name: str | Path, written: int) -> Predictor:
    """The predictor of a name, or of a file as it was `written` at a time."""
    model = load_model(name)
    return Predictor(model, stand_in_for(model))


def _written(name: str | Path) -> int:
    """When a machine's file was written last in nanoseconds, 0 for what is no file that is there."""
    path = Path(name)
    return path.stat().st_mtime_ns if is_file(name) and path.is_file() else 0


_kept: list[Predictor] = []  # the last one made for a model, since a loop over blocks gives the same again


def predictor_of(machine: str | Path | MachineModel) -> Predictor:
    """The predictor of a machine, made once for a name and for the model used last.

    Raises what `load_model` does; of models that do not ship, ModelError for what no machine can be.
    """
    if isinstance(machine, str | Path):
        return _named_predictor(machine, _written(machine))
    if not _kept or _kept[0].machine is not machine:
        _kept[:] = [Predictor(library.sound(machine), stand_in_for(machine))]
    return _kept[0]


def predict(
    code: str | bytes | Path | Block,
    machine: str | Path | MachineModel,
    *,
    choice: Choice | None = None,
    syntax: str = "",
    fixed: bool = False,
    ignore_unknown: bool = False,
    unroll_factor: float = 0,
    simulate: bool = True,
) -> Prediction:
    """What bounds a loop on a machine: cycles per iteration, bounds, dependencies.

    `code` is assembly text (str), machine code or an ELF file (bytes), a file (Path) or a block read before;
    `choice` and `syntax` are those of `analyze.source.read_block`. `machine` is a model, or a name or file
    that `load_model` takes. The other arguments are those of `Predictor.predict`; without `simulate` many
    blocks go faster. Raises UnknownInstructions, SourceError, UsageError, UnsupportedInstruction,
    BackendUnavailable.
    """
    predictor = predictor_of(machine)
    if not isinstance(code, Block):
        model = predictor.machine
        code = read_block(code, model.isa, choice, syntax, vendor_of(model.name))
    return predictor.predict(
        code, fixed=fixed, ignore_unknown=ignore_unknown, unroll_factor=unroll_factor, simulate=simulate
    )


# --- beside it, what it takes -----------------------------------------------------------------------


def measured_loop(block: Block, predictor: Predictor) -> tuple[MeasuredLoop, ...]:
    """The block as copies that follow each other, and as a loop with a counter of ours, each with what is
    predicted of just that.

    The branch that closes a loop is left out, with the comparison in front of it: registers hold what no
    program put there, so that it would end at any time. Raises UsageError for code that this machine does not
    execute.
    """
    from cyclescope.infer.api import open_backend  # slow to import
    from cyclescope.session.validation import timed

    if block.isa != host_isa():
        raise UsageError(f"the code is {block.isa}, which this machine does not execute", "leave out {run}")
    some = _body(block)
    if not some or any(not one.code for one in some):
        raise UsageError("there is no machine code to run", "give what can be assembled")
    code = ProgramBlock(b"".join(one.code for one in some), block.source, block.isa)
    backend, identity = open_backend()
    with closing(backend):
        if identity.emulated:
            raise UsageError("times under an emulator mean nothing", "measure on the machine itself")
        found = []
        for notion in NOTIONS:
            ((_, timing),) = timed(backend, [code], notion)
            cycles = timing.cycles if timing.is_clean else None
            expected = _expected(case_of(code, notion).block, predictor)
            reason = timing.reason or timing.verdict
            found.append(MeasuredLoop(notion, cycles, timing.spread, reason, expected))
    return tuple(found)


def _expected(block: Block, predictor: Predictor) -> float | None:
    """Predicted cycles, None where the cost of an instruction is not known."""
    try:
        return predictor.bounds(block).cycles
    except UnsupportedInstruction:
        return None


def _body(block: Block) -> list[BlockInstruction]:
    """The instructions without the branch back, and without a comparison that is for it alone."""
    some = list(block)
    if block.loop and some:
        some.pop()
        if some and _compares(some[-1]):
            some.pop()
    return some


def _compares(one: BlockInstruction) -> bool:
    """Whether an instruction writes nothing but flags."""
    if one.form is None or "nop" in one.form.attributes:
        return False
    written = (n for n, op in enumerate(one.form.operands) if op.write)
    return all(n < len(one.registers) and one.registers[n] is None and one.memory[n] is None for n in written)
