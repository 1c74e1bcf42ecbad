"""What our own connections do that a library did before: early answers, idle ends, servers that are held back."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from deltaloop.client import ClientConfig, HttpRequest, HttpTransport
from deltaloop.client.transport.http_transport import _in_turn
from deltaloop.errors import TransportError
from deltaloop.testing import MemoryNetwork, run_virtual

GET = HttpRequest(method="GET", path="/x", timeout=5.0)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Peer(asyncio.Protocol):
    """The other end of a connection: says what the test says after each write that ends a request."""

    def __init__(self, says: Callable[[Peer], None], peers: list[Peer]) -> None:
        self.says = says
        self.got = b""
        self.asked = 0
        self.open = True
        self.writes = True
        peers.append(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got += data
        self.asked += 1
        self.says(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False

    def pause_writing(self) -> None:
        self.writes = False

    def resume_writing(self) -> None:
        self.writes = True


def say(data: bytes, *, close: bool = False) -> Callable[[Peer], None]:
    def says(peer: Peer) -> None:
        peer.transport.write(data)
        if close:
            peer.transport.close()

    return says


async def served(says: Callable[[Peer], None]) -> tuple[HttpTransport, list[Peer]]:
    peers: list[Peer] = []
    await asyncio.get_running_loop().create_server(lambda: Peer(says, peers), "127.0.0.1", 8080)
    return HttpTransport(ClientConfig(server="http://127.0.0.1:8080")), peers


async def failure(transport: HttpTransport, request: HttpRequest = GET) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await transport.request(request)
    return caught.value


def in_memory(test: Callable[[], object]) -> None:
    """Run a test on a network of its own, in virtual time."""
    run_virtual(test(), network=MemoryNetwork())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_idle_connection_is_closed_after_half_a_minute() -> None:
    async def play() -> None:
        transport, peers = await served(say(OK))
        await transport.request(GET)
        await asyncio.sleep(20.0)
        await transport.request(GET)
        await asyncio.sleep(29.0)
        assert [peer.open for peer in peers] == [True]
        await asyncio.sleep(2.0)
        assert [peer.open for peer in peers] == [False]
        await transport.request(GET)
        await transport.close()
        await asyncio.sleep(0.1)
        assert [peer.open for peer in peers] == [False, False]

    in_memory(play)


@pytest.mark.parametrize("start", [0.0, 0.1, 2.3, 2.8, 3.3, 3.8, 12345.678901, 1000000.7, 1700000000.1])
def test_idle_connections_are_checked_rarely(start: float) -> None:
    async def play() -> None:
        transport, peers = await served(say(OK))
        looks = 0
        closes = transport._look

        def look() -> None:
            nonlocal looks
            looks += 1
            assert looks < 50, "it looks again at the very same moment"
            closes()

        transport._look = look  # type: ignore[method-assign]
        await asyncio.gather(*(transport.request(GET) for _ in range(3)))
        await asyncio.sleep(31.0)
        assert not any(peer.open for peer in peers)
        assert looks > 0
        await transport.close()

    run_virtual(play(), start=start, network=MemoryNetwork())


def test_last_used_connection_is_reused_and_excess_ones_close() -> None:
    async def play() -> None:
        transport, peers = await served(say(OK))
        await asyncio.gather(*(transport.request(GET) for _ in range(5)))
        assert len(peers) == 5
        for _ in range(40):
            await asyncio.sleep(1.0)
            await transport.request(GET)
        assert sum(peer.open for peer in peers) == 1
        assert len(peers) == 5
        await transport.close()

    in_memory(play)


def test_unexpected_data_ends_a_kept_connection() -> None:
    async def play() -> None:
        transport, peers = await served(say(OK))
        await transport.request(GET)
        peers[0].transport.write(OK)
        await asyncio.sleep(0.1)
        assert not peers[0].open
        assert (await transport.request(GET)).body == b"ok"
        assert len(peers) == 2
        await transport.close()

    in_memory(play)


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (OK, True),
        (OK + b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nplanted", False),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", False),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", True),
    ],
)
def test_response_belongs_only_to_its_request(answer: bytes, kept: bool) -> None:
    async def play() -> None:
        transport, peers = await served(say(answer))
        for _ in range(3):
            assert (await transport.request(GET)).body == b"ok"
        assert len(peers) == (1 if kept else 3)
        await transport.close()

    in_memory(play)


def test_response_without_length_ends_with_connection() -> None:
    async def play() -> None:
        transport, _ = await served(say(b"HTTP/1.1 200 OK\r\n\r\nall of it", close=True))
        assert (await transport.request(GET)).body == b"all of it"
        async with transport.stream(GET) as stream:
            assert b"".join([chunk async for chunk in stream.chunks]) == b"all of it"
        await transport.close()

    in_memory(play)


@pytest.mark.parametrize("close", [False, True])
def test_response_before_end_of_large_body_is_read(close: bool) -> None:
    """As Go's does when a body is larger than it takes: it answers, and reads no more."""
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"

    def says(peer: Peer) -> None:
        if peer.asked == 1:
            peer.transport.write(refusal)
            peer.transport.pause_reading()
            if close:
                peer.transport.close()

    async def play() -> None:
        transport, peers = await served(says)
        answer = await transport.request(HttpRequest(method="POST", path="/x", body=bytes(20_000_000), timeout=5.0))
        assert (answer.status, answer.body) == (413, b"no")
        peers[0].transport.resume_reading()
        await asyncio.sleep(0.1)
        assert not peers[0].open, "half of a body stands on it"
        await transport.close()

    in_memory(play)


