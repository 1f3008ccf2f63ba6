"""What Linux says of a CPU in files, where the CPU does not say it to programs.

It becomes leaves, beside those of the runner (docs/reference/runner.md): of AArch64 the identity that older
kernels keep from programs, of RISC-V what riscv_hwprobe tells on newer ones, of both a text that names the
board.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Sequence

from cyclescope.host.identity import BOARD_LEAF, DIGEST_LEAF, Leaves, hwprobe
from cyclescope.host.riscv64 import EXTENSIONS_KEY, probed_bits
from cyclescope.isa.registry import instruction_set, isa_names

Row = tuple[int, int, int, int, int, int]
PATHS = (
    "proc/cpuinfo", "proc/device-tree/model", "proc/device-tree/compatible", "sys/class/dmi/id/product_name",
)  # fmt: skip
_WORDS, _LONGEST = struct.Struct("<4I"), 64  # of a leaf; bytes of a text in leaves
_RISCV_IDS = ("mvendorid", "marchid", "mimpid")  # keys 0 to 2 of riscv_hwprobe
_RISCV_NAMES = ("uarch", "model name")
_ARM_FIELDS = (
    ("CPU implementer", 24, 8),
    ("CPU variant", 20, 4),
    ("CPU part", 4, 12),
    ("CPU revision", 0, 4),
)
_ARCHITECTED = 15 << 16  # of MIDR_EL1: features are in registers of their own


def says_little(isa: str) -> bool:
    """Whether files are asked, because the CPU itself does not say to programs what it is."""
    return isa in isa_names() and instruction_set(isa).asks_files


def leaves_from_files(isa: str, cpu: int, leaves: Leaves, texts: Sequence[str | None]) -> tuple[Row, ...]:
    """Leaves that a machine's own lack, by what the files of PATHS say of a CPU; none where it says all."""
    if not says_little(isa):
        return ()
    cpuinfo, model, compatible, product = (text or "" for text in texts)
    fields = _fields(cpuinfo, cpu)
    board = model or product
    if isa == "aarch64":
        return (*_identity(leaves, fields), *_board(board))
    name = next((fields[key] for key in _RISCV_NAMES if fields.get(key)), "")
    named = " on ".join(filter(None, (name, board)))
    digest = "|".join(filter(None, (name, compatible or board))) or fields.get("isa", "")
    return (*_ids(leaves, fields), *_extensions(leaves, fields), *_board(named), *_digest(digest))


def _fields(cpuinfo: str, cpu: int) -> dict[str, str]:
    """What there is on one CPU, with what is said of all."""
    common: dict[str, str] = {}
    for block in re.split(r"\n\s*\n", cpuinfo):
        pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
        fields = {key.strip(): value.strip() for key, _, value in pairs}
        if "processor" not in fields or "CPU implementer" in common:
            common = fields | common
        elif fields["processor"] == str(max(cpu, 0)):
            common = common | fields
    return common


def _number(text: str) -> int:
    return int(text, 0) if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|\d{1,18}", text) else 0


def _identity(leaves: Leaves, fields: dict[str, str]) -> list[Row]:
    """MIDR_EL1, put together."""
    if leaves.get((1, 0), (0, 0, 0, 0))[0] or "CPU part" not in fields:
        return []
    values = [(_number(fields.get(name, "")) & (1 << bits) - 1) << at for name, at, bits in _ARM_FIELDS]
    return [(1, 0, sum(values) | _ARCHITECTED, 0, 0, 0)]


def _ids(leaves: Leaves, fields: dict[str, str]) -> list[Row]:
    known = hwprobe(leaves)
    values = ((key, _number(fields.get(name, ""))) for key, name in enumerate(_RISCV_IDS))
    return [
        (key, 0, value & 0xFFFFFFFF, value >> 32, 0, 0)
        for key, value in values
        if value and not known.get(key)
    ]


def _extensions(leaves: Leaves, fields: dict[str, str]) -> list[Row]:
    bits = 0 if EXTENSIONS_KEY in hwprobe(leaves) else probed_bits(fields.get("isa", ""))
    return [(EXTENSIONS_KEY, 0, bits & 0xFFFFFFFF, bits >> 32, 0, 0)] if bits else []


def _board(text: str) -> list[Row]:
    data = " ".join(text.split()).encode("ascii", "replace")[:_LONGEST]
    data += bytes(-len(data) % _WORDS.size)
    return [
        (BOARD_LEAF + at // _WORDS.size, 0, *_WORDS.unpack_from(data, at))
        for at in range(0, len(data), _WORDS.size)
    ]


def _digest(text: str) -> list[Row]:
    """A number that tells kinds of boards apart whose CPUs say no numbers."""
    return [(*DIGEST_LEAF, zlib.crc32(text.encode()), 0, 0, 0)] if text else []


def microcode(cpuinfo: str) -> str:
    """The version of an x86 CPU's microcode, which Linux says of every CPU alike; "" where it does not."""
    found = re.search(r"^microcode\s*:\s*(0x[0-9a-f]{1,16})$", cpuinfo, re.MULTILINE)
    return found[1] if found else ""
