"""What is said of runs: why something was not counted, or not asked."""

from __future__ import annotations

from cyclescope.remarks.remark import Meaning


class Counting(Meaning):
    """Why events are not counted beside the core cycles."""

    EMULATED = "an emulator has no counters"
    TOO_MANY = "too many events"
    SIMULATED = "a simulated core counts no such event"
    UNKNOWN = "no such event of this core is known"


class BrokeAt(Meaning):
    """Where in a piece of code something happened."""

    OUTSIDE = "outside of it"
    CODE = "in instruction {}"
    BEFORE = "in instruction {} of what comes before"


class Asking(Meaning):
    """Why a probe has no answer, whatever it asks."""

    NO_TIME = "no time left in a hurry"
    EMULATED = "an emulator's cycles mean nothing"
    NOT_EXECUTED = "this CPU does not execute it (SIGILL)"
