"""Decide whether to create a core/v1 event, count it into an existing one, or drop it.

1. **Aggregate.** Similar events differ only in their messages. From the tenth different message on, they become one
   event, ``(combined from similar events): <message>``. The messages are forgotten after ten minutes without an event.
2. **Count.** An event that was seen before becomes an update with a new count, last time and message.
3. **Spam filter.** For each source, object and type, the burst is 25 events, and one more is allowed every five
   minutes. Normal events therefore do not use up the limit for Warnings.

As in client-go, the count also includes events that the filter drops. Each step keeps at most ``cache_size`` keys.

Source: client-go tools/record/events_cache.go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeAlias, TypeVar, final

from msgspec.structs import replace

from deltaloop._internal.option_types import check_types
from deltaloop._internal.pacing import TokenBucket
from deltaloop._internal.pacing.checks import require_positive
from deltaloop.api.references import ObjectReference
from deltaloop.api.times import WallTime
from deltaloop.events.core.draft import Correlated, EventDraft

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key]

    def put(self, key: K, value: V) -> None:
        """Store a value, and evict the least recently used keys if the mapping is full."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)


COMBINED_PREFIX: Final = "(combined from similar events): "
MESSAGE_LIMIT: Final = 1024

Key: TypeAlias = tuple[str, ...]


def object_key(reference: ObjectReference) -> Key:
    """Return the identity of an object, without its version and field path."""
    return (reference.api_version, reference.kind, reference.namespace, reference.name, reference.uid)


def similar_key(event: EventDraft) -> Key:
    """Return the key that similar events share, which excludes the message. Source: ``EventAggregatorByReasonFunc``."""
    related = object_key(event.related) if event.related is not None else ()
    return (event.component, event.instance, *object_key(event.reference), event.type, event.reason, *related)


def combined_message(event: EventDraft) -> str:
    """Return the message of a combined event. Source: ``EventAggregatorByReasonMessageFunc``."""
    return COMBINED_PREFIX + event.message


def spam_key(event: EventDraft) -> Key:
    """Return the key of a spam limit: source, object and type. Source: ``getSpamKey``."""
    return (event.component, event.instance, *object_key(event.reference), event.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelatorOptions:
    """Options for the correlation of core/v1 events.

    The defaults are those of client-go.

    Attributes:
        cache_size: Number of keys that each step keeps.
        similar_limit: Number of different messages from which similar events are combined.
        similar_interval: Seconds without a similar event after which their messages are forgotten.
        spam_burst: Number of events that a source can send about one object at once.
        spam_rate: Events per second that a source can send about one object after the burst.
        similar_key: Function that returns the key of similar events.
        combined_message: Function that returns the message of a combined event. It is truncated to 1024 characters.
        spam_key: Function that returns the key of a spam limit.
    """

    cache_size: int = 4096
    similar_limit: int = 10
    similar_interval: float = 600.0
    spam_burst: int = 25
    spam_rate: float = 1 / 300
    similar_key: Callable[[EventDraft], Key] = similar_key
    combined_message: Callable[[EventDraft], str] = combined_message
    spam_key: Callable[[EventDraft], Key] = spam_key

    def __post_init__(self) -> None:
        check_types(self)
        require_positive(
            "CorrelatorOptions",
            cache_size=self.cache_size,
            similar_limit=self.similar_limit,
            similar_interval=self.similar_interval,
            spam_burst=self.spam_burst,
            spam_rate=self.spam_rate,
        )


@final
class EventCorrelator:
    """Correlation state of one recorder. It is not thread-safe."""

    def __init__(self, options: CorrelatorOptions | None = None) -> None:
        self._options = options if options is not None else CorrelatorOptions()
        size = self._options.cache_size
        self._similar: Recent[Key, _Similar] = Recent(size)
        self._sent: Recent[Key, _Sent] = Recent(size)
        self._buckets: Recent[Key, TokenBucket] = Recent(size)

    def correlate(self, event: EventDraft, now: float) -> Correlated | None:
        """Return the event to send, or None to drop it; ``now`` is in monotonic seconds."""
        combined, key = self._aggregate(event, now)
        counted = self._count(combined, key)
        return counted if self._bucket(event).try_take(now) else None

    def _aggregate(self, event: EventDraft, now: float) -> tuple[EventDraft, Key]:
        key = self._options.similar_key(event)
        similar = self._similar.get(key)
        if similar is None or now - similar.last_at > self._options.similar_interval:
            similar = _Similar()
        messages = similar.messages
        messages[event.message] = None
        similar.last_at = now
        self._similar.put(key, similar)
        if len(messages) < self._options.similar_limit:
            return event, ("one", *similar_key(event), event.reference.field_path, event.message)
        messages.popitem(last=False)  # limit the size
        message = self._options.combined_message(event)[:MESSAGE_LIMIT]
        # The annotations belong to a single event. Upstream also omits them.
        return replace(event, message=message, annotations={}), ("combined", *key)

    def _count(self, event: EventDraft, key: Key) -> Correlated:
        sent = self._sent.get(key)
        is_update = sent is not None
        if sent is not None:
            event = replace(event, name=sent.name, first_at=sent.first_at, count=sent.count + event.count)
        self._sent.put(key, _Sent(event.name, event.first_at, event.count))
        return Correlated(event, is_update)

    def _bucket(self, event: EventDraft) -> TokenBucket:
        key = self._options.spam_key(event)
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
