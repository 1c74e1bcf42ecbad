"""Requests that are made to hold up a program with webhooks, or to fill its memory."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
import threading
import tracemalloc
from typing import Any

import pytest

import deltaloop as dl
from deltaloop._internal.http_connections import MOST_HANDSHAKES
from deltaloop.webhooks import WebhookServer
from deltaloop.webhooks.turns import LateError, Turns
from tests.webhooks.kinds import ALL, conversion, database, deployment, response, review
from tests.webhooks.serving import LOCAL, Caller, credentials, serving

CONVERT = "/convert/databases.example.com"
CHECK = "/validate/check.databases.example.com?timeout=30s"
LABEL = "/mutate/label.deployments.example.com"
MIB = 2**20
KIND = dl.ResourceType[Any]("example.com", "v1", "Database", "databases")


def objects(number: int, obj: dict[str, Any]) -> bytes:
    body = json.dumps(conversion("example.com/v1beta1")).encode()
    return body.replace(b"[]", b"[" + b",".join([json.dumps(obj).encode()] * number) + b"]")


async def test_long_conversion_yields_between_objects() -> None:
    seen: list[int] = []
    passes = 0

    @dl.convert(KIND, "v1", "v1beta1")
    def down(obj: dict[str, Any]) -> None:
        seen.append(passes)

    @dl.convert(KIND, "v1beta1", "v1")
    def up(obj: dict[str, Any]) -> None: ...

    async def count() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    async with serving([down, up]) as caller:
        counting = asyncio.create_task(count())
        asked = [caller.ask(CONVERT, body=objects(200, database(replicas=1))) for _ in range(3)]
        answers = await asyncio.gather(*asked)
        counting.cancel()
    assert [len(response(each)["convertedObjects"]) for each in answers] == [200] * 3
    by_pass = [seen.count(each) for each in set(seen)]
    assert max(by_pass) <= 16, "one turn in a pass of the loop, however many reviews there are"
    assert len(by_pass) >= 600 / 16


async def test_functions_run_on_loop_and_large_objects_decode_in_thread() -> None:
    threads: list[str] = []

    @dl.convert(KIND, "v1", "v1beta1")
    def down(obj: dict[str, Any]) -> None:
        threads.append(threading.current_thread().name)

    @dl.convert(KIND, "v1beta1", "v1")
    def up(obj: dict[str, Any]) -> None: ...

    @dl.mutate("apps/v1/Deployment", name="large.deployments.example.com")
    def large(obj: dict[str, Any]) -> None:
        threads.append(threading.current_thread().name)
        obj["metadata"]["labels"] = {"a": "b"}

    async with serving([down, up, large]) as caller:
        big = database(replicas=1, image="x" * 100_000)
        found = response(await caller.ask(CONVERT, body=objects(3, big)))
        assert [each["spec"] for each in found["convertedObjects"]] == [big["spec"]] * 3
        answer = await caller.ask("/mutate/large.deployments.example.com", review(deployment("x" * 100_000)))
        assert "patch" in response(answer)
        assert any(thread.name.startswith("webhooks") for thread in threading.enumerate())
    assert set(threads) == {threading.current_thread().name}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CONVERT, objects(50_001, {})),
        (CONVERT, objects(1, database(image="x" * 3 * MIB))),
        (CONVERT, objects(1, database(lists=[[]] * 20_000))),
        (CONVERT, objects(1, database(numbers=[1] * 100_000))),
        (LABEL, json.dumps(review({**deployment(), "lists": [[]] * 40_000})).encode()),
        (LABEL, json.dumps(review({**deployment(), "numbers": [1] * 200_000})).encode()),
        (CHECK, json.dumps(review(database(replicas=1), options={"a": [[]] * 40_000})).encode()),
    ],
    ids=["objects", "bytes", "lists", "values", "lists of a review", "values of a review", "lists of options"],
)
async def test_limits_apply_before_processing(path: str, body: bytes) -> None:
    async with serving(ALL) as caller:
        answer = await caller.ask(path, body=io.BytesIO(body))
    assert (answer.status, json.loads(answer.body)["reason"]) == (413, "RequestEntityTooLarge")


async def test_large_invalid_body_is_rejected_with_status() -> None:
    async with serving(ALL) as caller:
        deep = json.dumps(conversion("example.com/v1beta1")).encode().replace(b"[]", b"[" * 100_000)
        assert (await caller.ask(CONVERT, body=deep)).status == 400
        broken = objects(2000, database(replicas=1)).replace(b'"replicas": 1}', b'"replicas": }', 1)
        found = response(await caller.ask(CONVERT, body=broken))
        assert found["result"]["status"] == "Failure"


async def test_late_conversion_stops_between_objects() -> None:
    made: list[int] = []

    async def convert() -> None:
        async with Turns().take(asyncio.get_running_loop().time() - 1.0) as turn:
            for number in range(100):
                made.append(number)
                await turn.worked()

    with pytest.raises(LateError):
        await convert()
    assert len(made) < 20


async def unfinished(caller: Caller, path: str, size: int) -> asyncio.StreamWriter:
    """Begin a request and send all of its body but one byte."""
    trusting = ssl.create_default_context(cadata=credentials()[0].ca_pem.decode())
    _, writer = await asyncio.open_connection("127.0.0.1", caller.server.port, ssl=trusting)
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {size + 1}\r\n\r\n"
    writer.write(head.encode())
    for _ in range(size // 65536):
        writer.write(b" " * 65536)
        await writer.drain()
    return writer


def held(server: WebhookServer) -> int:
    return server.bytes_in_flight.held


async def test_unfinished_bodies_have_total_limit_and_are_released() -> None:
    small = LOCAL.replace(max_bytes=2 * MIB, max_conversion_bytes=MIB, max_bytes_in_flight=4 * MIB)
    async with serving(ALL, small) as caller:
        writers = [await unfinished(caller, CHECK, MIB) for _ in range(8)]
        await asyncio.sleep(1)
        assert 3 * MIB < held(caller.server) <= 4 * MIB
        full = caller.server.bytes_in_flight
        before, full.most = full.most, full.held
        async with caller.session.post(f"{caller.server.url}{CHECK}", json=review(database(replicas=3))) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
            assert (await answer.json())["reason"] == "TooManyRequests"
        full.most = before
        await asyncio.sleep(30)  # the API server's time limit of each
        assert held(caller.server) == 0
        assert (await caller.ask(CHECK, review(database(replicas=3)))).status == 200
        for writer in writers:
            writer.transport.abort()


async def test_disconnected_client_releases_memory() -> None:
    async with serving(ALL) as caller:
        writer = await unfinished(caller, CHECK, MIB)
        await asyncio.sleep(1)
        assert held(caller.server) > MIB // 2
        writer.transport.abort()
        await asyncio.sleep(1)
        assert held(caller.server) == 0


async def test_unread_response_is_aborted() -> None:
    async with serving(ALL) as caller:
        trusting = ssl.create_default_context(cadata=credentials()[0].ca_pem.decode())
        reader, writer = await asyncio.open_connection("127.0.0.1", caller.server.port, ssl=trusting, limit=1)
        body = objects(8, database(replicas=1, image="postgres:" + "x" * 2 * MIB))
        head = f"POST {CONVERT} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        await asyncio.sleep(20)
        assert held(caller.server) > 8 * MIB, "it is being sent"
        await asyncio.sleep(40)
        assert held(caller.server) == 0
        assert reader is not None
        writer.transport.abort()


async def test_connection_memory_is_limited() -> None:
    """The figure of docs/project/security.md: three quarters of a MiB, beside what is counted for bodies."""
    number = 12
    async with serving(ALL) as caller:
        trusting = ssl.create_default_context(cadata=credentials()[0].ca_pem.decode())
        await caller.ask(CHECK, review(database(replicas=3)))
        unfinished_head = b"POST / HTTP/1.1\r\n" + b"".join(b"h%d: %s\r\n" % (each, b"x" * 8000) for each in range(31))
        tracemalloc.start()
        try:
            begin = tracemalloc.get_traced_memory()[0]
            writers: list[asyncio.StreamWriter] = []
            for _ in range(number):
                _, writer = await asyncio.open_connection("127.0.0.1", caller.server.port, ssl=trusting)
                writer.write(unfinished_head)
                writers.append(writer)
            await asyncio.sleep(1)
            taken = tracemalloc.get_traced_memory()[0] - begin
        finally:
            tracemalloc.stop()
        for writer in writers:
            writer.transport.abort()
    assert taken / number < 1.125 * MIB, "of which the client has a quarter"


async def test_new_handshake_replaces_oldest() -> None:
    async with serving(ALL) as caller:
        pending = [await asyncio.open_connection("127.0.0.1", caller.server.port) for _ in range(MOST_HANDSHAKES + 5)]
        assert (await caller.ask(CHECK, review(database(replicas=3)))).status == 200
        assert await asyncio.wait_for(pending[0][0].read(), 1.0) == b"", "it is cut"
        for _, writer in pending:
            writer.transport.abort()
