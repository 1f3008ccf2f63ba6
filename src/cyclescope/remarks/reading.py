"""What is said of code that was read: what was taken for something else, and which part was chosen."""

from __future__ import annotations

from collections.abc import Sequence

from cyclescope.remarks.remark import Meaning, Remark


class Spot(Meaning):
    """Where in a source."""

    LINE = "line {}"
    LINES = "lines {}"
    AND_MORE = "{} and {} more"
    AND_OTHERS = "{}, ..."
    SAID = "{}: {}"  # of a place, what is said of it


class ReadAs(Meaning):
    """Of a text or file that is read otherwise than it is written, or in part."""

    MORE_NOTES = "and {} more notes"
    PREPROCESSOR = "{!r} is for the C preprocessor and was not read: preprocess the text with cc -E"
    COMMENT = "what follows {} is taken for a comment"
    LEFT_OUT = "{} left out, {} refuses it"
    OTHER_MODE = "{}"  # as the instruction set's record has it
    MUCH_DEBUGGING = "{} MiB of debugging information are too many: no source lines"
    BAD_DEBUGGING = "the debugging information cannot be read: no source lines"


class Marking(Meaning):
    """Of markers around regions."""

    IN_COMMENTS = "markers in comments decide: those in bytes (lines {}) count as instructions"
    MISREAD = "{!r} is no marker: they are written OSACA-BEGIN, LLVM-MCA-BEGIN or IACA START, and END"
    NO_END = "{} {} marker without an end: the region goes on to the end of the code"
    NO_BEGINNING = "{} {} marker without a beginning: the region begins with the code"
    EMPTY = "{}: no instructions, left out"


class Instrument(Meaning):
    """Of comments for llvm-mca that have no effect, or are not enough."""

    NO_EFFECT = "{!r} has no effect: {}"
    UNKNOWN = "known are LLVM-MCA-BEGIN, -END, {}"
    OF_OTHERS = "it is for {} code"
    WANTS_CYCLES = "it wants a number of cycles, at most {}, or nothing"
    WANTS_MULTIPLIER = "it wants one of M1, M2, M4, M8, MF2, MF4, MF8"
    WANTS_WIDTH = "it wants one of E8, E16, E32, E64"
    NO_WIDTH = "nothing says how wide elements are: the narrowest"
    NO_MULTIPLIER = "LLVM-MCA-RISCV-SEW has no effect without a length multiplier"


class Undecoded(Meaning):
    """Why machine code is no known instruction."""

    INVALID = "{} is no instruction"
    NOT_IN_TABLE = "{} is no instruction of the {} table"
    APX = "{} is of APX, which is not read"
    PRIVILEGED = "{!r} is privileged"
    UNLISTED = "{!r} is not in the instruction table"


class Chosen(Meaning):
    """Which part of a program a block is."""

    ALL = "all the code"
    FUNCTION = "all of function {}"
    WITHOUT_LOOP = "{}, there is no loop"
    LINES = "lines {}"
    ADDRESSES = "addresses {}"
    MARKED = "between the {} markers in lines {} and {}"
    MARKED_AT = "between the {} markers at {} and {}"
    HALF_MARKED = "from {} to {}, at {}'s marker"
    BEGINNING = "the beginning of the code"
    END = "the end of the code"
    LOOP = "innermost loop {}"
    ONE_LOOP = "innermost loop {}, of {} innermost loops"
    FROM_LINE = "lines {} to {}"
    FROM_ADDRESS = "{:#x} to {:#x}"
    NAMED = "{} ({})"
    COUNTED = "{} instructions"
    DEPTH = "depth {}"
    OUT_OF_LINE = "{} more out of line"
    BOTH_WAYS = "both ways of its branches in each iteration, none predicted wrongly"


def at_line(number: int, said: Remark) -> Remark:
    """What is said of a line."""
    return Spot.SAID.of(Spot.LINE.of(number), said)


def at_lines(numbers: Sequence[int], said: Remark, shown: int) -> Remark:
    """What is said of lines, of which so many are shown."""
    place: object = ", ".join(map(str, numbers[:shown]))
    if len(numbers) > shown:
        place = Spot.AND_MORE.of(place, len(numbers) - shown)
    return Spot.SAID.of((Spot.LINES if len(numbers) > 1 else Spot.LINE).of(place), said)
