"""Transport of a planned program: it counts the writes, and keeps the first write of each object with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, final

import msgspec

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.json_values import at, text
from deltaloop.api.redaction import redact
from deltaloop.api.resource import Resource
from deltaloop.apiserver.embedding import RequestInfo, describe_request
from deltaloop.client.transport.protocol import HttpRequest, HttpResponse, StreamResponse, Transport
from deltaloop.runtime.reconcile.execution import running_reconcile
from deltaloop.testing.injected_faults.core.program_writes import is_object_write, key_of, object_of

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_TRIGGERS: Final = 2
_REJECTED: Final = frozenset({400, 403, 413, 422})


class WriteNote(msgspec.Struct, frozen=True, gc=False):
    """Reason of a write: the controller, and the reconcile with its first triggers."""

    controller: str
    reconcile: str
    triggers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.controller} {self.reconcile}: {', '.join(self.triggers) or 'outside a reconcile'}"


class Rejection(msgspec.Struct, frozen=True, gc=False):
    """Write that the embedded server rejected, with the controller and the redacted message."""

    subject: str
    write: str
    message: str


class FirstWrite(msgspec.Struct, frozen=True):
    """First write of an object: the request, and the object in the response of the embedded server."""

    request: HttpRequest
    stored: Mapping[str, object]


@final
class RecordingTransport:
    """Transport of a program to the embedded server."""

    def __init__(
        self, inner: Transport, before: Mapping[str, Mapping[str, Resource]], *, keep_requests: bool = False
    ) -> None:
        """Wrap a transport; ``before`` has the objects before the plan by resource and key."""
        self._inner = inner
        self._before = before
        self._keeps = keep_requests
        self._versions: dict[tuple[str, str], str] = {}
        self.writes: int = 0
        self.notes: dict[tuple[str, str], WriteNote] = {}
        self.first: dict[tuple[str, str], FirstWrite] = {}
        self.effects: Counter[tuple[str, str]] = Counter()
        self.rejections: dict[tuple[str, str], Rejection] = {}
        self.writers: dict[tuple[str, str], WriteNote] = {}

    async def request(self, request: HttpRequest) -> HttpResponse:
        if request.method in _READS:
            return await self._inner.request(request)
        info = describe_request(request.method, request.path, request.query)
        if not is_object_write(info, request.query):
            return await self._inner.request(request)
        self.writes += 1
        note = _note()
        answer = await self._inner.request(request)
        self._answered(info, request, answer, note)
        return answer

    def _answered(self, info: RequestInfo, request: HttpRequest, answer: HttpResponse, note: WriteNote) -> None:
        key = key_of(info, object_of(request.body or b""))
        version = ""
        if 200 <= answer.status < 300:
            try:
                stored = Resource.from_json(answer.body)
                key, version = stored.key or key, stored.resource_version
            except MalformedObjectError:
                pass  # the response to a deletion is a Status
        place = (info.group_resource, key)
        if answer.status in _REJECTED:
            message = text(at(object_of(answer.body), "message"))
            told = Rejection(
                f"{note.controller} {note.reconcile}".strip(), f"{info.verb} {place[0]} {key}", redact(message)
            )
            self.rejections.setdefault((told.subject, told.write), told)
            self._keep(place, request, {})
            return
        if not 200 <= answer.status < 300 or (version and self._version(place) == version):
            return
        self._versions[place] = version
        self.effects[place] += 1
        self.notes.setdefault(place, note)
        self.writers[place] = note
        if self._keeps:
            self._keep(place, request, object_of(answer.body))

    def _version(self, place: tuple[str, str]) -> str:
        known = self._versions.get(place)
        if known is not None:
            return known
        before = self._before.get(place[0], {}).get(place[1])
        return "" if before is None else before.resource_version

    def _keep(self, place: tuple[str, str], request: HttpRequest, stored: Mapping[str, object]) -> None:
        if self._keeps:
            self.first.setdefault(place, FirstWrite(request, stored))

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[StreamResponse]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def _note() -> WriteNote:
    running = running_reconcile()
    if running is None:
        return WriteNote("", "")
    triggers = tuple(str(each) for each in running.triggers[:_MOST_TRIGGERS])
    return WriteNote(running.controller, str(running.request), triggers)
