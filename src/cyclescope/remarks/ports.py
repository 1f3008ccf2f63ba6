"""What is said of ports: of a form's usage, of classes that are none, of where names are from."""

from __future__ import annotations

from cyclescope.remarks.remark import Meaning


class NoPorts(Meaning):
    """Why a form has no port usage."""

    UNMEASURED = "not measured"
    STOPPED = "not measured: the run was stopped before the ports of this machine were known"
    NO_FILLER = "no stable throughput of NOP or of a move tells how many instructions fill the front end"
    NO_KERNEL = "{}"  # why none can be made, as the planner has it
    TOO_LONG = "two instances take {:.0f} cycles: too long to be hidden"
    NO_SLOTS = "its front-end slots could not be measured"
    NO_REGISTERS = "no blocking instruction of its register files leaves it the registers that it needs"
    IN_ORDER = "in order: ports cannot be told"
    ISSUES_WITH = "issues in one cycle with {}"
    NOT_WITH = "not with {}"


class Usage(Meaning):
    """What a port usage leaves open, or rests on."""

    CONFLICT = "conflict: it holds ports for {:.1f} port cycles"
    MISSES = "its ports miss what it costs a class by {:.1f} micro-operations"
    ODDS = "{:.0f} : 1 against {}"
    MORE_ODDS = "{}, {}"
    OTHER_NUMBER = "{:.0f} : 1 against another number of ports that its class shares"
    LATE = "its result comes later than others of its ports, which lose a turn to it"
    UNSEEN_ACCESS = "no blocking instruction shows which ports its memory access needs"
    UNFILLED = "{:.1f} micro-operations are on ports that no class fills"
    MICROCODED = "microcoded: dispatch stalls while the sequencer delivers"
    LOCKED = "locked: other accesses to memory wait for it"
    SLOWER = "it runs slower than these ports allow: something else limits it"
    IDLE_SLOTS = "{} of its slots need no port, or one of a set as wide as the front end"
    UNSEEN = "a micro-operation for any of as many ports as the front end has slots would not show"
    FEWER = "one of its micro-operations may have fewer ports than the class that it is of"
    NEVER_COUNTED = "it was never counted on {}"
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
