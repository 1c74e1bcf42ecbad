"""A small server of locks behind the client verbs: optimistic concurrency, delays, hangs, refusals, lost answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from deltaloop.api.kinds import LEASE
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import AlreadyExistsError, ConflictError, NotFoundError, Status
from deltaloop.client import HttpRequest, HttpResponse
from deltaloop.client.errors import RequestTimeoutError, TransportError

Fault: TypeAlias = Literal["refuse", "hang", "lose answer", "slow"]
"""refuse: nothing listens. hang: never carried out, and the time limit is ignored. lose answer: carried out, but not
answered within the time limit. slow: see ``delay``."""


def status(code: int, message: str) -> Status:
    return Status(code=code, message=message)


@dataclass
class FakeServer:
    """Objects of one kind by key, and a counter of versions."""

    leases: dict[str, Resource] = field(default_factory=dict[str, Resource])
    version: int = 0
    kind: ResourceType[Resource] = LEASE
    others: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def next_version(self) -> str:
        self.version += 1
        return str(self.version)

    def get(self, key: str) -> Resource:
        if key not in self.leases:
            raise NotFoundError(status(404, "not found"))
        return self.leases[key]

    def create(self, obj: Mapping[str, Any]) -> Resource:
        lease = self._stored(obj)
        if lease.key in self.leases:
            raise AlreadyExistsError(status(409, "already exists"))
        self.leases[lease.key] = lease
        return lease

    def update(self, obj: Mapping[str, Any]) -> Resource:
        given = Resource.from_dict(obj, self.kind)
        present = self.get(given.key)
        if present.resource_version != given.resource_version:
            raise ConflictError(status(409, "changed"))
        lease = self._stored(obj)
        self.leases[lease.key] = lease
        return lease

    def holder(self, key: str = "default/example") -> str | None:
        lease = self.leases.get(key)
        return str(lease["spec"].get("holderIdentity")) if lease is not None else None

    def edit(self, change: Callable[[dict[str, Any]], object], key: str = "default/example") -> None:
        """Change a Lease behind the candidates' backs."""
        fields = self.leases[key].edit()
        change(fields)
        self.leases[key] = self._stored(fields)

    def _stored(self, obj: Mapping[str, Any]) -> Resource:
        fields = Resource.from_dict(obj, self.kind).to_dict()
        fields["metadata"]["resourceVersion"] = self.next_version()
        fields["metadata"].setdefault("uid", f"uid-{self.version}")
        return Resource.from_dict(fields, self.kind)


@dataclass
class FakeClient:
    """The verbs of one candidate: what was asked and when, and faults to come, one for each request."""

    server: FakeServer
    calls: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    faults: list[Fault | None] = field(default_factory=list[Fault | None])
    always: Fault | None = None
    delay: float = 0.0
    namespace: str = "default"

    async def get(
        self,
        kind: ResourceType[Resource],
        name: str,
        /,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Resource:
        return await self._perform("get", lambda: self.server.get(f"{namespace}/{name}"), timeout)

    async def create(
        self,
        kind: ResourceType[Resource],
        obj: Mapping[str, Any],
        /,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Resource:
        return await self._perform("create", lambda: self.server.create(obj), timeout)

    async def update(
        self, kind: ResourceType[Resource], obj: Mapping[str, Any], /, *, timeout: float | None = None
    ) -> Resource:
        return await self._perform("update", lambda: self.server.update(obj), timeout)

    async def _perform(self, verb: str, carry_out: Callable[[], Resource], timeout: float | None) -> Resource:
        self.calls.append((asyncio.get_running_loop().time(), verb))
        fault = self.faults.pop(0) if self.faults else self.always
        if fault == "refuse":
            raise TransportError("nothing listens", method=verb, path="/lease", refused=True)
        if fault == "slow" or (fault is None and self.delay):
            await asyncio.sleep(self.delay)
        if fault == "hang":
            await asyncio.sleep(10_000)
        answer = carry_out()
        if fault == "lose answer":
            await self._no_answer(verb, timeout)
        return answer

    async def _no_answer(self, verb: str, timeout: float | None) -> None:
        assert timeout is not None
        await asyncio.sleep(timeout)
        raise RequestTimeoutError("no answer", method=verb, path="/lease")

    @property
    def verbs(self) -> list[str]:
        return [verb for _, verb in self.calls]


class OtherWrites:
    """The way of the work's own writes to the server."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server

    async def request(self, request: HttpRequest) -> HttpResponse:
        self.server.others.append((request.method.lower(), request.path.rpartition("/")[2]))
        return HttpResponse(status=200, body=b'{"kind": "Status", "apiVersion": "v1", "status": "Success"}')

    def stream(self, request: HttpRequest) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


@dataclass
class WallClock:
    """Wall time that follows the loop's."""

    start: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.start + timedelta(seconds=asyncio.get_running_loop().time())
