"""Generate `src/cyclescope/isa/{aarch64,riscv64}/tables/forms.json.xz`.

    python -m tools.fixed_width.generate LLVM-SOURCE DUMPS [ISA]...

LLVM-SOURCE is the tree of LLVM 22 (its `llvm/include` and `llvm/lib/Target` are read; Debian's
llvm-toolchain-22_22.1.8.orig.tar.xz has it), DUMPS a folder for what llvm-tblgen-22 makes of it. Needs g++,
llvm-22 and llvm-22-dev, for RISC-V 10 GB of memory. Run by developers; the result is committed and never
edited.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..packing import Interner, packed
from . import operands, probe, records, rules, samples, text, values
from .operands import Op
from .records import Record
from .samples import Sample, Trials
from .text import Written

ROOT = Path(__file__).parents[2] / "src/cyclescope/isa"
NAMES = {"64bit": "RV64", "-64bit": "RV32"}


@dataclass
class Found:
    """Everything that LLVM said about one instruction."""

    record: Record
    sample: Sample
    trials: list[Trials]
    registers: list[text.Texts] = field(default_factory=list)
    written: Written = field(default_factory=Written)


def collect(asked: probe.Probe, all_records: Sequence[Record]) -> list[Found]:
    """Samples of all instructions that LLVM decodes, with what the values of their fields mean."""
    found = samples.find(asked, all_records)
    chosen = [r for r in all_records if r.name in found]
    trials = samples.vary(asked, chosen, found)
    result = [Found(r, found[r.name], trials[r.name]) for r in chosen]
    _merge_registers(result)
    _merge_texts(result)
    return result


def _merge_registers(found: list[Found]) -> None:
    """Register tables, in two passes so that every form has the whole one of its class."""
    merged = values.Merged()
    for _ in range(2):
        for one in found:
            pairs = zip(one.record.fields, one.trials, strict=True)
            one.registers = [merged.add((f.cls, f.width), values.registers(f, t)) for f, t in pairs]


def _merge_texts(found: list[Found]) -> None:
    """Texts likewise; instructions that LLVM never writes by their template get it from other ones."""
    merged, odd = values.Merged(), []
    for one in found:
        try:
            one.written = text.take_apart(one.record, one.sample, one.trials)
        except text.NotApartError:
            odd.append(one)
    for _ in range(2):
        for one in found:
            fields = one.record.fields
            places = [(p, merged.add((fields[p].cls, fields[p].width), t)) for p, t in one.written.places]
            one.written.places = places
    for one in odd:
        one.written = text.from_template(one.record, merged.largest())


class Builder:
    """The table of one ISA, made form by form."""

    def __init__(self, isa: str, found: list[Found]) -> None:
        self.isa = isa
        self.found = found
        self.rules = rules.Rules(isa)
        names = ("signatures", "features", "attributes", "values", "notations", "fields", "layouts", "places")
        self.interned = {name: Interner() for name in names}
        self._everywhere: dict[tuple[str, int], set[int]] = {}
        for one in found:
            for f, trials in zip(one.record.fields, one.trials, strict=True):
                legal = {value for value, answer in trials.items() if answer}
                self._everywhere.setdefault((f.cls, f.width), set()).update(legal)

    def form(self, one: Found) -> list[Any]:
        """[name, text, places, signature, flags, features, attributes, element, base, free, length, layout].

        `free` are bits that say nothing.
        """
        record, intern = one.record, self.interned
        mnemonic = one.written.template.split(" ")[0].partition("{")[0].rstrip(".")
        ops = operands.explicit(self.isa, record, one.sample, one.registers)
        ops += operands.implicit(self.isa, record)
        flags = self.rules.apply(record, mnemonic, ops)
        access = rules.memory(self.isa, mnemonic, ops, flags)
        ops += [access] if access else []
        features = feature_names(record.alternatives)
        found = rules.attributes(self.isa, record, mnemonic, ops, flags)
        found |= self._more_attributes(one, features)
        return [
            record.name,
            one.written.template,
            intern["places"]([[p, self._notation(one, p, t)] for p, t in one.written.places]),
            intern["signatures"]([op.record() for op in ops]),
            rules.flag_sets(mnemonic, ops),
            intern["features"](features),
            intern["attributes"](sorted(found)),
            rules.element(self.isa, mnemonic, one.written.template, ops),
            f"{record.base:x}",
            record.free,
            record.length,
            intern["layouts"]([self._field(one, place, ops) for place in range(len(record.fields))]),
        ]

    def _more_attributes(self, one: Found, features: list[str]) -> set[str]:
        found = {"optional"} if self.isa == "riscv64" and rules.optional(features) else set()
        for place, f in enumerate(one.record.fields):
            everywhere = self._everywhere[f.cls, f.width]
            if everywhere & set(values.clashes(one.record, place, one.sample, one.trials)):
                found.add("unique_registers")
        return found

    def _notation(self, one: Found, place: int, texts: text.Texts) -> int:
        return self.interned["notations"](values.rule(texts, one.record.fields[place].width))

    def _field(self, one: Found, place: int, ops: list[Op]) -> int:
        """[position of the operand, values, positions of the bits...]."""
        f = one.record.fields[place]
        operand = next(k for k, op in enumerate(ops) if op.index == f.operand)
        everywhere = self._everywhere[f.cls, f.width]
        legal = values.legal(one.record, place, one.sample, one.trials, everywhere)
        names = one.registers[place]
        listed = [names.get(value, "") for value in range(1 << f.width)] if f.register else []
        known = self.interned["values"]([legal, listed])
        return self.interned["fields"]([operand, known, *f.positions])


def feature_names(alternatives: list[list[str]]) -> list[str]:
    """Features as LLVM names them, in capitals; `A|B` where either will do, with `+` for both of two."""
    cleaned = [[_feature(name) for name in names] for names in alternatives]
    common = [name for name in cleaned[0] if all(name in names for names in cleaned)]
    rest = ["+".join(name for name in names if name not in common) for names in cleaned]
    choice = ["|".join(rest)] if all(rest) and len(rest) > 1 else []
    return [*common, *choice] or ["BASE"]


def _feature(name: str) -> str:
    return NAMES.get(name, name.removeprefix("experimental-").upper())


def build(isa: str, llvm: str, asked: probe.Probe, dump: Path) -> tuple[dict[str, Any], rules.Rules]:
    """The whole table as plain JSON data, and the rules that were applied."""
    builder = Builder(isa, collect(asked, records.read(dump, asked.describe())))
    forms = [builder.form(one) for one in builder.found]
    origin = f"LLVM {llvm}, TableGen files of {records.TARGETS[isa]} and libLLVM"
    source = {"forms": f"{origin} (Apache-2.0 WITH LLVM-exception)"}
    data = {"schema_version": 1, "isa": isa, "source": source}
    data |= {name: interner.values for name, interner in builder.interned.items()}
    return data | {"forms": forms}, builder.rules


def llvm_version() -> str:
    """Version of the installed LLVM."""
    command = ["llvm-config-22", "--version"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def write(isa: str, data: dict[str, Any]) -> str:
    """Write a table and say what is in it."""
    small = packed(data)
    target = ROOT / isa / "tables/forms.json.xz"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(small)
    counts = ", ".join(f"{len(v)} {k}" for k, v in data.items() if isinstance(v, list))
    return f"{isa}: {counts}, {len(small)} bytes"


def main() -> None:
    """Write the tables of the ISAs given, or of both."""
    source, dumps, *wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        program = probe.build(Path(directory))
        for isa in wanted or list(records.TARGETS):
            dump = records.dump(Path(source), Path(dumps), isa)
            data, applied = build(isa, llvm_version(), probe.Probe(program, isa), dump)
            print(write(isa, data), applied.applied, file=sys.stderr)


if __name__ == "__main__":
    main()
