"""Sets of hashes, and the hashes of keys."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal, TypeAlias, final

from deltaloop.api.shard_selector import shard_hash

ShardKey: TypeAlias = Literal["namespace", "name", "label"]
"""Hashed part: the namespace, the namespace and name, or a label. Cluster-scoped objects have no namespace."""

_hash: Final = lru_cache(65_536)(shard_hash)


def number_of(key: str, by: ShardKey) -> int:
    """Return the hash of a key of the work queue."""
    namespace, slash, _ = key.partition("/")
    return _hash(namespace) if slash and by == "namespace" else _hash(key)


@final
class KeyRanges:
    """Set of hashes, which adjacent ranges extend without a gap.

    Attributes:
        bounds: Ranges in ascending order, from the first hash to the hash after the last.
    """

    __slots__ = ("_flat", "bounds")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        flat: list[int] = []
        for start, end in sorted(ranges):
            if flat and start <= flat[-1]:
                flat[-1] = max(flat[-1], end)
            else:
                flat += (start, end)
        self._flat = flat
        self.bounds: tuple[tuple[int, int], ...] = tuple(zip(flat[::2], flat[1::2], strict=True))

    def __contains__(self, number: int) -> bool:
        return bisect_right(self._flat, number) % 2 == 1

    def covers(self, start: int, end: int) -> bool:
        place = bisect_right(self._flat, start)
        return place % 2 == 1 and end <= self._flat[place]

    def common(self, other: KeyRanges) -> KeyRanges:
        found: list[tuple[int, int]] = []
        place, others = 0, other.bounds
        for start, end in self.bounds:
            while place < len(others) and others[place][0] < end:
                low, high = others[place]
                if start < high:
                    found.append((max(start, low), min(end, high)))
                if high > end:
                    break  # it can overlap the next range as well
                place += 1
        return KeyRanges(found)

    def __eq__(self, other: object) -> bool:
        return self.bounds == other.bounds if isinstance(other, KeyRanges) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.bounds)

    def __bool__(self) -> bool:
        return bool(self._flat)
