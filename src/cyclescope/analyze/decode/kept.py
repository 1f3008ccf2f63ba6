"""What was found out once, for when it comes again."""

from __future__ import annotations

from typing import TypeVar

MOST_KEPT = 32_768  # things, far more than loops have: some 40 MB at most; a million blocks have more
Key = TypeVar("Key")
Thing = TypeVar("Thing")


class Kept(dict[Key, Thing]):
    """Things by key; what is one too many makes it forget the others, all at once."""

    def keep(self, key: Key, thing: Thing) -> Thing:
        """Add a thing, and give it back."""
        if len(self) >= MOST_KEPT and key not in self:
            self.clear()
        self[key] = thing
        return thing
