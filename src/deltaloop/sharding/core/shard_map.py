"""Owners of the hash space: the map that all members of a sharded controller share."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.shard_selector import HASH_SPACE


def range_name(start: int) -> str:
    return f"{start:016x}"  # as in the stored map


class InvalidShardMapError(DeltaloopError):
    """The stored map is not valid, for example because a person edited it.

    Attributes:
        problem: Description of the first problem.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(f"the shard map must cover the hash space once: {problem}. Delete it to create a new one")
        self.problem = problem


class ShardRange(msgspec.Struct, frozen=True, array_like=True):
    """Part of the hash space with its owner.

    Attributes:
        start: Lowest hash.
        end: Hash after the highest.
        epoch: Number of earlier owners.
        owner: Uid of the owner's Lease, or empty.
        successor: Uid of the Lease of the next owner during a hand-over, or empty.
        ready: True if the caches of the successor are complete. The owner then stops its work in the range.
    """

    start: int
    end: int
    epoch: int = 0
    owner: str = ""
    successor: str = ""
    ready: bool = False

    @property
    def name(self) -> str:
        return range_name(self.start)

    def given_to(self, member: str) -> ShardRange:
        """Return the range with a new owner, without a hand-over."""
        return ShardRange(self.start, self.end, self.epoch + 1, member)

    def moving_to(self, member: str) -> ShardRange:
        """Return the range with this successor, or without one if it is empty."""
        return ShardRange(self.start, self.end, self.epoch, self.owner, member)


class _Text(msgspec.Struct):
    ranges: list[tuple[str, int, str, str, bool]]


@final
class ShardMap(msgspec.Struct, frozen=True):
    """Ranges in ascending order, which cover the hash space without gaps.

    A map changes by compare-and-swap only. Each change follows one rule of this list, so a range never has two owners:

    1. The owner gives its range to the successor, after its work in the range has ended.
    2. A member gives away the range of an owner without a Lease, at the earliest one lease duration after its renewal.
    3. A member sets or clears a successor, and the successor sets ``ready``.
    4. A member splits a range without successor, or merges neighbors with the same owner and without successors.
    """

    ranges: tuple[ShardRange, ...]

    @classmethod
    def of_equal_ranges(cls, number: int) -> ShardMap:
        """Return a map without owners."""
        bounds = [HASH_SPACE * place // number for place in range(number + 1)]
        return cls(tuple(ShardRange(start, end) for start, end in pairwise(bounds)))

    @classmethod
    def decode(cls, text: str) -> ShardMap:
        """Decode the stored form.

        Raises:
            InvalidShardMapError: If the text is not a map, or the ranges do not cover the hash space once.
        """
        try:
            rows = msgspec.json.decode(text, type=_Text).ranges
            starts = [int(row[0], 16) for row in rows]
        except (msgspec.MsgspecError, ValueError) as error:
            raise InvalidShardMapError(str(error)) from None
        bounds = [*starts, HASH_SPACE]
        if bounds[0] != 0:
            raise InvalidShardMapError("the first range must start at 0")
        ranges: list[ShardRange] = []
        for (start, end), (_, epoch, owner, successor, ready) in zip(pairwise(bounds), rows, strict=True):
            if start >= end:
                raise InvalidShardMapError(f"the range from {start:#x} must end after its start")
            ranges.append(ShardRange(start, end, epoch, owner, successor, ready))
        return cls(tuple(ranges))

    def encode(self) -> str:
        """Return the stored form: JSON with one row for each range."""
        rows = [(each.name, each.epoch, each.owner, each.successor, each.ready) for each in self.ranges]
        return msgspec.json.encode(_Text(rows)).decode()

    def find(self, number: int) -> ShardRange:
        return self.ranges[bisect_right(self.ranges, number, key=_start) - 1]

    def owned_by(self, member: str) -> Iterator[ShardRange]:
        return (each for each in self.ranges if each.owner == member and not each.ready)

    def replace(self, change: Callable[[ShardRange], Iterable[ShardRange]]) -> ShardMap:
        return ShardMap(tuple(new for each in self.ranges for new in change(each)))


def _start(each: ShardRange) -> int:
    return each.start
