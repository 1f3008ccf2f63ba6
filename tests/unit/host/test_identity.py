"""Identity and features from CPUID leaves, as documented and as recorded."""

from __future__ import annotations

import struct

import pytest

from cyclescope.host.features import features, known, lacking
from cyclescope.host.identity import as_leaves, identify, llvm_name
from tests.support.machine import leaves


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
    assert llvm_name(vendor, family, model) == ""
    assert identify(cpuid(vendor, 0)).machine.endswith("unknown")


def test_the_brand_without_its_padding():
    found = identify(cpuid("AuthenticAMD", 0x00A20F10, "AMD Ryzen 9   5950X  "))
    assert found.brand == "AMD Ryzen 9 5950X"


def test_a_hypervisor_says_so():
    assert identify(cpuid("GenuineIntel", 0x000906EA, ecx=1 << 31)).hypervisor == "yes"
    assert identify(cpuid("GenuineIntel", 0x000906EA)).hypervisor == ""


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
