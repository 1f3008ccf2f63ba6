"""Ways through memory of a made core, as probes would have found them."""

from __future__ import annotations

from cyclescope.model.facts import FORWARDING, RENAMING, CoreAnswer, Fact, MemoryWay, forwarding_subject

SLOW, FAILED = 6.0, 15.0  # cycles of a way that is not renamed, of what cannot be forwarded
FACTS = (
    Fact(FORWARDING, forwarding_subject(64, 64, 0), CoreAnswer.FORWARDED, 0.0, 0.05),
    Fact(FORWARDING, forwarding_subject(64, 64, 4), CoreAnswer.FAILED, FAILED, 0.05),
    Fact(RENAMING, MemoryWay.BASE, CoreAnswer.RENAMED, 0.0, 0.05),
    Fact(RENAMING, MemoryWay.REWRITTEN, CoreAnswer.FORWARDED, SLOW, 0.05),
    Fact(RENAMING, MemoryWay.INDEXED, CoreAnswer.FORWARDED, SLOW, 0.05),
)
