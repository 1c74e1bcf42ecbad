r"""Decide the ranges of one member, and its changes of the map.

A member is alive while its Lease is renewed; ``leaderelection`` decides this, and ends the membership at the renew
deadline. In the map, the uid of the Lease names the member: after a deletion of the Lease, its uid never returns.

    for each range          owner                                    successor
                            works                                    fills its caches
                            works                                    writes ``ready``
                            stops, waits for its reconciles          waits
                            writes the successor as the owner        works

A hand-over can be canceled by a map without the successor. The owner then continues: a write that it sent before is
based on an older map, so the server rejects it. Without a new map the owner does not continue, because its write can
arrive late.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import final

from deltaloop.api.resource_version import compare_resource_versions
from deltaloop.sharding.core.shard_map import ShardMap, ShardRange


@final
class Member:
    """View of one member. It is not thread-safe.

    Attributes:
        uid: Uid of the member's Lease. Empty before the first renewal and after the membership ended.
        version: Resource version of the newest map that the member has seen, or empty.
        map: This map.
    """

    def __init__(self) -> None:
        self.uid: str = ""
        self.version: str = ""
        self.map: ShardMap = ShardMap(())
        self._filled: set[tuple[int, int]] = set()
        self._idle: set[tuple[int, int, int]] = set()

    def saw(self, shard_map: ShardMap, version: str) -> bool:
        """Process a map from a read, a watch or a write. Return False if it is older than the known map."""
        if self.version and compare_resource_versions(version, self.version) < 0:
            return False
        self.version, self.map = version, shard_map
        bounds = {(each.start, each.end) for each in self.held}
        self._filled &= bounds
        self._idle = {at for at in self._idle if any(_key(each) == at for each in self.stopping)}
        return True

    @property
    def held(self) -> tuple[ShardRange, ...]:
        """Ranges for which the member needs caches: those that it owns, and those that it receives."""
        return tuple(each for each in self.map.ranges if self.uid and self.uid in (each.owner, each.successor))

    @property
    def working(self) -> tuple[ShardRange, ...]:
        """Ranges in which the member may reconcile and write while its Lease is valid."""
        return tuple(self.map.owned_by(self.uid)) if self.uid else ()

    @property
    def stopping(self) -> tuple[ShardRange, ...]:
        """Ranges in which the reconciles of the member must end."""
        return tuple(each for each in self.map.ranges if self.uid and each.owner == self.uid and each.ready)

    def filled(self, each: ShardRange) -> None:
        """Record that the caches of a range are complete."""
        self._filled.add((each.start, each.end))

    def idle(self, each: ShardRange) -> None:
        """Record that no reconcile and no write of the member runs in a stopping range."""
        self._idle.add(_key(each))

    @property
    def is_switching(self) -> bool:
        """True if a range waits for the write of its owner."""
        return any(each.ready for each in self.map.ranges)

    def next_map(self, *, in_turn: bool = False) -> ShardMap | None:
        """Return the map to write with ``version`` as its precondition, or None without a change.

        With ``in_turn``, ranges of one owner become ready at a time, so that no write of an owner finds a newer map.
        """
        filled = [each for each in self.map.ranges if self._is_filled(each)]
        owners = {each.owner for each in filled}
        if in_turn:
            owners = {min(owners)} if owners and not self.is_switching else set[str]()
        new = self.map.replace(lambda each: (self._step(each, owners),))
        return None if new == self.map else new

    def released_map(self) -> ShardMap:
        """Return the map without an owner for the member's ranges, after all work of the member has ended."""
        return self.map.replace(
            lambda each: (each.given_to(each.successor) if self.uid and each.owner == self.uid else each,)
        )

    def _is_filled(self, each: ShardRange) -> bool:
        return each.successor == self.uid != "" and not each.ready and (each.start, each.end) in self._filled

    def _step(self, each: ShardRange, owners: Collection[str]) -> ShardRange:
        if not self.uid:
            return each
        if each.owner in owners and self._is_filled(each):
            return ShardRange(each.start, each.end, each.epoch, each.owner, each.successor, ready=True)
        if each.owner == self.uid and each.ready and _key(each) in self._idle:
            return each.given_to(each.successor)
        return each


def _key(each: ShardRange) -> tuple[int, int, int]:
    return each.start, each.end, each.epoch
