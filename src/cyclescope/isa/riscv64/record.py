"""The record of RISC-V."""

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

_OPERANDS = r"(^|[\s,(])(a[0-7]|s\d+|t[0-6]|f[ast]\d+|[sgt]p|ra|zero|x([1-9]|[12]\d|3[01])|v\d+)(?=[\s,)]|$)"
_MNEMONICS = (
    r"^(c\.\w+|l[bhwd]u?|s[bhwd]|li|mv|la|lui|auipc|jalr?|jr|j|tail|b(eq|ne|lt|ge|gt|le)[zu]*|addi?w?|slli|srli"
    r"|srai|s[lr][la]iw|andi|ori|xori|fl[wd]|fs[wd]|f\w+\.[sd]\w*|sh[123]add|vset\w+|v\w+\.[vwx]\w*|seqz|snez|sext\.\w)\b"
)
_EXTENSIONS = """
    v zba zbb zbc zbs zbkb zbkc zbkx zknd zkne zknh zksed zksh zkr zfh zfhmin zvfh zvfhmin zfa zfbfmin
    zvfbfmin zvfbfwma zicond zacas zabha zalasr zawrs zcb zimop zcmop zicfilp zicfiss zicbom zicboz
    zicbop zihintntl zihintpause zibi zvbb zvbc zvkb zvkg zvkgs zvkned zvknha zvknhb zvksed zvksh
    zvqdotq svinval smrnmi h q xtheadba xtheadbb xtheadbs xtheadcmo xtheadcondmov xtheadfmemidx
    xtheadmac xtheadmemidx xtheadmempair xtheadsync xtheadvdot xventanacondops xsfvcp xsfvqmaccdod
    xsfvqmaccqoq xsfvfwmaccqqq xsfvfnrclipxfqf xsmtvdot xmipscmov xmipslsp xmipscbop xandesperf
"""


def _length(low: int) -> int:
    """Bytes of an instruction by its first byte: volume I of the manual, "Base Instruction-Length"."""
    if low & 3 != 3:
        return 2
    return 4 if low & 0x1F != 0x1F else 6 if low & 0x3F == 0x1F else 8


_RESULTS = {
    "MV": ResultKind.MOVED, "LI": ResultKind.MOVED, "SLLI": ResultKind.SHIFTED,
    "XOR": ResultKind.SAME_IS_ZERO,
    "ADD": ResultKind.SUM, "ADDI": ResultKind.SUM, "ADDW": ResultKind.SUM, "ADDIW": ResultKind.SUM,
    "ADDI16SP": ResultKind.SUM, "SUB": ResultKind.DIFFERENCE,
    "LD": ResultKind.LOADED, "LW": ResultKind.LOADED, "LWU": ResultKind.LOADED,
}  # fmt: skip

