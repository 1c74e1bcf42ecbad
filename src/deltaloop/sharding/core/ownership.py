"""State of the map for people: ranges, members, and the time for which a range has no owner."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import final

import msgspec

from deltaloop.sharding.core.shard_map import ShardMap, range_name

NOISE_AFTER: float = 5.0
"""Time in seconds after a lease duration from which a range without an owner is reported."""


class RangeState(msgspec.Struct, frozen=True):
    """Range of the hash space in the view of one member.

    Attributes:
        start: Lowest hash.
        end: Hash after the highest.
        epoch: Number of earlier owners.
        owner: Identity of the owner, or an empty string without a member that is alive.
        successor: Identity of the next owner during a hand-over, or an empty string.
        is_own: True if this member owns the range.
        is_working: True if this member reconciles objects of the range.
        unowned_for: Time in seconds without an owner, or None.
    """

    start: int
    end: int
    epoch: int
    owner: str
    successor: str
    is_own: bool
    is_working: bool
    unowned_for: float | None

    @property
    def name(self) -> str:
        """Return the range in messages and log records."""
        return range_name(self.start)


class ShardState(msgspec.Struct, frozen=True):
    """Ranges and members of a sharded program in the view of one member.

    Attributes:
        name: Name of the sharded program.
        member: Identity of this member.
        members: Identities of all members that are alive.
        ranges: Ranges in ascending order, empty before the first map.
        unowned: Ranges that have had no owner for too long.
    """

    name: str
    member: str
    members: tuple[str, ...]
    ranges: tuple[RangeState, ...]
    unowned: tuple[RangeState, ...]

    @property
    def own(self) -> tuple[RangeState, ...]:
        """Return the ranges of this member."""
        return tuple(each for each in self.ranges if each.is_own)


@final
class Ownership:
    """Times for which ranges have no owner. ``now`` is in seconds on one monotonic clock."""

    def __init__(self, limit: float) -> None:
        """Create an observer; ``limit`` is the time in seconds without an owner from which a range is reported."""
        self.limit = limit
        self._since: dict[int, float] = {}

    def saw(self, shard_map: ShardMap, alive: Container[str], late: Mapping[str, float], now: float) -> None:
        """Process the map, the uids of members that are alive, and the expired lease durations of others."""
        unowned = [each for each in shard_map.ranges if each.owner not in alive]
        self._since = {
            each.start: self._since.get(each.start, now - late.get(each.owner, 0.0)) for each in unowned
        }  # since the last renewal

    def unowned_for(self, start: int, now: float) -> float | None:
        """Return the time in seconds without an owner, or None."""
        since = self._since.get(start)
        return None if since is None else now - since

    def due_at(self) -> float | None:
        """Return the time at which the next range is reported, or None."""
        return min(self._since.values(), default=None)
