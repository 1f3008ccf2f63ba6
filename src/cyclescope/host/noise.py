"""How quiet the core is, in words, and what to do about it."""

from __future__ import annotations

import msgspec

# Shares of undisturbed canaries. Of ten samples nine are enough for any reading; where fewer than four are
# clean, most rounds have to be repeated, and a full run takes more than twice as long.
_CLEAN, _BUSY = 0.9, 0.4
_COMPANY = 0.3  # load average: a program that runs a third of the time disturbs every long batch


class HostNoise(msgspec.Struct, frozen=True):
    """Verdict on the noise: `quiet`, `busy` or `loud`, why, and the remedies."""

    verdict: str
    clean_share: float
    reasons: tuple[str, ...]
    remedies: tuple[str, ...]


def judge(clean_share: float, load: float, usable: int, siblings: int) -> HostNoise:
    """Noise of a host from the share of undisturbed canaries, the load and the CPUs."""
    reasons = [f"{clean_share:.0%} of the canaries ran undisturbed"]
    remedies = []
    if load > _COMPANY:
        reasons.append(f"load average {load:.2f}")
        remedies.append("stop other programs")
    if usable == 1:
        reasons.append("one CPU for the kernels and for this program")
        remedies.append("give this program a second CPU")
    if siblings:
        reasons.append(f"{siblings} hardware threads share the core")
        remedies.append("leave the other hardware thread idle")
    if clean_share >= _CLEAN:
        return HostNoise("quiet", clean_share, tuple(reasons), tuple(remedies))
    remedies.append("measure again later, or on another CPU with --cpu")
    verdict = "busy" if clean_share >= _BUSY else "loud"
    return HostNoise(verdict, clean_share, tuple(reasons), tuple(remedies))
