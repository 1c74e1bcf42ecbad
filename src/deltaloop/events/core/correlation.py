"""What to do with an event: send it, count it into the one that was sent before, or drop it.

Theory
------
Every event passes three steps; each keeps the last 4096 keys, so that memory is bounded.

1. Aggregate. Similar events differ in the message only. From the tenth different message within ten minutes of the one
   before on, they become one event, ``(combined from similar events): <message>``, because what varies in the message
   (a time, an address) would make each of them new.
2. Count. An event that was seen before becomes an update of that one: count + 1, the last time, and the message.
3. Spam filter. Each source may send 25 events about one object, and one more each five minutes.

The count moves on even for an event that the filter drops, as upstream.

Source: client-go tools/record/events_cache.go.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeAlias, TypeVar

from deltaloop.api.references import ObjectReference
from deltaloop.api.times import WallTime
from deltaloop.pacing import TokenBucket
from deltaloop.pacing.checks import require_positive

V = TypeVar("V")

COMBINED_PREFIX: Final = "(combined from similar events): "
MESSAGE_LIMIT: Final = 1024

Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelatorOptions:
    """The numbers of the correlation; the defaults are upstream's.

    Attributes:
        cache_size: How many keys each step remembers.
        similar_limit: From how many different messages on similar events are combined.
        similar_interval: Seconds without a similar event after which their messages are forgotten.
        spam_burst: Events that a source may send about one object at once.
        spam_rate: Events a second that it gains.
    """

    cache_size: int = 4096
    similar_limit: int = 10
    similar_interval: float = 600.0
    spam_burst: int = 25
    spam_rate: float = 1 / 300

    def __post_init__(self) -> None:
        """Refuse numbers that make no limit."""
        require_positive(
            "CorrelatorOptions",
            cache_size=self.cache_size,
            similar_limit=self.similar_limit,
            similar_interval=self.similar_interval,
            spam_burst=self.spam_burst,
            spam_rate=self.spam_rate,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """An event on its way to the server.

    Attributes:
        name: Name of the Event object.
        namespace: Its namespace.
        reference: The object that it is about.
        type: ``Normal`` or ``Warning``.
        reason: Why, as one word in CamelCase.
        message: What happened, for people.
        component: Who reports.
        instance: Which one of them.
        first_at: When it happened first, by the wall clock.
        last_at: When it happened last.
        count: How often.
        related: Another object that has to do with it.
    """

    name: str
    namespace: str
    reference: ObjectReference
    type: str
    reason: str
    message: str
    component: str
    instance: str
    first_at: WallTime
    last_at: WallTime
    count: int = 1
    related: ObjectReference | None = None


@dataclass(frozen=True, slots=True)
class Correlated:
    """An event to send.

    Attributes:
        event: The event as it should stand on the server.
        is_update: Whether it stands there already, and count, last time and message are to be patched.
    """

    event: EventDraft
    is_update: bool


class EventCorrelator:
    """The state of one recorder. Not safe for several threads; its owner calls it from one task.

    Open to subclasses so that tests can seed bugs; nothing else derives from it.
    """

    def __init__(self, options: CorrelatorOptions | None = None) -> None:
        """Begin with nothing seen."""
        self._options = options if options is not None else CorrelatorOptions()
        size = self._options.cache_size
        self._similar: _Lru[_Similar] = _Lru(size)
        self._sent: _Lru[_Sent] = _Lru(size)
        self._buckets: _Lru[TokenBucket] = _Lru(size)

    def correlate(self, event: EventDraft, now: float) -> Correlated | None:
        """Decide about one event; None drops it.

        Args:
            event: The event as it happened, with count 1.
            now: Seconds on a clock that never goes back.
        """
        combined, key = self._aggregate(event, now)
        counted = self._count(combined, key)
        return counted if self._bucket(event).try_take(now) else None

    def _aggregate(self, event: EventDraft, now: float) -> tuple[EventDraft, Key]:
        key = _similar_key(event)
        similar = self._similar.get(key)
        if similar is None or now - similar.last_at > self._options.similar_interval:
            similar = _Similar()
        messages = similar.messages
        messages[event.message] = None
        similar.last_at = now
        self._similar.put(key, similar)
        if len(messages) < self._options.similar_limit:
            return event, (*key, event.reference.field_path, event.message)
        messages.popitem(last=False)  # do not grow any further
        message = (COMBINED_PREFIX + event.message)[:MESSAGE_LIMIT]
        return replace(event, message=message), key

    def _count(self, event: EventDraft, key: Key) -> Correlated:
        sent = self._sent.get(key)
        is_update = sent is not None
        if sent is not None:
            event = replace(event, name=sent.name, first_at=sent.first_at, count=sent.count + 1)
        self._sent.put(key, _Sent(event.name, event.first_at, event.count))
        return Correlated(event, is_update)

    def _bucket(self, event: EventDraft) -> TokenBucket:
        key = (event.component, event.instance, *_object_key(event.reference))
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = TokenBucket(rate=self._options.spam_rate, burst=self._options.spam_burst)
        self._buckets.put(key, bucket)
        return bucket


@dataclass(slots=True)
class _Similar:
    messages: OrderedDict[str, None] = field(default_factory=OrderedDict[str, None])
    last_at: float = 0.0


@dataclass(frozen=True, slots=True)
class _Sent:
    name: str
    first_at: WallTime
    count: int


class _Lru(Generic[V]):
    """The last ``size`` keys that were used."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[Key, V] = OrderedDict()

    def get(self, key: Key) -> V | None:
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key]

    def put(self, key: Key, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)


def _object_key(reference: ObjectReference) -> Key:
    return (reference.api_version, reference.kind, reference.namespace, reference.name, reference.uid)


def _similar_key(event: EventDraft) -> Key:
    related = _object_key(event.related) if event.related is not None else ()
    return (
        event.component,
        event.instance,
        *_object_key(event.reference),
        event.type,
        event.reason,
        *related,
    )
