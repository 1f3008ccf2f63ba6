"""The record of AArch64."""

from __future__ import annotations

from cyclescope.isa.record import (
    Arithmetic,
    BlockingRules,
    CostClasses,
    ElementRules,
    FormRoles,
    GeneralRegisters,
    InstructionSet,
    LinkRules,
    Markers,
    MnemonicKinds,
    ResultKind,
    Toolchain,
    Writing,
)

_OPERANDS = (
    r"(^|[\s,\[{])([xw]([0-9]|[12]\d|30)|[xw]zr|sp|[vz]\d+\.\d*[bhsdq]|[dsq]\d+|p\d+/[mz])\b"
    r"|\blsl #?\d|,\s*#-?\d"
)
_MNEMONICS = (
    r"^(ldu?r\w*|stu?r\w*|ld[pn]\w*|st[pn]|b\.\w\w|bl|blr|cb(z|nz)|tb(z|nz)|adrp?|fm(la|ls|add|sub|ov)|mov[kzn]|csel"
    r"|csinc|cset|[su]bfm|[su]xt[bhw]|mrs|msr|ccmp|madd|cmn|subs|adds|eor|orr|ld1\w*|st1\w*|ret|b)\b"
)
_EXTENSIONS = """
    aes bf16 brbe cmpbr compnum cpa crc crypto cssc d128 dotprod f8f16mm f8f32mm f32mm f64mm faminmax
    flagm fp fp16 fp16fml fp8 fp8dot2 fp8dot4 fp8fma fprcvt gcs hbc i8mm ite jscvt lor ls64 lse lse128
    lsfe lsui lut memtag mops pauth predres predres2 profile ras rasv2 rcpc rcpc2 rcpc3 rdm sb sha2 sha3
    simd sm4 sme sme-b16b16 sme-f16f16 sme-f64f64 sme-f8f16 sme-f8f32 sme-fa64 sme-i16i64 sme-lutv2 sme2
    sme2p1 sme2p2 ssbs sve sve-b16b16 sve-bfscale sve-f16f32mm sve2 sve2-aes sve2-bitperm sve2-sha3
    sve2-sm4 sve2p1 sve2p2 the wfxt xs
"""
# LLVM's features that have other names than its directives have.
_FEATURES = """
    v8.1a v8.2a v8.3a v8.4a v8.5a v8.6a v8.7a v8.8a v8.9a v9a v9.1a v9.2a v9.3a v9.4a v9.5a v9.6a b16b16
    bti ccdp ccidx ccpp complxnum dit el2vmsa el3 ete fgt fp-armv8 fptoint fullfp16 hcx jsconv mec mpam
    mte neon nmi nv pan pan-rwv perfmon rand rcpc-immo rme sel2 spe specrestrict specres2 sme-f64 sme-i64
    tlb-rmi tme tracev8.4 trbe uaops vh
"""

_FLOATS = (
    r"F(ADD|SUB|MUL|DIV|SQRT|ML[AS]|N?M(ADD|SUB|UL)|MAX|MIN)\w*"
    r"|F(ABD|ABS|NEG|CM|AC|RECP|RSQRT|RINT)\w*"
)
_INTEGERS = (
    r"[SU]?(Q|H|RH|QR?DM)?(ADD|SUB|MULH?|ML[AS]|MAX|MIN|AB[DA]|SHL|R?SHR|R?SRA)P?V?"
    r"|ABS|NEG|CM(EQ|G[ET]|H[IS]|L[ET])"
)
_CHANGING = (
    r"[SU]((ADD|SUB)[LW]|(MUL|MLA|MLS|SHL|ABD|ABA)L|XTL|ADDLP|ADALP|ADDLV|DOT)2?"
    r"|FCVTX?[LN]2?|FMLAL\w*|PMULL2?|[SU]?Q?XTU?N2?|\w*SHRU?N2?|R?(ADD|SUB)HN2?"
)

