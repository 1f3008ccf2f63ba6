"""Finding forms: by mnemonic, id, another tool's name, feature, or an assembly example."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import translate
from functools import cache

from cyclescope.errors import UsageError, shortened
from cyclescope.isa.find.suggestion import single_features, suggestion
from cyclescope.isa.find.syntax import assembly_syntax
from cyclescope.isa.form import InstructionForm, model_form_id
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import Table

LONGEST = 1000  # characters of a pattern: ids and examples have no more than some 100
_SUFFIX = re.compile(r"_(?:0F|0F38|0F3A)?[0-9A-F]{2}(?=[ _]|$)")


Reader = Callable[[str, str], Sequence[InstructionForm]]  # of an instruction set and an example


def select(
    table: Table, patterns: Sequence[str], expand: bool = True, read: Reader | None = None
) -> list[InstructionForm]:
    """Forms that match any of the patterns, in table order; all but RISC-V's optional ones for none.

    A pattern is a mnemonic, a form id, a name LLVM or uops.info gives the form, a glob (`*`, `?`)
    over these, `isa:` and a glob over features, or an assembly example. A vector instruction of RISC-V is
    its forms under the configurations that are measured, unless `expand` is false, and an instruction of
    AArch64 those with shifted and extended operands too; a pattern with `@` and a configuration (`e64,m2`) or
    a kind of operand (`lsl4`), or a glob over all, chooses others. `read` is asked for what looks like an
    example and is none as the table or one of the known aliases has it. Raises UsageError for a pattern that
    matches nothing.
    """
    chosen: dict[str, list[InstructionForm]] = {}
    if not patterns:  # vendors' extensions share encodings: they are measured where they are asked for
        chosen = {form.id: [form] for form in table if not (expand and "optional" in form.attributes)}
    for pattern in patterns:
        for form in _found(table, pattern.strip(), read):
            chosen.setdefault(model_form_id(form), []).append(form)
    found = (form for plain in table if plain.id in chosen for form in chosen[plain.id])
    if expand:
        found = (each for form in found for each in _expanded(table, form))
    return list(dict.fromkeys(found))


def select_known(
    table: Table, patterns: Sequence[str], known: Collection[str], read: Reader | None = None
) -> list[InstructionForm]:
    """As `select`, but an instruction is those of its forms whose ids are known, where there are any."""
    more: dict[str, list[InstructionForm]] = {}
    for form in filter(
        None, (table.get(form_id) for form_id in sorted(known, key=_in_order) if "@" in form_id)
    ):
        more.setdefault(model_form_id(form), []).append(form)
    asked = {form.id for form in select(table, patterns, False, read)} if more else set()
    groups: dict[str, list[InstructionForm]] = {}
    for form in select(table, patterns, read=read):
        groups.setdefault(model_form_id(form), []).append(form)
    for plain in asked & groups.keys() & more.keys():
        usual = [form for form in groups[plain] if form.id in known]
        groups[plain] = list({form.id: form for form in (*usual, *more[plain])}.values())
    return [form for forms in groups.values() for form in forms]


def _in_order(form_id: str) -> list[str | int]:
    """Numbers by their value: e8 before e16."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", form_id)]


def _expanded(table: Table, form: InstructionForm) -> list[InstructionForm]:
    """A form of the table as it is measured."""
    variants = instruction_set(table.isa).variants
    return [form] if "@" in form.id or variants is None else variants.measured(form)


def _found(table: Table, pattern: str, read: Reader | None) -> list[InstructionForm]:
    if len(pattern) > LONGEST:
        raise UsageError(f"no instruction form matches {shortened(pattern)!r}", "it is longer than any name")
    variants = instruction_set(table.isa).variants
    plain, at, text = pattern.partition("@") if variants else (pattern, "", "")
    found = _matching(table, plain.strip())
    if variants and not at and plain.lower().startswith("isa:"):
        known = {form.id for form in found}
        more = variants.with_features(
            [form for form in table if form.id not in known], _glob(plain[4:]).match
        )
        found += [form for form in more if _has_feature(form, plain[4:])]
    if not found:
        found = _read(table, plain, read)
    return variants.chosen(found, text) if variants and at else found


def _matching(table: Table, pattern: str) -> list[InstructionForm]:
    if pattern.lower().startswith("isa:"):
        return [form for form in table if _has_feature(form, pattern[4:])]
    exact = table.get(pattern)
    if exact is not None:
        return [exact]
    matches = _glob(pattern).match
    found = [f for f in table if any(map(matches, names(f)))]
    syntax = assembly_syntax(table.isa)
    found = syntax.also_called(table, pattern, found) or syntax.forms_of(table, pattern)
    found = found or [f for f in table if f.bits and f.mnemonic.partition(".")[0] == pattern.upper()]
    spaced = syntax.spaced(pattern)
    return found if found or spaced == pattern else _matching(table, spaced)


def _has_feature(form: InstructionForm, pattern: str) -> bool:
    glob = _glob(pattern)
    return any(glob.match(name) for name in single_features(form.features))


def names(form: InstructionForm) -> Iterable[str]:
    """Every name that finds a form."""
    yield form.mnemonic
    yield form.id
    first = form.id.partition(" ")[0]
    if first != form.mnemonic:
        yield first
        yield _SUFFIX.sub("", form.id, count=1)
    yield from filter(None, (form.llvm, form.uops_info))


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.replace("[", "[[]")), re.IGNORECASE)


def _read(table: Table, example: str, read: Reader | None) -> list[InstructionForm]:
    """What an assembler makes of it. Raises UsageError."""
    reason = ""
    if read is not None and _looks_written(example):
        try:
            return list(read(table.isa, example))
        except UsageError as error:
            reason = f" ({error.message})"
    raise UsageError(
        f"no instruction form matches {shortened(example)!r}{reason}", suggestion(table, example)
    )


def _looks_written(pattern: str) -> bool:
    """Whether a pattern is an instruction with operands: neither an id, nor a glob, nor words."""
    plain = re.sub(r"^(?:\{\w+\}\s*)+", "", pattern)  # {evex}
    first = r"[^*?;\n]" if "%" in plain else r"[^(*?;\n]"
    return re.fullmatch(rf"[A-Za-z][\w.]*\s+{first}[^*?;\n]*", plain) is not None


def by_example(table: Table, text: str) -> list[InstructionForm]:
    """Forms that an instruction such as `imul rax, rbx` or `add x1, x2, x3` can be, aliases too."""
    return assembly_syntax(table.isa).forms_of(table, text)
