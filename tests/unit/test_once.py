"""What is made once, and then an attribute."""

from __future__ import annotations

from cyclescope.once import once


class Counted:
    def __init__(self):
        self.times = 0

    @once
    def made(self):
        """What is made."""
        self.times += 1
        return [self.times]


def test_it_is_made_when_first_asked_for_and_kept():
    one, other = Counted(), Counted()
    assert one.made is one.made
    assert one.times == 1
    assert other.times == 0


def test_of_the_class_it_is_what_documents_it():
    assert Counted.made.__doc__ == "What is made."
