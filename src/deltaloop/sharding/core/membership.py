"""Decide which members are alive, by the rules of ``leaderelection.core.election``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, final

import msgspec

_TOGETHER: Final = 1.0
_LONGEST_TOGETHER: Final = 5.0


class MemberLease(msgspec.Struct, frozen=True):
    """Lease of a member.

    Attributes:
        uid: Uid of the Lease, which the map contains.
        version: Resource version. Each new version is a renewal.
        duration: Lease duration in seconds.
        leaving: True if the member wants to give away its ranges.
    """

    name: str
    uid: str
    version: str
    duration: float
    leaving: bool = False


@final
class Membership:
    """Members in the view of one observer. ``now`` is in seconds on its monotonic clock."""

    def __init__(self, lease_duration: float) -> None:
        self._seen: dict[str, tuple[MemberLease, float]] = {}
        self._missing: dict[str, float] = {}  # uid -> time at which it counts as dead
        self._evicted: set[str] = set()
        self._longest = lease_duration
        self._joined_at = -math.inf

    def saw(self, leases: Iterable[MemberLease], owners: Iterable[str], now: float) -> None:
        """Process all Leases and the uids of the map's owners, both as they are at one time or later.

        Leases that this observer has deleted are ignored, because a cache can still contain them.
        """
        before, self._seen = self._seen, {}
        present = {lease.uid: lease for lease in leases}
        self._evicted &= {*present}
        for lease in (lease for uid, lease in present.items() if uid not in self._evicted):
            known = before.get(lease.uid)
            self._seen[lease.uid] = known if known is not None and known[0] == lease else (lease, now)
            self._longest = max(self._longest, lease.duration)
        if self._seen.keys() - before.keys():
            self._joined_at = now
        missing = {uid for uid in owners if uid and uid not in self._seen}
        self._missing = {uid: self._missing.get(uid, now + self._longest) for uid in missing}

    def evicted(self, lease: MemberLease) -> None:
        """Process a deletion by this observer."""
        self._seen.pop(lease.uid, None)
        self._evicted.add(lease.uid)
        self._missing[lease.uid] = -math.inf

    def to_evict(self, now: float) -> tuple[MemberLease, ...]:
        """Return the Leases to delete, with their versions as preconditions."""
        return tuple(lease for lease, since in self._seen.values() if now >= since + lease.duration)

    def alive(self) -> tuple[MemberLease, ...]:
        return tuple(lease for lease, _ in self._seen.values())

    def dead(self, now: float) -> frozenset[str]:
        """Return the uids of former owners."""
        return frozenset(uid for uid, at in self._missing.items() if now >= at)

    def first_plan_at(self, began_at: float) -> float:
        """Return the time at which new members share all objects. Otherwise, the first one caches all.

        It is 1 s after the last one joined, at most 5 s after ``began_at``.
        """
        return min(self._joined_at + _TOGETHER, began_at + _LONGEST_TOGETHER)

    def next_at(self, now: float) -> float:
        """Return the next time at which a Lease or a missing member expires, or infinity."""
        times = [since + lease.duration for lease, since in self._seen.values()]
        return min((at for at in (*times, *self._missing.values()) if at > now), default=math.inf)


@final
class OtherKeys:
    """Leases of members with another key. With two keys, an object could have two owners."""

    def __init__(self, lease_duration: float) -> None:
        self._members = Membership(lease_duration)
        self._versions: dict[str, str] = {}

    def saw(self, leases: Iterable[MemberLease], now: float) -> MemberLease | None:
        """Return a Lease that was renewed. A crashed member renews none."""
        present = tuple(leases)
        self._members.saw(present, (), now)
        return next(
            (each for each in present if self._versions.setdefault(each.uid, each.version) != each.version), None
        )

    def have_expired(self, now: float) -> bool:
        return len(self._members.to_evict(now)) == len(self._members.alive())
