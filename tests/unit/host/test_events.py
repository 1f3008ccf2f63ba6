"""Events by name, from the files of a machine with counters, and the reasons why one has none."""

from __future__ import annotations

import errno
import os
import struct

import pytest

from cyclescope.errors import UsageError
from cyclescope.host import events as named
from cyclescope.host import perf
from cyclescope.host.counters import HARDWARE, RAW
from cyclescope.host.events import event_code, named_events
from cyclescope.host.files import files_of
from cyclescope.host.perf import SOFTWARE, why_not


@pytest.fixture
def files(tmp_path):
    """A source of events with two formats, as an Intel core has it."""
    source = tmp_path / "sys/bus/event_source/devices/cpu"
    texts = {
        "type": "4\n",
        "format/event": "config:0-7\n",
        "format/umask": "config:8-15\n",
        "format/split": "config:16,32-33\n",
        "format/offcore": "config1:0-63\n",
        "events/uops_retired": "event=0xc2,umask=0x1\n",
        "events/cycles": "event=0x3c\n",
        "events/spread": "event=0x10,split=0x5\n",
        "events/flagged": "event=0x11,split\n",
        "events/far": "event=0xb7,offcore=0x1\n",
        "events/odd": "event=what\n",
    }
    for name, text in texts.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    (source.parent / "software").mkdir()
    return files_of(tmp_path)


def test_names_of_a_source(files):
    found = {event.name: (event.kind, event.config) for event in named_events(files) if event.source == "cpu"}
    assert found == {"uops_retired": (RAW, 0x1C2), "spread": (RAW, 0x2_0001_0010), "flagged": (RAW, 0x1_0011)}


def test_general_names_are_everywhere(tmp_path):
    found = {event.name: event for event in named_events(files_of(tmp_path))}
    assert (found["cycles"].kind, found["branch-misses"].config) == (HARDWARE, 5)
    assert (found["page-faults"].kind, found["page-faults"].config) == (SOFTWARE, 2)
    assert found["cycles"].of_core
    assert not found["page-faults"].of_core


def test_the_code_of_a_name(files, monkeypatch):
    monkeypatch.setattr(named, "files_of", lambda: files)
    assert event_code("uops_retired") == ("uops_retired", RAW, 0x1C2)
    assert event_code("instructions") == ("instructions", HARDWARE, 1)
    assert event_code("mine=4:0x1c2") == event_code("mine=4:1c2") == ("mine", 4, 0x1C2)
    assert [event.code for event in named_events() if event.name == "uops_retired"] == ["uops_retired=4:1c2"]


@pytest.mark.parametrize(
    ("text", "said"),
    [("instuctions", "did you mean instructions"), ("qqq", "counters list"), ("a=4", "names")],
)
def test_no_event(text, said):
    with pytest.raises(UsageError) as caught:
        event_code(text)
    assert said in caught.value.told


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.EACCES, "forbids"), (errno.ENOENT, "no such counter"), (errno.ESRCH, "no such process"),
        (errno.ENOSYS, "no performance events"), (errno.EMFILE, "Too many open files"),
    ],
)  # fmt: skip
def test_why_not(code, said):
    assert said in why_not(OSError(code, os.strerror(code)))


@pytest.mark.parametrize(
    ("value", "enabled", "ran", "expected"),
    [(100, 10, 10, (100, 1)), (100, 10, 5, (200, 0.5)), (0, 0, 0, (0, 1)), (0, 10, 0, (0, 0))],
)
def test_counts_are_scaled_by_the_time_they_had(tmp_path, value, enabled, ran, expected):
    path = tmp_path / "event"
    path.write_bytes(struct.pack("=QQQ", value, enabled, ran))
    file = os.open(path, os.O_RDONLY)
    assert perf.read_event(file) == expected
    os.close(file)
