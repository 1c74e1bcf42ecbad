"""Clients that do less and less, to see where the time goes: the difference of two is what the one does more.

``socket`` receives into one buffer and looks at nothing; ``http`` is aiohttp, which frames HTTP; ``lines`` cuts the
stream into lines beside that; the floor (``lab/bench/floor.py``) decodes metadata; ``client`` is our list and watch
without a cache. They follow the peers' protocol and keep nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import sys
from collections.abc import AsyncGenerator
from urllib.parse import urlsplit

import aiohttp

import deltaloop as dl
from lab.bench.peers import peer
from lab.bench.peers.deltaloop_peer import resource_type
from lab.bench.replay.recording import KINDS

_CONTINUE = re.compile(rb'"continue": "(\d+)"')
_LENGTH = re.compile(rb"Content-Length: (\d+)")
_LINES_PER_EVENT = 3  # the chunk's size, the event, the end of the chunk


def _path() -> str:
    return KINDS[peer.kind()].path


def by_socket() -> None:
    """Receive with one buffer, in blocking calls."""
    target = peer.target()
    address, context = urlsplit(target.url), target.context
    buffer = memoryview(bytearray(1 << 18))
    counter = peer.Counter()
    peer.say("ready")
    plain = socket.create_connection((address.hostname or "", address.port or 0))
    connection = context.wrap_socket(plain, server_hostname=address.hostname) if context is not None else plain

    def ask(query: str) -> None:
        connection.sendall(f"GET {_path()}?{query} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())

    def fill() -> int:
        continuation = ""
        while True:
            ask(f"limit=500{continuation}")
            got = connection.recv_into(buffer)
            while b'"items":[' not in (head := bytes(buffer[: min(got, 1024)])):
                got += connection.recv_into(buffer[got:])
            length = _LENGTH.search(head)
            assert length is not None
            left = head.index(b"\r\n\r\n") + 4 + int(length[1]) - got
            while left > 0:
                left -= connection.recv_into(buffer)
            token = _CONTINUE.search(head)
            if token is None:
                break
            continuation = f"&continue={token[1].decode()}"
        ask("watch=true")
        connection.recv_into(buffer)
        return peer.objects()

    for text in sys.stdin:
        line = text.split()
        if line[0] == "list":
            peer.say("synced", objects=fill())
        elif line[0] == "settle":
            peer.settle()
            peer.say("settled")
        elif line[0] == "events":
            peer.say("listening")
            left = int(line[1]) * _LINES_PER_EVENT
            while left > 0:
                left -= bytes(buffer[: connection.recv_into(buffer)]).count(b"\n")
            peer.say("done", latencies=counter.latencies())
        else:
            return


async def _received_by_aiohttp(*, lines: bool) -> AsyncGenerator[int]:
    """Yield -1 when the list is there, and after that how many events have come."""
    target = peer.target()
    async with aiohttp.ClientSession(
        target.url,
        connector=aiohttp.TCPConnector(ssl=target.context or True),
        timeout=aiohttp.ClientTimeout(total=None),
    ) as session:
        query = {"limit": "500"}
        while True:
            async with session.get(_path(), params=query) as answer:
                body = await answer.read()
            token = _CONTINUE.search(body, 0, 1024)
            if token is None:
                break
            query["continue"] = token[1].decode()
        async with session.get(_path(), params={"watch": "true"}) as answer:
            yield -1
            rest = b""
            async for chunk in answer.content.iter_any():
                if not lines:
                    yield chunk.count(b"\n")
                    continue
                rest += chunk
                begin = 0
                found = list[bytes]()
                while (end := rest.find(b"\n", begin)) >= 0:
                    found.append(rest[begin:end])
                    begin = end + 1
                rest = rest[begin:]
                yield len(found)


async def _received_by_client() -> AsyncGenerator[int]:
    """Do the same with our own client, without a cache."""
    async with dl.connect() as client:
        options = dl.ListOptions(limit=500)
        while True:
            page = await client.list(resource_type(), options=options)
            if not page.continue_:
                break
            options = options.replace(continue_=page.continue_)
        version = page.resource_version
        del page
        async with client.watch(resource_type(), options=dl.ListOptions(resource_version=version)) as stream:
            yield -1
            async for _ in stream:
                yield 1


async def by_loop(stage: str) -> None:
    """Receive on an event loop, and follow the runner."""
    counter, started, listed = peer.Counter(), asyncio.Event(), asyncio.Event()

    async def receive() -> None:
        await started.wait()
        stream = _received_by_client() if stage == "client" else _received_by_aiohttp(lines=stage == "lines")
        async with contextlib.aclosing(stream):
            async for events in stream:
                listed.set()
                for _ in range(events):
                    counter.event(str)

    receiving = asyncio.create_task(receive())
    peer.say("ready")
    await peer.converse(counter, lambda: peer.objects() if listed.is_set() else -1, lambda _: {}, started)
    receiving.cancel()
    await asyncio.wait([receiving])


if __name__ == "__main__":
    if sys.argv[1] == "socket":
        by_socket()
    else:
        asyncio.run(by_loop(sys.argv[1]))
