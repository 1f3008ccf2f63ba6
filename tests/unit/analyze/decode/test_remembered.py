"""What is found out once is kept, but not without end."""

from __future__ import annotations

from cyclescope.analyze.decode.kept import Kept


def test_thirty_two_thousand_things_are_kept():
    """All at once are forgotten when there is one more."""
    kept = Kept((number, "") for number in range(32_767))
    assert kept.keep(-1, "last") == "last"
    assert len(kept) == 32_768
    kept.keep(-1, "again")
    assert len(kept) == 32_768
    kept.keep(-2, "one more")
    assert kept == {-2: "one more"}
