"""Vector instructions under what comments for llvm-mca say, in place of what code sets or beside it."""

from __future__ import annotations

from collections.abc import Sequence

from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.analyze.decode.fixed_width import as_form
from cyclescope.analyze.decode.vector_settings import Vectors
from cyclescope.isa.form import InstructionForm, model_form_id
from cyclescope.isa.table import load_table
from cyclescope.isa.variants import VectorTypes
from cyclescope.remarks.reading import Instrument, Spot
from cyclescope.remarks.remark import LISTED, Remark


def configured_by(
    instructions: Sequence[BlockInstruction], said: Sequence[Vectors], types: VectorTypes
) -> tuple[tuple[BlockInstruction, ...], list[Remark]]:
    """Instructions as comments configure them, with notes where they do not say enough.

    Where a comment gives the length multiplier alone and the code no width of elements, the first width that
    the instruction can have counts: 8 bits, for floating point 16.
    """
    found, guessed, useless = [], [], []
    for one, vectors in zip(instructions, said, strict=True):
        plain = _plain(one, types)
        if plain is None or vectors == Vectors():
            found.append(one)
            continue
        known = one.form.configuration if one.form is not None else None
        lmul = vectors.lmul or (known.lmul if known else None)
        if lmul is None:
            useless.append(one.line)
            found.append(one)
            continue
        sew = vectors.sew or (known.sew if known else 0)
        form = types.first_form(plain, one.code, sew, lmul)
        guessed += [one.line] * (not sew)
        found.append(as_form(one, form, plain.isa) if form is not plain else one)
    notes = (guessed, Instrument.NO_WIDTH), (useless, Instrument.NO_MULTIPLIER)
    return tuple(found), [Spot.SAID.of(_lines(lines), why.of()) for lines, why in notes if lines]


def _plain(one: BlockInstruction, types: VectorTypes) -> InstructionForm | None:
    """The form without a configuration, None where it takes none."""
    if one.form is None:
        return None
    form = load_table(one.form.isa)[model_form_id(one.form)]
    return form if types.takes_configuration(form) else None


def _lines(lines: Sequence[int]) -> Remark:
    shown: object = ", ".join(map(str, lines[:LISTED]))
    if len(lines) > LISTED:
        shown = Spot.AND_OTHERS.of(shown)
    return (Spot.LINES if len(lines) > 1 else Spot.LINE).of(shown)
