"""Files of other tools to be damaged, and what happens to them."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from cyclescope.formats.registry import by_name
from tests.support.files.published import ONLY_READ
from tests.support.made.models import suited

NASTY = ("nan", "-1", "1e400", "9.2e18", "0", "<b>", "&lt;", "'", '"', ":", "- ", "{", "}", "*", "&a",
         "\x1b[2J", "\n", ",", "..", "~", "=", "p99", "p", "true", "null", "[[[[", "é" * 50,
         "\x00", "\r", "\ufeff", "9" * 5000, "[" * 5000, "a" * 5000, "!!python/none ", "<<: ", "---\n", "%",
         "<!DOCTYPE a>", "0x10", "1_000", "1:30", "2001-01-01", "1e-320", "-0.0", "|", ">", "? ",
         "\udc80")  # fmt: skip
EDITS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "copy", "delete"]), st.floats(0, 0.999), st.integers(0, 200),
              st.sampled_from(NASTY) | st.text(max_size=3)),
    min_size=1, max_size=6,
)  # fmt: skip


@cache
def sound(name: str) -> str:
    """A file of a format."""
    return ONLY_READ.get(name) or by_name(name).write(suited(name, 3)).text


def mutated(text, edits):
    for what, where, length, word in edits:
        at = int(where * len(text))
        some = text[at : at + length]
        middle = {"put": word, "copy": some * 2, "delete": ""}[what]
        text = text[:at] + middle + text[at + (min(length, 6) if what == "put" else length) :]
    return text
