"""Requests that are wrong: the runner refuses them with a reason, and answers the next."""

from __future__ import annotations

import struct
import subprocess

import pytest

from cyclescope.backend.native import ERROR, HELLO, MEASURE, SETUP
from cyclescope.backend.transport import MAGIC


def frame(kind, payload=b"", count=0, magic=MAGIC):
    return struct.pack("<4I", magic, kind, len(payload), count) + payload


def talk(runner, *frames):
    """(exit code, types and payloads of the answers, standard error)"""
    done = subprocess.run([runner], input=b"".join(frames), check=False, capture_output=True, timeout=20)
    answers, rest = [], done.stdout
    while rest:
        _, kind, length, _ = struct.unpack_from("<4I", rest)
        answers.append((kind, rest[16 : 16 + length]))
        rest = rest[16 + length :]
    return done.returncode, answers, done.stderr


REQUEST = struct.pack("<4I d", 1, 6, 300, 1, 5000.0)


@pytest.mark.parametrize(
    "wrong",
    [
        frame(77),
        frame(SETUP, b"short"),
        frame(MEASURE, bytes(24) + b"half a kernel", 1),
        frame(MEASURE, REQUEST + struct.pack("<I 4H", 0, 0, 1, 0, 500), 1),
        frame(MEASURE, REQUEST + struct.pack("<I 4H", 9999, 0, 1, 0, 0), 1),
        frame(MEASURE, struct.pack("<4I d", 0, 6, 300, 1, 5000.0)),
        frame(MEASURE, struct.pack("<4I d", 1 << 31, 6, 300, 1, 5000.0)),
        frame(MEASURE, REQUEST, 1 << 20),
    ],
)
def test_a_wrong_request_is_refused_and_the_next_one_answered(runner, wrong):
    code, answers, _ = talk(runner, wrong, frame(HELLO))
    assert code == 0
    assert [kind for kind, _ in answers] == [ERROR, HELLO]


def test_what_is_no_frame_ends_the_runner_with_a_reason(runner):
    code, answers, said = talk(runner, frame(HELLO, magic=1))
    assert (code, answers) == (2, [])
    assert b"not a cyclescope frame" in said
