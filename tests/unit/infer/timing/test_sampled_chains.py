"""How many chains say whether latencies of a core depend on how full its scheduler is."""

from __future__ import annotations

from cyclescope.infer.timing.throttling import Suspect, ThrottledChains


def test_thirty_two_chains_say_whether_a_core_has_such_latencies(monkeypatch):
    asked = []
    looks = ThrottledChains.__new__(ThrottledChains)
    monkeypatch.setattr(ThrottledChains, "_shorter", lambda self, some, wanted: asked.append(len(some)) or [])
    monkeypatch.setattr(ThrottledChains, "_stopped", False, raising=False)
    looks.look([Suspect(None, "op1", "op1", 2)] * 320, lambda: True)
    assert asked == [32]
