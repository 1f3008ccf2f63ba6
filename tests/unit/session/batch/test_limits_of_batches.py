"""How large pieces of a batch are."""

from __future__ import annotations

from cyclescope.session.batch import blocks, chunk, file


def test_pieces_are_small_enough_to_lose_little_and_large_enough_to_say_little():
    assert file._CHUNK == 500  # about a fifth of a second of one CPU
    assert (file._AHEAD, file._OTHERS) == (3, 16)
    assert chunk._KEPT == 50_000
    assert chunk._LOOKS == 1.0
    assert blocks._PIECE == file._PIECE == 1 << 20
    assert blocks._LONGEST == 100_000