RECORD = InstructionSet(
    name="riscv64",
    home="cyclescope.{}.riscv64",
    runner=3,
    elf=243,
    machines=("riscv64",),
    nop=bytes.fromhex("13000000"),
    returns=(b"\x67\x80\x00\x00", b"\x82\x80"),
    lengths=tuple(map(_length, range(256))),
    step=2,
    varies=True,
    asks_files=True,
    has_configurations=True,
    identity="marchid {family:#x} mimpid {model:#x}",
    default_machine="sifive-p670",
    toolchain=Toolchain(
        triple="riscv64-linux-gnu",
        packages="gcc-riscv64-linux-gnu libc6-dev-riscv64-cross",
        gnu_names=(
            "riscv64-linux-gnu-as", "riscv64-unknown-linux-gnu-as", "riscv64-unknown-elf-as",
            "riscv64-elf-as",
        ),
        gnu_options=(
            ("-mno-relax", "-march=rv64gcv_zba_zbb_zbc_zbs_zbkb_zfh_zvfh_zicond_zfa_zvbb_zacas_zcb"),
            ("-mno-relax", "-march=rv64gcv_zba_zbb_zbc_zbs_zbkb_zfh"),
            ("-mno-relax", "-march=rv64gc"),
        ),
        gnu_extensions=True,
        llvm_mc_options=(
            "-mattr=+m,+a,+f,+d,+c,+v,+zba,+zbb,+zbc,+zbs,+zbkb,+zfh,+zvfh,+zicond,+zfa,+zvbb,+zvbc,+zacas,+zcb",
        ),
        clang_options=("-march=rv64gcv_zba_zbb_zbs", "-mno-relax"),
        fixed_options=True,
        allowing=".option arch, +{}",
        extensions=tuple(_EXTENSIONS.split()),
        features=tuple(_EXTENSIONS.split()),
    ),
    writing=Writing(
        comments=("#", "//"),
        listed=r"\w*riscv",
        operands=_OPERANDS,
        mnemonics=_MNEMONICS,
        vectors={"scalable": r"\bv\d+\b|\bvset", "float": ""},
        other_mode=r"\s*\.(attribute\s+(arch|5)|option\s+arch)\s*,\s*\"?rv32",
        mode_note="code for RV32, read as the same instructions of RV64",
        words=(2, 4),
        header=".option norvc\n",  # an example is the instruction that it names, not its short one
    ),
    arithmetic=Arithmetic(
        results=_RESULTS | {f"C.{name}": kind for name, kind in _RESULTS.items()},
        kinds=MnemonicKinds(ordered=("FENCE", "FENCE.I", "FENCE.TSO")),
        elements=ElementRules(
            floats=r"F(ADD|SUB|MUL|DIV|SQRT|N?M(ADD|SUB)|MAX|MIN|EQ|LT|LE)[\w.]*",
        ),
        costs=CostClasses(
            zero_idioms={"SUB", "XOR"},
            divisions=("DIV", "FDIV", "FSQRT"),
            multiplications=("MUL", "PMUL", "FMUL", "FMADD", "FMSUB", "FNMADD", "FNMSUB"),
            simple={"ADD", "AND", "OR", "SUB", "XOR"},
        ),
    ),
    markers=Markers(
        codes=(bytes((19, 0, 0, 0)), bytes((1, 0))),  # NOP, long and short
        moves={"ADDI": (("X", 11),)},
    ),
    registers=GeneralRegisters(
        count=32,
        kept=(3, 4, 27),
        set_apart=(0, 2),
        untouched=(0, 3, 4),  # the zero register, gp and tp
        zero="X0",
        counter="x27|s11",
        marks="x26|s10",
        start="sp is a stack, s0 and s1 point to 4096 bytes",
        has_floats=True,
        returns=("X1", "X5"),
        system={  # volume I of the manual, chapters on F, V and Zicntr; VLENB is a constant
            0x001: ("FFLAGS",), 0x002: ("FRM",), 0x003: ("FFLAGS", "FRM"), 0x008: ("VSTART",),
            0x009: ("VXSAT",), 0x00A: ("VXRM",), 0x00F: ("VXSAT", "VXRM"), 0xC20: ("VL",), 0xC21: ("VTYPE",),
            0xC22: (),
        },
        system_prefix="CSR",
    ),
    roles=FormRoles(
        nop="C_NOP",
        load="LD",
        store="SD",
        loads=("FLD",),
        stores=("FSD",),
        slow="MUL",
        beside="ADDI",
        plain={
            "addition": ("ADD", "ADDI"),
            "load": ("LD",),
            "store": ("SD",),
            "multiplication": ("MUL",),
            "shift": ("SLL",),
        },
        simple={
            "NOP": ("C_NOP",),
            "move": ("C_MV", "C_LI", "LUI"),
            "general": ("ADDI", "ADD", "XOR", "SLTU"),
            "vector": ("FSGNJ_D", "FADD_D"),
        },
        sized=("C_NOP",),
        moves=("C.MV", "ADDI", "FSGNJ"),
    ),
    links=LinkRules(doubled=("restore.", "r>p")),
    blocking=BlockingRules(classes="(GPR|FPR64|VR).*"),
    relocations=Relocations(
        hints=(43, 51),
        joint_jump=0x67,  # JALR, behind AUIPC
        sums={
            1: (0, 4), 2: (0, 8), 33: (1, 1), 34: (1, 2), 35: (1, 4), 36: (1, 8),
            37: (-1, 1), 38: (-1, 2), 39: (-1, 4), 40: (-1, 8), 54: (0, 1), 55: (0, 2), 56: (0, 4),
        },
    ),
)  # fmt: skip
