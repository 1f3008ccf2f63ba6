"""Identity and features from CPUID leaves, as documented and as recorded."""

from __future__ import annotations

import struct

import pytest

from cyclescope.host import aarch64, riscv64, x86_64
from cyclescope.host.clock import clock_name
from cyclescope.host.features import features, known, lacking, remarks
from cyclescope.host.identity import (
    OF_AARCH64,
    OF_RISCV64,
    OF_X86_64,
    RUNNER_LEAF,
    Hypervisor,
    as_leaves,
    hwprobe,
    identify,
    isa_of,
)
from cyclescope.isa.table import load_table
from cyclescope.model.library import summaries
from tests.support.made.machine import leaves


def cpuid(vendor, signature, brand="", ecx=0):
    """Leaves of a CPU."""
    b, d, c = struct.unpack("<3I", vendor.encode())
    text = struct.unpack("<12I", brand.encode().ljust(48, b"\0"))
    found = {(0, 0): (1, b, c, d), (1, 0): (signature, 0, ecx, 0)}
    return found | {(0x80000002 + n, 0): tuple(text[4 * n : 4 * n + 4]) for n in range(3)}


# (vendor, CPUID.1:EAX, family, model, stepping, LLVM's name), from the vendors' specification updates
CPUS = [
    ("AuthenticAMD", 0x00A20F10, 0x19, 0x21, 0, "znver3"),  # Ryzen 9 5950X
    ("AuthenticAMD", 0x00A00F11, 0x19, 0x01, 1, "znver3"),  # EPYC 7763
    ("AuthenticAMD", 0x00A10F11, 0x19, 0x11, 1, "znver4"),  # EPYC 9654
    ("AuthenticAMD", 0x00830F10, 0x17, 0x31, 0, "znver2"),  # EPYC 7742
    ("AuthenticAMD", 0x00800F12, 0x17, 0x01, 2, "znver1"),  # EPYC 7601
    ("AuthenticAMD", 0x00B00F21, 0x1A, 0x02, 1, "znver5"),  # EPYC 9755
    ("AuthenticAMD", 0x00600F20, 0x15, 0x02, 0, "bdver2"),  # FX-8350
    ("GenuineIntel", 0x000906EA, 6, 0x9E, 10, "skylake"),  # Core i7-8700
    ("GenuineIntel", 0x000606A6, 6, 0x6A, 6, "icelake-server"),  # Xeon Platinum 8380
    ("GenuineIntel", 0x000806F8, 6, 0x8F, 8, "sapphirerapids"),  # Xeon Platinum 8480
    ("GenuineIntel", 0x000306C3, 6, 0x3C, 3, "haswell"),  # Core i7-4770
    ("GenuineIntel", 0x000206A7, 6, 0x2A, 7, "sandybridge"),  # Core i7-2600
]


@pytest.mark.parametrize(("vendor", "signature", "family", "model", "stepping", "name"), CPUS)
def test_known_cpus(vendor, signature, family, model, stepping, name):
    found = identify(cpuid(vendor, signature))
    assert (found.vendor, found.family, found.model, found.stepping) == (vendor, family, model, stepping)
    assert found.llvm == name
    assert found.machine == f"{vendor} {family:x}-{model:x}-{stepping:x} {name}"


@pytest.mark.parametrize(
    ("vendor", "family", "model"),
    [("GenuineIntel", 6, 0xFF), ("GenuineIntel", 15, 4), ("CentaurHauls", 7, 1)],
)
def test_unknown_cpus_have_no_name(vendor, family, model):
    assert x86_64.llvm_name(vendor, family, model) == ""
    assert identify(cpuid(vendor, 0)).machine.endswith("unknown")


