"""What to do with a core/v1 event: send it, count it into the one that was sent before, or drop it.

Theory
------
Every event passes three steps; each keeps the last 4096 keys, so that memory is bounded.

1. Aggregate. Similar events differ in the message only. From the tenth different message within ten minutes of the one
   before on, they become one event, ``(combined from similar events): <message>``, because what varies in the message
   (a time, an address) would make each of them new.
2. Count. An event that was seen before becomes an update of that one: count + 1, the last time, and the message.
3. Spam filter. Each source may send 25 events of one type about one object, and one more each five minutes. Normal
   events therefore never use up what the Warnings may send.

The count moves on even for an event that the filter drops, as upstream.

Source: client-go tools/record/events_cache.go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, final

from deltaloop._internal.option_types import check_types
from deltaloop._internal.pacing import TokenBucket
from deltaloop._internal.pacing.checks import require_positive
from deltaloop.api.references import ObjectReference
from deltaloop.api.times import WallTime
from deltaloop.events.core.draft import Correlated, EventDraft
from deltaloop.events.core.recent import Recent

COMBINED_PREFIX: Final = "(combined from similar events): "
MESSAGE_LIMIT: Final = 1024

Key: TypeAlias = tuple[str, ...]


def object_key(reference: ObjectReference) -> Key:
    """Return what tells one object from another; not its version, and not the part of it that is meant."""
    return (reference.api_version, reference.kind, reference.namespace, reference.name, reference.uid)


def similar_key(event: EventDraft) -> Key:
    """Return what similar events have in common: all but the message. Source: ``EventAggregatorByReasonFunc``."""
    related = object_key(event.related) if event.related is not None else ()
    return (event.component, event.instance, *object_key(event.reference), event.type, event.reason, *related)


def combined_message(event: EventDraft) -> str:
    """Return the message of a combined event. Source: ``EventAggregatorByReasonMessageFunc``."""
    return COMBINED_PREFIX + event.message


def spam_key(event: EventDraft) -> Key:
    """Return what shares one limit of the spam filter: source, object and type. Source: ``getSpamKey``."""
    return (event.component, event.instance, *object_key(event.reference), event.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelatorOptions:
    """The numbers of the correlation of core/v1 events; the defaults are upstream's.

    Attributes:
        cache_size: How many keys each step remembers.
        similar_limit: From how many different messages on similar events are combined.
        similar_interval: Seconds without a similar event after which their messages are forgotten.
        spam_burst: Events that a source may send about one object at once.
        spam_rate: Events a second that the bucket of one source gains.
        similar_key: Returns the key that similar events share, so that they are combined.
        combined_message: The message of a combined event; it is cut to 1024 characters.
        spam_key: What shares one limit of the spam filter.
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
        """Refuse numbers that make no limit."""
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
    """The state of one recorder. Not safe for several threads; its owner calls it from one task."""

    def __init__(self, options: CorrelatorOptions | None = None) -> None:
        """Begin with nothing seen."""
        self._options = options if options is not None else CorrelatorOptions()
        size = self._options.cache_size
        self._similar: Recent[Key, _Similar] = Recent(size)
        self._sent: Recent[Key, _Sent] = Recent(size)
        self._buckets: Recent[Key, TokenBucket] = Recent(size)

    def correlate(self, event: EventDraft, now: float) -> Correlated | None:
        """Decide about one event; None drops it.

        Args:
            event: The event as it happened; its count is 1, or more if it comes from a series.
            now: Seconds on a clock that never goes back.
        """
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
        messages.popitem(last=False)  # do not grow any further
        message = self._options.combined_message(event)[:MESSAGE_LIMIT]
        # Annotations were those of one event; upstream leaves them out here, too.
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
