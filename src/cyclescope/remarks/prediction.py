"""What is said of predictions: what was assumed, what was left out, what the model does not know."""

from __future__ import annotations

from cyclescope.remarks.remark import Meaning


class Assumed(Meaning):
    """Of a block on a machine."""

    NO_COST = "{!r}, {}, is not in the model"
    LEFT_OUT = "left out as unknown, with all that they do: {}"
    LATENCY = "{} dependency has no latency in the model: the form's largest, else 1"
    LATENCIES = "{} dependencies have no latency in the model: the form's largest, else 1"
    SLOWER_X87 = (
        "LLVM has SSE's latencies for x87 additions and multiplications here, up to {:g} are published: {}"
    )
    NO_LOAD = "the model does not say how long a load takes: no time is counted for it: {}"
    FORWARDING = (
        "the model has no forwarding latency: {:g} cycles from store to load, {:g} of a load and {:g} more"
    )
    FORWARDING_AS_LOAD = (
        "the model has no forwarding latency: {:g} cycles from store to load, as long as a load"
    )
    BORROWED = "not measured, as {} have them: {}"
    BORROWED_OF = "not measured, as {} of {} have them: {}"
    NONE_MEASURED = "no instruction of {} was measured, perhaps as this core executes none: {}"
    PORT_UNKNOWN = "the port usage of {} instruction is not known"
    PORTS_UNKNOWN = "the port usage of {} instructions is not known"
    SLOTS_UNKNOWN = (
        "how many front-end slots these take is not known, it may be more than the one that counts: {}"
    )
    LACKED = "{} does not execute these, it lacks {}, though LLVM's model has costs of them: {}"
    LACKED_BUT = "of the cores that this model is of, {} alone executes these, the others lack {}: {}"
    CALLED = "calls are not followed, neither time nor effects of what is called are counted: {}"
    GUESSED = "what is counted of these is a guess, as no program can time them alone ({}): {}"
    ORDERED = "these wait for what is before them or hold up what is behind, which is not counted: {}"
    MODES = "these set modes of the core, and may take far longer than is counted where one changes: {}"
    REPEATED = (
        "what repeats itself is counted as if it did so a few times, not as often as its count says: {}"
    )
    MEETING = (
        "these store to places that they load, at addresses that were loaded: iterations are taken to go to "
        "different places; at the same one each waits for what the one before stored: {}"
    )
    UPPER_HALVES = (
        "SSE beside wider vectors, and no VZEROUPPER: that it keeps the rest of its destination, for "
        "which it may wait, is not counted: {}"
    )
    KEPT_FLAGS = (
        "the flags of these are read, which are those from before where the count is 0: a core may take far "
        "longer then, which is not counted: {}"
    )
    LONG_CODE = (
        "{} instructions may be more than the core keeps decoded: what it has to fetch and to decode again "
        "each time is slower, which is not counted"
    )
    STREAMING = "stores past the caches take as long as memory does, which is not counted: {}"
    LINKED = "which lines of {} bytes the loop lies in is up to the linker: it takes {:.2f} to {:.2f} cycles"
    LOCKED = "locked instructions go one after the other through memory"
    LOCKED_AS_PLAIN = f"{LOCKED}, and have the ports of their plain forms"
    STICKY = "what arithmetic adds to {} is not followed: {}"
    NO_TYPE = (
        "SEW and LMUL are not known, no one vsetvli or vsetivli with a legal type is in front: "
        "costs are the model's largest, operands one register: {}"
    )
    NO_MULTIPLIER = "the model has no cost by LMUL, the largest counts: {}"
    LINE = "line {}"
    NAMED = "{} ({})"  # what it goes to
    TEXT = "{}"  # an instruction that is of no line
    AND_MORE = "{} and {} more"


class Placed(Meaning):
    """Of an instruction in its place."""

    ELIMINATED = "eliminated"
    ZERO = "zero idiom"
    BREAKING = "dependency-breaking"
    FUSED_WITH_BRANCH = "fused with the branch"
    FUSED = "fused"
    MICROCODED = "microcoded"
    RENAMED = "renamed memory"
    FORWARDED = "forwarded"
    PORTS_UNKNOWN = "ports unknown"
    COMMENTED = "latency {:g} by a comment"
