from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from deltaloop.client import Client, ClientConfig, LogStream
from deltaloop.errors import ResponseTooLargeError
from tests.client.fake_transport import FakeTransport, Stream


async def of(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_too_long_log_line_raises_error_and_ends_log() -> None:
    transport = FakeTransport(Stream((b"short\n" + b"x" * 600, b"y\nmore\n")))
    client = Client(ClientConfig(server="http://fake", max_event_bytes=500), transport=transport)
    async with client.logs("a", namespace="n") as log:
        assert await anext(log) == b"short"
        with pytest.raises(ResponseTooLargeError, match="500 bytes") as caught:
            await anext(log)
        assert (caught.value.method, caught.value.path) == ("GET", "/api/v1/namespaces/n/pods/a/log")
        assert str(caught.value).startswith("GET /api/v1/namespaces/n/pods/a/log: ")
        assert await anext(log, None) is None
        assert await anext(log, None) is None


@pytest.mark.parametrize(("longest", "ends"), [(3, True), (4, False)])
async def test_log_line_has_maximum_length(longest: int, ends: bool) -> None:
    log = LogStream(of(b"abcd", b"\n"), max_line_bytes=longest)
    if ends:
        with pytest.raises(ResponseTooLargeError):
            await anext(log)
    else:
        assert [line async for line in log] == [b"abcd"]


async def test_empty_log_and_log_without_last_line_feed() -> None:
    assert [line async for line in LogStream(of())] == []
    assert [line async for line in LogStream(of(b"", b"\n"))] == [b""]
    assert [line async for line in LogStream(of(b"a\n\n", b"b"))] == [b"a", b"", b"b"]