RECORD = InstructionSet(
    name="aarch64",
    home="cyclescope.{}.aarch64",
    runner=2,
    elf=183,
    machines=("aarch64", "arm64"),
    nop=bytes.fromhex("1f2003d5"),
    returns=(b"\xc0\x03\x5f\xd6",),
    lengths=(4,) * 256,
    step=4,
    varies=True,
    asks_files=True,
    identity="part {family:#05x} variant {model} revision {stepping}",
    default_machine="neoverse-v2",
    toolchain=Toolchain(
        triple="aarch64-linux-gnu",
        packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
        gnu_names=(
            "aarch64-linux-gnu-as", "aarch64-none-linux-gnu-as", "aarch64-none-elf-as", "aarch64-elf-as",
        ),
        gnu_options=(("-mcpu=all",),),
        llvm_mc_options=("-mattr=+all",),
        clang_options=("-march=armv9-a+sve2",),
        allowing=".arch_extension {}",
        extensions=tuple(_EXTENSIONS.split()),
        features=tuple((_EXTENSIONS + _FEATURES).split()),
    ),
    writing=Writing(
        comments=("//",),
        whole_line="#",
        listed=r"\w*aarch64|arm64",
        operands=_OPERANDS,
        mnemonics=_MNEMONICS,
        vectors={"scalable": r"\b[zp]\d+\b|\bffr\b", "float": ""},
        words=(4,),
    ),
    arithmetic=Arithmetic(
        results={
            "MOV": ResultKind.MOVED,
            "ADD": ResultKind.SUM,
            "ADDS": ResultKind.SUM,
            "SUB": ResultKind.DIFFERENCE,
            "SUBS": ResultKind.DIFFERENCE,
            "ORR": ResultKind.OF_ZERO,
            "UBFM": ResultKind.BIT_FIELD,
            "LDR": ResultKind.LOADED,
            "LDUR": ResultKind.LOADED,
        },
        kinds=MnemonicKinds(ordered=("DMB", "DSB", "ISB", "SB")),
        elements=ElementRules(
            floats=_FLOATS,
            integers=_INTEGERS,
            changing=_CHANGING,
            pairs=r"(LD|ST)N?P",
            parts={"LDPSW": 4},
            listed=r"(?:LD|ST)\dR?(?:One|Two|Three|Four)?(?:v\d+(?P<letter>[bhsd])|i(?P<bits>\d+))(?:_POST)?",
            letters={"b": 1, "h": 2, "s": 4, "d": 8},
        ),
        costs=CostClasses(
            zero_idioms={"SUB"},
            divisions=("SDIV", "UDIV", "FDIV", "FSQRT", "FRSQRT", "URSQRT"),
            multiplications=("MUL", "PMUL", "FMUL", "FMADD", "FMSUB", "FNMADD", "FNMSUB"),
            simple={"ADD", "AND", "NEG", "NOT", "SUB"},
            moves={"MOV"},
        ),
    ),
    markers=Markers(
        codes=(bytes((213, 3, 32, 31)), bytes((31, 32, 3, 213))),  # NOP, in either order
        moves={"MOVZ": (("X", 1),)},
    ),
    registers=GeneralRegisters(
        count=32,
        kept=(28,),
        set_apart=(31,),
        counter="[xw]28",
        marks="[xw]27",
        start="SP is a stack, X20 and X21 point to 4096 bytes",
        conditions="NZCV",
        # op0, op1, CRn, CRm and op2 as MRS encodes them: Arm's architecture reference manual, chapter C5.2
        system={0xDA10: ("NZCV",), 0xDA20: ("FPCR",), 0xDA21: ("FPSR",), 0xDA22: ("FPMR",)},
        system_prefix="SYS",
    ),
    roles=FormRoles(
        nop="NOP",
        load="LDRXui",
        store="STRXui",
        loads=("LDRQui",),
        stores=("STRQui",),
        slow="MADDXrrr",
        beside="ADDXri",
        plain={
            "addition": ("ADDXri",),
            "load": ("LDRXui",),
            "store": ("STRXui",),
            "multiplication": ("MADDXrrr",),
            "shift": ("LSLVXr",),
            "vector addition": ("ADDv4i32",),
        },
        simple={
            "NOP": ("NOP",),
            "move": ("MOVZXi",),
            "general": ("ADDXri", "SUBXri", "EORXrs", "ADDXrs"),
            "vector": ("ANDv16i8", "ADDv4i32"),
        },
        moves=("MOV", "FMOV", "ORR"),
        signed=("LDRS", "LDURS", "LDTRS", "LDPSW", "LDAPURS"),
    ),
    links=LinkRules(doubled=("restore.", "r>p")),
    blocking=BlockingRules(
        classes="(GPR|FPR64|V128|ZPR64|PPR64|PPR8|PPRAny).*", in_vectors="p"
    ),
)  # fmt: skip