@pytest.mark.parametrize(
    ("signature", "announced", "name", "lacks"),
    [
        (0x000A0671, ("AVX512F", "AVX512_VNNI"), "rocketlake", ()),
        (0x000A0671, ("AVX512F", "AMX_TILE", "AVX_VNNI"), "rocketlake", ("AMX_TILE", "AVX_VNNI")),
        (0x000806F8, ("AVX512F", "AMX_TILE", "AVX_VNNI"), "sapphirerapids", ()),
        (0x000806F8, ("AMX_TILE", "AMX_FP16"), "sapphirerapids", ("AMX_FP16",)),
        (0x000806F8, (), "sapphirerapids", ()),  # a hypervisor may hide anything
    ],
)
def test_a_number_is_not_believed_where_the_core_can_more(signature, announced, name, lacks):
    """What a virtual machine says it is decides whose facts it may be given."""
    made = cpuid("GenuineIntel", signature)
    found = identify(made | {where: values for where, values in only(announced).items() if where[0] > 1})
    assert found.llvm == ("" if lacks else name)
    assert found.machine.endswith("unknown" if lacks else name)
    assert found.doubt == (
        f"its numbers are those of {name}, which has no {', '.join(lacks)}" if lacks else ""
    )


def only(announced):
    """Leaves that announce these features alone."""
    return as_leaves(leaves(without=tuple(set(x86_64.BITS) - set(announced))))


def test_what_a_microarchitecture_has_is_said_of_known_ones():
    names = {name for those in x86_64._WITH.values() for name in those}
    assert names <= {*x86_64._INTEL, "znver4", "znver5"}
    assert set(x86_64._WITH) <= set(x86_64.BITS)


def test_the_brand_without_its_padding():
    found = identify(cpuid("AuthenticAMD", 0x00A20F10, "AMD Ryzen 9   5950X  "))
    assert found.brand == "AMD Ryzen 9 5950X"


def test_a_hypervisor_says_so():
    assert identify(cpuid("GenuineIntel", 0x000906EA, ecx=1 << 31)).hypervisor is Hypervisor.THERE
    assert identify(cpuid("GenuineIntel", 0x000906EA)).hypervisor is Hypervisor.NONE
    other = {RUNNER_LEAF: (0, OF_AARCH64, 0, 0)}
    assert identify(other).hypervisor is Hypervisor.UNTOLD, "it does not tell programs"


def test_nothing_known_is_no_crash():
    assert identify({}).machine == " 0-0-0 unknown"
    assert features({}) == {"BASE"}


# --- features -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "leaf", "register", "bit"),
    [
        ("SSE2", (1, 0), 3, 26),
        ("AVX", (1, 0), 2, 28),
        ("AVX2", (7, 0), 1, 5),
        ("BMI2", (7, 0), 1, 8),
        ("AVX512F", (7, 0), 1, 16),
        ("AVX512_FP16", (7, 0), 3, 23),
        ("AVX_VNNI", (7, 1), 0, 4),
        ("XOP", (0x80000001, 0), 2, 11),
    ],
)
def test_a_feature_is_its_bit_alone(name, leaf, register, bit):
    values = [0, 0, 0, 0]
    values[register] = 1 << bit
    assert features({leaf: tuple(values)}) == {"BASE", name}


def test_everything_but_what_is_left_out():
    assert known() - features(as_leaves(leaves(("XOP", "AVX2")))) == {"XOP", "AVX2"}


def test_the_table_and_cpuid_speak_of_the_same_features(table):
    named = {feature for form in table for feature in form.features}
    unknown = named - known()
    assert {"AVX2", "XOP", "AVX512_FP16", "SSE4_1", "D3NOW"} <= named & known()
    assert len(unknown) < 25


def test_what_is_lacking():
    have = {"AVX", "AVX512F"}
    assert lacking(("AVX512VL", "AVX512F"), have) == ("AVX512VL",)
    assert lacking(("AVX",), have) == ()
    assert lacking(("PAUSE",), have) == ()  # CPUID says nothing of it


# --- AArch64 and RISC-V -------------------------------------------------------------------------


def words(*values):
    """64-bit values as two registers of a leaf each."""
    return tuple(half for value in values for half in (value & 0xFFFFFFFF, value >> 32))


def arm(midr=0, hwcap=0, hwcap2=0, hwcap3=0):
    return {
        RUNNER_LEAF: (0, OF_AARCH64, 0, 0), (1, 0): words(midr, 0), (2, 0): words(hwcap, hwcap2),
        (2, 1): words(hwcap3, 0),
    }  # fmt: skip


