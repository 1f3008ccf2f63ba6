"""The library's way to predictions: code in, machine by any name people use, prediction out."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cyclescope.analyze.choose.source import Choice, read_block
from cyclescope.analyze.decode.block import Block
from cyclescope.analyze.predict.prediction import Prediction
from cyclescope.analyze.predict.predictor import Predictor
from cyclescope.model import library
from cyclescope.model.machine import MachineModel
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
