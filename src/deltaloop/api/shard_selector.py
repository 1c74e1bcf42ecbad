"""Shard selectors: parts of the hash space of uids or namespaces (KEP-5866).

Source: apimachinery pkg/sharding (hash.go, selector.go).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final, Literal, Protocol, TypeAlias, final

from deltaloop.api.errors import InvalidSelectorError
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import WatchEvent

ShardField: TypeAlias = Literal["uid", "namespace", "name", "label"]

HASH_SPACE: Final = 2**64
_OFFSET_BASIS: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = HASH_SPACE - 1


def shard_hash(value: str) -> int:
    """Return the hash of a uid or a namespace: FNV-1a with 64 bits of the UTF-8 bytes."""
    number = _OFFSET_BASIS
    for byte in value.encode():
        number = (number ^ byte) * _PRIME & _MASK
    return number


_namespace_hash: Final = lru_cache(65_536)(shard_hash)


def subtracted(ranges: Iterable[tuple[int, int]], others: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of ranges that are in no other range, in ascending order."""
    left = sorted(ranges)
    for start, end in others:
        left = [
            part for low, high in left for part in ((low, min(high, start)), (max(low, end), high)) if part[0] < part[1]
        ]
    return left


def label_hash(obj: Resource, label: str) -> int:
    """Return the hash of a label's value, or else of the namespace, or else of the name."""
    value = obj.labels.get(label)
    return _namespace_hash(obj.namespace or obj.name if value is None else value)


class ShardFollower(Protocol):
    """Receiver of all objects of a reflector, which decides about storing them."""

    def listed(self, obj: Resource, *, selected: bool, whole: bool) -> bool: ...

    def replaced(self, keys: Collection[str]) -> None: ...

    def follow(self, event: WatchEvent, *, selected: bool) -> WatchEvent | None: ...


def selects_namespace(selector: ShardSelector, namespace: str) -> bool:
    """Return whether a selector by namespace selects the objects of a namespace."""
    return bisect_right(selector._bounds, _namespace_hash(namespace)) % 2 == 1  # noqa: SLF001 - of this module


@final
class ShardSelector:
    """Ranges of hashes, in which an object is selected by the hash of its uid, namespace, key, or label.

    ``str()`` returns the query parameter ``shardSelector``. It is empty for ``name`` and ``label``, without support by
    servers.

    Attributes:
        field: Hashed field: ``uid``, ``namespace``, ``name`` for the namespace and name, or ``label``.
        ranges: Pairs of an inclusive lower bound and an exclusive upper bound, from 0 to 2**64.
    """

    __slots__ = ("_bounds", "_label", "field", "follower", "ranges")

    def __init__(
        self,
        field: ShardField,
        ranges: Sequence[tuple[int, int]],
        *,
        label: str = "",
        follower: ShardFollower | None = None,
    ) -> None:
        """Check the bounds. ``label`` is the key of the hashed label.

        Raises:
            InvalidSelectorError: If the field is unknown, or a range is missing, empty or outside the hash space.
        """
        if field not in ("uid", "namespace", "name", "label"):
            raise InvalidSelectorError(
                f'ShardSelector.field must be "uid", "namespace", "name" or "label", got {field!r}'
            )
        if (field == "label") != bool(label):
            raise InvalidSelectorError('ShardSelector.label must be set if field is "label", and only then')
        if not ranges:
            raise InvalidSelectorError(
                "ShardSelector.ranges must contain a range, got none. Omit the selector to select all"
            )
        for start, end in ranges:
            if not 0 <= start < end <= HASH_SPACE:
                raise InvalidSelectorError(
                    f"each range must satisfy 0 <= start < end <= 2**64, got ({start:#x}, {end:#x})"
                )
        self.field: ShardField = field
        self.follower: ShardFollower | None = follower
        self._label = label
        self.ranges: tuple[tuple[int, int], ...] = tuple(ranges)
        bounds: list[int] = []
        for start, end in sorted(self.ranges):
            if bounds and start <= bounds[-1]:
                bounds[-1] = max(bounds[-1], end)
            else:
                bounds += start, end
        self._bounds = bounds

    def matches(self, obj: Resource) -> bool:
        """Return whether the hash of the object's field is in a range."""
        if self.field == "namespace":
            number = _namespace_hash(obj.namespace)
        elif self._label:
            number = label_hash(obj, self._label)
        else:
            number = shard_hash(obj.uid if self.field == "uid" else obj.key)
        return bisect_right(self._bounds, number) % 2 == 1

    def without(self, other: ShardSelector) -> ShardSelector | None:
        """Return the parts outside of another selector of the same field, or None without such parts."""
        left = subtracted(self.ranges, other.ranges)
        return ShardSelector(self.field, left, label=self._label, follower=self.follower) if left else None

    def __str__(self) -> str:
        if self.field in ("name", "label"):
            return ""
        return " || ".join(
            f"shardRange(object.metadata.{self.field}, '{start:#018x}', '{end:#018x}')" for start, end in self.ranges
        )

    def __repr__(self) -> str:
        return f"ShardSelector({self.field!r}, {list(self.ranges)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShardSelector):
            return NotImplemented
        return (self.field, self._label, self.ranges) == (other.field, other._label, other.ranges)

    def __hash__(self) -> int:
        return hash((self.field, self._label, self.ranges))
