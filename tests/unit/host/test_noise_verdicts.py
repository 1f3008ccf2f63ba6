"""How quiet a host is called: both sides of every limit."""

from __future__ import annotations

import pytest

from cyclescope.host.noise import judge


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(0.1, "loud"), (0.3, "loud"), (0.39, "loud"), (0.41, "busy"), (0.7, "busy"), (0.89, "busy"),
     (0.91, "quiet"), (1.0, "quiet")],
)  # fmt: skip
def test_verdicts_by_the_share_of_clean_canaries(share, verdict):
    found = judge(share, 0.0, 2, 0)
    assert found.verdict == verdict
    assert found.reasons == (f"{share:.0%} of the canaries ran undisturbed",)
    assert any("measure again" in one for one in found.remedies) == (verdict != "quiet")


@pytest.mark.parametrize(("load", "company"), [(0.2, False), (0.29, False), (0.31, True), (0.5, True)])
def test_other_programs_are_company(load, company):
    assert ("stop other programs" in judge(1.0, load, 2, 0).remedies) is company
