"""Names of a form: uops.info's string (also the model of our own ids) and LLVM's opcode name.

uops.info's strings follow XED: mnemonic, suffixes for prefixes and EVEX features, operand classes in
parentheses; where two encodings share a string, the opcode bytes are appended to the mnemonic.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from iced_x86 import EncodingKind, OpCodeInfo, OpCodeTableKind

from .enumerate_forms import CODE, Variant
from .operands import Op

CONDITIONS = {"E": "Z", "NE": "NZ", "AE": "NB", "A": "NBE", "GE": "NL", "G": "NLE"}
RENAMED = {
    "XLATB": "XLAT", "RET": "RET_NEAR", "CALL": "CALL_NEAR", "WAIT": "FWAIT", "RETF": "RET_FAR",
}  # fmt: skip
SIXTEEN_BIT = re.compile(r"(PUSHW|POPW|RETNW|ENTERW|LEAVEW|(J\w+|LOOP\w*|CALL)_REL(8_)?16|NOPW)")
# Where XED splits one encoding by something our operands do not show.
XED_SUFFIXES = [
    (re.compile(r"(IMUL|SHLD|SHRD) \((R16|R32|R64), (R16|R32|R64), (I8|0)\)"), "IMMB"),
    (re.compile(r"IMUL \((R16|R32|R64), (R16|R32|R64), (I16|I32)\)"), "IMMZ"),
    (re.compile(r"SHLD \((R16|R32|R64), (R16|R32|R64), CL\)"), "CL"),
    (re.compile(r"(ADD|OR|ADC|SBB|AND|SUB|XOR|CMP|ROL|ROR|RCL|RCR|SHL|SHR|SAR|TEST) \(R8l, (I8|0|1)\)"),
     "R0"),
]  # fmt: skip
# Cache-line and state-saving operations, whose operand iced gives as one byte or not at all.
WHOLE_BLOCKS = {
    "CLFLUSH": 512, "CLFLUSHOPT": 512, "CLWB": 512, "CLDEMOTE": 512, "PREFETCHNTA": 512,
    "PREFETCHT0": 512, "PREFETCHT1": 512, "PREFETCHT2": 512, "PREFETCHW": 512, "PREFETCHWT1": 512,
    "XSAVE": 4608, "XSAVE64": 4608, "XSAVEC": 4608, "XSAVEC64": 4608, "XSAVEOPT": 4608,
    "XSAVEOPT64": 4608, "XRSTOR": 4608, "XRSTOR64": 4608,
}  # fmt: skip


def mnemonic(name: str) -> str:
    """XED's spelling of iced's mnemonic."""
    match = re.fullmatch(r"(CMOV|SET|J)(E|NE|AE|A|GE|G)", name)
    if match:
        return match[1] + CONDITIONS[match[2]]
    return RENAMED.get(name, name)


def operand_strings(ops: Sequence[Op]) -> list[str]:
    """Operand classes as uops.info writes them; suppressed operands are left out."""
    result = []
    for op in ops:
        if op.implicit:
            continue
        if op.kind == "address":  # in the suffix of LEA
            continue
        if op.kind == "register" and op.fixed and op.fixed not in ("block4", "pair"):
            result.append(op.fixed)
        elif op.cls == "ST":
            result.append("STi")
        else:
            result.append(op.cls)
    return result


def _vex_twins(variants: Iterable[tuple[Variant, str]]) -> set[str]:
    return {name for v, name in variants if v.info.encoding == EncodingKind.VEX}


def base_names(records: Sequence[tuple[Variant, str, Sequence[Op]]]) -> list[str]:
    """uops.info-style strings, one per record, not yet unique."""
    twins = _vex_twins((v, name) for v, name, _ in records)
    return [_string(v, name, ops, twins) for v, name, ops in records]


def _string(variant: Variant, name: str, ops: Sequence[Op], twins: set[str]) -> str:
    head = mnemonic(name)
    vector = any(op.cls in ("XMM", "YMM", "ZMM") for op in ops)
    if name in ("MOVSD", "CMPSD") and vector:
        head += "_XMM"
    if variant.lea:
        head += "_" + variant.lea
    evex_only = variant.mask or (variant.rounding and "ZMM" in {op.cls for op in ops})
    wide = any(op.cls == "ZMM" for op in ops)
    if variant.info.encoding == EncodingKind.EVEX and name in twins and not evex_only and not wide:
        head += "_EVEX"
    if SIXTEEN_BIT.match(CODE[variant.code]):
        head += "_O16" if "_REL" in CODE[variant.code] else "_W"
    head += {"er": "_ER", "sae": "_SAE", "": ""}[variant.rounding]
    head += "_Z" if variant.mask == "zero" else ""
    head += {"": "", "lock": "_LOCK", "rep": "_REPE", "repne": "_REPNE"}[variant.prefix]
    operands = operand_strings(ops)
    return f"{head} ({', '.join(operands)})" if operands else head


def opcode_suffix(info: OpCodeInfo) -> str:
    """Opcode bytes as uops.info appends them: 01, 0F28 (legacy), 28 (VEX, EVEX)."""
    digits = f"{info.op_code:0{info.op_code_len * 2}X}"
    maps = {
        OpCodeTableKind.T0F: "0F", OpCodeTableKind.T0F38: "0F38", OpCodeTableKind.T0F3A: "0F3A",
    }  # fmt: skip
    return maps.get(info.table, "") + digits if info.encoding == EncodingKind.LEGACY else digits


def insert_suffix(name: str, suffix: str) -> str:
    """`ADD (R64, R64)` and `01` -> `ADD_01 (R64, R64)`; before EVEX and prefix suffixes."""
    head, _, rest = name.partition(" ")
    match = re.fullmatch(r"([A-Z0-9]+?(?:_XMM)?)((?:_EVEX|_ER|_SAE|_Z|_LOCK|_REPE?|_REPNE)*)", head)
    stem, tail = (match[1], match[2]) if match else (head, "")
    return f"{stem}_{suffix}{tail}" + (f" {rest}" if rest else "")


# Second encodings of something that another form is named after.
ALIAS = re.compile(
    r".*_ECX$|(MOV|SLDT|STR|VERR|VERW|SMSW)_.*R32M16|.*R64M(8|16|32)|.*_F[67]R1$"
    r"|F.*_D[9BDEF]\w\w$|NOPQ|RETF[WD]|X\w+_32$|(MONITORX?|CLZERO|UMONITOR)[WD]$|PREFETCHRESERVED"
    r"|(PUSH|POP|MOV)_RM\d+(_IMM\d+)?$|[LMS]FENCE_[EF]\w$|V?MOVQ_(X?MM_RM64|RM64_X?MM)$"
    r"|(VEX|EVEX)_VMOVQ_(XMM_RM64|RM64_XMM)$|EVEX_VMOVQ_XMMM64_XMM$|(VEX_|EVEX_)?V?PEXTRW_R32M16"
    r"|(EVEX|XOP)_V\w+_[XYZ]MMM\d+_(K1Z_|KZ_)?[XYZ]MM$|EVEX_VMOVS\w_XMM_K1Z_XMM_XMM_0F11$"
    r"|EVEX_VMOVSH_XMM_K1Z_XMM_XMM_MAP5_11$|(VEX|XOP)_\w+_([XYZ]MM_){2}[XYZ]MMM\d+_[XYZ]MM(_IMM4)?$"
    r"|XOP_\w+_XMM_XMMM128_XMM$"
)


def _is_alias(variant: Variant) -> bool:
    code = CODE[variant.code]
    plain_blend = re.match(r"VEX_VP?BLENDV", code)
    register_c5 = "PEXTRW_R32M16" in code and variant.memory
    store_d6 = "VMOVQ_XMMM64" in code and variant.memory
    return bool(ALIAS.match(code)) and not (plain_blend or register_c5 or store_d6)


def _counts(names: Sequence[str], aliases: Sequence[bool]) -> Counter[str]:
    return Counter(n for n, alias in zip(names, aliases, strict=True) if not alias)


def unique(names: Sequence[str], variants: Sequence[Variant]) -> list[str]:
    """Unique ids: opcode bytes where a name occurs twice, then iced's code name.

    A second encoding always gets the addition, so that the usual encoding keeps the plain name.
    """
    total = Counter(names)
    aliases = [total[n] > 1 and _is_alias(v) for n, v in zip(names, variants, strict=True)]
    canonical = _counts(names, aliases)
    first = [
        insert_suffix(n, opcode_suffix(v.info)) if alias or canonical[n] > 1 else n
        for n, v, alias in zip(names, variants, aliases, strict=True)
    ]
    total = Counter(first)
    canonical = _counts(first, aliases)
    return [
        f"{n} [{CODE[v.code]}]" if total[n] > 1 and (alias or canonical[n] > 1) else n
        for n, v, alias in zip(first, variants, aliases, strict=True)
    ]


def uops_info_name(form_id: str, variant: Variant) -> str:
    """uops.info's exact string for a form, or "" where theirs is not known to follow the rules."""
    code = CODE[variant.code]
    unknown = ("RESERVEDNOP", "UNDOC", "BND", "UD0", "UD1", "SAL_", "MONTMUL", "XSHA", "XCRYPT",
               "XSTORE", "CCS_", "PREFETCHRESERVED")  # fmt: skip
    if "[" in form_id or "_O16" in form_id or "PREFETCH_0F0D" in form_id or any(u in code for u in unknown):
        return ""
    if variant.zero_immediate and variant.info.encoding != EncodingKind.LEGACY:
        return ""
    if form_id.startswith("F") and "ST" in form_id:
        return form_id.replace("STi", "ST(i)") if "(" in form_id else ""
    for pattern, suffix in XED_SUFFIXES:
        if pattern.fullmatch(form_id):
            return form_id.replace(" (", f"_{suffix} (", 1)
    bits = WHOLE_BLOCKS.get(form_id.split(" ", maxsplit=1)[0])
    return re.sub(r"\(M\d+\)", f"(M{bits})", form_id) if bits else form_id


