"""Generate `src/cyclescope/isa/x86_64/tables/forms.json.xz`.

    python -m tools.x86_64.generate

Needs iced-x86 (operands, flags, encodings) and llvm-mc of LLVM 22 (opcode names). Run by
developers; the result is committed and never edited.
"""

from __future__ import annotations

import json
import lzma
import re
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from iced_x86 import CpuidFeature, OpKind

from ..packing import Interner
from . import names, templates
from .enumerate_forms import CODE, FIXED, Builder, Variant, enum_names, user_mode_variants
from .operands import FLAG_BITS, MNEMONIC, Facts, Op, facts

TARGET = Path(__file__).parents[2] / "src/cyclescope/isa/x86_64/tables/forms.json.xz"
CPUID = enum_names(CpuidFeature)
BASE_FEATURES = {"INTEL8086", "INTEL186", "INTEL286", "INTEL386", "INTEL486", "X64",
                 "INTEL8086_ONLY", "INTEL286_ONLY", "INTEL386_ONLY", "CPUID", "INTEL386_486_ONLY",
                 "INTEL386_A0_ONLY", "INTEL486_A_ONLY"}  # fmt: skip
FEATURE_NAMES = {"FPU": "X87", "FPU287": "X87", "FPU387": "X87", "FPU287XL_ONLY": "X87"}


def operand_record(op: Op) -> list[Any]:
    """[name, kind, class, width, access bits, fixed register, element type]."""
    access = op.read | op.write << 1 | op.conditional << 2 | op.implicit << 3
    return [op.name, op.kind, op.cls, op.width, access, op.fixed, op.element]


def features(ins: Any) -> list[str]:
    """CPUID features, the ones every 64-bit CPU has being BASE."""
    found = [CPUID[f] for f in ins.cpuid_features()]
    named = [FEATURE_NAMES.get(f, f) for f in found if f not in BASE_FEATURES]
    return sorted(set(named)) or ["BASE"]


def field_records(variant: Variant, template: templates.Template, ops: list[Op]) -> list[list[Any]]:
    """[operand position, part (0 register, 1 base, 2 index), bit positions...] per field."""
    masked = bool(variant.mask)
    memory = next((i for i, op in enumerate(ops) if op.kind in ("memory", "address")), -1)
    result = []
    for slot, positions in template.fields.items():
        if slot == "mask":
            result.append([1, 0, *positions])
        elif slot in ("base", "index"):
            result.append([memory, 1 if slot == "base" else 2, *positions])
        elif variant.kinds[int(slot)] not in FIXED:
            index = int(slot)
            result.append([index + (masked and index > 0), 0, *positions])
    return sorted(result)


def mask_of(flags: list[str]) -> int:
    """Flags as a bit mask in the table's order."""
    return sum(1 << i for i, name in enumerate(FLAG_BITS) if name in flags)


def collect() -> list[tuple[Variant, Any, Facts, templates.Template | None]]:
    """Every variant with its example, facts and encoding template."""
    result = []
    for variant in user_mode_variants():
        ins = Builder(variant).build()
        result.append((variant, ins, facts(variant, ins), templates.make(variant)))
    return result


def attribute_list(ins: Any, info: Facts) -> list[str]:
    """Sorted attributes; x87 stack movement as `x87+1` (pops) or `x87-1` (pushes)."""
    found = set(info.attributes)
    stack = ins.fpu_stack_increment_info()
    if stack.increment:
        found.add(f"x87{stack.increment:+d}")
    if any(ins.op_kind(i) == OpKind.MEMORY for i in range(ins.op_count)) and "lea" not in found:
        found.add("memory")
    return sorted(found)


def build() -> dict[str, Any]:
    """The whole table as plain JSON data."""
    rows = collect()
    variants = [r[0] for r in rows]
    bases = names.base_names([(v, MNEMONIC[i.mnemonic], f.operands) for v, i, f, _ in rows])
    ids = names.unique(bases, variants)
    llvm = iter(names.llvm_names([t.example for *_, t in rows if t]))
    signatures, feature_sets, attribute_sets, layouts = (Interner() for _ in range(4))
    forms = []
    for form_id, (variant, ins, info, template) in zip(ids, rows, strict=True):
        record = [
            form_id,
            MNEMONIC[ins.mnemonic],
            signatures([operand_record(op) for op in info.operands]),
            [mask_of(f) for f in (info.flags_read, info.flags_written, info.flags_undefined)],
            feature_sets(features(ins)),
            attribute_sets(attribute_list(ins, info)),
            info.element,
            [next(llvm) if template else "", names.uops_info_name(form_id, variant), CODE[variant.code]],
        ]
        record.append(encoding_record(variant, template, info.operands, layouts) if template else None)
        forms.append(record)
    return {
        "schema_version": 1,
        "isa": "x86-64",
        "source": {
            "forms": f"iced-x86 {version('iced-x86')} (MIT)",
            "llvm_names": f"{names.tool_version('llvm-mc-22')} (Apache-2.0 WITH LLVM-exception)",
            "uops_info_names": "synthesised by the naming rules of tools/x86_64/names.py",
        },
        "flags": list(FLAG_BITS),
        "signatures": signatures.values,
        "features": feature_sets.values,
        "attributes": attribute_sets.values,
        "layouts": layouts.values,
        "forms": forms,
    }


def encoding_record(
    variant: Variant, template: templates.Template, ops: list[Op], layouts: Interner
) -> list[Any]:
    """[base as hex, length, layout, displacement, immediates, ModRM offset]."""
    return [
        f"{template.base:x}",
        template.length,
        layouts(field_records(variant, template, ops)),
        template.displacement,
        template.immediates,
        template.modrm,
    ]


def summary(table: dict[str, Any]) -> str:
    """A few lines about what was generated."""
    forms = table["forms"]
    count = len(forms)
    named = [sum(bool(f[7][k]) for f in forms) for k in (0, 1)]
    encodings = Counter(next(a for a in table["attributes"][f[5]] if re.fullmatch(
        "legacy|vex|evex|xop|d3now", a)) for f in forms)  # fmt: skip
    return (
        f"{count} forms {dict(encodings)}, {sum(f[8] is not None for f in forms)} with a template, "
        f"LLVM names {named[0] / count:.1%}, uops.info names {named[1] / count:.1%}, "
        f"{len(table['signatures'])} signatures, {len(table['layouts'])} layouts"
    )


def main() -> None:
    """Write the table and print what it holds."""
    table = build()
    data = lzma.compress(json.dumps(table, separators=(",", ":")).encode(), preset=9 | lzma.PRESET_EXTREME)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_bytes(data)
    print(f"{summary(table)}; {len(data)} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
