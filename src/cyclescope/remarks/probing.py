"""What is said of questions about a core that have no answer, and of those that are not asked."""

from __future__ import annotations

from cyclescope.remarks.remark import Meaning


class Unclear(Meaning):
    """Why readings tell nothing, whatever is asked."""

    UNMEASURED = "not measured"
    AS_SAID = "{}"  # what a backend says of a kernel that does not run
    LOOKS_DIFFER = "looks at the same kernel differ"
    PLACE_MATTERS = "it depends on where the code lies, or looks differ"
    ALWAYS_DISTURBED = "no look at one of the kernels was undisturbed"
    NO_TIME_TAKEN = "it takes no time"
    UNDECIDED = "the readings do not say"
    ONE_LEVEL = "the levels to compare with are not apart"
    BETWEEN_LEVELS = "the reading is not clearly at one of two levels"


class UnclearCore(Meaning):
    """Why readings do not tell what the front end, the renamer or the units do."""

    UNITS_LIMIT = "no mixes agree: units limit them, or NOPs"
    OTHER_RATES = "mixes with other units are of other rates"
    NOPS_TAKE_TIME = "NOPs beside ordinary ones take time: units are not what limits them"
    ORDINARY_WAIT = "ordinary ones alone take longer: units are not what limits them"
    NOT_SLOTS = "something else than slots is the limit"
    OTHERS_WAIT = "those of one register take as long: units are not what limits them"
    NOT_UNITS = "more additions take no longer than more NOPs: units are not what limits them"
    PUSHES_WAIT = "pushes and pops are no faster than what waits, for whatever reason"


class UnclearBranches(Meaning):
    """Why readings do not tell how branches are predicted."""

    RANDOM_SIGNS = "branches on random signs take hardly longer"
    RANDOM_ORDER = "a random order takes hardly longer"
    ALL_PATTERNS = "the longest patterns are predicted, or may be"
    PATTERNS_AGAIN = "longer patterns are predicted again"
    NO_PATTERN = "not even the shortest pattern is predicted"
    NO_DISTANCES = "no two distances show where such a level ends"
    FASTER_ELSEWHERE = "jumps of another distance are faster: these miss a level"
    DISTANCES_DIFFER = "jumps nearer to each other and farther away show other numbers"
    BY_AND_BY = "more jumps get slower by and by: targets may collide while there is room"
    LONGER_LOOPS = "loops take longer than their operations, the more trips the longer"
    SHORTEST_LOOP = "the end of the shortest loop takes as long as a wrong prediction"
    LOOPS_AGAIN = "loops of more trips take no longer again"
    NO_LOOP = "the end of no loop takes longer"
    FEW_CALLS = "so few are forgotten that there may be nothing that knows them"
    RETURNS_ELSEWHERE = "returns to another place take hardly longer: nothing predicts where they go"
    CALLS_SLOWER = "calls in fours take longer, the more there are: where they go may be forgotten as well"
    CALLS_AGAIN = "more calls take no longer again"
    NO_CALLS = "calls inside each other take no longer"


class UnclearMemory(Meaning):
    """Why readings do not tell what caches, pages and stores do."""

    SMALLEST_DIFFER = "the smallest walks do not take the same"
    NO_MORE_SIZES = "no more sizes take the same"
    HIDDEN_LEVEL = "there may be a level in between that too few sizes show"
    NO_BEYOND = "it goes on to the largest walk, or what is beyond is never the same"
    BEYOND_AS_FAST = "loads from beyond take hardly longer"
    SOFT_EDGE = "the edge is soft: other programs, or pages that lie anywhere"
    FALLS = "loads from more memory take less behind the edge: it is where pages lie that counts"
    TRANSLATED = "loads from so many pages take longer as well: translated addresses may be what ends"
    FEWEST_PAGES = "the fewest pages do not take the same"
    PAGES_AS_FAST = "so many pages take no longer"
    NO_MORE_PAGES = "no more numbers take the same soon behind the end"
    LINES_AS_FAST = "so many lines take no longer"
    NO_SET = "lines farther apart than a way do not share a set"
    NO_DISTANCE = "no distance shows how far lines of one set are apart"
    NO_LINE_END = "no offset is where lines end"
    REFUSED_AS_FAST = "what cannot be forwarded takes no longer here"
    MAY_LEARN = "looks differ, as where a core knows the pairs of a loop at times"
    HALF_FORWARDED = "the reading is between what is forwarded and what is not"


