"""A runner that is a script: it answers frames as a test wants, and writes down what it was asked."""

from __future__ import annotations

import sys
from pathlib import Path

_HEAD = """\
#!{python} -IS
import os, signal, struct, sys, time
FRAME, MAGIC = struct.Struct("<4I"), 0x31435343
HELLO, SETUP, CALIBRATE, STATE, MEASURE, PROBE, DIFFER, QUIT, ERROR = range(1, 10)
STATES = set()  # indices of those it got
LEAVES = [(0, 0, 1, 0x756e6547, 0x6c65746e, 0x49656e69), (1, 0, 0x000906ea, 0, 1 << 31, 1 << 25)]

def read(size):
    data = sys.stdin.buffer.read(size)
    if len(data) != size:
        sys.exit(0)
    return data

def write(kind, payload, magic=MAGIC):
    sys.stdout.buffer.write(FRAME.pack(magic, kind, len(payload), 0) + payload)
    sys.stdout.buffer.flush()

def hello(version=10):
    leaves = b"".join(struct.pack("<6I", *leaf) for leaf in LEAVES)
    return struct.pack("<4I7Q", version, 1, len(LEAVES), 4096, *[0] * 6, 7) + leaves

def setup(payload, pin=0, filtered=0, counter=0, opened=0):
    cpu, = struct.unpack_from("<i", payload)
    return struct.pack("<4i2I", -1 if pin else cpu, pin, filtered, counter, opened, 0)

def result(cycles=3.0, status=0, detail=0, address=0, counters=(), instruction=-1):
    counted = [*counters, *[float("nan")] * (10 - len(counters))]
    return struct.pack("<2d10dQ8IiId", cycles, 0.5, *counted, address, status, detail, 12, 3, 32, 5, 25, 9,
                       instruction, 0, 0.0)

def answer(kind, payload, count):
    if kind == HELLO:
        return hello()
    if kind == SETUP:
        return setup(payload)
    if kind == CALIBRATE:
        return struct.pack("<7d", 0.5, 1.0, 100.0, 0.75, 0.01, 1e-9, 0.125)
    if kind == MEASURE:
        rounds, = struct.unpack_from("<I", payload)
        return result() * (count * rounds)
    if kind == PROBE:
        return struct.pack("<Q2IiI", 0, 0, 0, -1, 0) * count
    return b""  # no such file

"""
_SERVE = """
while True:
    magic, kind, length, count = FRAME.unpack(read(16))
    payload = read(length)
    with open(sys.argv[0] + ".log", "a") as log:
        print(kind, length, count, file=log)
    if kind == QUIT:
        break
    if kind == STATE:
        STATES.add(struct.unpack_from("<I", payload)[0])
        continue
    write(kind, answer(kind, payload, count))
"""


def fake_runner(path: Path, changes: str = "") -> Path:
    """A runner whose functions `changes` replace; the frames it got are in `path`.log."""
    path.write_text(_HEAD.replace("{python}", sys.executable) + changes + _SERVE)
    path.chmod(0o755)
    return path


def frames(path: Path) -> list[tuple[int, int, int]]:
    """(type, length, count) of the frames a fake runner got."""
    lines = Path(f"{path}.log").read_text().splitlines()
    return [tuple(map(int, line.split())) for line in lines]  # type: ignore[misc]
