"""RISC-V's vector instructions under what comments for llvm-mca say, in place of VTYPE or beside it."""

from __future__ import annotations

from collections.abc import Sequence

from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.analyze.decode.fixed_width import as_form
from cyclescope.analyze.decode.vector_settings import Vectors
from cyclescope.analyze.decode.vector_types import form_under
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.riscv64.configuration import RISCV64, SEWS, Configuration
from cyclescope.isa.riscv64.shapes import takes_configuration
from cyclescope.isa.table import load_table
from cyclescope.remarks.reading import Instrument, Spot
from cyclescope.remarks.remark import LISTED, Remark


def configured_by(
    instructions: Sequence[BlockInstruction], said: Sequence[Vectors]
) -> tuple[tuple[BlockInstruction, ...], list[Remark]]:
    """Instructions as comments configure them, with notes where they do not say enough.

    Where a comment gives the length multiplier alone and the code no width of elements, the first width that
    the instruction can have counts: 8 bits, for floating point 16.
    """
    found, guessed, useless = [], [], []
    for one, vectors in zip(instructions, said, strict=True):
        plain = _plain(one)
        if plain is None or vectors == Vectors():
            found.append(one)
            continue
        seen = one.form.configuration if one.form is not None else None
        known = seen if isinstance(seen, Configuration) else None
        lmul = vectors.lmul or (known.lmul if known else None)
        if lmul is None:
            useless.append(one.line)
            found.append(one)
            continue
        sew = vectors.sew or (known.sew if known else 0)
        form = _first(plain, one.code, [Configuration(n, lmul) for n in ([sew] if sew else SEWS)])
        guessed += [one.line] * (not sew)
        found.append(as_form(one, form, RISCV64) if form is not plain else one)
    notes = (guessed, Instrument.NO_WIDTH), (useless, Instrument.NO_MULTIPLIER)
    return tuple(found), [Spot.SAID.of(_lines(lines), why.of()) for lines, why in notes if lines]


def _plain(one: BlockInstruction) -> InstructionForm | None:
    """The form without a configuration, None where it takes none."""
    if one.form is None:
        return None
    form = load_table(RISCV64)[one.form.id.partition("@")[0]]
    return form if takes_configuration(form) else None


def _first(form: InstructionForm, code: bytes, choices: Sequence[Configuration]) -> InstructionForm:
    """The form under the first configuration that is legal, as it is where none is."""
    under = (form_under(form, code, choice) for choice in choices)
    return next((found for found in under if found is not form), form)


def _lines(lines: Sequence[int]) -> Remark:
    shown: object = ", ".join(map(str, lines[:LISTED]))
    if len(lines) > LISTED:
        shown = Spot.AND_OTHERS.of(shown)
    return (Spot.LINES if len(lines) > 1 else Spot.LINE).of(shown)
