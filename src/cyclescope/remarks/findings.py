"""What is said of a machine that one might not expect."""

from __future__ import annotations

from cyclescope.remarks.remark import Meaning


class Unexpected(Meaning):
    """Of a form."""

    PAIRS = "{} -> {} takes {:g} cycles, {} -> {} {:g}"
    ONE_REGISTER = "with one register {:g} cycles, with different ones the chain takes {:g}"
    UNLISTED = "{}, which no manual that we know of lists"
    OLD_VALUE = "waits {:g} cycles for the old value of {}"
    CONSUMERS = "{} -> {} {:g} cycles, {}"
    CONSUMER = "{:g} to {} instructions"
    HIDDEN = "{:g} cycles, its ports ({}) and slots allow {:.3g}"
    NOT_ALONE = "{}, and not {}"
    BOTH = "{} {} here, {} there"
    OF_OTHER_PAIR = "{}, which is what {} takes here"
    OF_ONE_REGISTER = "{}, which is what it takes here with one register"
    UNEXPLAINED = "{}, unexplained"
    EXPLAINED = "{}, {}"
    CYCLES = "{:.3g} cycles"
    CYCLES_BETWEEN = "{:.3g} to {:.3g} cycles"
    CYCLES_AT_MOST = "at most {:.3g} cycles"


class Rule(Meaning):
    """What a rule looks for, as the title of what it found."""

    PAIRS = "Operand pairs that differ in latency"
    SAME_REGISTER = "One register for all operands"
    IDIOMS = "Zero idioms and broken dependencies"
    OUTPUTS = "False output dependencies"
    CONSUMERS = "Latencies that depend on the consumer"
    HIDDEN = "Throughput and ports disagree"
    ISOLATION = "Port usage that running alone would get wrong"
    AGAINST = "Latencies that {} has otherwise"


class About(Meaning):
    """What findings of a rule mean."""

    NO_MEASUREMENTS = "the source has no measurements of its own"
    PAIRS = (
        "The result is there at another time after one source than after another: one number per "
        "instruction is wrong for one of them."
    )
    SAME_REGISTER = (
        "With one register for all operands these take another time than the same chain through others."
    )
    IDIOMS = "With one register for all sources these do not wait for it; what no manual lists comes first."
    OUTPUTS = "These wait for the value that they overwrite."
    CONSUMERS = "Integer and floating-point instructions get the result at different times."
    HIDDEN = (
        "Slower than their ports and the front end allow: a unit that no port explains, or a port usage that "
        "is incomplete."
    )
    ISOLATION = (
        "Run alone, these load their ports evenly, as one kind of operation that may use all of them would: "
        "counters per port alone, without blocking instructions, cannot tell."
    )
    AGAINST = (
        "Where the other number is that of another operand pair, or of one register for all operands, both "
        "are right, and one number is too few. Those come first."
    )
