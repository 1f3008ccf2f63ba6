"""Vector instructions of RISC-V under a configuration: forms of their own, made when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache

import msgspec

from cyclescope.errors import UsageError
from cyclescope.isa.fields import BitEncoding, Field, FieldValues, Notation, Syntax
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Configuration, Operand
from cyclescope.isa.riscv64.configuration import parse
from cyclescope.isa.riscv64.legality import INSERTS, all_configurations, configurations, features, illegal
from cyclescope.isa.riscv64.overlap import strict
from cyclescope.isa.riscv64.shapes import RegisterShape, scalar_kind, shapes, takes_configuration

_UNMASKED = {"VMaskOp": 1, "VMaskCarryInOp": 0}  # the bit of an instruction without a mask; a carry is always
_LETTERS = {"i": "i", "f": "f", "b": "bf", "q": "f", "m": "i"}
_KEEPS_BELOW = ("VSLIDEUP.VX", "VSLIDEUP.VI")  # elements below the offset stay
_FIRST_SIGNATURE = 1 << 20  # those of tables are below
_signatures: dict[object, int] = {}


@cache
def configured(form: InstructionForm, configuration: Configuration) -> InstructionForm:
    """A form of the table under a configuration. Raises UsageError with the reason where there is none."""
    reason = illegal(form, configuration)
    if reason:
        raise UsageError(reason)
    plain = _without_mask_field(form, configuration)
    assert plain.bits is not None
    operands = tuple(_operand(plain, place, configuration) for place in range(len(plain.operands)))
    fields = tuple(_field(plain, field, operands, configuration) for field in plain.bits.fields)
    key = form.signature, configuration, operands
    return msgspec.structs.replace(
        plain,
        id=f"{form.id}@{configuration}",
        operands=operands,
        features=features(form, configuration),
        element=_element_of(form, configuration.sew),
        signature=_signatures.setdefault(key, _FIRST_SIGNATURE + len(_signatures)),
        bits=msgspec.structs.replace(plain.bits, fields=fields),
        configuration=configuration,
    )


def default_forms(form: InstructionForm) -> list[InstructionForm]:
    """A form of the table under each configuration that is measured; empty for what has none."""
    return [] if form.configuration else [configured(form, each) for each in configurations(form)]


def configured_as(forms: Sequence[InstructionForm], text: str) -> list[InstructionForm]:
    """Forms of the table under a configuration, or those a glob matches; what they do not have is left out.

    Raises UsageError where nothing is left.
    """
    if not set(text).isdisjoint("*?["):
        found = [configured(form, c) for form in forms for c in all_configurations(form) if _like(c, text)]
        reason = f"no configuration of {forms[0].id} matches {text!r}"
    else:
        configuration = parse(text)
        found = [configured(form, configuration) for form in forms if not illegal(form, configuration)]
        reason = illegal(forms[0], configuration)
    if not found:
        remedy = f"`cyclescope forms --isa riscv64 '{forms[0].id}@*'` lists what there is"
        raise UsageError(reason, remedy if takes_configuration(forms[0]) else "")
    return found


def _like(configuration: Configuration, glob: str) -> bool:
    return fnmatchcase(str(configuration), glob.lower())


def _without_mask_field(form: InstructionForm, configuration: Configuration) -> InstructionForm:
    """The mask said once and for all: v0, or no operand."""
    place = next((k for k, op in enumerate(form.operands) if op.cls in _UNMASKED), -1)
    assert form.bits is not None and form.syntax is not None
    number = next((k for k, field in enumerate(form.bits.fields) if field.operand == place), -1)
    if number < 0:
        return form
    op, field = form.operands[place], form.bits.fields[number]
    value = 0 if configuration.masked else _UNMASKED[op.cls]
    mask = () if value else (msgspec.structs.replace(op, fixed="V0", role="mask", element="i1"),)
    fields = tuple(_moved(other, place, len(mask)) for other in form.bits.fields if other is not field)
    bits = BitEncoding(
        form.bits.base | field.insert(value), form.bits.mask | field.insert(1), form.bits.length, fields
    )
    operands = form.operands[:place] + mask + form.operands[place + 1 :]
    syntax = _filled(form.syntax, number, value)
    return msgspec.structs.replace(form, operands=operands, bits=bits, syntax=syntax)


def _moved(field: Field, gone: int, kept: int) -> Field:
    if kept or field.operand < gone:
        return field
    return Field(field.operand - 1, field.positions, field.values)


def _filled(syntax: Syntax, number: int, value: int) -> Syntax:
    """A template with the text of one field's value in it."""
    texts: list[str] = []
    places: list[tuple[int, Notation]] = []
    for field, notation in syntax.places:
        if field == number:
            texts.append(notation.text(value))
        else:
            texts.append(f"{{{len(places)}}}")
            places.append((field - (field > number), notation))
    return Syntax(syntax.template.format(*texts), tuple(places))


