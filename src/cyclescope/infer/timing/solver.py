"""The solver of linear programs, in silence: standard output is the command's."""

from __future__ import annotations

from typing import Any


def solver() -> Any:
    """An empty `highspy.Highs` that prints nothing, not even while it is made."""
    import highspy

    class Silent(highspy.Highs):
        """Of version 1.16 on, `Highs()` prints its version and licence when it sets up its callbacks."""

        def enableCallbacks(self) -> None:  # noqa: N802 - the library's name
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()  # type: ignore[no-untyped-call]

    made = Silent()  # type: ignore[no-untyped-call]
    made.setOptionValue("output_flag", False)  # version 1.7 has no callbacks to set up
    return made
