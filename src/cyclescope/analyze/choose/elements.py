"""How wide the elements are that a loop works on, as far as its instructions say.

Compilers load and store whole vectors by whichever move is shortest: `vmovups` and `ldr q` say nothing about
what they move. Arithmetic does. Where it works on several widths, or where there is none, the width of what
such moves access is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from cyclescope.analyze.decode.block import BlockInstruction
from cyclescope.isa.form import InstructionForm
from cyclescope.isa.operand import Operand


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


# Stems of mnemonics; the type of the elements is the form's.
_FLOAT = _any(
    r"V?(ADD|SUB|MUL|DIV|MIN|MAX|CMP|RANGE|REDUCE|SCALEF|DP|ADDSUB|HADD|HSUB)\w{0,3}[PS][SDH]",
    r"V?(SQRT|RSQRT|RCP|U?COMI|ROUND|RNDSCALE|GETEXP|GETMANT)\w{0,3}[PS][SDH]",
    r"VFN?M(ADD|SUB|ADDSUB|SUBADD)(132|213|231)?[PS][SDH]",
    r"F(ADD|SUB|MUL|DIV|SQRT|ML[AS]|N?M(ADD|SUB|UL)|MAX|MIN)[\w.]*",  # AArch64, RISC-V, x87
    r"F(ABD|ABS|NEG|CM|AC|RECP|RSQRT|RINT|EQ|LT|LE)[\w.]*",
)
_INTEGER = _any(
    r"V?P(ADD|SUB|MUL[LH]|MIN|MAX|CMP|ABS|AVG|SIGN|HADD|HSUB)\w*[BWDQ]",
    r"V?P(SLL|SRL|SRA|RO[LR]|SH[LR]D|POPCNT|LZCNT|CONFLICT)V?[BWDQ]",
    r"[SU]?(Q|H|RH|QR?DM)?(ADD|SUB|MULH?|ML[AS]|MAX|MIN|AB[DA]|SHL|R?SHR|R?SRA)P?V?",  # AArch64
    r"ABS|NEG|CM(EQ|G[ET]|H[IS]|L[ET])",
)
_CHANGES_WIDTH = _any(
    r"V?CVTT?(PS2PD|PD2PS|U?DQ2PD|PD2U?DQ|PS2U?QQ|U?QQ2PS|\w*PH\w*)X?",
    r"V?PMOV[SZ]X\w+|VPMOV(US|S)?[WDQ][BWD]|V?PACK\w+|V?PUNPCK\w+",
    r"V?PMADD\w+|VPDP\w+|V?PSADBW|V?PMULU?DQ",
    r"[SU]((ADD|SUB)[LW]|(MUL|MLA|MLS|SHL|ABD|ABA)L|XTL|ADDLP|ADALP|ADDLV|DOT)2?",  # AArch64
    r"FCVTX?[LN]2?|FMLAL\w*|PMULL2?|[SU]?Q?XTU?N2?|\w*SHRU?N2?|R?(ADD|SUB)HN2?",
)
_UNTYPED = _any(  # of x86, although the table has a type for what they access
    r"V?MOV([AU]P[SD]|DQ[AU]\d*|NT\w+|[HL]P[SD]|Q|D)|V?LDDQU|V?(BROADCAST|INSERT|EXTRACT)[FI]\d+\w*",
    r"V?P?(AND|ANDN|OR|XOR)(P[SD]|[DQ])?|VPTERNLOG\w|V?P?(BLEND|SHUF|PERM|UNPCK|ALIGN)\w*|VALIGN\w",
)
_PAIR = re.compile(r"(LD|ST)N?P")
_LIST = re.compile(r"(?:LD|ST)\dR?(?:One|Two|Three|Four)?(?:v\d+([bhsd])|i(\d+))(?:_POST)?")
_LETTERS = {"b": 1, "h": 2, "s": 4, "d": 8}


def worked_on(instructions: Iterable[BlockInstruction]) -> int:
    """Bytes of the elements that vector and floating-point arithmetic works on, 0 where widths differ."""
    forms = [one.form for one in instructions if one.form is not None]
    if any(_CHANGES_WIDTH.fullmatch(form.mnemonic) or _gathers(form) for form in forms):
        return 0
    floats = {_width(f.element) for f in forms if f.element[:1] in "fb" and _FLOAT.fullmatch(f.mnemonic)}
    integers = {_width(f.element) for f in forms if f.element[:1] == "i" and _is_integer(f)}
    found = (floats | integers) - {0}
    return found.pop() if len(found) == 1 else 0


def _gathers(form: InstructionForm) -> bool:
    """Whether vectors of addresses are loaded beside the data, in elements of another width perhaps."""
    return any(op.cls.startswith("VSIB_") for op in form.operands)


def _is_integer(form: InstructionForm) -> bool:
    """Whether a form computes with integers in vectors."""
    return (form.vector_width > 0 or _moves_vectors(form)) and _INTEGER.fullmatch(form.mnemonic) is not None


def accessed(form: InstructionForm, op: Operand, worked: int) -> int:
    """Bytes of the elements that a memory operand has, 0 where it is not known.

    `worked` is what the loop's arithmetic works on, 0 where that is not known.
    """
    whole = 4 if form.mnemonic == "LDPSW" else op.width // 8 // (2 if _PAIR.fullmatch(form.mnemonic) else 1)
    if form.bits is not None:
        own = _listed(form) if _moves_vectors(form) else whole
    elif form.vector_width == 0:
        own = whole
    else:
        own = 0 if _is_untyped(form) else _width(op.element)
    return own or min(worked, whole)


def _moves_vectors(form: InstructionForm) -> bool:
    """Whether AArch64's vector registers are operands, whatever part of them."""
    return any(op.file == "v" for op in form.operands)


def _listed(form: InstructionForm) -> int:
    """Bytes of the elements that AArch64's structure loads and stores name, else 0."""
    match = _LIST.fullmatch(form.id)
    if match is None:
        return 0
    return _LETTERS[match[1]] if match[1] else int(match[2]) // 8


def _is_untyped(form: InstructionForm) -> bool:
    """Whether an instruction of x86 moves vectors of anything; a mask counts elements."""
    return _UNTYPED.fullmatch(form.mnemonic) is not None and "masked" not in form.attributes


def _width(element: str) -> int:
    """Bytes of a type such as `f32`, 0 for others."""
    match = re.fullmatch(r"(?:b?f|i)(\d+)", element)
    return int(match[1]) // 8 if match else 0
