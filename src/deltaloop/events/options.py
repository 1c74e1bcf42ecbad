"""What an ``EventRecorder`` is told, and what it needs of a client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from deltaloop._internal.option_types import check_types
from deltaloop._internal.pacing.checks import require_positive
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.events.core.correlation import CorrelatorOptions
from deltaloop.events.core.draft import EventApi
from deltaloop.events.core.series import SeriesOptions


class EventClient(Protocol):
    """What the recorder needs of a client."""

    async def create(
        self,
        resource_type: ResourceType[Resource],
        obj: Mapping[str, Any],
        /,
        *,
        namespace: str | None = None,
    ) -> Resource:
        """Create one object."""
        ...

    async def patch(
        self,
        resource_type: ResourceType[Resource],
        name: str,
        patch: Mapping[str, Any],
        /,
        *,
        namespace: str | None = None,
    ) -> Resource:
        """Apply a merge patch to one object."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecorderOptions:
    """Options of an ``EventRecorder``; the defaults are client-go's.

    Attributes:
        api: Which API the events are written in. ``EVENTS_V1`` changes over to ``CORE_V1`` where it is not served.
        queue_size: Events that may wait to be sent; more are dropped.
        max_tries: Tries for one event that gets no answer.
        retry_delay: Seconds between two tries; core/v1 waits a random part of it first, events.k8s.io up to a quarter
            longer each time.
        close_timeout: Seconds that leaving the context takes at most.
        correlation: How core/v1 events are counted, combined and limited by the spam filter.
        series: How events.k8s.io/v1 events are counted as a series.
    """

    api: EventApi = EventApi.CORE_V1
    queue_size: int = 1000
    max_tries: int = 12
    retry_delay: float = 10.0
    close_timeout: float = 5.0
    correlation: CorrelatorOptions = field(default_factory=CorrelatorOptions)
    series: SeriesOptions = field(default_factory=SeriesOptions)

    def __post_init__(self) -> None:
        """Refuse an API that there is not, and numbers that make no limit; the API's name as text does, too."""
        object.__setattr__(self, "api", EventApi(self.api))
        check_types(self)
        require_positive(
            "EventRecorderOptions",
            queue_size=self.queue_size,
            max_tries=self.max_tries,
            retry_delay=self.retry_delay,
            close_timeout=self.close_timeout,
        )
