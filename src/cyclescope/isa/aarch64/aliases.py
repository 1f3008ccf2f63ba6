"""Aliases of AArch64, by the architecture's manual (DDI 0487): "This instruction is an alias of"."""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.isa.alias import OperandKind, aliases

_CONDITIONS = ("eq", "ne", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al", "nv")
OTHER_CONDITIONS = {"cs": "hs", "cc": "lo"}
OF_PREDICATES = {  # SVE
    "none": "eq", "any": "ne", "nlast": "hs", "last": "lo", "first": "mi", "nfrst": "pl", "pmore": "hi",
    "plast": "ls", "tcont": "ge", "tstop": "lt",
}  # fmt: skip
_REGISTER = r"[wx](?:\d+|zr)"
_CONDITION = "|".join((*_CONDITIONS, *OTHER_CONDITIONS))
_KINDS = {
    "R": OperandKind(_REGISTER, "x1", "w1"),
    "W": OperandKind(r"w(?:\d+|zr)", "w2"),
    "X": OperandKind(r"x(?:\d+|zr)", "x3"),
    "S": OperandKind("w?sp", "sp", "wsp"),
    "G": OperandKind(rf"{_REGISTER}|w?sp", "x4", "w4", "sp"),
    "N": OperandKind(r"-?\d+", "1", "0", "3"),
    "F": OperandKind(r"-?\d+(?:\.\d+(?:e[-+]\d+)?)?", "1.0"),
    "C": OperandKind(_CONDITION, "eq", "lo"),
    "V": OperandKind(r"v\d+\.(?:8b|16b)", "v1.8b", "v2.16b"),
    "E": OperandKind(r"v\d+\.[bhsd]\[\d+\]", "v1.b[1]", "v1.h[1]", "v1.s[1]", "v1.d[0]"),
    "H": OperandKind(r"v\d+\.[sd]\[\d+\]", "v1.s[1]", "v1.d[1]"),
    "J": OperandKind(r"[bhsdq]\d+", "b1", "h1", "s1", "d1", "q1"),
    "Z": OperandKind(r"z\d+\.[bhsd]", "z1.b", "z2.h", "z3.s", "z1.d"),
    "D": OperandKind(r"z\d+\.d", "z1.d"),
    "P": OperandKind(r"p\d+", "p1"),
    "Q": OperandKind(r"p\d+\.[bhsd]", "p2.b", "p2.h", "p2.s", "p2.d"),
    "U": OperandKind(
        r"v\d+\.\w+, v\d+\.\w+",
        "v1.8h, v2.8b",
        "v1.4s, v2.4h",
        "v1.2d, v2.2s",
        "v1.8h, v2.16b",
        "v1.4s, v2.8h",
        "v1.2d, v2.4s",
    ),
    "K": OperandKind(r"\w+", "pldl1keep"),
    "L": OperandKind(".+", "0"),
    "O": OperandKind(".+", "x2", "w2", "1", "x2, lsl 1", "w2, lsl 1", "w2, uxtw 0", "x2, uxtx 0"),
    "A": OperandKind(r"\[.+\].*", "[x2]"),
    "Y": OperandKind(r"[bwx]\d+|[hsdq]\d+", "x1", "w1", "q1", "d1", "s1", "h1", "b1"),
}
_WIDE = (0, 16, 32, 48)


def _values(operands: dict[str, str]) -> dict[str, str]:
    first = operands.get("d") or operands.get("n") or ""
    width = 32 if first[:1] == "w" else 64
    found = {"zr": "wzr" if width == 32 else "xzr", "top": str(width - 1), "narrow": "w" + first[1:]}
    if "n" in operands:
        found["nx"] = first[:1] + operands["n"][1:]  # the same register, as wide as the first
    if "j" in operands:
        found["lane"] = f"z{operands['j'][1:]}.{operands['j'][0]}[0]"
    if "c" in operands:
        found["inverse"] = _CONDITIONS[_CONDITIONS.index(_usual(operands["c"])) ^ 1]
    return found | dict(_shift(operands, width)) | dict(_chunks(operands, width))


def _usual(condition: str) -> str:
    return OTHER_CONDITIONS.get(condition, condition)


def _shift(operands: dict[str, str], width: int) -> Iterator[tuple[str, str]]:
    """Of a shift by `s`, and of a field of `k` bits from bit `s` on: the fields of UBFM and its like."""
    if "s" not in operands:
        return
    shift = int(operands["s"])
    yield "minus", str(-shift % width)
    yield "left", str(width - 1 - shift)
    if int(operands.get("k", 0)):
        yield "last", str(int(operands["k"]) - 1)
        yield "end", str(shift + int(operands["k"]) - 1)


def _chunks(operands: dict[str, str], width: int) -> Iterator[tuple[str, str]]:
    """Of a constant `i`: what MOVZ and MOVN take, where 16 of its bits say all, and ORR."""
    if "i" not in operands:
        return
    value = int(operands["i"]) & (1 << width) - 1
    yield "constant", str(value)
    for name, number in (("chunk", value), ("ones", ~value & (1 << width) - 1)):
        for shift in _WIDE[: width // 16]:
            if number >> shift << shift == number and number >> shift < 1 << 16:
                yield name, f"{number >> shift}" + (f", lsl {shift}" if shift else "")
                break


def _unscaled() -> Iterator[str]:
    """Offsets that the form with a scaled one cannot have."""
    for name in ("ldr", "ldrb", "ldrh", "ldrsb", "ldrsh", "ldrsw", "str", "strb", "strh"):
        yield f"{name} {{d:Y}}, {{a:A}} = {name[:2]}u{name[2:]} {{d}}, {{a}}"
    yield "prfm {d:K}, {a:A} = prfum {d}, {a}"


def _atomic_stores() -> Iterator[str]:
    """Atomic operations whose result nobody wants."""
    for operation in ("add", "clr", "eor", "set", "smax", "smin", "umax", "umin"):
        for suffix in (order + size for order in ("", "l") for size in ("", "b", "h")):
            yield f"st{operation}{suffix} {{d:R}}, {{a:A}} = ld{operation}{suffix} {{d}}, {{zr}}, {{a}}"


def _shifts() -> Iterator[str]:
    yield "lsl {d:R}, {n:R}, {s:N} = ubfm {d}, {n}, {minus}, {left}"
    yield "lsr {d:R}, {n:R}, {s:N} = ubfm {d}, {n}, {s}, {top}"
    yield "asr {d:R}, {n:R}, {s:N} = sbfm {d}, {n}, {s}, {top}"
    yield "ror {d:R}, {n:R}, {s:N} = extr {d}, {n}, {n}, {s}"
    for name in ("lsl", "lsr", "asr", "ror"):
        yield f"{name}v {{d:R}}, {{n:R}}, {{m:R}} = {name} {{d}}, {{n}}, {{m}}"
        yield f"{name} {{d:R}}, {{n:R}}, {{m:R}} = {name} {{d}}, {{n}}, {{m}}"
    for kind in ("s", "u"):
        yield f"{kind}bfx {{d:R}}, {{n:R}}, {{s:N}}, {{k:N}} = {kind}bfm {{d}}, {{n}}, {{s}}, {{end}}"
        yield f"{kind}bfiz {{d:R}}, {{n:R}}, {{s:N}}, {{k:N}} = {kind}bfm {{d}}, {{n}}, {{minus}}, {{last}}"
    for letter, kind, last in (("b", "R", 7), ("h", "R", 15), ("w", "X", 31)):
        yield f"sxt{letter} {{d:{kind}}}, {{n:W}} = sbfm {{d}}, {{nx}}, 0, {last}"
    for letter, last in (("b", 7), ("h", 15)):  # what is written of 32 bits makes the others 0
        yield f"uxt{letter} {{d:R}}, {{n:W}} = ubfm {{narrow}}, {{n}}, 0, {last}"
    yield "uxtw {d:R}, {n:W} = orr {narrow}, wzr, {n}"
    yield "bfi {d:R}, {n:R}, {s:N}, {k:N} = bfm {d}, {n}, {minus}, {last}"
    yield "bfxil {d:R}, {n:R}, {s:N}, {k:N} = bfm {d}, {n}, {s}, {end}"
    yield "bfc {d:R}, {s:N}, {k:N} = bfm {d}, {zr}, {minus}, {last}"
    for kind in ("s", "u"):
        for upper in ("", "2"):
            yield f"{kind}xtl{upper} {{v:U}} = {kind}shll{upper} {{v}}, 0"


def _hints() -> Iterator[str]:
    names = {
        "nop": 0, "yield": 1, "wfe": 2, "wfi": 3, "sev": 4, "sevl": 5, "dgh": 6, "xpaclri": 7, "esb": 16,
        "psb csync": 17, "csdb": 20, "paciaz": 24, "paciasp": 25, "pacibz": 26, "pacibsp": 27,
        "autiaz": 28, "autiasp": 29, "autibz": 30, "autibsp": 31, "bti": 32, "bti c": 34, "bti j": 36,
        "bti jc": 38, "pacia1716": 8, "pacib1716": 10, "autia1716": 12, "autib1716": 14,
    }  # fmt: skip
    yield from (f"{name} = hint {number}" for name, number in names.items())


def _comparisons() -> Iterator[str]:
    """SVE: those the other way round."""
    for plain, other in (("ge", "le"), ("gt", "lt"), ("hi", "lo"), ("hs", "ls")):
        yield f"cmp{other} {{d:Q}}, {{q:P}}/z, {{n:Z}}, {{m:Z}} = cmp{plain} {{d}}, {{q}}/z, {{m}}, {{n}}"
    floats = (("fcmge", "fcmle"), ("fcmgt", "fcmlt"), ("facge", "facle"), ("facgt", "faclt"))
    for plain, other in floats:
        yield f"{other} {{d:Q}}, {{q:P}}/z, {{n:Z}}, {{m:Z}} = {plain} {{d}}, {{q}}/z, {{m}}, {{n}}"


_RULES = (
    "mov {d:R}, {m:R} = orr {d}, {zr}, {m}",
    "mov {d:S}, {n:G} = add {d}, {n}, 0",
    "mov {d:R}, {n:S} = add {d}, {n}, 0",
    "mov {d:R}, {i:N} = movz {d}, {chunk} | movn {d}, {ones} | orr {d}, {zr}, {constant}",
    "mov {d:V}, {m:V} = orr {d}, {m}, {m}",
    "mov {d:E}, {m:R} = ins {d}, {m}",
    "mov {d:E}, {m:E} = ins {d}, {m}",
    "mov {d:W}, {m:H} = umov {d}, {m}",
    "mov {d:X}, {m:H} = umov {d}, {m}",
    "mov {d:D}, {m:D} = orr {d}, {m}, {m}",
    "mov {d:Z}, {i:N} = dup {d}, {i}",
    "mov {d:Z}, {n:G} = dup {d}, {n}",
    "mov {d:Z}, {j:J} = dup {d}, {lane}",
    "mov {d:Z}, {p:P}/m, {m:Z} = sel {d}, {p}, {m}, {d}",
    "mov {d:Z}, {p:P}/m, {m:O} = cpy {d}, {p}/m, {m}",
    "mov {d:Z}, {p:P}/z, {i:N} = cpy {d}, {p}/z, {i}",
    "mov {d:P}.b, {m:P}.b = orr {d}.b, {m}/z, {m}.b, {m}.b",
    "mov {d:P}.b, {p:P}/z, {m:P}.b = and {d}.b, {p}/z, {m}.b, {m}.b",
    "mov {d:P}.b, {p:P}/m, {m:P}.b = sel {d}.b, {p}, {m}.b, {d}.b",
    "movs {d:P}.b, {m:P}.b = orrs {d}.b, {m}/z, {m}.b, {m}.b",
    "not {d:P}.b, {p:P}/z, {m:P}.b = eor {d}.b, {p}/z, {m}.b, {p}.b",
    "fmov {d:Z}, {f:F} = fdup {d}, {f}",
    "mvn {d:R}, {m:O} = orn {d}, {zr}, {m}",
    "mvn {d:V}, {m:V} = not {d}, {m}",
    "neg {d:R}, {m:O} = sub {d}, {zr}, {m}",
    "negs {d:R}, {m:O} = subs {d}, {zr}, {m}",
    "ngc {d:R}, {m:R} = sbc {d}, {zr}, {m}",
    "ngcs {d:R}, {m:R} = sbcs {d}, {zr}, {m}",
    "cmp {n:G}, {m:O} = subs {zr}, {n}, {m}",
    "cmn {n:G}, {m:O} = adds {zr}, {n}, {m}",
    "tst {n:R}, {m:O} = ands {zr}, {n}, {m}",
    "fcmp {n:Y}, 0 = fcmp {n}, 0.0",
    "fcmpe {n:Y}, 0 = fcmpe {n}, 0.0",
    "mul {d:R}, {n:R}, {m:R} = madd {d}, {n}, {m}, {zr}",
    "mneg {d:R}, {n:R}, {m:R} = msub {d}, {n}, {m}, {zr}",
    "smull {d:X}, {n:W}, {m:W} = smaddl {d}, {n}, {m}, xzr",
    "umull {d:X}, {n:W}, {m:W} = umaddl {d}, {n}, {m}, xzr",
    "smnegl {d:X}, {n:W}, {m:W} = smsubl {d}, {n}, {m}, xzr",
    "umnegl {d:X}, {n:W}, {m:W} = umsubl {d}, {n}, {m}, xzr",
    "cset {d:R}, {c:C} = csinc {d}, {zr}, {zr}, {inverse}",
    "csetm {d:R}, {c:C} = csinv {d}, {zr}, {zr}, {inverse}",
    "cinc {d:R}, {n:R}, {c:C} = csinc {d}, {n}, {n}, {inverse}",
    "cinv {d:R}, {n:R}, {c:C} = csinv {d}, {n}, {n}, {inverse}",
    "cneg {d:R}, {n:R}, {c:C} = csneg {d}, {n}, {n}, {inverse}",
    "tbz {d:X}, {b:N}, {t:L} = tbz {narrow}, {b}, {t}",
    "tbnz {d:X}, {b:N}, {t:L} = tbnz {narrow}, {b}, {t}",
    "ret = ret x30",
    "isb = isb sy",
    "clrex = clrex 15",
    *_shifts(),
    *_hints(),
    *_comparisons(),
    *_atomic_stores(),
    *_unscaled(),
    *(f"b.{condition} {{t:L}} = b.{condition} {{t}}" for condition in _CONDITIONS),
    *(f"b{condition} {{t:L}} = b.{condition} {{t}}" for condition in _CONDITIONS[:-2]),
    *(f"b.{other} {{t:L}} = b.{condition} {{t}}" for other, condition in OF_PREDICATES.items()),
    *(f"b{other} {{t:L}} = b.{condition} {{t}}" for other, condition in OTHER_CONDITIONS.items()),
)
ALIASES = aliases(_RULES, _KINDS, _values)
