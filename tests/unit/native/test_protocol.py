"""Both sides of the protocol have the same layouts, and the build knows every source."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cyclescope.backend import answers, base, native, requests
from cyclescope.backend.transport import FRAME, MAGIC
from cyclescope.kernel import locations, state
from cyclescope.measure.bench import default_state
from cyclescope.session import blocks

ROOT = Path(__file__).parents[3]
NATIVE = ROOT / "src/cyclescope/native"
HEADER = (NATIVE / "protocol.h").read_text()
COMPILER = shutil.which("cc") or shutil.which("gcc")

STRUCTS = {
    "frame": FRAME.size,
    "hello": answers._HELLO.size,
    "cpuid_leaf": answers._LEAF.size,
    "setup": requests.SETUP_LAYOUT.size + answers.COUNTERS * requests.EVENT_LAYOUT.size,
    "setup_reply": answers._SETUP_REPLY.size,
    "calibrate": requests.CALIBRATE_LAYOUT.size,
    "calibration": answers._CALIBRATION.size,
    "measure": requests.MEASURE_LAYOUT.size,
    "kernel": requests.KERNEL_LAYOUT.size,
    "result": answers._RESULT.size,
    "probe_result": answers._OUTCOME.size,
    "blocks": requests.BLOCKS_LAYOUT.size,
    "block_result": answers.BLOCK,
    "bursts": requests.BURSTS_LAYOUT.size,
    "burst_result": answers.BURST,
    "differ": requests.DIFFER_LAYOUT.size,
    "differ_result": answers._OBSERVATION.size,
    "state": len(default_state(0).packed),
}
FRAMES = (
    "HELLO", "SETUP", "CALIBRATE", "STATE", "MEASURE", "PROBE", "DIFFER", "QUIT", "ERROR", "READ", "BLOCKS",
    "BURSTS",
)  # fmt: skip
STATUSES = ("OK", "SIGNAL", "HANG", "DIED", "TOO_LONG", "UNCLEAN", "NOT_RUN", "PAGES")
VALUES = (
    {f"FRAME_{name}": getattr(native, name) for name in FRAMES}
    | {f"STATUS_{name}": getattr(base, name) for name in STATUSES}
    | {"PROTOCOL_MAGIC": MAGIC, "PROTOCOL_VERSION": native.VERSION, "COUNTERS_MAX": answers.COUNTERS}
    | {"LOCATIONS / 8": locations.BYTES}
    | {"BURST_BASIC": requests.BASIC, "BURST_DRAIN": requests.DRAIN, "MEASUREMENTS_MAX": 2048}
    | {"BLOCK_LOOP": blocks.LOOPS_BACK, "BLOCK_COUNTER_SHIFT": blocks.COUNTER_SHIFT}
)


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_the_layouts_are_the_same(tmp_path):
    checks = [f'_Static_assert(sizeof(struct {name}) == {size}, "{name}");' for name, size in STRUCTS.items()]
    checks += [f'_Static_assert({name} == {value}, "{name}");' for name, value in VALUES.items()]
    source = tmp_path / "check.c"
    source.write_text("\n".join(['#include "protocol.h"', *checks, ""]))
    command = [str(COMPILER), "-I", str(NATIVE), "-fsyntax-only", str(source)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_registers_of_blocks_are_apart_from_what_memory_points_to():
    text = (NATIVE / "arch.h").read_text()
    found = {name: int(value, 0) for name, value in re.findall(r"#define (PLACE\w+) (0x[0-9a-f]+)", text)}
    assert found["PLACE_STEP"] == state.PLACE_STEP
    assert found["PLACES_BASE"] >= state.REGISTERS_BASE + 32 * state.PLACE_STEP


def test_every_struct_of_the_protocol_is_compared():
    structs = set(re.findall(r"^struct (\w+) \{", HEADER, re.MULTILINE))
    assert structs - set(STRUCTS) == {"counter_event", "poke", "probe_request"}


def test_the_build_has_every_source():
    build = (ROOT / "meson.build").read_text()
    named = set(re.findall(r"'(\w+\.c)'", build))
    assert named == {path.name for path in NATIVE.rglob("*.c")}


@pytest.mark.parametrize("isa", ["x86_64", "aarch64", "riscv64"])
def test_no_warning(isa):
    compiler = COMPILER if isa == platform.machine() else shutil.which(f"{isa}-linux-gnu-gcc")
    if compiler is None:
        pytest.skip(f"needs a C compiler for {isa}")
    folders = [NATIVE, NATIVE / isa, *([NATIVE / "core"] if isa == platform.machine() else [])]
    sources = [str(path) for folder in folders for path in sorted(folder.glob("*.c"))]
    command = [compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", str(NATIVE), "-fsyntax-only"]
    done = subprocess.run([*command, *sources], check=False, capture_output=True, text=True)
    assert not done.returncode, done.stderr
