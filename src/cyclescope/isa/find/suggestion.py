"""What to try in place of a pattern that finds nothing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from cyclescope.isa.find.syntax import assembly_syntax
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.table import Table
from cyclescope.isa.text import example

_SHOWN = 3


def suggestion(table: Table, pattern: str) -> str:
    """The remedy: a feature, the nearest names, or how forms of the named instruction are written."""
    word = re.split(r"[\s(*?]", pattern.strip())[0]
    features = dict.fromkeys(name for form in table for name in single_features(form.features))
    if pattern.lower().startswith("isa:"):
        return _close(pattern[4:], features)
    if word.upper() in features and word == pattern.strip():
        return f"isa:{word.upper()} finds the forms of this feature"
    syntax = assembly_syntax(table.isa)
    if re.search(r"\s+[^(]", pattern.strip()) and (same := syntax.same_name(table, word)):
        return _written(same, syntax.like_examples(pattern))
    names = (name for form in table for name in (form.mnemonic, form.id))
    return _close(word, [*syntax.mnemonics(table.isa), *names])  # of two spellings the table's, which is last


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


def _written(forms: list[InstructionForm], like: str) -> str:
    """The forms that are most like what was written."""
    texts = list(dict.fromkeys(example(form) or form.id for form in forms))
    close = difflib.get_close_matches(like, texts, n=_SHOWN, cutoff=0.0)
    shown = ", ".join(map(repr, close))
    more = f" and {len(texts) - len(close)} more" if len(texts) > len(close) else ""
    return f"no form of this name has these operands; there are {shown}{more}"
