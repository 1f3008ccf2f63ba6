"""The record of x86-64."""

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
    Relocations,
    ResultKind,
    Toolchain,
    Writing,
)

_REGISTER = (
    r"(?:[re]?(?:ax|bx|cx|dx|si|di|bp)|[re]sp|[abcd][lh]|(?:si|di|sp|bp)l|r(?:8|9|1[0-5])[dwb]?"
    r"|[xyz]?mm\d+|rip|st(?=\(\d\)))"
)
_MNEMONICS = (
    r"^(v?p?(add|sub|mul|div|and|or|xor|sh[lr]|cmp|mov|lea|test|inc|dec|push|pop|call|ret|cmov|set|unpck|shuf)\w*"
    r"|vf[n]?m(add|sub)\w+|i(mul|div)\w?|j[a-z]{1,3}|cvt\w+|lock|rep\w*)\b"
)

_FLOATS = (
    r"V?(ADD|SUB|MUL|DIV|MIN|MAX|CMP|RANGE|REDUCE|SCALEF|DP|ADDSUB|HADD|HSUB)\w{0,3}[PS][SDH]"
    r"|V?(SQRT|RSQRT|RCP|U?COMI|ROUND|RNDSCALE|GETEXP|GETMANT)\w{0,3}[PS][SDH]"
    r"|VFN?M(ADD|SUB|ADDSUB|SUBADD)(132|213|231)?[PS][SDH]"
    r"|F(ADD|SUB|MUL|DIV|SQRT|ABS|RINT)\w*"  # x87
)
_INTEGERS = (
    r"V?P(ADD|SUB|MUL[LH]|MIN|MAX|CMP|ABS|AVG|SIGN|HADD|HSUB)\w*[BWDQ]"
    r"|V?P(SLL|SRL|SRA|RO[LR]|SH[LR]D|POPCNT|LZCNT|CONFLICT)V?[BWDQ]"
)
_CHANGING = (
    r"V?CVTT?(PS2PD|PD2PS|U?DQ2PD|PD2U?DQ|PS2U?QQ|U?QQ2PS|\w*PH\w*)X?"
    r"|V?PMOV[SZ]X\w+|VPMOV(US|S)?[WDQ][BWD]|V?PACK\w+|V?PUNPCK\w+"
    r"|V?PMADD\w+|VPDP\w+|V?PSADBW|V?PMULU?DQ"
)
_UNTYPED = (
    r"V?MOV([AU]P[SD]|DQ[AU]\d*|NT\w+|[HL]P[SD]|Q|D)|V?LDDQU|V?(BROADCAST|INSERT|EXTRACT)[FI]\d+\w*"
    r"|V?P?(AND|ANDN|OR|XOR)(P[SD]|[DQ])?|VPTERNLOG\w|V?P?(BLEND|SHUF|PERM|UNPCK|ALIGN)\w*|VALIGN\w"
)
_SIMPLE = """
    ADD SUB AND OR XOR INC DEC NEG NOT TEST CMP MOVZX MOVSX MOVSXD PAND POR PXOR PANDN ANDPS ANDPD ORPS ORPD
    XORPS XORPD PADDB PADDW PADDD PADDQ PSUBB PSUBW PSUBD PSUBQ PANDD PANDQ PORD PORQ PXORD PXORQ
"""
_IDIOMS = "XOR SUB SBB PXOR XORP PSUB PCMPEQ PCMPGT PANDN ANDNP KXOR KXNOR"
_OUTSIDE = """
CLDEMOTE CLFLUSH CLFLUSHOPT CLWB CLZERO MOVDIR64B MOVDIRI PAUSE RDRAND RDSEED RDTSC RDTSCP TPAUSE UMWAIT
XGETBV
"""
_MOVES = """
    MOV MOVAPS MOVAPD MOVUPS MOVUPD MOVDQA MOVDQU MOVQ MOVD KMOVQ LDDQU MOVDQA32 MOVDQA64 MOVDQU8 MOVDQU16
    MOVDQU32 MOVDQU64
"""
_NO_BLOCKERS = """
    x87 d3now masked rep repne string branch call return stack high_byte lock vsib
"""

