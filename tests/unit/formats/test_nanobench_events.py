"""nanoBench's lists of events become raw events of perf."""

from __future__ import annotations

import pytest

from cyclescope.errors import SourceError
from cyclescope.formats.nanobench import read_events
from cyclescope.host.counters import RAW

LIST = """# of a Skylake

0E.01 UOPS_ISSUED.ANY
A1.04.CTR=2.TakenAlone UOPS_DISPATCHED_PORT.PORT_2
9C.01.CMSK=4.INV.EDG   a name of words
C5.00.AnyT
076.00 LsNotHaltedCyc   # of a Zen
187.02 LongEvent
"""


def test_every_option():
    assert read_events(LIST, "list") == (
        ("UOPS_ISSUED.ANY", RAW, 0x010E),
        ("UOPS_DISPATCHED_PORT.PORT_2", RAW, 0x04A1),
        ("a name of words", RAW, 0x9C | 0x0100 | 4 << 24 | 1 << 23 | 1 << 18),
        ("C5.00.AnyT", RAW, 0xC5 | 1 << 21),
        ("LsNotHaltedCyc", RAW, 0x76),
        ("LongEvent", RAW, 0x87 | 0x0200 | 1 << 32),
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [("nonsense", "no event"), ("0E", "no event"), ("0E.01.MSR_3F6H=5 L", "from user space"),
     ("0E.01.CMSK=999 A", "from user space"), ("0E.01.X A", "from user space")],
)  # fmt: skip
def test_what_is_no_event(line, said):
    with pytest.raises(SourceError, match=said) as error:
        read_events(f"0E.01 A\n{line}\n", "file.txt")
    assert str(error.value).startswith("file.txt, line 2: ")


def test_a_list_without_events():
    with pytest.raises(SourceError, match="no events"):
        read_events("# nothing\n\n", "file.txt")
