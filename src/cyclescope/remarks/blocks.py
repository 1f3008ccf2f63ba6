"""What is said of blocks and loops that are timed and predicted."""

from __future__ import annotations

from cyclescope.remarks.remark import Meaning


class Unfit(Meaning):
    """Why a block has no kernel."""

    RELATIVE = "it uses addresses relative to its own: every copy has others"
    NO_COUNTER = "no register is left to count trips"
    FAR_BRANCH = "it is too long for a branch back"
    UNKNOWN = "unknown instruction: {}"
    AS_SAID = "{}: {}"  # an instruction, and why user space cannot measure it
    ANSWERED = "{} is for the machine around it to answer"
    BRANCHES = "it branches"
    KEPT = "it uses a register that the runner keeps"
    LONG = "it is too long"


class Untimed(Meaning):
    """Why a time is none, or not clean."""

    NOT_CLEAN = "not clean, says the file"
    DISTURBED = "the core was disturbed all the time"
    NO_TWO_AGREE = "no two runs agree"
    LONGER_EACH = "more rounds take longer each: misses of caches or of predictions grow with them"
    SHORTER_EACH = "more rounds take less time each: they are too few for what the loop would take for ever"
    COPIES_DIFFER = "fewer copies take another time each"


class Unpredicted(Meaning):
    """Why a predictor has no answer."""

    NOT_SIMULATED = "it cannot be simulated"
    NOT_TAKEN = "llvm-mca does not take it"


class OffBy(Meaning):
    """What an error of a prediction looks like."""

    NO_BOUNDS = "no bounds are known"
    TOO_HIGH = "{} is put at {:.2f} and takes less"
    TOO_HIGH_LIKE = "{} is put at {:.2f} and takes less; {} alone would take {:.2f}"
    LIKE_ANOTHER = "{} alone would take that; {} is put higher"
    TOO_LOW = "no bound reaches {:.2f}: {} alone is {:.2f}, something adds {:.2f}"


class Disagrees(Meaning):
    """What a disagreement on a block is probably about."""

    ENCODINGS = "how the front end gets short encodings"
    SAME_PLACE = "accesses to the same place in memory: forwarding, banks, or stores that share a line"
    RESULTS = "results that others wait for: latencies, or how waiting operations are scheduled"
    COPIES = "copies alone: a burst that runs once, or code that is not kept decoded"
    ONE_FORM = "what {} costs: its ports, slots or latencies"
    TOGETHER = "ports or slots that these take together"
