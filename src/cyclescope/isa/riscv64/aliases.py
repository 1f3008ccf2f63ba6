"""Pseudo-instructions of RISC-V, by its assembly programmer's manual and its vector specification."""

from __future__ import annotations

from collections.abc import Iterator

from cyclescope.isa.alias import OperandKind, aliases

_KINDS = {
    "R": OperandKind(r"[a-z][a-z0-9]*", "a1"),
    "F": OperandKind(r"f[a-z0-9]+", "fa1"),
    "V": OperandKind(r"v\d+", "v8"),
    "N": OperandKind(r"-?\d+", "1", "4096", "100000"),
    "B": OperandKind(r"-?\d+\([a-z0-9]+\)", "8(a1)"),
    "C": OperandKind(r"[a-z]\w*|\d+", "vl"),
    "L": OperandKind(r"[^\s,]+", "0"),
    "A": OperandKind(r"\([a-z0-9]+\)", "(a2)"),
    "M": OperandKind(r"(?:, v0\.t)?", "", ", v0.t"),
}
_UPPER = 1 << 12


def _values(operands: dict[str, str]) -> dict[str, str]:
    """Of a constant `i`: what is one less; LUI's part and what ADDIW adds to it."""
    if "i" not in operands:
        return {}
    value = int(operands["i"])
    low = (value + _UPPER // 2) % _UPPER - _UPPER // 2
    high = str((value - low) // _UPPER & (1 << 20) - 1)
    found = {"less": str(value - 1), "low": str(low)}
    return found if abs(value) >= 1 << 31 else found | ({"upper": high} if low else {"only": high})


def _immediates() -> Iterator[str]:
    """Assemblers take the register's name with a number too."""
    names = ("add", "and", "or", "xor", "sll", "srl", "sra", "slt", "ror", "bset", "bclr", "binv", "bext")
    pairs = [(name, f"{name}i") for name in names]
    pairs += [("sltu", "sltiu"), *((f"{name}w", f"{name}iw") for name in ("add", "sll", "srl", "sra", "ror"))]
    for name, immediate in pairs:
        yield f"{name} {{d:R}}, {{s:R}}, {{i:N}} = {immediate} {{d}}, {{s}}, {{i}}"


def _branches() -> Iterator[str]:
    for name, real in (("beqz", "beq"), ("bnez", "bne"), ("bgez", "bge"), ("bltz", "blt")):
        yield f"{name} {{s:R}}, {{t:L}} = {real} {{s}}, zero, {{t}}"
    for name, real in (("blez", "bge"), ("bgtz", "blt")):
        yield f"{name} {{s:R}}, {{t:L}} = {real} zero, {{s}}, {{t}}"
    for name, real in (("bgt", "blt"), ("ble", "bge"), ("bgtu", "bltu"), ("bleu", "bgeu")):
        yield f"{name} {{s:R}}, {{m:R}}, {{t:L}} = {real} {{m}}, {{s}}, {{t}}"


def _floats() -> Iterator[str]:
    for size in "hsdq":
        for name, real in (("fmv", "fsgnj"), ("fneg", "fsgnjn"), ("fabs", "fsgnjx")):
            yield f"{name}.{size} {{d:F}}, {{s:F}} = {real}.{size} {{d}}, {{s}}, {{s}}"
        for name, real in (("fgt", "flt"), ("fge", "fle")):
            yield f"{name}.{size} {{d:R}}, {{s:F}}, {{m:F}} = {real}.{size} {{d}}, {{m}}, {{s}}"


def _registers() -> Iterator[str]:
    """Control and status registers."""
    for name in ("w", "s", "c"):
        yield f"csr{name} {{c:C}}, {{s:R}} = csrr{name} zero, {{c}}, {{s}}"
        yield f"csr{name}i {{c:C}}, {{i:N}} = csrr{name}i zero, {{c}}, {{i}}"
        yield f"csr{name} {{c:C}}, {{i:N}} = csrr{name}i zero, {{c}}, {{i}}"
    for name in ("cycle", "time", "instret"):
        yield f"rd{name} {{d:R}} = csrrs {{d}}, {name}, zero"
    for name, register in (("csr", "fcsr"), ("rm", "frm"), ("flags", "fflags")):
        yield f"fr{name} {{d:R}} = csrrs {{d}}, {register}, zero"
        yield f"fs{name} {{s:R}} = csrrw zero, {register}, {{s}}"
        yield f"fs{name} {{d:R}}, {{s:R}} = csrrw {{d}}, {register}, {{s}}"


def _vectors() -> Iterator[str]:
    for name, real in (("vneg.v", "vrsub.vx"), ("vwcvt.x.x.v", "vwadd.vx"), ("vwcvtu.x.x.v", "vwaddu.vx"),
                       ("vncvt.x.x.w", "vnsrl.wx")):  # fmt: skip
        yield f"{name} {{d:V}}, {{s:V}}{{m:M}} = {real} {{d}}, {{s}}, zero{{m}}"
    yield "vnot.v {d:V}, {s:V}{m:M} = vxor.vi {d}, {s}, -1{m}"
    for name, real in (("vfneg.v", "vfsgnjn.vv"), ("vfabs.v", "vfsgnjx.vv")):
        yield f"{name} {{d:V}}, {{s:V}}{{m:M}} = {real} {{d}}, {{s}}, {{s}}{{m}}"
    for name, real in (("vmsgt", "vmslt"), ("vmsgtu", "vmsltu"), ("vmsge", "vmsle"), ("vmsgeu", "vmsleu"),
                       ("vmfgt", "vmflt"), ("vmfge", "vmfle")):  # fmt: skip
        yield f"{name}.vv {{d:V}}, {{s:V}}, {{n:V}}{{m:M}} = {real}.vv {{d}}, {{n}}, {{s}}{{m}}"
    for name, real in (("vmslt", "vmsle"), ("vmsltu", "vmsleu"), ("vmsge", "vmsgt"), ("vmsgeu", "vmsgtu")):
        yield f"{name}.vi {{d:V}}, {{s:V}}, {{i:N}}{{m:M}} = {real}.vi {{d}}, {{s}}, {{less}}{{m}}"
    for name, real in (("vmmv.m", "vmand.mm"), ("vmcpy.m", "vmand.mm"), ("vmnot.m", "vmnand.mm")):
        yield f"{name} {{d:V}}, {{s:V}} = {real} {{d}}, {{s}}, {{s}}"
    yield "vmclr.m {d:V} = vmxor.mm {d}, {d}, {d}"
    yield "vmset.m {d:V} = vmxnor.mm {d}, {d}, {d}"
    for name, real in (("vl1r", "vl1re8"), ("vl2r", "vl2re8"), ("vl4r", "vl4re8"), ("vl8r", "vl8re8"),
                       ("vle1", "vlm"), ("vse1", "vsm")):  # fmt: skip
        yield f"{name}.v {{d:V}}, {{a:A}} = {real}.v {{d}}, {{a}}"
    yield "vfredsum.vs {d:V}, {s:V}, {n:V}{m:M} = vfredusum.vs {d}, {s}, {n}{m}"
    yield "vpopc.m {d:R}, {s:V}{m:M} = vcpop.m {d}, {s}{m}"


_RULES = (
    "nop = addi zero, zero, 0",
    "li {d:R}, {i:N} = addi {d}, zero, {i} | lui {d}, {only} | lui {d}, {upper}; addiw {d}, {d}, {low}",
    "la {d:R}, {t:L} = auipc {d}, 0; addi {d}, {d}, 0",
    "lla {d:R}, {t:L} = auipc {d}, 0; addi {d}, {d}, 0",
    "mv {d:R}, {s:R} = addi {d}, {s}, 0",
    "not {d:R}, {s:R} = xori {d}, {s}, -1",
    "neg {d:R}, {s:R} = sub {d}, zero, {s}",
    "negw {d:R}, {s:R} = subw {d}, zero, {s}",
    "sext.w {d:R}, {s:R} = addiw {d}, {s}, 0",
    "zext.b {d:R}, {s:R} = andi {d}, {s}, 255",
    "zext.w {d:R}, {s:R} = add.uw {d}, {s}, zero",
    "seqz {d:R}, {s:R} = sltiu {d}, {s}, 1",
    "snez {d:R}, {s:R} = sltu {d}, zero, {s}",
    "sltz {d:R}, {s:R} = slt {d}, {s}, zero",
    "sgtz {d:R}, {s:R} = slt {d}, zero, {s}",
    "sgt {d:R}, {s:R}, {m:R} = slt {d}, {m}, {s}",
    "sgtu {d:R}, {s:R}, {m:R} = sltu {d}, {m}, {s}",
    "j {t:L} = jal zero, {t}",
    "jal {t:L} = jal ra, {t}",
    "jr {s:R} = jalr zero, 0({s})",
    "jr {a:B} = jalr zero, {a}",
    "jalr {s:R} = jalr ra, 0({s})",
    "jalr {a:B} = jalr ra, {a}",
    "jalr {d:R}, {s:R} = jalr {d}, 0({s})",
    "ret = jalr zero, 0(ra)",
    "call {t:L} = auipc ra, 0; jalr ra, 0(ra)",
    "tail {t:L} = auipc t1, 0; jalr zero, 0(t1)",
    "fence = fence iorw, iorw",
    "pause = fence w, 0",
    "csrr {d:R}, {c:C} = csrrs {d}, {c}, zero",
    "fmv.x.s {d:R}, {s:F} = fmv.x.w {d}, {s}",
    "fmv.s.x {d:F}, {s:R} = fmv.w.x {d}, {s}",
    *_immediates(),
    *_branches(),
    *_floats(),
    *_registers(),
    *_vectors(),
)
ALIASES = aliases(_RULES, _KINDS, _values)