# --- LLVM ---------------------------------------------------------------------------------------

SENTINEL, FILLER = "TRAP", "NOOP"  # LLVM's names of UD2 and NOP
GAP = "\n" + "0x90 " * 15 + "\n0x0f 0x0b\n"  # an undecodable form swallows NOPs, not the sentinel
LINES = GAP.count("\n")  # per code


def _disassemble(codes: Sequence[bytes], tool: str) -> tuple[str, set[int]]:
    """What the tool prints, and the positions of codes that it warns about: it goes on in their middle."""
    text = "".join(" ".join(f"0x{b:02x}" for b in code) + GAP for code in codes)
    command = [tool, "-disassemble", "-show-inst", "-triple=x86_64"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    lines = re.findall(r"^<stdin>:(\d+):\d+: warning", done.stderr, re.MULTILINE)
    return done.stdout, {(int(line) - 1) // LINES for line in lines}


_PREFIX_OPCODES = {"LOCK_PREFIX", "REP_PREFIX", "REPNE_PREFIX", "DATA16_PREFIX", "REX64_PREFIX"}


def llvm_names(codes: Sequence[bytes], tool: str = "llvm-mc-22") -> list[str]:
    """LLVM's opcode name for each encoding ("" where it does not decode to one instruction)."""
    text, unknown = _disassemble(codes, tool)
    opcodes = re.findall(r"<MCInst #\d+ (\w+)", text)
    groups: list[list[str]] = [[]]
    for opcode in opcodes:
        if opcode == SENTINEL and FILLER in groups[-1]:
            groups.append([])
        else:
            groups[-1].append(opcode)
    groups.pop()
    if len(groups) != len(codes):
        raise RuntimeError(f"{tool} answered {len(groups)} of {len(codes)} instructions")
    return ["" if position in unknown else _single(group) for position, group in enumerate(groups)]


def _single(group: list[str]) -> str:
    if all(name == FILLER for name in group):
        return FILLER
    rest = [name for name in group if name not in _PREFIX_OPCODES and name != FILLER]
    return rest[0] if len(rest) == 1 else ""


def tool_version(tool: str) -> str:
    """First version line of an LLVM tool."""
    out = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.search(r"LLVM version (\S+)", out)
    return f"{Path(tool).name} {match[1] if match else '?'}"