def test_large_body_waits_for_slow_server() -> None:
    body = bytes(range(256)) * 40_000

    async def play() -> None:
        wanted = 0

        def says(peer: Peer) -> None:
            nonlocal wanted
            wanted = len(peer.got.partition(b"\r\n\r\n")[2])
            peer.transport.pause_reading()
            asyncio.get_running_loop().call_later(0.01, peer.transport.resume_reading)
            if wanted == len(body):
                peer.transport.write(OK)

        transport, peers = await served(says)
        answer = await transport.request(HttpRequest(method="PUT", path="/x", body=body, timeout=60.0))
        assert answer.body == b"ok"
        assert peers[0].got.endswith(b"\r\n\r\n" + body)
        await transport.close()

    in_memory(play)


def test_unread_stream_pauses_server() -> None:
    async def play() -> None:
        sent = 0

        def says(peer: Peer) -> None:
            nonlocal sent
            peer.transport.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while peer.writes and sent < 100_000_000:
                peer.transport.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")
                sent += 0x10000

        transport, peers = await served(says)
        async with transport.stream(GET) as stream:
            await asyncio.sleep(1.0)
            assert sent < 2_000_000
            read = 0
            async for chunk in stream.chunks:
                read += len(chunk)
                if read == sent:
                    break
            assert read == sent
        await asyncio.sleep(0.1)
        assert not peers[0].open
        await transport.close()

    in_memory(play)


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: planted\r\n\r\n"])
def test_invalid_http_error_has_no_received_bytes(answer: bytes) -> None:
    async def play() -> None:
        transport, peers = await served(say(answer))
        error = await failure(transport, HttpRequest(method="POST", path="/x", body=b"{}", timeout=5.0))
        assert "response of 127.0.0.1:8080 as HTTP" in str(error)
        assert (error.sent, error.cut, error.refused) == (True, False, False)
        assert "planted" not in f"{error!r} {error.__cause__!r}"
        await asyncio.sleep(0.1)
        assert [peer.open for peer in peers] == [False]
        await transport.close()

    in_memory(play)


def test_closing_ends_active_requests() -> None:
    async def play() -> None:
        transport, peers = await served(lambda _: None)
        asked = [asyncio.create_task(failure(transport)) for _ in range(3)]
        await asyncio.sleep(1.0)
        await transport.close()
        for error in await asyncio.gather(*asked):
            assert "127.0.0.1:8080 closed the connection" in str(error)
        assert "the client is closed" in str(await failure(transport))
        await asyncio.sleep(0.1)
        assert [peer.open for peer in peers] == [False] * 3
        await transport.close()

    in_memory(play)


def test_request_bytes_are_complete() -> None:
    async def play() -> None:
        transport, peers = await served(say(OK))
        headers = {"Accept": "a/b", "Content-Type": "c/d"}
        for method, body in (("GET", None), ("DELETE", None), ("POST", None), ("PATCH", b"{}")):
            request = HttpRequest(
                method=method, path="/a%2Fb", query={"x": "y z"}, headers=headers, body=body, timeout=5.0
            )
            await transport.request(request)
        await transport.close()
        for begins, ends in (
            (b"GET", b"\r\n\r\n"),
            (b"DELETE", b"c/d\r\n\r\n"),
            (b"POST", b"\r\nContent-Length: 0\r\n\r\n"),
            (b"PATCH", b"\r\nContent-Length: 2\r\n\r\n{}"),
        ):
            start = peers[0].got.index(begins)
            sent = peers[0].got[start : peers[0].got.index(ends, start) + len(ends)]
            head = sent.partition(b"\r\n\r\n")[0].decode().split("\r\n")
            assert head[0] == f"{begins.decode()} /a%2Fb?x=y%20z HTTP/1.1"
            assert {"Host: 127.0.0.1:8080", "Accept-Encoding: gzip", "Accept: a/b", "Content-Type: c/d"} <= set(head)
            assert len(head) == len({line.partition(":")[0].lower() for line in head})

    in_memory(play)


def test_families_take_turns() -> None:
    six, four = socket.AF_INET6, socket.AF_INET
    addresses = [(six, "1"), (six, "2"), (six, "3"), (four, "4"), (four, "5")]
    assert [address for _, address in _in_turn(list(addresses))] == ["1", "4", "2", "5", "3"]