class UnclearSize(Meaning):
    """Why readings do not tell how many of something a core holds."""

    ALWAYS_OVERLAP = "chains overlap whatever is in between"
    FEW_IN_FLIGHT = "so few end the overlap that it is for another reason than room"
    NOTHING_OVERLAPS = "slow operations take as long one by one: nothing can overlap"
    NO_OVERLAP = "chains do not overlap: the core issues in order, or its scheduler is as short"
    MIXES_DIFFER = (
        "mixes of other shares end at other numbers: what only some of them are in may be full first"
    )
    OVERLAP_AGAIN = "chains overlap again with more in between"
    SHORT_CHAIN = "the chain is too short for what is in between"
    AS_LONG = "what is in between takes as long as the chain"
    NO_LENGTHS = "no two lengths show an end: decoding is as fast, or there is nothing of the kind"
    LENGTHS_DIFFER = (
        "instructions of other lengths end at other numbers: a cache of code, or places filled in part"
    )
    SHARED_SLOTS = "NOPs share slots, and may share places that other instructions have for themselves"
    KEEPS_MORE = "more instructions of another length are as fast: places are not filled by all lengths"
    LINES_LIMIT = "shorter instructions come to more bytes a cycle: lines of code are what these wait for"
    OTHER_END = "such instructions end at another number than what is kept decoded"
    MORE_AS_FAST = "more take hardly longer, or what is beyond is never the same"
    SOFT_EDGE = "the edge is soft"
    SMALLEST_DIFFER = "the smallest numbers do not take the same"


class UnclearPair(Meaning):
    """Why a pair of CPUs tells nothing."""

    CHANGED = "it is another time as long later"
    NO_ANSWER = "the other CPU does not always answer"
    BUSY = "the other CPU was busy with something else"


class Placing(Meaning):
    """Why what a pair of CPUs answered may be another answer at another time."""

    GUEST = "the host of this virtual machine moves its CPUs: so it was for the cores that they were on"
    UNTOLD = "nothing says whether a host moves these CPUs: so it was for the cores that they were on"


class NoPairs(Meaning):
    """Why no pair of CPUs is asked."""

    ONE_CPU = "kernels run on one CPU"
    SIMULATED = "a simulated core is one"
    ELSEWHERE = "pairs of CPUs are asked on the machine itself"
    ALLOWED_ONE = "this program may use one CPU alone"
    AS_SAID = "{}"  # what a runner says that does not start


class NotAsked(Meaning):
    """Why there is no such question of an instruction set."""

    UNWRITTEN = "it has no kernels for {} yet"
    ONE_LENGTH = "all instructions have one length: what is kept decoded ends like a cache of code"
    NO_PUSHES = "it has no instructions that push and pop: the stack pointer is a register as others"
    NO_SUCH_STORES = "it has no kernels of stores with an index, or of constants"
    BRANCHES_COMPARE = "branches compare themselves: nothing in front of them does it for them"
    NO_PREFIXES = "no prefix says how long an instruction or its constant is"
    NARROW_CLEARS = "narrow writes of general registers clear the rest"
    VECTORS_CLEAR = "writes of vectors clear the rest of longer registers"
    KEEPS_NO_PART = "no instruction keeps a part of a register that others have for longer vectors"
    OWN_REGISTERS = (
        "its integers and doubles have registers of their own: moves between them are instructions"
    )
    EMULATED_ACCESS = "an access that is not aligned may be emulated, for thousands of cycles"


class Read(Meaning):
    """What was read where there is no answer."""

    UP_TO = "up to {}"
    AT = "{}"
    CYCLES = "{:.2f}+-{:.2f}"
    LEVELS = "{} and {} cycles"
    AMONG_LEVELS = "{} cycles, and levels of {} and {}"
    RATES = "{} to {} per cycle"
    RANGE = "{:.0f} to {:.0f} cycles"
    SIZES = "{:.0f} to {:.0f}"
    PREDICTED = "{} are predicted, {} are not"
    OF_ONE_SET = "of one set are those behind by {}"
    NEIGHBOURS = "neighbours do that as well"
