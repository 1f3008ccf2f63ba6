"""Lists of instruction forms."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cyclescope.isa.dataflow import sources, targets
from cyclescope.isa.form import InstructionForm, flag_names
from cyclescope.isa.table import Table
from cyclescope.report.words import counted

SCHEMA_VERSION = 1


def forms_text(forms: Sequence[InstructionForm]) -> str:
    """One line per form: id, features, LLVM's name."""
    width = max(len(f.id) for f in forms)
    lines = [f"{f.id:{width}}  {'+'.join(f.features):24} {f.llvm}".rstrip() for f in forms]
    return "\n".join([*lines, counted(len(forms), "form")])


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
        "operands": [msgspec.to_builtins(op) for op in form.operands],
        "flags": {
            "read": flag_names(form.flags_read),
            "written": flag_names(form.flags_written),
            "undefined": flag_names(form.flags_undefined),
        },
        "sources": [node.name for node in sources(form)],
        "targets": [node.name for node in targets(form)],
        "encodable": form.encoding is not None,
    }
