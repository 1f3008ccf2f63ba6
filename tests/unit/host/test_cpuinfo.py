"""CPUs that programs are not told of, by the files of recorded kernels."""

from __future__ import annotations

import pytest

from cyclescope.host.cpuinfo import leaves_from_files
from cyclescope.host.features import features
from cyclescope.host.identity import OF_AARCH64, OF_RISCV64, RUNNER_LEAF, as_leaves, identify

PI3 = """\
processor\t: 0
BogoMIPS\t: 38.40
Features\t: fp asimd evtstrm crc32 cpuid
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: 0xd03
CPU revision\t: 4

processor\t: 1
BogoMIPS\t: 38.40
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd08
CPU revision\t: 2
"""
VENDOR_KERNEL = """\
Processor\t: AArch64 Processor rev 4 (aarch64)
processor\t: 0
processor\t: 1
Features\t: fp asimd aes pmull sha1 sha2 crc32
CPU implementer\t: 0x41
CPU architecture: AArch64
CPU variant\t: 0x0
CPU part\t: 0xd03
CPU revision\t: 4

Hardware\t: ODROID-C2
"""
UNMATCHED = "processor\t: 0\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\nuarch\t\t: sifive,u74-mc\n"
LICHEE = "processor\t: 0\nhart\t\t: 0\nisa\t\t: rv64imafdcvsu\nmmu\t\t: sv39\nmodel name\t: T-HEAD C910\n"
WITH_IDS = (
    "processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc_zicntr\nmmu\t\t: sv39\nuarch\t\t: sifive,u74-mc\n"
    "mvendorid\t: 0x489\nmarchid\t\t: 0x8000000000000007\nmimpid\t\t: 0x4210427\nhart isa\t: rv64imafdc\n\n"
    "processor\t: 1\nhart\t\t: 2\nmvendorid\t: 0x710\nmarchid\t\t: 0x8000000058000001\nmimpid\t\t: 0x1\n"
)
X86 = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n"


def found(isa, cpuinfo, model="", compatible="", product="", cpu=0, leaves=()):
    own = {"aarch64": OF_AARCH64, "riscv64": OF_RISCV64}[isa]
    known = {RUNNER_LEAF: (0, own, 0, 0), **dict(leaves)}
    texts = [text or None for text in (cpuinfo, model, compatible, product)]
    return identify(known | as_leaves(leaves_from_files(isa, cpu, known, texts)))


@pytest.mark.parametrize(
    ("cpuinfo", "cpu", "machine"),
    [
        (PI3, 0, "Arm d03-0-4 cortex-a53"),
        (PI3, 1, "Arm d08-1-2 cortex-a72"),
        (PI3, -1, "Arm d03-0-4 cortex-a53"),
        (VENDOR_KERNEL, 1, "Arm d03-0-4 cortex-a53"),
        ("", 0, "AArch64 0-0-0 unknown"),
        (X86, 0, "AArch64 0-0-0 unknown"),
        ("CPU part: what\nCPU implementer: 0xfffff41", 0, "Arm 0-0-0 unknown"),
    ],
)
def test_aarch64_by_its_files(cpuinfo, cpu, machine):
    assert found("aarch64", cpuinfo, cpu=cpu).machine == machine


def test_what_the_cpu_says_itself_comes_first():
    midr = {(1, 0): (0x410FD0C1, 0, 0, 0)}.items()
    assert found("aarch64", PI3, leaves=midr).machine == "Arm d0c-0-1 neoverse-n1"
    probed = {(0, 0): (0x5B7, 0, 0, 0), (1, 0): (1, 0, 0, 0)}.items()
    assert found("riscv64", WITH_IDS, leaves=probed).family == 1


def test_riscv_by_its_numbers():
    """As riscv_hwprobe would tell them; of the CPU that kernels run on."""
    assert found("riscv64", WITH_IDS).machine == "SiFive 8000000000000007-4210427-0 sifive-u74"
    assert found("riscv64", WITH_IDS, cpu=1).machine == "SpacemiT 8000000058000001-1-0 spacemit-x60"


def test_riscv_boards_without_numbers_are_told_apart():
    boards = [
        found(
            "riscv64", UNMATCHED, "StarFive VisionFive 2 v1.3B", "starfive,visionfive-2-v1.3bstarfive,jh7110"
        ),
        found("riscv64", UNMATCHED, "HiFive Unmatched", "sifive,hifive-unmatched-a00"),
        found("riscv64", LICHEE, "Sipeed Lichee Pi 4A", "sipeed,lichee-pi-4a"),
        found("riscv64", LICHEE),
        found("riscv64", "isa: rv64imafdc\n"),
        found("riscv64", "isa: rv64imafdcv\n"),
        found("riscv64", ""),
    ]
    assert len({board.machine for board in boards}) == len(boards)
    assert boards[0].llvm == boards[1].llvm == "sifive-u74"
    assert boards[0].brand == "sifive,u74-mc on StarFive VisionFive 2 v1.3B"
    assert boards[2].brand == "T-HEAD C910 on Sipeed Lichee Pi 4A"


def test_extensions_that_have_no_letter():
    """Of kernels without riscv_hwprobe; where there is one, it is what counts."""
    cpuinfo = "processor: 0\nisa: rv64imafdc_zba_zbb_zve32x_znosuch\n"
    known = {RUNNER_LEAF: (0, OF_RISCV64, 0, 0), (0x100, 0): (0x112D, 0, 0, 0)}
    rows = leaves_from_files("riscv64", 0, known, [cpuinfo, None, None, None])
    assert features(known | as_leaves(rows)) - features(known) == {"ZBA", "ZBB", "ZVE32X"}
    probed = known | {(4, 0): (0, 0, 0, 0)}
    assert features(
        probed | as_leaves(leaves_from_files("riscv64", 0, probed, [cpuinfo, None, None, None]))
    ) == (features(probed))


def test_a_newer_kernel_does_not_make_another_board():
    """It lists more extensions."""
    newer = UNMATCHED.replace("rv64imafdc", "rv64imafdc_zba_zbb")
    assert found("riscv64", UNMATCHED, "B", "b").machine == found("riscv64", newer, "B", "b").machine


def test_the_board_is_named():
    assert found("aarch64", PI3, "Raspberry Pi 3 Model B Rev 1.2").brand == "Raspberry Pi 3 Model B Rev 1.2"
    assert found("aarch64", PI3, product="Mt. Jade").brand == "Mt. Jade"
    assert found("aarch64", PI3, "x" * 1000).brand == "x" * 64
    assert found("aarch64", PI3, "a\x1b[31mé").brand == "a[31m?"


def test_x86_says_it_all_itself():
    assert leaves_from_files("x86-64", 0, {}, [X86, "model", "", ""]) == ()
