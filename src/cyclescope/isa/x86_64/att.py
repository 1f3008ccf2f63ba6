"""AT&T syntax of one instruction in Intel's: operands the other way round, sizes in the mnemonic."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

_SIZES = {"B": "byte", "W": "word", "L": "dword", "Q": "qword", "S": "dword", "T": "tbyte"}
_WIDENING = re.compile(r"MOV([SZ])([BW])([WLQ])|MOVS(L)Q")
_OTHER_NAMES = {"CBTW": "CBW", "CWTL": "CWDE", "CLTQ": "CDQE", "CWTD": "CWD", "CLTD": "CDQ", "CQTO": "CQO"}
_MEMORY = re.compile(r"(%\ws:)?([^()]*)\(([^()]*)\)\s*((?:\{[^{}]*\}\s*)*)")  # with masks and broadcasts
_PREFIXES = r"((?:(?:lock|repn?[ez]?)\s+)*)(\S+)\s*(.*)"


def intel(text: str, known: Collection[str]) -> Iterator[str]:
    """A line as Intel syntax has it, in all ways it can be meant; nothing for what is no AT&T syntax.

    `known` are the mnemonics that exist: a suffix is one where what is left of it is known.
    """
    match = re.fullmatch(_PREFIXES, text.strip(), re.IGNORECASE | re.DOTALL)
    if match is None:
        return
    prefix, mnemonic, operands = match[1].lower(), match[2].upper(), _operands(match[3])
    if not re.search("[%$]", text) and (len(operands) > 1 or "(" in text):
        return
    for name, size in without_suffix(mnemonic, known):
        told = [_intel_operand(operand, size) for operand in operands]
        yield f"{prefix}{name} {', '.join(reversed(told))}".strip()


def without_suffix(mnemonic: str, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Mnemonics that one can be without its suffix, and the size that this says."""
    if mnemonic in known:
        yield mnemonic, ""
    if mnemonic in _OTHER_NAMES:
        yield _OTHER_NAMES[mnemonic], ""
    if match := _WIDENING.fullmatch(mnemonic):
        yield ("MOVSXD", "dword") if match[4] else (f"MOV{match[1]}X", _SIZES[match[2]])
    if mnemonic[:-1] in known and mnemonic[-1] in _SIZES:
        yield mnemonic[:-1], _SIZES[mnemonic[-1]]
    if mnemonic == "MOVABSQ":
        yield "MOV", ""


def _operands(text: str) -> list[str]:
    """Parts between commas that stand outside of parentheses."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]


def _intel_operand(text: str, size: str) -> str:
    text = text.lstrip("*")
    if match := _MEMORY.fullmatch(text):
        if match[3].strip().isdigit():  # %st(1)
            return text.replace("%", "")
        segment = (match[1] or "").replace("%", "")
        told = f"{size} ptr {segment}[{_address(match[2], match[3])}]".removeprefix(" ptr ")
        return told + match[4].replace("%", "")
    return text.removeprefix("$").replace("%", "")


def _address(displacement: str, registers: str) -> str:
    base, index, scale, *_ = [*(part.strip().replace("%", "") for part in registers.split(",")), "", ""]
    parts = [base, f"{index}*{scale or 1}" if index else "", displacement.strip()]
    return "+".join(filter(None, parts)).replace("+-", "-")
