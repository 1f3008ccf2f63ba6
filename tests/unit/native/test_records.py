"""Records that measured code may have written: what the runner lets pass, its client takes."""

from __future__ import annotations

import platform
import shutil
import struct
import subprocess
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cyclescope.backend.answers import (
    BLOCK,
    OBSERVATION,
    OUTCOME,
    RESULT,
    Nonsense,
    blocks_of,
    observations_of,
    outcomes_of,
    samples_of,
)
from cyclescope.backend.base import DIED, OK
from cyclescope.host.uname import host_isa
from cyclescope.kernel.locations import names
from tests.support.code.emulated import NATIVE

NONSENSE = 2000
FIELDS = struct.Struct("<12d Q 8I i I d")
COMPILER = shutil.which("cc")
NAN, INFINITY = float("nan"), float("inf")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def check(tmp_path_factory):
    """Sends a record through the runner's check."""
    made = tmp_path_factory.mktemp("records") / "check"
    sources = [Path(__file__).with_name("check_records.c"), NATIVE / "records.c"]
    line = [str(COMPILER), "-Wall", "-Werror", f"-I{NATIVE}", *map(str, sources), "-lm", "-o", str(made)]
    subprocess.run(line, check=True)
    with _running(made) as process:

        def checked(kind: bytes, record: bytes) -> bytes:
            process.stdin.write(kind + record)
            process.stdin.flush()
            return process.stdout.read(len(record))

        yield checked


@contextmanager
def _running(program):
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process


def record(cycles=3.0, spread=0.5, status=OK, detail=0, counters=(), other=0.0, **more):
    given = {"address": 0, "accepted": 6, "rejected": 0, "exceptions": 0, "instruction": -1} | more
    counted = [*counters, *[NAN] * (10 - len(counters))]
    return FIELDS.pack(
        cycles, spread, *counted, given["address"], status, detail, given["accepted"], given["rejected"],
        given["exceptions"], 4, 20, 9, given["instruction"], 0, other,
    )  # fmt: skip


NUMBERS = st.sampled_from(
    (0, 1, 2, 3, 4, 5, 6, 7, 11, 14, 31, 64, 65, 1000, 2000, 2001, 1 << 31, (1 << 32) - 1)
)
VALUES = st.one_of(st.floats(), st.sampled_from((0.0, 1.0, -0.5, 1e11, 1e12, 1e300)))
RECORDS = st.builds(
    lambda cycles, spread, counters, words, instruction, other: FIELDS.pack(
        cycles, spread, *counters, 0, *words, instruction, 0, other
    ),
    VALUES, VALUES, st.tuples(*[VALUES] * 10), st.tuples(*[NUMBERS] * 8),
    st.integers(-(1 << 31), (1 << 31) - 1), VALUES,
)  # fmt: skip


@pytest.mark.parametrize(
    "good",
    [
        record(),
        record(-0.01),
        record(3.0, other=4.5),
        record(NAN, NAN, 5),
        record(1.0, 0.1, 5),
        record(0.0, 0.0, 1, 11, address=16, instruction=5),
        record(0.0, 0.0, 2, 14),
        record(0.0, 0.0, 3, 9),
        record(0.0, 0.0, 3, 1099),
        record(0.0, 0.0, 4),
        record(0.0, 0.0, 6),
        record(counters=(1.0, 2.0), exceptions=0x20, accepted=2048),
    ],
)
def test_what_workers_write_passes(check, good):
    assert check(b"r", good) == good
    samples_of(good, 2)


@pytest.mark.parametrize(
    "bad",
    [
        record(NAN), record(INFINITY), record(other=NAN), record(1.0, -1.0), record(1.0, NAN), record(1e300),
        record(status=7), record(NAN, 1.0, 5), record(status=OK, detail=1), record(0.0, 0.0, 1, 0),
        record(0.0, 0.0, 1, 65), record(3.0, 0.0, 1, 11), record(0.0, 0.0, 3, 2001),
        record(counters=(INFINITY,)), record(exceptions=64), record(instruction=-2),
        record(instruction=1 << 24), record(accepted=2049),
    ],
)  # fmt: skip
def test_what_cannot_be_is_the_record_of_a_dead_worker(check, bad):
    (sample,) = samples_of(check(b"r", bad), 2)
    assert (sample.status, sample.detail, sample.cycles) == (DIED, NONSENSE, 0.0)