def riscv(hwcap=0, **keys):
    probed = {(int(key[1:]), 0): words(value, 0) for key, value in keys.items()}
    return {RUNNER_LEAF: (0, OF_RISCV64, 0, 0), (0x100, 0): words(hwcap, 32)} | probed


# (MIDR_EL1, vendor, LLVM's name, name of the machine), from the technical reference manuals
ARMS = [
    (0x410FD4F0, "Arm", "neoverse-v2", "Arm d4f-0-0 neoverse-v2"),
    (0x413FD0C1, "Arm", "neoverse-n1", "Arm d0c-3-1 neoverse-n1"),
    (0x410FD034, "Arm", "cortex-a53", "Arm d03-0-4 cortex-a53"),
    (0x461F0010, "Fujitsu", "a64fx", "Fujitsu 1-1-0 a64fx"),
    (0x611F0221, "Apple", "apple-m1", "Apple 22-1-1 apple-m1"),
    (0xC00FAC30, "Ampere", "ampere1", "Ampere ac3-0-0 ampere1"),
    (0x6D0FD490, "Microsoft", "neoverse-n2", "Microsoft d49-0-0 neoverse-n2"),
    (0x531F0020, "Samsung", "exynos-m3", "Samsung 2-1-0 exynos-m3"),
    (0x000F0510, "implementer 0x0", "", "implementer 0x0 51-0-0 unknown"),  # as qemu has it
    (0, "AArch64", "", "AArch64 0-0-0 unknown"),
]


@pytest.mark.parametrize(("midr", "vendor", "name", "machine"), ARMS)
def test_known_arm_cores(midr, vendor, name, machine):
    found = identify(arm(midr))
    assert (found.vendor, found.llvm, found.machine) == (vendor, name, machine)


# (mvendorid, marchid, mimpid, LLVM's name, name of the machine)
RISCVS = [
    (
        0x710,
        0x8000000058000001,
        0x1000000049772200,
        "spacemit-x60",
        "SpacemiT 8000000058000001-1000000049772200-0",
    ),
    (0x489, 0x8000000000000007, 0x4210427, "sifive-u74", "SiFive 8000000000000007-4210427-0"),
    (0x5B7, 0, 0, "", "T-Head 0-0-0"),
    (0x123, 7, 8, "", "vendor 0x123 7-8-0"),
    (0, 0, 0, "", "RISC-V 0-0-0"),
]


@pytest.mark.parametrize(("vendor", "architecture", "implementation", "name", "machine"), RISCVS)
def test_known_riscv_cores(vendor, architecture, implementation, name, machine):
    found = identify(riscv(k0=vendor, k1=architecture, k2=implementation))
    assert found.llvm == name
    assert found.machine == f"{machine} {name or 'unknown'}"


def test_names_are_those_of_machine_models():
    """LLVM's spelling: every one of these cores has a model."""
    names = {model.name for isa in ("aarch64", "riscv64") for model in summaries() if model.isa == isa}
    mine = {aarch64.llvm_name(0x41, part) for part in range(0x1000)} - {""}
    assert {"neoverse-v2", "neoverse-n2", "cortex-a510"} <= names & mine
    assert {"spacemit-x60", "sifive-p550"} <= names & set(riscv64._NAMES.values())


def test_which_instruction_set_leaves_are_of():
    assert isa_of({}) == OF_X86_64
    assert isa_of(arm()) == OF_AARCH64
    assert isa_of(riscv()) == OF_RISCV64


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("NEON", {"hwcap": 1 << 1}),
        ("LSE", {"hwcap": 1 << 8}),
        ("SVE", {"hwcap": 1 << 22}),
        ("CMPBR", {"hwcap": 1 << 33}),
        ("SVE2", {"hwcap2": 1 << 1}),
        ("SME", {"hwcap2": 1 << 23}),
        ("SSVE-FP8DOT2", {"hwcap2": 1 << 62}),
        ("LS64", {"hwcap3": 1 << 3}),
    ],
)
def test_an_arm_feature_is_its_bit_alone(name, given):
    assert features(arm(**given)) == {"BASE", name}


