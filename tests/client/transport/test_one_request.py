"""One request on a kept connection, whatever happens to it."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable

import msgspec
import pytest

from deltaloop.api.status import NotFoundError
from deltaloop.client import ClientConfig, ClientOptions, Credential, HttpRequest, HttpTransport
from deltaloop.client.core.credential import bearer
from deltaloop.client.transport.sender import RequestSender
from deltaloop.errors import RequestTimeoutError, ResponseTooLargeError, TransportError
from tests.client.transport.test_http_transport import GET, OK, Peer, in_memory, say, served

PACKED = gzip.compress(b"ok", mtime=0)
ANSWERS = {
    "length": OK,
    "chunks": b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
    "a warning": b'HTTP/1.1 200 OK\r\nWarning: 299 - "old"\r\nContent-Length: 2\r\n\r\nok',
    "interim": b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK,
    "compressed": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED,
}


async def opened(says: Callable[[Peer], None]) -> tuple[RequestSender, list[Peer]]:
    """A sender with one kept connection, whose other end says what the test says from then on."""
    peers: list[Peer] = []
    await asyncio.get_running_loop().create_server(lambda: Peer(say(OK), peers), "127.0.0.1", 8080)
    transport = HttpTransport(ClientConfig(server="http://127.0.0.1:8080", max_response_bytes=1_000_000))
    sender = RequestSender(transport, default_timeout=30.0, options=ClientOptions())
    assert (await sender.send("GET", "/first")).body == b"ok"
    (peer,) = peers
    peer.got, peer.says = b"", says
    return sender, peers


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("by_bytes", [False, True])
def test_response_is_returned_and_connection_is_kept(name: str, by_bytes: bool) -> None:
    async def said(peer: Peer) -> None:
        for byte in ANSWERS[name]:
            peer.transport.write(bytes([byte]))
            await asyncio.sleep(0.01)

    tasks: list[asyncio.Future[None]] = []

    def says(peer: Peer) -> None:
        if by_bytes:
            tasks.append(asyncio.ensure_future(said(peer)))
        else:
            peer.transport.write(ANSWERS[name])

    async def play() -> None:
        sender, peers = await opened(says)
        for _ in range(3):
            assert (await sender.send("PUT", "/x", body=b"{}", query={"a": "b c"})).body == b"ok"
        assert len(peers) == 1
        assert peers[0].got.startswith(b"PUT /x?a=b%20c HTTP/1.1\r\n")
        assert peers[0].got.endswith(b"\r\nContent-Length: 2\r\n\r\n{}")
        await sender.close()

    in_memory(play)


@pytest.mark.parametrize("begins", [b"", OK[:20], OK[:-1], ANSWERS["compressed"][:-5]])
@pytest.mark.parametrize("limit", [0.5, 5.0, 30.0, 47.0])
def test_a_deadline_ends_a_request_in_time(limit: float, begins: bytes) -> None:
    async def play() -> None:
        sender, peers = await opened(lambda peer: peer.transport.write(begins) if begins else None)
        await asyncio.sleep(3.25)
        began = asyncio.get_running_loop().time()
        with pytest.raises(RequestTimeoutError, match=f"{limit:g} s") as caught:
            await sender.send("PUT", "/x", body=b"{}", timeout=limit)
        assert asyncio.get_running_loop().time() - began == pytest.approx(limit, abs=0.002)
        assert caught.value.sent
        await asyncio.sleep(0.1)
        assert not peers[0].open
        await sender.close()

    in_memory(play)


def test_one_timer_serves_many_deadlines() -> None:
    async def play() -> None:
        loop, ends = asyncio.get_running_loop(), dict[float, float]()
        await loop.create_server(lambda: Peer(lambda _: None, []), "127.0.0.1", 8080)
        transport = HttpTransport(ClientConfig(server="http://127.0.0.1:8080"))

        async def late(limit: float) -> None:
            with pytest.raises(RequestTimeoutError):
                await transport.request(HttpRequest(method="GET", path="/x", timeout=limit))
            ends[limit] = loop.time()

        unlimited = asyncio.create_task(transport.request(HttpRequest(method="GET", path="/x")))
        limits = [0.7, 0.3, 90.0, 2.0, 0.2, 45.0, 29.9]
        await asyncio.gather(*map(late, limits))
        assert ends == {limit: pytest.approx(limit, abs=0.002) for limit in limits}
        assert not unlimited.done()
        await transport.close()
        with pytest.raises(TransportError):
            await unlimited

    in_memory(play)


@pytest.mark.parametrize("begins", [b"", OK[:20], OK[:-1], ANSWERS["compressed"][:-5]])
def test_canceling_closes_the_connection(begins: bytes) -> None:
    async def play() -> None:
        sender, peers = await opened(lambda peer: peer.transport.write(begins) if begins else None)
        asked = asyncio.create_task(sender.send("GET", "/x"))
        await asyncio.sleep(1.0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await asyncio.sleep(0.1)
        assert not peers[0].open
        assert (await sender.send("GET", "/y")).body == b"ok"
        await sender.close()

    in_memory(play)


def test_canceling_with_a_complete_response_takes_no_connection_from_others() -> None:
    async def play() -> None:
        sender, _ = await opened(lambda peer: peer.transport.write(OK))
        for steps in range(20):
            first = asyncio.create_task(sender.send("GET", "/x"))
            for _ in range(steps):
                await asyncio.sleep(0)
            second = asyncio.create_task(sender.send("GET", "/y"))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.wait([first])
            assert (await second).body == b"ok"
        await sender.close()

    in_memory(play)


@pytest.mark.parametrize("name", ["a stream", "compressed"])
def test_canceling_in_any_step_closes_a_connection_with_an_incomplete_response(name: str) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" if name == "a stream" else ANSWERS[name][:-5]

    async def play() -> None:
        transport, peers = await served(say(head))

        async def ask() -> None:
            if name == "a stream":
                async with transport.stream(GET):
                    await asyncio.sleep(60)
            else:
                await transport.request(msgspec.structs.replace(GET, timeout=None))

        for steps in range(20):
            asked = asyncio.create_task(ask())
            for _ in range(steps):
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.wait([asked])
            await asyncio.sleep(0.1)
            assert [peer.open for peer in peers].count(True) == 0, f"{steps} steps"
        await transport.close()

    in_memory(play)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_connection_that_breaks_during_request(method: str) -> None:
    async def play() -> None:
        sender, peers = await opened(lambda peer: peer.transport.abort())
        if method == "GET":
            assert (await sender.send(method, "/x")).body == b"ok"
            assert len(peers) == 2
        else:
            with pytest.raises(TransportError) as caught:
                await sender.send(method, "/x", body=b"{}")
            assert (caught.value.sent, caught.value.cut) == (True, True)
        await sender.close()

    in_memory(play)


def test_error_responses_are_raised_and_busy_servers_are_retried() -> None:
    busy = b"HTTP/1.1 429 No\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n"
    answers = [b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", busy, busy, OK]

    async def play() -> None:
        sender, peers = await opened(lambda peer: peer.transport.write(answers.pop(0)))
        with pytest.raises(NotFoundError):
            await sender.send("GET", "/x")
        began = asyncio.get_running_loop().time()
        assert (await sender.send("POST", "/x", body=b"{}")).body == b"ok"
        assert asyncio.get_running_loop().time() - began == pytest.approx(6.0, abs=0.01)
        assert len(peers) == 1
        await sender.close()

    in_memory(play)


def test_a_write_check_is_called_once_and_its_connection_is_kept() -> None:
    asked: list[str] = []

    def check(action: str) -> None:
        asked.append(action)
        if len(asked) == 2:
            raise PermissionError(action)

    async def play() -> None:
        sender, peers = await opened(lambda peer: peer.transport.write(OK))
        write = HttpRequest("PUT", "/x", body=b"{}", before_send=lambda: check("PUT /x"))
        await sender.exchange(write, 30.0)
        peers[0].got = b""
        with pytest.raises(PermissionError, match="PUT /x"):
            await sender.exchange(write, 30.0)
        assert peers[0].got == b""
        assert (await sender.send("GET", "/x")).body == b"ok"
        assert asked == ["PUT /x"] * 2
        assert len(peers) == 1
        await sender.close()

    in_memory(play)


@pytest.mark.parametrize("trickles", [False, True])
def test_too_large_response_closes_connection(trickles: bool) -> None:
    sent = 0

    def says(peer: Peer) -> None:
        nonlocal sent
        peer.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")

        def more() -> None:
            nonlocal sent
            if peer.open and sent < 3_000_000:
                peer.transport.write(bytes(100_000))
                sent += 100_000
                asyncio.get_running_loop().call_later(0.1 if trickles else 0.0, more)

        more()

    async def play() -> None:
        sender, peers = await opened(says)
        with pytest.raises(ResponseTooLargeError, match="1000000 bytes"):
            await sender.send("GET", "/x")
        await asyncio.sleep(0.1)
        assert sent < 1_500_000
        assert not peers[0].open
        await sender.close()

    in_memory(play)


class Slow:
    """Credentials whose login takes longer than any request may."""

    def __init__(self) -> None:
        self.first, self.second = bearer("first"), bearer("second")

    async def credential(self) -> Credential:
        await asyncio.sleep(100.0)
        return self.first

    async def renew(self, rejected: Credential) -> Credential | None:
        assert rejected is self.first
        await asyncio.sleep(100.0)
        return self.second


@pytest.mark.parametrize("late", [False, True])
def test_a_login_does_not_count_against_the_deadline(late: bool) -> None:
    def says(peer: Peer) -> None:
        loop = asyncio.get_running_loop()
        if b"Bearer first" in peer.got:
            peer.got = b""
            refusal = b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"
            loop.call_later(3.0, peer.transport.write, refusal)
        else:
            loop.call_later(3.0 if late else 1.0, peer.transport.write, OK)

    async def play() -> None:
        peers: list[Peer] = []
        await asyncio.get_running_loop().create_server(lambda: Peer(says, peers), "127.0.0.1", 8080)
        transport = HttpTransport(ClientConfig(server="http://127.0.0.1:8080"))
        transport._credentials = Slow()
        request = HttpRequest(method="GET", path="/x", timeout=5.0)
        if late:
            with pytest.raises(RequestTimeoutError):
                await transport.request(request)
        else:
            assert (await transport.request(request)).body == b"ok"
        ends = 205.0 if late else 204.0
        assert asyncio.get_running_loop().time() == pytest.approx(ends, abs=0.01)
        await transport.close()

    in_memory(play)
