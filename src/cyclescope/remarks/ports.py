"""What is said of ports: of a form's usage, of classes that are none, of where names are from."""

from __future__ import annotations

from collections.abc import Sequence

from cyclescope.remarks.remark import Meaning, Remark


class NoPorts(Meaning):
    """Why a form has no port usage."""

    UNMEASURED = "not measured"
    STOPPED = "not measured: the run was stopped before the ports of this machine were known"
    NO_FILLER = "no stable throughput of NOP or of a move tells how many instructions fill the front end"
    NO_KERNEL = "{}"  # why none can be made, as the planner has it
    TAKEN = "blocking instructions cannot stand between taken branches: {} set a target or are jumped over"
    NOT_TAKEN = "blocking instructions would count with {}, which keep its instances from being taken"
    CALLS = "calls and returns come in pairs: {} stand beside its instances"
    STACK = (
        "the stack pointer is written by every instance, and put back by {}: instances are not independent"
    )
    X87_STACK = (
        "every instance moves the top of the x87 stack, which {} put back: instances are not independent"
    )
    COUNT = "its work depends on a count, which {} set before every instance"
    VALUES = "its time may depend on values, which {} put back before every instance"
    RESTORED = "every instance overwrites what it reads, which {} put back before the next"
    COMPANY = "its instances do not run without {} beside them"
    UNPIPELINED = "a unit that is not pipelined begins one every {:.2f} cycles"
    TOO_LONG = "two instances take {:.0f} cycles: too long to be hidden"
    LOCKED = "locked: other accesses to memory wait for it, whatever ports it needs"
    SERIALIZING = (
        "serializing: others wait for it, and two instances take {:.0f} cycles: too long to be hidden"
    )
    PAST_CACHES = "it writes past the caches, and two instances take {:.0f} cycles: too long to be hidden"
    NO_SLOTS = "its front-end slots could not be measured"
    NO_CLASS = "no class of blocking instructions works on its register files"
    MANY_SLOTS = "its {:.0f} slots take more cycles of blocking than {}"
    NO_REGISTERS = "no blocking instruction of its register files leaves it the registers that it needs"
    UNREAD = "no reading of it among blocking instructions: not asked for, or disturbed"
    IN_ORDER = "in order: ports cannot be told"
    ISSUES_WITH = "issues in one cycle with {}"
    NOT_WITH = "not with {}"


class Without(Meaning):
    """Groups of reasons why forms have no port usage, as they are counted."""

    BRANCHES = "{} branch, call or return"
    STACK = "{} move a stack that other instructions put back"
    COUNT = "{} repeat their work as a count says"
    VALUES = "{} take values that other instructions put back"
    RESTORED = "{} need other instructions beside them"
    LOCKED = "{} are locked, and other accesses wait for them"
    LONG = "{} take too long to be hidden"
    KERNEL = "{} have no kernel that user space can run"
    BLOCKING = "{} have no blocking instructions that suit them"
    SLOTS = "{} have slots that could not be measured"
    UNASKED = "{} were not asked for, or disturbed"
    FORMS = "no ports of {}: {}"


_GROUPS = {
    NoPorts.TAKEN: Without.BRANCHES,
    NoPorts.NOT_TAKEN: Without.BRANCHES,
    NoPorts.CALLS: Without.BRANCHES,
    NoPorts.STACK: Without.STACK,
    NoPorts.X87_STACK: Without.STACK,
    NoPorts.COUNT: Without.COUNT,
    NoPorts.VALUES: Without.VALUES,
    NoPorts.RESTORED: Without.RESTORED,
    NoPorts.COMPANY: Without.RESTORED,
    NoPorts.LOCKED: Without.LOCKED,
    NoPorts.TOO_LONG: Without.LONG,
    NoPorts.SERIALIZING: Without.LONG,
    NoPorts.PAST_CACHES: Without.LONG,
    NoPorts.NO_KERNEL: Without.KERNEL,
    NoPorts.NO_CLASS: Without.BLOCKING,
    NoPorts.MANY_SLOTS: Without.BLOCKING,
    NoPorts.NO_REGISTERS: Without.BLOCKING,
    NoPorts.NO_SLOTS: Without.SLOTS,
    NoPorts.UNREAD: Without.UNASKED,
    NoPorts.UNMEASURED: Without.UNASKED,
}


def group_of(remarks: Sequence[Remark]) -> Without | None:
    """The group of the first of some remarks; None of what holds for a whole run, or tells a usage."""
    first = remarks[0].meaning if remarks else None
    return _GROUPS.get(first) if isinstance(first, NoPorts) else None


class Usage(Meaning):
    """What a port usage leaves open, or rests on."""

    CONFLICT = "conflict: it holds ports for {:.1f} port cycles"
    MISSES = "its ports miss what it costs a class by {:.1f} micro-operations"
    ODDS = "{:.0f} : 1 against {}"
    MORE_ODDS = "{}, {}"
    OTHER_NUMBER = "{:.0f} : 1 against another number of ports that its class shares"
    LATE = "its result comes later than others of its ports, which lose a turn to it"
    WIDE = "it costs narrower loads {:.1f} turns more than other loads do"
    UNSEEN_ACCESS = "no blocking instruction shows which ports its memory access needs"
    UNFILLED = "{:.1f} micro-operations are on ports that no class fills"
    MICROCODED = "microcoded: dispatch stalls while the sequencer delivers"
    SLOWER = "it runs slower than these ports allow: something else limits it"
    UNTIMED = "how often it runs is not known: it may have fewer of these ports"
    IN_TURN = "if ports are given in turn, one micro-operation for some looks like several for more of them"
    IDLE_SLOTS = "{} of its slots need no port, or one of a set as wide as the front end"
    UNSEEN = "a micro-operation for any of as many ports as the front end has slots would not show"
    FEWER = "one of its micro-operations may have fewer ports than the class that it is of"
    NEVER_COUNTED = "it was never counted on {}"
    AS_COUNTED = "no class has just these ports, on which it was counted: {}"
    REFUTED = "refuted by {} of {} fresh mixes: {} take {:.2f} cycles, {:.2f} by their ports"
    AS_KEPT = "{}"  # what a store keeps of fresh mixes that refuted it
    DOUBTED_KIND = "fresh mixes of forms of its kind hold too seldom for more confidence"


class NoClass(Meaning):
    """Why the forms of a class are not single micro-operations that keep ports busy."""

    TWO_FILES = "it needs ports of two register files"
    NOT_COMPARED = "it was not compared with the other classes: measure again"
    UNSOUND = "its instances do not keep their ports busy"
    SEVERAL = "its instances have more than one micro-operation"
    FILLS_THE_FRONT_END = (
        "it may need no port: it nearly fills the front end and shares ports with no other class"
    )
    RENAMING = "it may need no port: nothing but moves between registers has as many"
    NO_SET = "no set of {} ports was found that fits what it shares with the others"


class Named(Meaning):
    """Where the names of ports are from."""

    NEUTRAL = "ports have neutral names; {}"
    OF_MACHINE = "ports have the names, and nothing else, of the machine {} where they match; {}"
    INTERCHANGEABLE = "those that serve the same classes of forms are interchangeable"
    COUNTERS = "ports have the names that the performance counters give them"
