"""What all adapters share, over hand-written foreign clients: no package is needed for these."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from deltaloop import kinds
from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
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
from deltaloop.client import Headers, StreamResponse
from deltaloop.client.core.accept import list_accept, watch_accept
from deltaloop.client.verbs.resource_list import UnreadableItemsError
from deltaloop.errors import RequestTimeoutError, StreamEndedError, TransportError
from tests.having import having

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


async def test_adapter_requests_and_decodes_list() -> None:
    adapted, foreign = client(answering(LIST[:10], LIST[10:]))
    page = await adapted.list(kinds.CONFIG_MAP, namespace="n", options=ListOptions(limit=3))
    assert [item.name for item in page] == ["a"]
    assert page.resource_version == "7"
    assert foreign.asked[0].path == "/api/v1/namespaces/n/configmaps"
    assert foreign.asked[0].query == {"limit": "3"}


async def test_adapter_requests_and_decodes_watch() -> None:
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


async def test_foreign_errors_are_converted_without_secrets() -> None:
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
    with pytest.raises(StreamEndedError) as broken:
        async with adapted.watch(kinds.CONFIG_MAP) as events:
            _ = [event async for event in events]
    assert (broken.value.method, broken.value.path) == ("GET", "/api/v1/configmaps")


async def test_programming_error_is_not_converted_to_network_error() -> None:
    adapted, _ = client(answering(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        await adapted.list(kinds.CONFIG_MAP)


async def test_html_is_malformed() -> None:
    adapted, _ = client(answering(b"<html>"))
    with pytest.raises(MalformedObjectError):
        await adapted.list(kinds.CONFIG_MAP)


async def test_silent_response_times_out() -> None:
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


async def test_silent_watch_ends_at_deadline_of_adapter() -> None:
    adapted, _ = client(answering(EVENT, 1000.0))
    with pytest.raises(StreamEndedError):
        async with adapted.watch(kinds.CONFIG_MAP, options=ListOptions(timeout_seconds=60)) as events:
            _ = [event async for event in events]
    assert asyncio.get_running_loop().time() == 75.0


MANY_FIELDS = b'{"metadata":{"name":"a","resourceVersion":"8","managedFields":[{"manager":"m"}]},"spec":{"x":1}}'
MANY_LIST = b'{"metadata":{"resourceVersion":"7"},"items":[' + MANY_FIELDS + b"]}"


@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("metadata_only", [False, True])
async def test_metadata_only_and_managed_fields_options_are_applied(metadata_only: bool, drops: bool) -> None:
    options = ListOptions(drop_managed_fields=drops)
    event = b'{"type":"ADDED","object":' + MANY_FIELDS + b"}\n"
    adapted, foreign = client(answering(MANY_LIST), answering(event))
    assert adapted.drops_managed_fields
    said: dict[str, Any] = {"namespace": "n", "options": options, "metadata_only": metadata_only}
    (listed,) = await adapted.list(kinds.CONFIG_MAP, **said)
    async with adapted.watch(kinds.CONFIG_MAP, **said) as events:
        (watched,) = [event.object async for event in events]
    for obj, get, accept in zip((listed, watched), foreign.asked, (list_accept, watch_accept), strict=True):
        assert get.path == "/api/v1/namespaces/n/configmaps"
        assert get.headers == {
            "Accept": accept(metadata_only=metadata_only, drop_managed_fields=drops),
            "Accept-Encoding": "identity",
        }
        assert ("spec" in obj) is not metadata_only
        assert ("managedFields" in obj["metadata"]) is not drops


async def test_full_objects_are_requested_by_default() -> None:
    adapted, foreign = client(answering(MANY_LIST), answering(EVENT))
    (listed,) = await adapted.list(kinds.CONFIG_MAP)
    async with adapted.watch(kinds.CONFIG_MAP) as events:
        assert len([event async for event in events]) == 1
    assert "spec" in listed
    assert [(get.path, get.connect_timeout, get.read_timeout) for get in foreign.asked] == [
        ("/api/v1/configmaps", 30.0, 30.0),
        ("/api/v1/configmaps", 30.0, 3600.0),
    ]
    assert foreign.asked[1].accept == watch_accept(metadata_only=False, drop_managed_fields=False)
    assert repr(adapted) == "<AdaptedClient over theirs>"


async def test_request_timeout_is_configurable_and_named_in_error() -> None:
    adapted = AdaptedClient(
        Foreign(answering(100.0), answering(100.0)), name="theirs", packages=frozenset(), request_timeout=2.5
    )
    for ask in (adapted.list(kinds.CONFIG_MAP), adapted.watch(kinds.CONFIG_MAP).__aenter__()):
        with pytest.raises(RequestTimeoutError) as caught:
            await ask
        assert str(caught.value) == "GET /api/v1/configmaps: theirs: no response within 2.5 s"
        assert (caught.value.method, caught.value.path) == ("GET", "/api/v1/configmaps")
    for wrong in (0.0, -1.0):
        with pytest.raises(ValueError, check=having(argument="AdaptedClient.request_timeout")):
            AdaptedClient(Foreign(), name="theirs", packages=frozenset(), request_timeout=wrong)


async def test_response_is_closed_after_success_and_error() -> None:
    closed: list[str] = []

    @asynccontextmanager
    async def opened(name: str, *script: bytes | Exception, status: int = 200) -> AsyncGenerator[StreamResponse, None]:
        async def chunks() -> AsyncGenerator[bytes, None]:
            try:
                for step in script:
                    if isinstance(step, Exception):
                        raise step
                    yield step
            finally:
                closed.append(f"body of {name}")

        try:
            yield StreamResponse(status=status, headers=Headers(()), chunks=chunks())
        finally:
            closed.append(name)

    adapted, _ = client(
        opened("whole", LIST),
        opened("refused", b"no" * 40_000, b"more", status=503),
        opened("torn", TheirError("x")),
        opened("left", EVENT, EVENT),
    )
    await adapted.list(kinds.CONFIG_MAP)
    for error in (ServiceUnavailableError, StreamEndedError):
        with pytest.raises(error):
            await adapted.list(kinds.CONFIG_MAP)
    async with adapted.watch(kinds.CONFIG_MAP) as events:
        await anext(aiter(events))
        assert "left" not in closed
    names = ("whole", "refused", "torn", "left")
    assert closed == [each for name in names for each in (f"body of {name}", name)]


async def test_error_names_all_causes_and_only_system_messages() -> None:
    inner = OSError(113, "No route to host")
    hidden = TheirError("token=abcdef")
    hidden.__context__ = inner
    kept = TheirError("token=abcdef")
    kept.reason = ValueError("token=abcdef")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    under = TheirError("token=abcdef")
    under.os_error = ConnectionRefusedError(111, "Connection refused")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    adapted, _ = client(answering(hidden), answering(kept), answering(under), answering(OSError()))
    said: list[str] = []
    for refused in (False, False, True, False):
        with pytest.raises(TransportError) as caught:
            await adapted.list(kinds.CONFIG_MAP)
        assert (caught.value.method, caught.value.path, caught.value.refused) == ("GET", "/api/v1/configmaps", refused)
        said.append(str(caught.value).removeprefix("GET /api/v1/configmaps: theirs: "))
    assert said == [
        "TheirError from OSError (No route to host)",
        "TheirError from ValueError",
        "connection refused",
        "OSError",
    ]


async def test_only_start_of_long_error_body_is_read() -> None:
    message = "x" * 65_000
    said = json.dumps({"kind": "Status", "reason": "Expired", "code": 410, "message": message}).encode()
    said += b" " * (64 * 1024 - len(said) - 1)
    never = ZeroDivisionError("more than 64 KiB were read")
    adapted, _ = client(
        answering(said[:-600], said[-600:], b"\n", never, status=410),
        answering(b"busy", TheirError("x"), status=503),
    )
    with pytest.raises(ExpiredError) as caught:
        await adapted.list(kinds.CONFIG_MAP)
    assert caught.value.status.message == message
    with pytest.raises(ServiceUnavailableError, match=r"GET /api/v1/configmaps: .*503.*busy"):
        await adapted.list(kinds.CONFIG_MAP)


async def test_error_names_at_most_ten_causes_once_each() -> None:
    errors = [type(f"Error{number}", (TheirError,), {})() for number in range(12)]
    for outer, inner in pairwise(errors):
        outer.__cause__ = inner
    circle, back = TheirError(), OSError()
    circle.__cause__, back.__cause__ = back, circle
    adapted, _ = client(answering(errors[0]), answering(circle))
    with pytest.raises(TransportError) as caught:
        await adapted.list(kinds.CONFIG_MAP)
    assert str(caught.value).endswith(f"theirs: {' from '.join(f'Error{number}' for number in range(10))}")
    with pytest.raises(TransportError, match=r"theirs: TheirError from OSError$"):
        await adapted.list(kinds.CONFIG_MAP)


async def test_watch_records_time_of_last_byte() -> None:
    adapted, _ = client(answering(5.0, 2.0, EVENT))
    async with adapted.watch(kinds.CONFIG_MAP) as events:
        assert events.last_byte_at == 5.0
        await anext(events)
        assert events.last_byte_at == 7.0 + 5.0


async def test_canceled_read_ends_watch() -> None:
    """The foreign client may have lost the bytes that were on their way."""
    adapted, _ = client(answering(EVENT, 10.0, EVENT))
    async with adapted.watch(kinds.CONFIG_MAP) as events:
        await anext(events)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await anext(events)
        with pytest.raises(StreamEndedError, match="a read was canceled") as caught:
            await anext(events)
        assert (caught.value.method, caught.value.path) == ("GET", "/api/v1/configmaps")


@pytest.mark.parametrize("metadata_only", [False, True])
async def test_readable_items_of_list_are_in_error(metadata_only: bool) -> None:
    adapted, _ = client(answering(MANY_LIST.replace(b"[{", b"[7,{", 1)))
    with pytest.raises(UnreadableItemsError) as caught:
        await adapted.list(kinds.CONFIG_MAP, metadata_only=metadata_only)
    (item,) = caught.value.page
    assert (item.name, "spec" in item) == ("a", not metadata_only)
    assert len(caught.value.page.unreadable) == 1


async def test_foreign_timeout_is_connection_error() -> None:
    adapted, _ = client(answering(TimeoutError()), answering(TimeoutError()), answering(b"{", TimeoutError()))
    for error in (TransportError, TransportError, StreamEndedError):
        with pytest.raises(error, match="theirs: TimeoutError") as caught:
            async with adapted.watch(kinds.CONFIG_MAP) as events:
                await anext(events)
        assert not isinstance(caught.value, RequestTimeoutError)


async def test_foreign_timeout_while_closing_is_not_converted() -> None:
    @asynccontextmanager
    async def closing_late() -> AsyncGenerator[StreamResponse, None]:
        try:
            yield StreamResponse(status=503, headers=Headers(()), chunks=play((b"busy",)))
        finally:
            raise TimeoutError("closing")

    adapted, _ = client(closing_late(), closing_late())
    for ask in (adapted.list(kinds.CONFIG_MAP), adapted.watch(kinds.CONFIG_MAP).__aenter__()):
        with pytest.raises(TimeoutError, match=r"^closing$"):
            await ask


@pytest.mark.parametrize("make", [from_kubernetes, from_kubernetes_asyncio, from_kr8s, from_lightkube])
def test_adapting_unsupported_object_raises_error_with_its_type(make: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"builtins\.int"):
        make(7)


def test_blocking_kr8s_client_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="api")):
        from_kr8s(SimpleNamespace(call_api=None, _asyncio=False))
