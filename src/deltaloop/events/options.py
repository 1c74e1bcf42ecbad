"""Options of ``EventRecorder``, and the client interface that it requires."""

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
    """Client interface that the recorder requires."""

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
    """Options of an ``EventRecorder``. The defaults are those of client-go.

    Attributes:
        api: API for writing events. ``EVENTS_V1`` falls back to ``CORE_V1`` if the server does not serve it.
        queue_size: Maximum number of queued events. Further events are dropped.
        max_tries: Maximum number of attempts for one event if the server does not respond.
        retry_delay: Seconds between two attempts. For core/v1, the first delay is a random part of it. For
            events.k8s.io, each delay is up to a quarter longer.
        close_timeout: Timeout in seconds for leaving the context manager.
        correlation: Options for counting, combining and limiting core/v1 events.
        series: Options for the series of events.k8s.io/v1 events.
    """

    api: EventApi = EventApi.CORE_V1
    queue_size: int = 1000
    max_tries: int = 12
    retry_delay: float = 10.0
    close_timeout: float = 5.0
    correlation: CorrelatorOptions = field(default_factory=CorrelatorOptions)
    series: SeriesOptions = field(default_factory=SeriesOptions)

    def __post_init__(self) -> None:
        """Accept the API's name as a string, and check the options."""
        object.__setattr__(self, "api", EventApi(self.api))
        check_types(self)
        require_positive(
            "EventRecorderOptions",
            queue_size=self.queue_size,
            max_tries=self.max_tries,
            retry_delay=self.retry_delay,
            close_timeout=self.close_timeout,
        )
