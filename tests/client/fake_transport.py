"""A transport without a network: answers are given by the test, requests are kept for it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from deltaloop.client import Headers, HttpRequest, HttpResponse, StreamResponse


def json_answer(fields: object, *, status: int = 200, headers: Collection[tuple[str, str]] = ()) -> HttpResponse:
    return HttpResponse(status=status, headers=Headers(headers), body=msgspec.json.encode(fields))


def text_answer(text: str, *, status: int, headers: Collection[tuple[str, str]] = ()) -> HttpResponse:
    return HttpResponse(status=status, headers=Headers(headers), body=text.encode())


def pod(name: str, *, namespace: str = "default", version: str = "1") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "resourceVersion": version},
    }


def page(*items: dict[str, Any], version: str = "10", continue_: str = "") -> HttpResponse:
    metadata = {"resourceVersion": version}
    if continue_:
        metadata["continue"] = continue_
    return json_answer({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": list(items)})


@dataclass(frozen=True)
class After:
    """An answer, or a failure, that takes its time."""

    delay: float
    what: HttpResponse | Exception


@dataclass(frozen=True)
class Pause:
    """A silence within a stream, in seconds."""

    seconds: float


@dataclass(frozen=True)
class Stream:
    """The script of one stream: slices, silences, and at the end perhaps a failure."""

    script: tuple[bytes | Pause | Exception, ...]
    status: int = 200
    headers: Headers = field(default_factory=Headers)


class FakeTransport:
    """Gives the scripted answers in turn; a script that has run out fails the test."""

    def __init__(self, *answers: HttpResponse | Exception | After | Stream) -> None:
        self.answers = deque(answers)
        self.requests: list[HttpRequest] = []
        self.sent_at: list[float] = []
        self.open_streams = 0
        self.closed = False

    async def request(self, request: HttpRequest) -> HttpResponse:
        answer = self._next(request)
        assert not isinstance(answer, Stream)
        if isinstance(answer, After):
            await asyncio.sleep(answer.delay)
            answer = answer.what
        if isinstance(answer, Exception):
            raise answer
        return answer

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[StreamResponse, None]:
        answer = self._next(request)
        if isinstance(answer, After):
            await asyncio.sleep(answer.delay)
            answer = answer.what
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, HttpResponse):
            answer = Stream((answer.body,), status=answer.status, headers=answer.headers)
        self.open_streams += 1
        chunks = _play(answer.script)
        try:
            yield StreamResponse(status=answer.status, headers=answer.headers, chunks=chunks)
        finally:
            await chunks.aclose()
            self.open_streams -= 1

    async def close(self) -> None:
        self.closed = True

    def _next(self, request: HttpRequest) -> HttpResponse | Exception | After | Stream:
        self.requests.append(request)
        self.sent_at.append(asyncio.get_running_loop().time())
        assert self.answers, f"nobody expected {request.method} {request.path}"
        return self.answers.popleft()


async def _play(script: tuple[bytes | Pause | Exception, ...]) -> AsyncGenerator[bytes, None]:
    for step in script:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
        elif isinstance(step, Exception):
            raise step
        else:
            yield step


def logged(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """The records of the client alone: asyncio in debug mode names slow callbacks of a busy machine, too."""
    return [record for record in caplog.records if record.name == "deltaloop.client"]


async def collect(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]
