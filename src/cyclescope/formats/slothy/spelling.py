"""What instructions of AArch64 look like, whatever their registers and constants are.

This function is in every module that is written for SLOTHY, word for word: it needs nothing but `re`.
"""

from __future__ import annotations

import re

_REGISTER = re.compile(r"\b(?:([wxbhsdqv])(?:\d+|zr)|(sp|wsp|xzr|wzr))\b")


def spelling(text: str) -> str:
    """`mul v.4s, v.4s, v.s[]` of `mul v0.4s, v1.4s, v2.s[3]`; an absent offset is one of 0."""
    line = " ".join(text.lower().replace("\t", " ").split())
    line = re.sub(r"\[(\w+)\]$", r"[\1, #0]", line)
    line = _REGISTER.sub(lambda found: found[1] or ("w" if found[2].startswith("w") else "x"), line)
    line = re.sub(r"\[\d+\]", "[]", line)
    line = re.sub(r"#?-?\b(?:0x[0-9a-f]+|\d+(?:\.\d+)?)\b(?!\w)", "#", line)
    return re.sub(r"\s*,\s*", ", ", line)