@given(data=st.one_of(RECORDS, st.binary(min_size=RESULT, max_size=RESULT)))
def test_the_client_takes_every_time_that_passes(check, data):
    answer = check(b"r", data)
    counted = [msgspec.structs.replace(sample, counters=()) for sample in samples_of(answer, 9)]
    assert repr(samples_of(answer, 0)) == repr(counted)


@given(data=st.binary(min_size=OUTCOME, max_size=OUTCOME), status=NUMBERS, detail=NUMBERS)
def test_the_client_takes_every_outcome_that_passes(check, data, status, detail):
    for part in (data, data[:8] + struct.pack("<2I", status, detail) + data[16:]):
        outcomes_of(check(b"p", part))


@given(bit=st.integers(0, 8 * OBSERVATION - 1), status=NUMBERS, detail=NUMBERS)
@example(bit=8 * (OBSERVATION - 2) - 1, status=0, detail=0)
@example(bit=8 * 50 - 1, status=0, detail=0)
def test_the_client_takes_every_observation_that_passes(check, bit, status, detail):
    if platform.machine() not in ("x86_64", "aarch64", "riscv64"):
        pytest.skip("there is no runner for this machine")
    data = bytearray(OBSERVATION)
    data[bit // 8] |= 1 << bit % 8
    plain = bytes(data)
    for part in (plain, struct.pack("<2I", status, detail) + plain[8:]):
        (found,) = observations_of(check(b"d", part), host_isa())
        assert found.present >> len(names(host_isa())) == 0


def test_an_observation_of_a_place_that_is_not_there(check):
    data = bytearray(OBSERVATION)
    data[49] = 0x80  # the last of those present
    with pytest.raises(Nonsense):
        observations_of(bytes(data), host_isa())
    (found,) = observations_of(check(b"d", bytes(data)), host_isa())
    assert (found.outcome.status, found.outcome.detail) == (DIED, NONSENSE)


# --- basic blocks -------------------------------------------------------------------------------

BLOCKS = struct.Struct("<3d Q 7I i 2I")


def block(cycles=3.0, spread=0.5, linearity=1.0, status=OK, detail=0, **more):
    given = {"accepted": 6, "rejected": 0, "pages": 2, "instruction": -1} | more
    return BLOCKS.pack(
        cycles, spread, linearity, 0, status, detail, given["accepted"], given["rejected"], given["pages"],
        400, 20, given["instruction"], 0, 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    "good",
    [
        block(), block(NAN, NAN, 0.0, 5), block(1.0, 0.1, 0.5, 5), block(0, 0, 0, 1, 11, instruction=5),
        block(0, 0, 0, 2, 14), block(0, 0, 0, 3, 9), block(pages=512),
    ],
)  # fmt: skip
def test_what_workers_write_of_blocks_passes(check, good):
    assert check(b"b", good) == good
    blocks_of(good)


@pytest.mark.parametrize(
    "bad",
    [
        block(NAN), block(1.0, -1.0), block(linearity=INFINITY), block(linearity=NAN), block(1e300),
        block(status=7), block(0, 0, 0, 1, 65), block(3.0, 0.0, 0.0, 1, 11), block(accepted=2049),
        block(pages=513), block(instruction=1 << 24),
    ],
)  # fmt: skip
def test_what_cannot_be_of_a_block_is_the_record_of_a_dead_worker(check, bad):
    (sample,) = blocks_of(check(b"b", bad))
    assert (sample.status, sample.detail, sample.cycles) == (DIED, NONSENSE, 0.0)


@given(data=st.binary(min_size=BLOCK, max_size=BLOCK), status=NUMBERS, detail=NUMBERS, cycles=VALUES)
def test_the_client_takes_every_time_of_a_block_that_passes(check, data, status, detail, cycles):
    made = struct.pack("<d", cycles) + data[8:32] + struct.pack("<2I", status, detail) + data[40:]
    for part in (data, made):
        blocks_of(check(b"b", part))
