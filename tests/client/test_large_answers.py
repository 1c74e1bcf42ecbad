"""What a server can do with the size of an answer: it ends in an error, and in no more memory than is allowed."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from deltaloop.api import kinds
from deltaloop.client import Client, ClientConfig, LogStream
from deltaloop.errors import ResponseTooLargeError, TransportError
from tests.client.loopback import serving

MIB = 1024 * 1024
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default", "resourceVersion": "1"}}


@asynccontextmanager
async def answering(
    body: bytes, encoding: str, *, most: int = 2**30, event: int = 2**26
) -> AsyncGenerator[tuple[Client, list[str]]]:
    asked: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(body=body, headers={"Content-Type": "application/json", "Content-Encoding": encoding})

    async with serving(handle) as address:
        config = ClientConfig(server=f"http://{address}", max_response_bytes=most, max_event_bytes=event)
        async with Client(config) as client:
            yield client, asked


def bomb(size: int) -> bytes:
    return gzip.compress(b'{"apiVersion": "v1", "kind": "PodList", "items": [' + b" " * size)


async def get(client: Client) -> object:
    return await client.get(kinds.POD, "a")


async def list_(client: Client) -> object:
    return await client.list(kinds.POD)


async def list_all(client: Client) -> object:
    return await client.list_all(kinds.POD)


async def watch(client: Client) -> object:
    async with client.watch(kinds.POD) as events:
        return await events.batch()


async def log(client: Client) -> object:
    async with client.logs("a") as lines:
        return await anext(lines)


@pytest.mark.parametrize("verb", [get, list_, list_all, watch, log])
async def test_decompression_bomb_is_rejected_without_retry(verb: Callable[[Client], Awaitable[object]]) -> None:
    async with answering(bomb(4 * MIB), "gzip", most=MIB, event=MIB) as (client, asked):
        with pytest.raises(ResponseTooLargeError, match="1048576 bytes"):
            await verb(client)
        assert len(asked) == 1


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_answer_within_the_limit_is_complete(encoding: str) -> None:
    pods = json.dumps(
        {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": [POD] * 999}
    )
    body = gzip.compress(pods.encode()) if encoding == "gzip" else pods.encode()
    async with answering(body, encoding, most=len(pods)) as (client, _):
        assert len((await client.list(kinds.POD)).items) == 999
    async with answering(body, encoding, most=len(pods) - 1) as (client, _):
        with pytest.raises(ResponseTooLargeError, match="max_response_bytes"):
            await client.list(kinds.POD)


@pytest.mark.parametrize(
    ("body", "encoding"), [(b"{}", "gzip"), (b"{}", "br"), (gzip.compress(b"{}", mtime=0)[:-3], "gzip")]
)
async def test_error_names_response_that_cannot_be_unpacked(body: bytes, encoding: str) -> None:
    async with answering(body, encoding) as (client, _):
        with pytest.raises(TransportError, match="pods/a"):
            await client.get(kinds.POD, "a", timeout=0.5)


async def test_event_loop_runs_during_a_large_unpacking() -> None:
    """10 MiB of one slice: others have their turn after each piece."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    body = gzip.compress(json.dumps({**POD, "spec": {"x": " " * 10 * MIB}}).encode())
    async with answering(body, "gzip") as (client, _):
        counting = asyncio.create_task(count())
        await asyncio.sleep(0)
        await client.get(kinds.POD, "a")
        counting.cancel()
    assert turns > 15, "one for each piece"


async def test_too_large_event_raises_error_after_earlier_events() -> None:
    event = json.dumps({"type": "ADDED", "object": POD}).encode() + b"\n"
    body = event * 3 + b'{"type": "ADDED", "object": "' + b"x" * MIB
    async with answering(body, "identity", event=1000) as (client, _), client.watch(kinds.POD) as events:
        assert [(await anext(events)).object.name for _ in range(3)] == ["a"] * 3
        with pytest.raises(ResponseTooLargeError, match="max_event_bytes"):
            await anext(events)
        assert await events.batch() == []


async def test_log_lines_are_limited_and_chunks_are_not() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"short\n"
        for _ in range(10):
            yield b"x" * 100

    lines = LogStream(chunks(), path="/log", max_line_bytes=500)
    assert await anext(lines) == b"short"
    with pytest.raises(ResponseTooLargeError, match="500 bytes"):
        await anext(lines)
    with pytest.raises(StopAsyncIteration):
        await anext(lines)
    assert len([chunk async for chunk in LogStream(chunks(), max_line_bytes=500).chunks]) == 11
