"""What becomes of an event that is reported again and again, in both APIs, and how one is delivered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, datetime

from tools.diagrams.model import Diagram, Machine, Move, walked

from deltaloop.api.references import ObjectReference
from deltaloop.api.status import AlreadyExistsError, ApiError, ForbiddenError, NotFoundError, Status
from deltaloop.events.core.correlation import COMBINED_PREFIX, CorrelatorOptions, EventCorrelator
from deltaloop.events.core.delivery import Delivery, EventWrite, Sleep
from deltaloop.events.core.draft import Correlated, EventDraft
from deltaloop.events.core.series import EventSeriesCache, SeriesOptions

SMALL = CorrelatorOptions(similar_limit=3, spam_burst=5)
"""The default numbers (10 and 25) have the same states, and more ways between them."""

MOST_EVENTS = 7
WALL = datetime(2026, 1, 1, tzinfo=UTC)
REFERENCE = ObjectReference(kind="Pod", namespace="default", name="web")


SERIES = SeriesOptions()


def _draft(message: str, number: int) -> EventDraft:
    return EventDraft(
        name=f"web.{number}",
        namespace="default",
        reference=REFERENCE,
        type="Warning",
        reason="BackOff",
        message=message,
        component="kubelet",
        instance="n1",
        first_at=WALL,
        last_at=WALL,
    )


class _Source:
    def __init__(self) -> None:
        self.correlator = EventCorrelator(SMALL)
        self.messages = 0
        self.events = 0
        self.now = 0.0
        self.seen_as = "no event yet"

    def event(self, message: int) -> None:
        self.events += 1
        self.messages = max(self.messages, message)
        correlated = self.correlator.correlate(_draft(f"message {message}", self.events), self.now)
        if correlated is None:
            self.seen_as = "dropped: too many events of the source"
            return
        combined = correlated.event.message.startswith(COMBINED_PREFIX)
        what = "combined event" if combined else "event"
        self.seen_as = f"{what}: counted and patched" if correlated.is_update else f"{what}: created"

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.events = 0


def _identity(source: _Source) -> Hashable:
    return source.seen_as, source.messages, source.events, source.now


def _moves(source: _Source) -> Iterable[Move[_Source]]:
    if source.events < MOST_EVENTS and source.messages < MOST_EVENTS:
        if source.messages:
            yield "the last message again", _event(source.messages)
        yield "another message", _event(source.messages + 1)
    if source.events == MOST_EVENTS and not source.now:
        wait = 1 / SMALL.spam_rate + SMALL.similar_interval
        yield "15 minutes without an event", lambda source: source.wait(wait)


def _event(message: int) -> Callable[[_Source], object]:
    return lambda source: source.event(message)


# -- events.k8s.io/v1: a series


class _Series:
    def __init__(self) -> None:
        self.cache = EventSeriesCache()
        self.now = 0.0
        self.count = 0
        self.written: list[Correlated] = []

    def event(self) -> None:
        self.count = 0 if self.state == "no event" else self.count
        self.count += 1
        self.written = self.cache.record(_draft("the same", self.count), self.now)

    def end(self) -> None:
        self.now += SERIES.finish_after
        self.written = self.cache.due(self.now)

    def go_on(self) -> None:
        """Bring a repeat again and again, until the count has been written once more."""
        self.written = []
        while not self.written:
            self.now += SERIES.finish_after / 2
            self.event()

    def flush(self) -> None:
        self.cache.take_unwritten(self.now)

    @property
    def state(self) -> str:
        if not len(self.cache):
            return "no event"
        if self.count == 1:
            return "single event, written"
        return "series with an unwritten count" if self.cache.unwritten else "series, count written"


def _series_identity(series: _Series) -> Hashable:
    return series.state, min(series.count, 4)


def _series_moves(series: _Series) -> Iterable[Move[_Series]]:
    yield "the event occurs", lambda series: series.event()
    if len(series.cache):
        minutes = f"{SERIES.finish_after / 60:.0f} minutes"
        yield f"{minutes} without a repeat", lambda series: series.end()
    if series.count > 1 and len(series.cache):
        half_hour = f"{SERIES.refresh_interval / 60:.0f} minutes"
        yield f"repeats for {half_hour}: the current count is written", lambda series: series.go_on()
    if series.cache.unwritten:
        yield "`flush`: the count is written", lambda series: series.flush()


# -- delivery of one event


class _Delivered:
    def __init__(self, *, is_update: bool) -> None:
        self.delivery = Delivery(is_update=is_update, max_tries=3, retry_delay=10.0)
        self.request: object = None

    @property
    def state(self) -> str:
        effect = self.delivery.ask()
        if isinstance(effect, EventWrite):
            return f"{effect.value} in progress"
        return "waiting" if isinstance(effect, Sleep) else f"over: {effect.value}"

    def failed(self, error: Exception, *, closing: bool = False) -> None:
        self.request = self.delivery.ask()
        self.delivery.failed(error, random=0.5, closing=closing)


def _delivered_identity(delivered: _Delivered) -> Hashable:
    return delivered.state, delivered.delivery.tries, delivered.request


def _refusal(error: type[ApiError], code: int) -> ApiError:
    return error(Status(code=code))


def _delivered_moves(delivered: _Delivered) -> Iterable[Move[_Delivered]]:
    effect = delivered.delivery.ask()
    if isinstance(effect, Sleep):
        yield "the wait ends", lambda delivered: delivered.delivery.waited()
    if not isinstance(effect, EventWrite):
        return
    yield "success", lambda delivered: delivered.delivery.sent()
    yield "no response", lambda delivered: delivered.failed(OSError())
    yield "no response while the recorder closes", lambda delivered: delivered.failed(OSError(), closing=True)
    yield "403 or another rejection", lambda delivered: delivered.failed(_refusal(ForbiddenError, 403))
    if effect is EventWrite.PATCH:
        yield "404: it does not exist", lambda delivered: delivered.failed(_refusal(NotFoundError, 404))
    else:
        yield "409: it already exists", lambda delivered: delivered.failed(_refusal(AlreadyExistsError, 409))


def diagrams() -> list[Diagram]:
    """Walk one source that reports on one object, one series, and one delivery."""
    return [
        walked(
            "event-correlation",
            "events",
            "The last of several similar events",
            "events/core/correlation.py",
            Machine(_Source, _moves, view=lambda source: source.seen_as, identity=_identity),
        ),
        walked(
            "event-series",
            "events",
            "A series of events.k8s.io",
            "events/core/series.py",
            Machine(_Series, _series_moves, view=lambda series: series.state, identity=_series_identity),
        ),
        walked(
            "event-delivery",
            "events",
            "The delivery of a repeated event",
            "events/core/delivery.py",
            Machine(
                lambda: _Delivered(is_update=True),
                _delivered_moves,
                view=lambda delivered: delivered.state,
                identity=_delivered_identity,
            ),
        ),
    ]
