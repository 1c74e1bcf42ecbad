"""Share of one member: the keys that it may reconcile, and the guard of their writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, final

from deltaloop.leaderelection.guard import LeadershipLostError
from deltaloop.sharding.core.key_ranges import KeyRanges, ShardKey, number_of
from deltaloop.sharding.core.label_keys import LabelKeys
from deltaloop.sharding.core.reconcile_time import ReconcileTime

if TYPE_CHECKING:
    from deltaloop.sharding.core.shard_map import ShardRange


class RangeNotOwnedError(LeadershipLostError):
    """This process no longer owns the range of a key, and must not write on its behalf.

    Attributes:
        key: Reconciled key.
        member: Identity of this member.
    """

    def __init__(self, key: str, member: str, action: str) -> None:
        super().__init__(f"{action} rejected: {member} no longer owns the range of {key}", lock="", identity=member)
        self.key = key
        self.member = member


@final
class Share:
    """Keys of one member.

    Use it on the event loop of the member, except ``owns`` and ``covers``.

    Attributes:
        by: Hashed part of a key.
        member: Identity of the member.
        held: Hashes for which the caches are complete.
        owned: Hashes of the keys that the member may reconcile.
        time: Reconcile time by hash.
        labels: Keys by label, or None.
    """

    def __init__(
        self, by: ShardKey, *, member: str, settling: float, clock: Callable[[], float], label: str = ""
    ) -> None:
        """Create an empty share.

        Args:
            by: Hashed part of a key.
            label: Key of the label.
            member: Identity of the member, for errors.
            settling: Longest time in seconds between the start of a request and its arrival.
            clock: Monotonic clock in seconds.
        """
        self.by: ShardKey = by
        self.member = member
        self.held: KeyRanges = KeyRanges()
        self.owned: KeyRanges = KeyRanges()
        self.time: ReconcileTime = ReconcileTime(clock())
        self.is_valid: Callable[[], bool] = lambda: False
        """Function that returns whether the Lease of the member is valid."""
        self.range_name: Callable[[str], str] = lambda _: ""
        """Function that returns the name of a key's range for log records."""
        self._settling = settling
        self._clock = clock
        self._finishing = KeyRanges()
        self._writes: Counter[str] = Counter()
        self._unknown: dict[str, float] = {}
        self.labels: LabelKeys | None = LabelKeys(label, is_busy=self._is_busy) if by == "label" else None
        self.is_running: Callable[[str], bool] = lambda _: False

    def number_of(self, key: str) -> int:
        return number_of(key, self.by) if self.labels is None else self.labels.number_of(key)

    def is_in(self, key: str, each: ShardRange) -> bool:
        if self.labels is None:
            return each.start <= number_of(key, self.by) < each.end
        return any(each.start <= number < each.end for number in self.labels.numbers_of(key))

    def owns(self, key: str) -> bool:
        """Return whether the member may begin a reconcile of a key."""
        return self.number_of(key) in self.owned and self.is_valid() and self.may_begin(key)

    def may_begin(self, key: str) -> bool:
        return self.labels is None or self.labels.may_begin(key)

    def covers(self, namespace: str | None, name: str | None) -> bool:
        """Return whether the caches contain an object, or a complete namespace if ``name`` is None."""
        if self.by == "namespace" and namespace:
            return number_of(f"{namespace}/", "namespace") in self.held
        return bool(name) and self.number_of(f"{namespace}/{name}" if namespace else str(name)) in self.held

    def change(self, owned: Iterable[ShardRange], finishing: Iterable[ShardRange]) -> None:
        """Set the ranges in which reconciles may begin, and those in which they end."""
        own = [(each.start, each.end) for each in owned]
        self.owned = KeyRanges(own)
        self._finishing = KeyRanges([*own, *((each.start, each.end) for each in finishing)])

    def loses(self, key: str) -> bool:
        """Return whether a running reconcile of a key must stop, because the range has another owner."""
        if self.labels is None:
            return number_of(key, self.by) not in self._finishing
        return not any(number in self._finishing for number in self.labels.numbers_of(key))

    def guard(self, key: str) -> KeyGuard:
        return KeyGuard(self, key)

    def writes_until(self, each: ShardRange) -> float:
        """Return the time until which a write of a range can arrive: infinity during a request, else -infinity."""
        if any(self.is_in(key, each) for key in self._writes):
            return float("inf")
        now = self._clock()
        self._unknown = {key: until for key, until in self._unknown.items() if until > now}
        return max((at for key, at in self._unknown.items() if self.is_in(key, each)), default=-float("inf"))

    def _is_busy(self, key: str) -> bool:
        return self.is_running(key) or key in self._writes or self._unknown.get(key, -float("inf")) > self._clock()

    def began(self, key: str, action: str) -> None:
        if self.loses(key) or not self.is_valid():
            raise RangeNotOwnedError(key, self.member, action)
        self._writes[key] += 1

    def ended(self, key: str, *, unknown: bool) -> None:
        self._writes[key] -= 1
        if not self._writes[key]:
            del self._writes[key]
        if unknown:
            self._unknown[key] = self._clock() + self._settling


@final
class KeyGuard:
    """Guard of the writes of one reconcile. A client calls it before and after each request."""

    __slots__ = ("_key", "_share")

    def __init__(self, share: Share, key: str) -> None:
        self._share = share
        self._key = key

    def began(self, action: str) -> None:
        """Check that a write is allowed.

        Raises:
            RangeNotOwnedError: If the member does not own the range of the key.
        """
        self._share.began(self._key, action)

    def ended(self, *, unknown: bool) -> None:
        """Record the end of a write. ``unknown`` means that the server may still process it."""
        self._share.ended(self._key, unknown=unknown)