def test_riscv_features_by_hwprobe():
    found = features(riscv(k3=1, k4=1 << 0 | 1 << 3 | 1 << 23 | 1 << 35 | 1 << 58))
    assert found == {
        "BASE", "RV64", "M", "ZMMUL", "A", "ZAAMO", "ZALRSC", "F", "D", "ZBA", "ZVKNHB", "ZVKNHA", "ZICOND",
        "ZABHA",
    }  # fmt: skip


def test_riscv_features_without_hwprobe():
    letters = sum(1 << ord(letter) - ord("A") for letter in "IMAFDC")
    found = features(riscv(letters))
    assert {"M", "A", "F", "D", "C", "ZCA", "ZAAMO"} <= found
    assert not {"ZVE32X", "ZBA"} & found


@pytest.mark.parametrize(
    ("keys", "said"),
    [({}, ""), ({"k5": 1}, "emulated"), ({"k5": 1, "k9": 3}, "fast"), ({"k9": 0, "k5": 2}, "slow")],
)
def test_unaligned_accesses(keys, said):
    assert riscv64.unaligned(hwprobe(riscv(**keys))) == said


@pytest.mark.parametrize(
    ("leaves", "name"),
    [
        ({}, "time-stamp counter"),
        (arm(), "generic timer (cntvct_el0)"),
        (riscv(), "timer (time)"),
        (riscv() | {RUNNER_LEAF: (2, OF_RISCV64, 0, 0)}, "core cycles (cycle)"),
    ],
)
def test_clocks(leaves, name):
    assert clock_name(leaves) == name


def test_remarks():
    length = {(3, 0): (32, 64, 0, 0)}
    assert remarks(arm() | length) == ("SVE registers have 256 bits", "streaming SVE registers have 512 bits")
    assert remarks(arm()) == ()
    assert remarks(riscv(k9=1)) == ("vector registers have 256 bits", "unaligned accesses are emulated")
    assert remarks(riscv() | {(0x100, 0): (0, 0, 0, 0)}) == ()
    assert remarks(cpuid("GenuineIntel", 0x000906EA)) == ()


@pytest.mark.parametrize(
    ("isa", "number", "missing"), [("aarch64", OF_AARCH64, 40), ("riscv64", OF_RISCV64, 45)]
)
def test_the_tables_and_the_kernel_speak_of_the_same_features(isa, number, missing):
    named = {n for form in load_table(isa) for f in form.features for o in f.split("|") for n in o.split("+")}
    unknown = named - known(number)
    common = {"SVE", "SME2", "LSE", "BF16"} if isa == "aarch64" else {"ZVE64X", "ZBB", "ZACAS", "D"}
    assert common <= named & known(number)
    assert len([name for name in unknown if not name.startswith("X")]) < missing  # X: of one vendor
    assert {name for name in known(number) - named if name.startswith(("SVE", "SME", "XT"))} == set()


def test_no_instruction_set_knows_what_another_one_leaves_open(table):
    """`lacking` takes no notice of the instruction set."""
    for isa, one in (
        (OF_X86_64, table),
        (OF_AARCH64, load_table("aarch64")),
        (OF_RISCV64, load_table("riscv64")),
    ):
        named = {n for form in one for f in form.features for o in f.split("|") for n in o.split("+")}
        others = {
            name for other in (OF_X86_64, OF_AARCH64, OF_RISCV64) for name in known(other) if other != isa
        }
        assert not (named - known(isa)) & others


def test_what_is_lacking_among_alternatives():
    have = {"BASE", "SVE", "SVE2"}
    assert lacking(("SVE|SME",), have) == ()
    assert lacking(("SME2|SVE2P1", "SVE2"), have) == ("SME2|SVE2P1",)
    assert lacking(("SSVE-FP8DOT2|SVE2+FP8DOT2",), have) == ("SSVE-FP8DOT2|SVE2+FP8DOT2",)
    assert lacking(("SSVE-FP8DOT2|SVE2+FP8DOT2",), have | {"FP8DOT2"}) == ()
    assert lacking(("LSUI",), have) == ()  # no bit says anything of it
