"""What all adapters share, over hand-written foreign clients: no package is needed for these."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from deltaloop import kinds
from deltaloop.api.errors import InvalidInputError, MalformedObjectError
from deltaloop.api.list_options import ListOptions
from deltaloop.api.status import ExpiredError, ServiceUnavailableError
from deltaloop.cache.adapters import (
    AdaptedClient,
    from_kr8s,
    from_kubernetes,
    from_kubernetes_asyncio,
    from_lightkube,
)
from deltaloop.cache.adapters.adapted_client import Get
from deltaloop.cache.adapters.blocking import in_thread
from deltaloop.client import Headers, RequestTimeoutError, StreamEndedError, StreamResponse, TransportError

EVENT = b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"8"}}}\n'
LIST = b'{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}'


class TheirError(Exception):
    """An exception of a foreign package: of this module's top-level package."""


@asynccontextmanager
async def answering(
    *script: bytes | float | Exception, status: int = 200, headers: tuple[tuple[str, str], ...] = ()
) -> AsyncGenerator[StreamResponse, None]:
    if script and isinstance(script[0], float):
        await asyncio.sleep(script[0])
    if script and isinstance(script[0], Exception):
        raise script[0]
    yield StreamResponse(status=status, headers=Headers(headers), chunks=play(script))


async def play(script: tuple[bytes | float | Exception, ...]) -> AsyncIterator[bytes]:
    for step in script:
        if isinstance(step, Exception):
            raise step
        if isinstance(step, bytes):
            yield step
        else:
            await asyncio.sleep(step)


class Foreign:
    """Gives scripted answers and keeps what was asked."""

    def __init__(self, *answers: AbstractAsyncContextManager[StreamResponse]) -> None:
        self.answers = deque(answers)
        self.asked: list[Get] = []

    def __call__(self, get: Get) -> AbstractAsyncContextManager[StreamResponse]:
        self.asked.append(get)
        return self.answers.popleft()


def client(*answers: AbstractAsyncContextManager[StreamResponse]) -> tuple[AdaptedClient, Foreign]:
    foreign = Foreign(*answers)
    return AdaptedClient(foreign, name="theirs", packages=frozenset({"tests"})), foreign


async def test_a_list_is_asked_for_and_decoded() -> None:
    adapted, foreign = client(answering(LIST[:10], LIST[10:]))
    page = await adapted.list(kinds.CONFIG_MAP, namespace="n", options=ListOptions(limit=3))
    assert [item.name for item in page] == ["a"]
    assert page.resource_version == "7"
    assert foreign.asked[0].path == "/api/v1/namespaces/n/configmaps"
    assert foreign.asked[0].query == {"limit": "3"}


async def test_a_watch_is_asked_for_and_decoded_and_ends() -> None:
    adapted, foreign = client(answering(EVENT[:20], EVENT[20:] + EVENT))
    async with adapted.watch(kinds.CONFIG_MAP, options=ListOptions(resource_version="7", timeout_seconds=5)) as events:
        assert [event.object.name async for event in events] == ["a", "a"]
    assert foreign.asked[0].query == {"resourceVersion": "7", "timeoutSeconds": "5", "watch": "true"}
    assert foreign.asked[0].read_timeout == 35.0


async def test_refusals_are_api_errors() -> None:
    status = {"kind": "Status", "reason": "Expired", "code": 410, "message": "too old"}
    adapted, _ = client(
        answering(b"busy", status=503, headers=(("Retry-After", "7"),)),
        answering(json.dumps(status).encode(), status=410),
    )
    with pytest.raises(ServiceUnavailableError) as caught:
        await adapted.list(kinds.CONFIG_MAP)
    assert caught.value.retry_after == 7.0
    with pytest.raises(ExpiredError):
        async with adapted.watch(kinds.CONFIG_MAP):
            pass


async def test_their_errors_become_ours_and_say_nothing_secret() -> None:
    refused = TheirError("token=abcdef")
    refused.__cause__ = ConnectionRefusedError(111, "Connection refused")
    adapted, _ = client(answering(refused), answering(TheirError("token=abcdef")), answering(EVENT, TheirError("x")))
    with pytest.raises(TransportError) as caught:
        await adapted.list(kinds.CONFIG_MAP)
    assert caught.value.refused
    assert caught.value.__cause__ is None
    with pytest.raises(TransportError) as caught:
        await adapted.list(kinds.CONFIG_MAP)
    assert not caught.value.refused
    assert "abcdef" not in str(caught.value)
    with pytest.raises(StreamEndedError):
        async with adapted.watch(kinds.CONFIG_MAP) as events:
            _ = [event async for event in events]