RECORD = InstructionSet(
    name="x86-64",
    home="cyclescope.{}.x86_64",
    runner=1,
    elf=62,
    machines=("x86_64", "amd64"),
    nop=b"\x90",
    returns=(b"\xc3",),
    fixed_width=False,
    llvm_operands=False,
    padded=True,
    longest=15,
    default_machine="sapphirerapids",
    toolchain=Toolchain(
        triple="x86_64-linux-gnu",
        packages="gcc-x86-64-linux-gnu libc6-dev-amd64-cross",
        gnu_names=("x86_64-linux-gnu-as",),
        gnu_options=(("--64",),),
        header=".intel_syntax noprefix",
        osaca_options=("--syntax", "ATT"),
        # A branch goes to a symbol, which is never resolved; rounding comes before an integer source.
        llvm_rewrites=((r" \.[+-]\d+$", " next"), (r", ([er]\w+), (\{\w+-sae\})$", r", \2, \1")),
        llvm_prefixes={"evex": "{evex} ", "vex": "{vex} "},
    ),
    writing=Writing(
        comments=("#", "//"),
        listed=r"x86-64|x86_64",
        operands=rf"(^|[\s,\[(%*+-]){_REGISTER}\b|\bptr\b",
        mnemonics=_MNEMONICS,
        other_mode=r"\s*\.(code(16|32)(gcc)?|[3-6]86P?|model\s+flat)\b",
        vectors={
            "avx512": r"\bzmm\d|\bk[0-7]\b|\{k[0-7]\}|\b[xy]mm(1[6-9]|2\d|3[01])\b",
            "avx2": r"\bymm\d",
            "avx": r"(^|[;\n])\s*v\w+ ",
            "sse": "",
        },
        att=rf"%{_REGISTER}\b|%k[0-7]\b|%st\b|(^|[\s,])\$-?\w",
    ),
    arithmetic=Arithmetic(
        results={
            "MOV": ResultKind.MOVED,
            "MOVSXD": ResultKind.MOVED,
            "LEA": ResultKind.ADDRESS,
            "ADD": ResultKind.SUM,
            "SUB": ResultKind.DIFFERENCE,
            "INC": ResultKind.UP,
            "DEC": ResultKind.DOWN,
            "XOR": ResultKind.SAME_IS_ZERO,
            "SHL": ResultKind.SHIFTED,
            "IMUL": ResultKind.PRODUCT,
        },
        kinds=MnemonicKinds(
            streaming=("MOVNT", "VMOVNT", "MASKMOV", "VMASKMOVDQU", "CLZERO", "MOVDIR"),
            idioms=tuple(_IDIOMS.split()),
            counting=("LOOP",),
            reloads=("MOV", "POP"),
            fillers=("MOV", "VMOVAPS"),
            answered=("CPUID", "RDTSC", "RDTSCP"),
            ordered=("CPUID", "LFENCE", "MFENCE", "RDTSCP", "SERIALIZE"),
            modes=("STD", "CLD", "LDMXCSR", "VLDMXCSR", "FLDCW"),
            exchanges=("XCHG", "FXCH"),
            sums=("XADD",),
            moving=("MOV",),
            copies=("MOV",),
            after_moves=("ADD", "SUB", "AND", "OR", "XOR", "INC", "NOT"),
        ),
        elements=ElementRules(
            floats=_FLOATS, integers=_INTEGERS, changing=_CHANGING, untyped=_UNTYPED, typed=True
        ),
        costs=CostClasses(
            zero_idioms={"XOR", "SUB", "PXOR", "XORPS", "XORPD", "PXORD", "PXORQ"},
            divisions=("DIV", "IDIV", "FDIV", "FIDIV", "SQRT", "FSQRT", "RSQRT", "PFRSQRT"),
            multiplications=(
                "MUL",
                "IMUL",
                "PMUL",
                "FMUL",
                "PMADD",
                "FMADD",
                "FMSUB",
                "FNMADD",
                "FNMSUB",
                "VDPP",
            ),
            simple=frozenset(_SIMPLE.split()),
            moves=frozenset(_MOVES.split()),
            microcoded={
                "CPUID",
                "CMPXCHG8B",
                "CMPXCHG16B",
                "RDTSC",
                "RDTSCP",
                "RDRAND",
                "RDSEED",
                "FSIN",
                "FCOS",
            },
            outside=frozenset(_OUTSIDE.split()),
        ),
    ),
    markers=Markers(
        codes=(bytes((0x64, 0x67, 0x90)),),
        moves={"MOV": (("R32", 3), ("R64", 3))},
        stored=bytes((0x65, 0xC6, 0x04, 0x25)),  # mov byte ptr gs:[...], ...
        tool="IACA",
    ),
    registers=GeneralRegisters(
        count=16,
        set_apart=(4,),
        displaced=(5, 13),  # RBP, R13
        counter=r"r15[dwb]?",
        start="RSP is a stack, R13, R14, RSI and RDI point to 4096 bytes",
        usual="avx",
    ),
    roles=FormRoles(
        nop="NOP",
        load="MOV (R64, M64)",
        store="MOV (M64, R64)",
        loads=("MOVUPS (XMM, M128)",),
        stores=("MOVUPS (M128, XMM)",),
        slow="IMUL (R64, R64)",
        beside="MOVSXD (R64, R32)",
        plain={
            "addition": ("ADD_01 (R64, R64)", "ADD_03 (R64, R64)"),
            "load": ("MOV (R64, M64)",),
            "store": ("MOV (M64, R64)",),
            "multiplication": ("IMUL (R64, R64)",),
            "shift": ("SHL (R64, I8)",),
            "vector addition": ("PADDD (XMM, XMM)", "ADDPS (XMM, XMM)"),
        },
        simple={
            "NOP": ("NOP (M32)", "NOP (R32)", "NOP", "NOP_W"),
            "move": ("MOV_89 (R64, R64)", "MOV_89 (R32, R32)", "MOVAPS_0F28 (XMM, XMM)"),
            "zero idiom": ("XOR_31 (R32, R32)", "PXOR (XMM, XMM)"),
            "general": ("LEA_B_D8 (R64)", "ADD_01 (R64, R64)", "CMP_39 (R64, R64)", "MOV (R32, I32)"),
            "vector": ("PADDD (XMM, XMM)", "PAND (XMM, XMM)"),
        },
        sized=("NOP", "NOP_W", "NOP (R32)", "NOP (M32)", "NOP (M16)"),
        moves=("MOV", "VMOV", "KMOV", "LEA", "XCHG", "XADD", "FXCH"),
        signed=("MOVSX",),
    ),
    links=LinkRules(
        doubled=("restore.", "flag>r.AF", "r>mem.32", "r>mem.64", "mem>r.32", "mem>r.64"),
        through_vector=("r>mem.32", "r>mem.64", "mem>r.32", "mem>r.64"),
        cut_hides=False,
        cut_fixed=True,
    ),
    blocking=BlockingRules(
        classes="R64|[XZ]MM|K|MM",
        beside="R32|R8l",
        left_out=frozenset(_NO_BLOCKERS.split()),
        longest=8,
        accesses=(
            "MOV (R64, M64)",
            "MOV (M64, R64)",
            "MOVUPS (XMM, M128)",
            "MOVUPS (M128, XMM)",
            "VMOVUPS (XMM, M128)",
            "VMOVUPS (M128, XMM)",
        ),
        few="MM",
        widest="ZMM",
        widest_bits=512,
        only_widest={"evex"},
        files={"h": "r", "m": "x", "x": "s"},
        in_vectors="xsk",
        own_units="K",
        floats="v",
    ),
    relocations=Relocations(
        relative={2: "", 4: "", 9: "@got", 13: "", 15: "", 22: "@gottpoff", 24: "", 41: "@got", 42: "@got"},
        branch_fields=(4, 1),
    ),
)
