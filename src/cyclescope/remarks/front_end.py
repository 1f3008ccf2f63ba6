"""What is said of the front end: its width, and the slots of forms."""

from __future__ import annotations

from cyclescope.remarks.remark import Meaning


class Slots(Meaning):
    """Why a form's slots are not told, or are none."""

    LOUD = "instructions of one slot read {:.2f} slots off: too much to count any"
    APART = "its counts disagree: {:.2f} to {:.2f} slots"
    NO_SINGLE = "no form reads as one slot: something else than slots limits these loops"
    VAGUE = "{:.2f} ± {:.2f} slots: too vague to count"
    NO_WHOLE = "{:.2f} ± {:.2f} slots, which is no whole number"
    ONCE = "{:.2f} slots, counted too seldom to be sure"
    WITHOUT_WIDTH = "its front-end slots are not known, as the width is not: {}"
    NOT_KNOWN = "its front-end slots are not known: {}"
    NEEDS_PORT = "its front-end slots are not known: it reads as none, though it needs a port"
    NONE = "it takes no slot: {}"
    NO_MECHANISM = "it reads as no slot, though it is neither a NOP nor a move"


class Dropped(Meaning):
    """What could drop an instruction before it takes a slot."""

    NOP = "a NOP that is dropped"
    MOVE = "a move that is eliminated"


class Wide(Meaning):
    """What the width of a front end rests on, or why it is not told."""

    UNKNOWN = "no simple instruction was measured"
    DISAGREE = "no two kinds of simple instructions agree on a whole number: {}"
    AGREE = "{} loops agree ({}): {}"
    NOPS_SHARE = "{} NOPs next to each other share a slot"
    NOPS_TRAIL = "{} NOPs next to each other share a slot, and a NOP with what is before it: {}"
    NOPS_TAKE_NONE = "NOPs take no slot"
    RATE = "{} {:.2f} ± {:.2f}"
    NARROW = "{} {} a cycle, and one fewer for each of {} beside them"
