"""What to try in place of a pattern that finds nothing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from cyclescope.isa.find import written
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.registry import instruction_set
from cyclescope.isa.table import Table
from cyclescope.isa.text import example
from cyclescope.isa.x86_64 import written as x86_64

_SHOWN = 3


def suggestion(table: Table, pattern: str) -> str:
    """The remedy: a feature, the nearest names, or how forms of the named instruction are written."""
    word = re.split(r"[\s(*?]", pattern.strip())[0]
    features = {name for form in table for name in single_features(form.features)}
    if pattern.lower().startswith("isa:"):
        return _close(pattern[4:], features)
    if word.upper() in features and word == pattern.strip():
        return f"isa:{word.upper()} finds the forms of this feature"
    if re.search(r"\s+[^(]", pattern.strip()) and (same := _same_name(table, word)):
        return _written(table, same, pattern)
    return _close(word, {*(f.mnemonic for f in table), *(f.id for f in table), *written.mnemonics(table.isa)})


def single_features(features: Iterable[str]) -> Iterable[str]:
    """Features, and those that form a choice."""
    for feature in features:
        yield feature
        if "|" in feature:
            yield from re.split(r"[|+]", feature)


def _close(word: str, known: Iterable[str]) -> str:
    upper = {name.upper(): name for name in known}
    close = [upper[name] for name in difflib.get_close_matches(word.upper(), upper, n=_SHOWN)]
    if close:
        return f"did you mean {', '.join(close)}?"
    return "{forms} lists them; patterns are mnemonics, form ids, globs or isa:FEATURE"


def _same_name(table: Table, word: str) -> list[InstructionForm]:
    if not instruction_set(table.isa).fixed_width:
        names = x86_64.spellings(word.upper())
        return [form for form in table if form.mnemonic in names]
    own = [form for form in table if form.mnemonic == word.upper() and "optional" not in form.attributes]
    return own + written.aliased(table, word.lower())


def _written(table: Table, forms: list[InstructionForm], pattern: str) -> str:
    """The forms that are most like what was written."""
    texts = list(dict.fromkeys(example(form) or form.id for form in forms))
    like = pattern.lower() if instruction_set(table.isa).fixed_width else _classes(pattern)
    close = difflib.get_close_matches(like, texts, n=_SHOWN, cutoff=0.0)
    shown = ", ".join(map(repr, close))
    more = f" and {len(texts) - len(close)} more" if len(texts) > len(close) else ""
    return f"no form of this name has these operands; there are {shown}{more}"


def _classes(pattern: str) -> str:
    """An example with the classes of its operands, like an id."""
    name, _, operands = pattern.strip().partition(" ")
    if operands.startswith("(") and "%" not in operands:
        return pattern.upper()
    return f"{name.upper()} ({', '.join(map(x86_64.operand_class, x86_64.split(operands)))})"