def _operand(form: InstructionForm, place: int, configuration: Configuration) -> Operand:
    op, shape = form.operands[place], shapes(form).get(place)
    sew = configuration.sew
    if shape is not None:
        emul = shape.emul(sew, configuration.lmul)
        element = f"{_LETTERS[shape.kind]}{shape.width(sew)}"
        op = msgspec.structs.replace(op, element=element, group=max(1, int(emul)) * shape.count)
        return _result(form, op, shape, configuration) if op.write else op
    if op.cls.startswith("FPR"):
        element = f"{_LETTERS[scalar_kind(form)]}{sew}"
        return msgspec.structs.replace(op, cls=f"FPR{sew}", width=sew, element=element)
    if op.fixed == "VL" and form.mnemonic.endswith("FF.V"):
        return msgspec.structs.replace(op, write=True)
    return op


def _result(
    form: InstructionForm, op: Operand, shape: RegisterShape, configuration: Configuration
) -> Operand:
    """A result is read where old elements stay: all after VL, those masked off, or by definition."""
    sources = [source for source in shapes(form).values() if source is not shape]
    apart = [strict(form, shape, source) or _part(shape, source, configuration) for source in sources]
    op = msgspec.structs.replace(op, early_clobber=any(apart))
    if form.mnemonic in _KEEPS_BELOW:
        return msgspec.structs.replace(op, read=True, conditional=False)
    if not op.read or (not op.conditional and form.mnemonic not in INSERTS):
        return op
    tail = configuration.tail_undisturbed and shape.kind != "m"  # the tail of a mask is always agnostic
    stays = tail or (configuration.masked and configuration.mask_undisturbed)
    return msgspec.structs.replace(op, read=stays, conditional=stays)


def _part(result: RegisterShape, source: RegisterShape, configuration: Configuration) -> bool:
    """Whether a source of narrower elements is a part of a register: no result may overlap it."""
    sew, lmul = configuration.sew, configuration.lmul
    wider = result.width(sew) > source.width(sew) and not result.single
    return wider and source.kind != "m" and source.emul(sew, lmul) < 1


def _field(
    form: InstructionForm, field: Field, operands: tuple[Operand, ...], configuration: Configuration
) -> Field:
    """A vector field whose values are where groups begin, not v0 where that is the mask."""
    shape, op = shapes(form).get(field.operand), operands[field.operand]
    if shape is None:
        return field
    masked = any(other.fixed == "V0" for other in operands)
    apart = "apart_mask" in form.attributes if op.write else shape.kind != "m"
    return Field(field.operand, field.positions, _starts(op.group, shape.count, int(masked and apart)))


@cache
def _starts(group: int, count: int, first: int) -> FieldValues:
    """Values of a field: where `count` groups, in all `group` registers, can begin."""
    size = group // count
    suffix = f"M{size}" if size > 1 else ""
    names = [
        "_".join(f"V{start + size * k}{suffix}" for k in range(count))
        if start % size == 0 and first <= start <= 32 - group
        else ""
        for start in range(32)
    ]
    legal = sum(1 << number for number, name in enumerate(names) if name)
    return FieldValues(5, ("bits", f"{legal:x}"), tuple(names))


def _element_of(form: InstructionForm, sew: int) -> str:
    """Type of the values a form works on; `i1` of masks."""
    own = shapes(form)
    if own and all(shape.kind == "m" for shape in own.values()):
        return "i1"
    kind = scalar_kind(form) if sew > 8 else "i"
    data = next((shape.eew for shape in own.values() if shape.eew > 1 and shape.place == 0), sew)
    return f"{_LETTERS[kind]}{data}"
