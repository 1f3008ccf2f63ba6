"""What is said of a machine model, and of the store that it is made of."""

from __future__ import annotations

from cyclescope.remarks.remark import Meaning, Remark


class Cost(Meaning):
    """Of what a form costs."""

    NO_THROUGHPUT = "no throughput: {}"
    SLOW_OPERANDS = "throughput of fast operands; of slow ones {:g}"
    AT_MOST = "throughput at most {:g}"
    AT_MOST_AS = "throughput at most {:g}: {}"


class Origin(Meaning):
    """Of where a model is from, and what it lacks."""

    SOURCE = "{}, measured by cyclescope"
    OUTDATED = "{}, older than the last measurement: `cyclescope machines build` makes it anew"
    NO_MODEL = "measured, but without a model yet: `cyclescope machines build` makes it"
    WITHOUT_PORTS = "they tell no ports yet"
    IMPOSSIBLE = "left out, as no machine can be so: {}"
    CONVENTIONS = "latencies that rest on a convention have what is proved without it as a range"
    IN_ORDER = "no ports: the core issues in order; notes of forms say what issues together"
    NO_PORTS = "no ports: `cyclescope measure --what ports` measures them"
    MEASURED = "measured {}"
    LOAD = "load {}"
    VERSION = "{} {}"


class Doubt(Meaning):
    """What speaks against a measured model."""

    PLAIN_WITHOUT_PORT = "forms: {}: a plain {} has no port"
    PLAIN_WITHOUT_PORT_AS = "forms: {}: a plain {} has no port: {}"
    UNTESTED = "calibration: no fresh mixes say whether its ports hold"
    MIXES = (
        "calibration: of {} fresh mixes of {} confidence {:.1%} are within {:.0%} of what is predicted: "
        "it says {:.1%}"
    )
    PORTS = (
        "calibration: of {} fresh mixes of {} confidence {:.1%} are within {:.0%} of what ports allow: "
        "it says {:.1%}"
    )


class Gap(Meaning):
    """What a store does not tell of forms."""

    UNASKED = "either throughput or latency of {} was not asked for"
    STOPPED = "without a value yet: {} (of {}); a run was stopped, `cyclescope measure` goes on from there"
    FORMS = "all of {}"
    THROUGHPUTS = "throughput of {}"
    LATENCIES = "latency of {}"
    PORTS = "ports of {}"
    ONE_DAMAGED = "{} damaged row of the store is left out ({}); `cyclescope measure` measures anew"
    DAMAGED = "{} damaged rows of the store are left out ({}); `cyclescope measure` measures anew"
    ROW = "{} {}: {}"
    ROW_OF = "{} {} of {}: {}"
    FORM = "{} form"
    FORMS_COUNTED = "{} forms"
    PAIR = "{} operand pair"
    PAIRS = "{} operand pairs"


def forms(number: int) -> Remark:
    """So many forms."""
    return (Gap.FORM if number == 1 else Gap.FORMS_COUNTED).of(number)


def operand_pairs(number: int) -> Remark:
    """So many pairs of operands."""
    return (Gap.PAIR if number == 1 else Gap.PAIRS).of(number)
