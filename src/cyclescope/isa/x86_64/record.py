"""The record of x86-64."""

from __future__ import annotations

from cyclescope.isa.record import (
    FormRoles,
    GeneralRegisters,
    InstructionSet,
    LinkRules,
    Markers,
    Relocations,
    Toolchain,
    Writing,
)

REGISTER = (
    r"(?:[re]?(?:ax|bx|cx|dx|si|di|bp)|[re]sp|[abcd][lh]|(?:si|di|sp|bp)l|r(?:8|9|1[0-5])[dwb]?"
    r"|[xyz]?mm\d+|rip)"
)
_MNEMONICS = (
    r"^(v?p?(add|sub|mul|div|and|or|xor|sh[lr]|cmp|mov|lea|test|inc|dec|push|pop|call|ret|cmov|set|unpck|shuf)\w*"
    r"|vf[n]?m(add|sub)\w+|i(mul|div)\w?|j[a-z]{1,3}|cvt\w+|lock|rep\w*)\b"
)

RECORD = InstructionSet(
    name="x86-64",
    home="cyclescope.{}.x86_64",
    runner=1,
    elf=62,
    machines=("x86_64", "amd64"),
    nop=b"\x90",
    fixed_width=False,
    padded=True,
    default_machine="sapphirerapids",
    toolchain=Toolchain(
        triple="x86_64-linux-gnu",
        packages="gcc-x86-64-linux-gnu libc6-dev-amd64-cross",
        gnu_names=("x86_64-linux-gnu-as",),
        gnu_options=(("--64",),),
        header=".intel_syntax noprefix",
        osaca_options=("--syntax", "ATT"),
    ),
    writing=Writing(
        comments=("#", "//"),
        listed=r"x86-64|x86_64",
        operands=rf"(^|[\s,\[(%*+-]){REGISTER}\b|\bptr\b",
        mnemonics=_MNEMONICS,
        other_mode=r"\s*\.(code(16|32)(gcc)?|[3-6]86P?|model\s+flat)\b",
        syntaxes=True,
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
    ),
    links=LinkRules(
        doubled=("restore.", "flag>r.AF", "r>mem.32", "r>mem.64", "mem>r.32", "mem>r.64"),
        through_vector=("r>mem.32", "r>mem.64", "mem>r.32", "mem>r.64"),
        cut_hides=False,
    ),
    relocations=Relocations(
        relative={2: "", 4: "", 9: "@got", 13: "", 15: "", 22: "@gottpoff", 24: "", 41: "@got", 42: "@got"},
        branch_fields=(4, 1),
    ),
)