async def test_a_bug_is_not_taken_for_the_network() -> None:
    adapted, _ = client(answering(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        await adapted.list(kinds.CONFIG_MAP)


async def test_html_is_malformed() -> None:
    adapted, _ = client(answering(b"<html>"))
    with pytest.raises(MalformedObjectError):
        await adapted.list(kinds.CONFIG_MAP)


async def test_silence_ends_at_the_time_limit() -> None:
    adapted, _ = client(answering(b"{", 100.0), answering(100.0), answering(100.0))
    with pytest.raises(RequestTimeoutError):
        await adapted.list(kinds.CONFIG_MAP)
    assert asyncio.get_running_loop().time() == 30.0
    with pytest.raises(RequestTimeoutError):
        await adapted.list(kinds.CONFIG_MAP)
    with pytest.raises(RequestTimeoutError):
        async with adapted.watch(kinds.CONFIG_MAP):
            pass
    assert asyncio.get_running_loop().time() == 90.0


async def test_a_silent_watch_ends_at_our_deadline() -> None:
    adapted, _ = client(answering(EVENT, 1000.0))
    with pytest.raises(StreamEndedError):
        async with adapted.watch(kinds.CONFIG_MAP, options=ListOptions(timeout_seconds=60)) as events:
            _ = [event async for event in events]
    assert asyncio.get_running_loop().time() == 75.0


# Blocking clients


class Blocking:
    """A blocking answer whose slices are given by the test."""

    status = 200
    headers = Headers()

    def __init__(self, *slices: bytes) -> None:
        self.slices = deque(slices)
        self.may_read = threading.Event()
        self.aborted = False
        self.closed = False
        self.reads = 0

    def read(self) -> bytes:
        self.reads += 1
        if self.slices:
            return self.slices.popleft()
        self.may_read.wait(10)
        if self.aborted:
            raise OSError("the socket is shut down")
        return b""

    def abort(self) -> None:
        self.aborted = True
        self.may_read.set()

    def close(self) -> None:
        self.closed = True


@pytest.mark.real_time
async def test_a_blocking_answer_is_read_in_a_thread_that_ends_when_it_is_left() -> None:
    answer = Blocking(b"one", b"two")
    async with in_thread(lambda: answer, name="reader under test") as response:
        assert await anext(response.chunks) == b"one"
        assert await anext(response.chunks) == b"two"
        waiting = asyncio.ensure_future(anext(response.chunks))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert answer.closed
    assert answer.aborted


@pytest.mark.real_time
async def test_a_thread_does_not_read_ahead_of_its_reader() -> None:
    answer = Blocking(*[b"x"] * 1000)
    async with in_thread(lambda: answer, name="reader under test") as response:
        await asyncio.sleep(0.1)
        assert answer.reads <= 16
        assert await anext(response.chunks) == b"x"
    assert answer.closed


@pytest.mark.real_time
async def test_what_a_blocking_client_raises_is_raised_here() -> None:
    def fail() -> Blocking:
        raise TheirError

    with pytest.raises(TheirError):
        async with in_thread(fail, name="reader under test"):
            pass


@pytest.mark.real_time
async def test_a_thread_that_waits_for_the_beginning_is_left_and_closes_what_it_gets() -> None:
    answer, begins = Blocking(), threading.Event()

    def send() -> Blocking:
        begins.wait(10)
        return answer

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05), in_thread(send, name="reader under test"):
            pass
    begins.set()
    for _ in range(100):
        if answer.closed:
            break
        await asyncio.sleep(0.01)
    assert answer.closed
    assert answer.reads == 0


@pytest.mark.parametrize("make", [from_kubernetes, from_kubernetes_asyncio, from_kr8s, from_lightkube])
def test_something_else_is_refused_by_name(make: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"needs a .*not builtins\.int"):
        make(7)


def test_the_blocking_side_of_kr8s_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="asyncio side"):
        from_kr8s(SimpleNamespace(call_api=None, _asyncio=False))
