"""What is said of latencies and throughputs."""

from __future__ import annotations

from enum import Enum, StrEnum, auto

from cyclescope.remarks.remark import Meaning, Remark


class Cause(Enum):
    """What is behind a value, or behind its absence: meanings that other code asks results for."""

    NONE = auto()  # nothing that other code asks for
    WITHHELD = auto()  # no value: it broke a law
    LOST_LINK = auto()  # no value: a link of the chain has none
    ELIMINATED = auto()  # by the renamer
    INDEPENDENT = auto()  # the chain is cut there
    HIDDEN = auto()  # by the throughput, if it is shorter
    RESTORED = auto()  # a sequence that restores operands
    CUT = auto()  # a sequence that cuts the form's own chain
    CHAINS = auto()  # so many chains as there are destinations may take longer than ports need
    CARRIED = auto()  # links take less in the chain than alone, and the law says what is left


class Idiom(StrEnum):
    """What one register for both sources makes of a form, in the words that users see."""

    ZERO = "zero idiom, needs no execution unit"
    BREAKING = "dependency-breaking idiom"


class Timing(Meaning):
    """Of a latency or a throughput."""

    UNMEASURED = "not measured"
    UNFINISHED = "not measured to the end: {} of {} kernels are missing"
    NO_CYCLES = "emulated: an emulator's cycles mean nothing"

    WITHHELD = "withheld: {}"
    FASTER_THAN_NOP = "{:.3f} cycles is faster than a NOP and than an addition"
    AGAINST_LAW = "{:.2f} cycles breaks the law that a latency is at least 1"
    BACK_SOONER = (
        "its chain takes {:.2f} cycles less than the way back through memory alone: "
        "beside it what was stored comes back sooner, or nothing waits for it"
    )
    ONE_OR_NONE = "{:.2f} +-{:.2f} cycles may be one or none"
    OTHERS_WRITE = "lines are written to memory, at times that differ ({:.0f} cycles)"
    THROUGH_MEMORY = "the data go through memory, whose time varies ({:.0f} cycles)"
    LOST_LINK = "the latency of the link {} is not known"

    ELIMINATED = "eliminated at rename"
    INDEPENDENT = "no dependency: the chain is cut here"
    INDEPENDENT_IF_COUNTED = "no dependency: the chain is cut here (with a count other than 0)"
    HIDDEN = "the throughput hides a shorter latency"
    PART_OF_A_CYCLE = "less than a cycle: more than one of them in a row in each"
    CARRIED = "a dependency, and so a cycle: its links take less in this chain than alone"
    AVERAGE = "an average: several paths, or something in the way"
    AVERAGE_ALONE = "an average of the form alone: its instances take different times in turn"
    ADJUST_FLAG = "AF is only readable together with the other flags"
    FLAGS_TOGETHER = "the flags that the form reads are set together"
    VECTOR_LENGTH = "the helpers wait for the vector length that the form sets"
    REPEATED = "the load behind the store may have to be repeated"
    OTHERWISE = "{:.2f} in a chain with other instructions on the way"
    BY_ANOTHER = "{:.2f} by another chain, and none says the same"
    WITH_ROOM = "{} where the scheduler is not full, {} in a chain alone"

    FALSE_DEPENDENCY = "waits for the register's old value (a false dependency)"
    NO_FALSE_DEPENDENCY = "no dependency: with one destination as fast as no chain can be"
    NOT_WHOLE = "slower with one destination than with several, but by no whole latency"
    UNCONFIRMED = "slower with one destination than with several, which no second chain confirms"
    DISTURBED = "slower with one destination than with several, but the core was disturbed all the time"
    DISAGREE = "chains with and without other instructions on the way disagree"
    NO_THROUGHPUT = "no throughput to compare with"

    RESTORED = "operands restored before every instance"
    CUT = "its own dependency chain allows {}"
    CHAIN_IS_FASTER = "no sequence is faster than the form's latency chain"
    WITH_TARGET = "with the instructions that set its target or count"
    WITH_OTHERS = "measured {}, whose time is included"
    REPEAT = "repeat {}"
    WRITTEN_OUT = "lines are written out; {} while few of them stay in buffers"
    IN_BUFFERS = "while its few lines stay in buffers: what it takes to write them out to memory is not seen"
    IN_ONE_PLACE = "every instance waits for what the one before has stored"
    CUTS_DISTURBED = "its own dependency chain limits it: sequences that cut it were disturbed"
    OWN_CHAIN = "limited by its own dependency chain, which cannot be broken"
    FEW_BASES = "as fast as chains through {} bases allow"
    OWN_DESTINATIONS = "instances wait for destinations that they read: up to {} with other numbers of these"
    FEW_REGISTERS = "as fast as chains through {} registers allow"
    EMPTIED = "while no other register of its destination's kind holds a value: {} where several do"
    IN_FLIGHT = "as fast as registers for what is in flight allow: {:.2f} with an index, for a cycle more"

    EXCEPTIONS = "floating-point exceptions raised: {}"
    CONSUMED = "{} cycles more to {} and back than in chains of each alone (probe {})"
    UPPER_HALVES = "{}: {} cycles more where the upper halves of registers of {} bits are set (probe {})"
    NOT_RENAMED = (
        "{} -> {}: {:.2f} where the data are not renamed, as where the base is written in between "
        "(probe {}, asked of {})"
    )
    LACKS = "this CPU lacks {}"


_CAUSES = {
    Timing.WITHHELD: Cause.WITHHELD,
    Timing.LOST_LINK: Cause.LOST_LINK,
    Timing.ELIMINATED: Cause.ELIMINATED,
    Timing.INDEPENDENT: Cause.INDEPENDENT,
    Timing.INDEPENDENT_IF_COUNTED: Cause.INDEPENDENT,
    Timing.NO_FALSE_DEPENDENCY: Cause.INDEPENDENT,
    Timing.HIDDEN: Cause.HIDDEN,
    Timing.RESTORED: Cause.RESTORED,
    Timing.CUT: Cause.CUT,
    Timing.OWN_DESTINATIONS: Cause.CHAINS,
    Timing.CARRIED: Cause.CARRIED,
}


def cause_of(remark: Remark) -> Cause:
    """What other code may ask of a remark."""
    return _CAUSES.get(remark.meaning, Cause.NONE) if isinstance(remark.meaning, Timing) else Cause.NONE


def withheld(why: Remark) -> Remark:
    """No value, because the one that was found cannot be."""
    return Timing.WITHHELD.of(why)
