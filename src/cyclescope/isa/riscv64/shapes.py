"""What the vector operands of RISC-V's instructions are: groups of elements, masks, single elements.

The vector specification says it per instruction; so do the rules here, by mnemonic. A shape is written as a
number, the width of elements in SEW (`2` of a widened result), after a letter for their type: `f` floating
point, `b` bfloat16, `q` that of 8 bits, `i` integer, none for what the mnemonic works on. `s` is ahead of a
single element in a register of its own, `m` is a mask, `e16` a width that SEW does not change.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache

import msgspec

from cyclescope.isa.form import InstructionForm

_PLACES = {7: 0, 20: 1, 15: 2}  # lowest bit of vd (vs3 of stores), vs2 and vs1
_RULES = tuple(
    (re.compile(mnemonic), tuple(shapes.split()))
    for mnemonic, shapes in (
        (r"vm\w+\.mm|vms[bio]f\.m", "m m m"),
        (r"vcpop\.m|vfirst\.m", "m m"),
        (r"v[ls]m\.v", "m"),
        (r"viota\.m", "1 m"),
        (r"vcompress\.vm", "1 1 m"),
        (r"vm(s|f)(eq|ne|[lg][te]u?)\..*|vm(adc|sbc)\..*", "m 1 1"),
        (r"vf?wred.*", "s2 1 s2"),
        (r"vf?red.*", "s1 1 s1"),
        (r"vmv1r\.v", "s1 s1"),
        (r"vf?mv\.[xf]\.s", "1 s1"),
        (r"vf?mv\.s\.[xf]", "s1"),
        (r"v[sz]ext\.vf(\d)", "1 1/{}"),
        (r"vrgatherei(16)\.vv", "1 1 e{}"),
        (r"v(?:l|s)s?(?:seg\d)?e(\d+)(?:ff)?\.v", "e{}"),
        (r"v[ls][uo]x(?:seg\d)?ei(\d+)\.v", "1 e{}"),
        (r"vfwcvt\.(rtz\.)?xu?\.f\.v", "i2 f1"),
        (r"vfwcvt\.f\.xu?\.v", "f2 i1"),
        (r"vfwcvtbf16\.f\.f\.v", "f2 b1"),
        (r"vfncvt\.(rtz\.)?xu?\.f\.w", "i1 f2"),
        (r"vfncvt\.f\.xu?\.w", "f1 i2"),
        (r"vfncvtbf16\.f\.f\.w", "b1 f2"),
        (r"vfncvtbf16\.sat\.f\.f\.w", "q1 b2"),
        (r"vfncvt\.(sat\.)?f\.f\.q", "q1 f4"),
        (r"vfncvt\.(rod\.)?f\.f\.w", "f1 f2"),
        (r"vfcvt\.(rtz\.)?xu?\.f\.v|vfclass\.v", "i1 f1"),
        (r"vfcvt\.f\.xu?\.v", "f1 i1"),
        (r"vfwmaccbf16\..*", "f2 b1 b1"),
        (r"vf?w\w+\.w[vxf]", "2 2 1"),
        (r"vf?w.*", "2 1 1"),
        (r"vn(srl|sra|clipu?)\.w[vxi]", "1 2 1"),
        (r"(vaes|vsm4r|vghsh|vgmul)\w*\.vs", "1 s1 1"),
        (r".*", "1 1 1"),
    )
)  # fmt: skip
_FIXED_SEW = (
    (r"vaes.*|vsm[34].*|vg(hsh|mul)\..*|vqdot.*", (32,)),
    (r"vsha2.*|vclmul.*", (32, 64)),
    (r"vf[nw]cvtbf16\.f\.f\..|vfwmaccbf16.*", (16,)),
    (r"vfncvtbf16\.sat.*|vfncvt\.(sat\.)?f\.f\.q", (8,)),
)


class RegisterShape(msgspec.Struct, frozen=True):
    """A vector operand: elements of type `kind` (a letter as above, `m` of a mask).

    They are `eew` bits wide, or `factor` times SEW where that is 0. A `single` one has a register of its own;
    a segment has `count` groups. `place` is 0 for vd, 1 for vs2, 2 for vs1.
    """

    kind: str
    place: int
    factor: Fraction = Fraction(1)
    eew: int = 0
    single: bool = False
    count: int = 1

    def width(self, sew: int) -> Fraction:
        """Bits of an element."""
        return Fraction(self.eew) if self.eew else self.factor * sew

    def emul(self, sew: int, lmul: Fraction) -> Fraction:
        """Registers of a group; below 1 for a part of one."""
        return Fraction(1) if self.kind == "m" or self.single else lmul * self.width(sew) / sew


@cache
def shapes(form: InstructionForm) -> dict[int, RegisterShape]:
    """Shapes of the vector operands that a field holds, by position; empty for what no VTYPE applies to."""
    if form.bits is None or not takes_configuration(form):
        return {}
    words = next(_filled(words, rule, form) for rule, words in _RULES if rule.fullmatch(_name(form)))
    found = {}
    for field in form.bits.fields:
        op = form.operands[field.operand]
        if op.cls == "VR":
            place = _PLACES[field.positions[0]]
            segments = re.search(r"seg(\d)", _name(form))
            count = int(segments[1]) if segments and place == 0 else 1
            found[field.operand] = _shape(words[place], _floats(form), place, count)
    return found


def takes_configuration(form: InstructionForm) -> bool:
    """Whether a form of the table depends on VTYPE, and is no vendor's."""
    reads = any(op.fixed == "VTYPE" and op.read for op in form.operands)
    return reads and "optional" not in form.attributes


def element_widths(form: InstructionForm) -> tuple[int, ...]:
    """The values of SEW that an instruction is defined for, were all operands possible."""
    found = (sews for rule, sews in _FIXED_SEW if re.fullmatch(rule, _name(form)))
    return next(found, (8, 16, 32, 64))


def scalar_kind(form: InstructionForm) -> str:
    """Type of a scalar operand: `b` where it is bfloat16, `f`, or `i`."""
    return "b" if "bf16" in _name(form) else _floats(form)


def _name(form: InstructionForm) -> str:
    return form.mnemonic.lower()


def _floats(form: InstructionForm) -> str:
    return "f" if re.match(r"vm?f(?!irst)", _name(form)) else "i"


def _filled(words: tuple[str, ...], rule: re.Pattern[str], form: InstructionForm) -> tuple[str, ...]:
    match = rule.fullmatch(_name(form))
    return tuple(word.format(match[1]) if match and "{" in word else word for word in words)


def _shape(word: str, kind: str, place: int, count: int) -> RegisterShape:
    match = re.fullmatch(r"(s?)([ifbqme]?)(\S*)", word)
    assert match
    if match[2] == "m":
        return RegisterShape("m", place, eew=1)
    if match[2] == "e":
        return RegisterShape("i", place, eew=int(match[3]), count=count)
    return RegisterShape(match[2] or kind, place, Fraction(match[3]), single=bool(match[1]), count=count)
