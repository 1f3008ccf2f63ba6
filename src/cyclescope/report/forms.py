"""Lists of instruction forms."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cyclescope.isa.dataflow import sources, targets
from cyclescope.isa.form import InstructionForm, flag_names
from cyclescope.isa.operand import Operand
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import Table
from cyclescope.isa.text import example
from cyclescope.report.tables import aligned
from cyclescope.report.words import counted

SCHEMA_VERSION = 1
_FIELDS_OF_ALL = 10  # of Operand, in its order


def forms_text(forms: Sequence[InstructionForm]) -> str:
    """One line per form: id, features, and LLVM's name, or an example where that is the id."""
    rows = [(f.id, "+".join(f.features), example(f) if f.bits else f.llvm) for f in forms]
    return "\n".join([*aligned(rows, range(3)), counted(len(forms), "form")])


def forms_json(table: Table, forms: Sequence[InstructionForm]) -> str:
    """Forms with operands, flags, features and names."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "isa": table.isa,
        "source": table.source,
        "forms": [_form(form) for form in forms],
    }
    return msgspec.json.encode(data).decode()


def _form(form: InstructionForm) -> dict[str, object]:
    return {
        "id": form.id,
        "mnemonic": form.mnemonic,
        "names": form.names,
        "features": form.features,
        "attributes": sorted(form.attributes),
        "operands": [_operand(form, op) for op in form.operands],
        "flags": {
            "read": flag_names(form.flags_read),
            "written": flag_names(form.flags_written),
            "undefined": flag_names(form.flags_undefined),
        },
        "sources": [node.name for node in sources(form)],
        "targets": [node.name for node in targets(form)],
        "encodable": form.is_encodable,
    } | _bits(form)


def _operand(form: InstructionForm, op: Operand) -> dict[str, object]:
    """An operand; what those of fields have alone is left out of others."""
    found: dict[str, object] = msgspec.to_builtins(op)
    return found if form.has_fields else {name: found[name] for name in list(found)[:_FIELDS_OF_ALL]}


def _bits(form: InstructionForm) -> dict[str, object]:
    """Assembly and encoding of a form whose encoding is bits and fields."""
    if not form.bits or not form.syntax:
        return {}
    names = [form.operands[field.operand].name for field in form.bits.fields]
    written = [f"{{{names[field]}}}" for field, _ in form.syntax.places]
    fields = [
        {"operand": name, "bits": field.positions, "legal": len(field.values.legal)}
        for name, field in zip(names, form.bits.fields, strict=True)
    ]
    encoding = {"base": f"{form.bits.base:#x}", "mask": f"{form.bits.mask:#x}", "length": form.bits.length}
    return {
        "syntax": form.syntax.template.format(*written),
        "example": example(form),
        "encoding": encoding | {"fields": fields},
    } | _configuration(form)


def _configuration(form: InstructionForm) -> dict[str, object]:
    """The vector configuration of a form, or those that are measured of a form of the table."""
    chosen, types = form.configuration, instruction_set(form.isa).vector_types
    if types is None:
        return {}
    if chosen is None:
        measured = [f"{form.id}@{each}" for each in types.configurations(form)]
        return {"configurations": measured} if measured else {}
    policies = ("agnostic", "undisturbed")
    return {
        "configuration": {
            "sew": chosen.sew,
            "lmul": str(chosen.lmul),
            "tail": policies[chosen.tail_undisturbed],
            "mask": policies[chosen.mask_undisturbed],
            "masked": chosen.masked,
            "vl": chosen.vl,
            "setup": types.setup_code(chosen).hex(),
        }
    }
