"""Forms of an instruction that only an assembler can read."""

from __future__ import annotations

from collections.abc import Sequence

from cyclescope.errors import BackendUnavailable, CyclescopeError, UsageError
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set


def assembled_forms(isa: str, text: str) -> Sequence[InstructionForm]:
    """Forms that an assembler makes of a line; several where it stands for several instructions.

    Raises UsageError, which says why, where there is no assembler, where it refuses the line, and for
    instructions that the table leaves out.
    """
    from cyclescope.analyze.decode.decoder import REASON, decoder
    from cyclescope.analyze.read.assembler import text_program

    try:
        program = text_program(f"{instruction_set(isa).writing.header}{text}\n", "the example", isa)
    except BackendUnavailable as error:
        raise UsageError(f"{error.message} that could read it otherwise") from error
    except CyclescopeError as error:
        raise UsageError(error.message) from error
    code = b"".join(piece.code for piece in program.pieces)
    reader = decoder(isa)
    steps = list(reader.steps(code, 0))[: 1 if "=" in text else None]  # AArch64: what is behind is a constant
    found = [
        reader.instruction(code[step.address : max(step.end, step.address + REASON)], step.address)
        for step in steps
    ]
    problem = next((one.problem or f"{one.text} is none" for one in found if one.form is None), "")
    if problem:
        raise UsageError(problem)
    return list(dict.fromkeys(one.form for one in found if one.form is not None))
