"""A small store of Events in virtual time, for both APIs, and a recorder that sends to it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from deltaloop.api.kinds import EVENT, EVENTS_V1_EVENT, POD
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import AlreadyExistsError, InvalidError, NotFoundError, Status, StatusDetails
from deltaloop.client.errors import TransportError
from deltaloop.events import EventApi, EventRecorder, EventRecorderOptions

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
POD_X = Resource.from_dict({"metadata": {"name": "x", "namespace": "team", "uid": "u1", "resourceVersion": "7"}}, POD)
NO_ANSWER = TransportError("no answer", method="POST", path="/events")
NOT_SERVED = NotFoundError(Status(code=404, message="404 page not found"))

_DEMANDED = ("eventTime", "reportingController", "reportingInstance", "action", "reason", "type")


@dataclass
class FakeEvents:
    """Stores Events; errors to come are raised one for each request."""

    stored: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    calls: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    errors: list[Exception | None] = field(default_factory=list[Exception | None])
    always: Exception | None = None
    hangs: bool = False
    serves_events_v1: bool = True

    async def create(
        self, kind: ResourceType[Resource], obj: Mapping[str, Any], /, *, namespace: str | None = None
    ) -> Resource:
        await self._request("create", kind)
        if kind == EVENTS_V1_EVENT:
            missing = [name for name in _DEMANDED if not obj.get(name)]
            if missing or obj.get("series", {"count": 2})["count"] < 2:
                raise InvalidError(Status(code=422, message=f"{missing}"))
        assert obj["metadata"]["namespace"] == namespace
        key = f"{namespace}/{obj['metadata']['name']}"
        if key in self.stored:
            raise AlreadyExistsError(Status(code=409))
        self.stored[key] = dict(obj)
        return Resource.from_dict(obj, kind)

    async def patch(
        self,
        kind: ResourceType[Resource],
        name: str,
        patch: Mapping[str, Any],
        /,
        *,
        namespace: str | None = None,
    ) -> Resource:
        await self._request("patch", kind)
        key = f"{namespace}/{name}"
        if key not in self.stored:
            raise NotFoundError(Status(code=404, details=StatusDetails(name=name, kind="events")))
        self.stored[key].update(patch)
        return Resource.from_dict(self.stored[key], kind)

    async def _request(self, verb: str, kind: ResourceType[Resource]) -> None:
        self.calls.append((now(), verb))
        if self.hangs:
            await asyncio.sleep(1000)
        error = self.errors.pop(0) if self.errors else self.always
        if error is not None:
            raise error
        assert kind in {EVENT, EVENTS_V1_EVENT}
        if kind == EVENTS_V1_EVENT and not self.serves_events_v1:
            raise NOT_SERVED

    @property
    def events(self) -> list[dict[str, Any]]:
        return list(self.stored.values())

    @property
    def verbs(self) -> list[str]:
        return [verb for _, verb in self.calls]


def now() -> float:
    return asyncio.get_running_loop().time()


def make(
    client: FakeEvents, *, watchers: Any = (), component: str = "sample-controller", **options: Any
) -> EventRecorder:
    loop = asyncio.get_running_loop()
    return EventRecorder(
        client,
        component=component,
        instance="pod-1",
        options=EventRecorderOptions(**options),
        watchers=watchers,
        clock=loop.time,
        wall_clock=lambda: START + timedelta(seconds=loop.time()),
        random=lambda: 0.3,
    )


def make_series(client: FakeEvents, **options: Any) -> EventRecorder:
    return make(client, api=EventApi.EVENTS_V1, **options)
