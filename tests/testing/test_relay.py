"""The relay over real sockets, in virtual time: both peers live on the loop of the test."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trustme

from deltaloop.testing import Corrupt, Cut, Delay, Direction, HalfOpen, Relay, Reset, Stall, Throttle


class Echo:
    """A server that answers each line with itself, and counts."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.ends: list[str] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                self.lines.append(line)
                writer.write(line)
                await writer.drain()
            self.ends.append("end")
        except ConnectionError:
            self.ends.append("reset")
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@asynccontextmanager
async def echo(*, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Echo, None]:
    service = Echo()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0, ssl=tls)
    service.port = server.sockets[0].getsockname()[1]
    try:
        yield service
    finally:
        server.close()
        await settle()


@asynccontextmanager
async def relayed() -> AsyncGenerator[tuple[Echo, Relay], None]:
    async with echo() as service, Relay(f"127.0.0.1:{service.port}") as relay:
        yield service, relay
    assert relay.connections == ()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@asynccontextmanager
async def calling(relay: Relay) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter], None]:
    reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        await settle()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: bytes) -> bytes:
    writer.write(line)
    await writer.drain()
    return await reader.readline()


async def test_relay_without_faults_forwards_bytes_and_ends() -> None:
    async with relayed() as (service, relay):
        async with calling(relay) as (reader, writer):
            assert await ask(reader, writer, b"hello\n") == b"hello\n"
            large = b"x" * 50_000 + b"\n"
            assert await ask(reader, writer, large) == large
            writer.write_eof()
            assert await reader.read() == b""
        assert service.lines == [b"hello\n", large]
        assert service.ends == ["end"]
        assert relay.connections == ()
        assert relay.accepted == 1


async def test_twenty_megabytes_pass_with_back_pressure() -> None:
    body = bytes(range(256)) * (20 * 4096)
    received = bytearray()

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65536):
            received.extend(chunk)
        writer.close()

    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with Relay(f"127.0.0.1:{port}") as relay, calling(relay) as (reader, writer):
        for start in range(0, len(body), 1 << 20):
            writer.write(body[start : start + (1 << 20)])
            await writer.drain()
        writer.write_eof()
        assert await reader.read() == b""
    server.close()
    assert received == body


async def test_planned_cut_forwards_exact_number_of_bytes() -> None:
    async with relayed() as (service, relay):
        relay.plan(Cut(after_bytes=4))
        async with calling(relay) as (reader, writer):
            writer.write(b"123456\n")
            assert await reader.read() == b"1234"
        async with calling(relay) as (reader, writer):
            assert await ask(reader, writer, b"next\n") == b"next\n"
        assert len(service.lines) == 2


async def test_plan_applies_to_next_or_all_connections() -> None:
    async with relayed() as (_, relay):
        relay.plan(connections=1)
        relay.plan(Cut(), connections=1)
        relay.plan(Reset(), connections=None)
        async with calling(relay) as (reader, writer):
            assert await ask(reader, writer, b"a\n") == b"a\n"
        async with calling(relay) as (reader, _writer):
            assert await reader.read() == b""
        for _ in range(2):
            with pytest.raises(ConnectionResetError):
                async with calling(relay) as (reader, _writer):
                    await reader.read()
        relay.clear()
        async with calling(relay) as (reader, writer):
            assert await ask(reader, writer, b"b\n") == b"b\n"


async def test_both_peers_see_reset() -> None:
    async with relayed() as (service, relay), calling(relay) as (reader, writer):
        assert await ask(reader, writer, b"a\n") == b"a\n"
        relay.inject(Reset())
        with pytest.raises(ConnectionResetError):
            await reader.read()
        await settle()
        assert service.ends == ["reset"]


async def test_stall_ends_after_its_duration() -> None:
    loop = asyncio.get_running_loop()
    async with relayed() as (service, relay), calling(relay) as (reader, writer):
        relay.inject(Stall(duration=3600))
        await relay.wait_for_connections(1)
        relay.inject(Stall(duration=3600.0))
        began = loop.time()
        assert await ask(reader, writer, b"a\n") == b"a\n"
        assert loop.time() - began == 3600.0
        assert service.lines == [b"a\n"]


async def test_fault_can_affect_one_connection_only() -> None:
    async with relayed() as (_, relay), calling(relay) as first, calling(relay) as second:
        await relay.wait_for_connections(2)
        await settle()
        relay.inject(Stall(), on=relay.connections[0])
        assert await ask(*second, b"b\n") == b"b\n"
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(*first, b"a\n"), 100)
        relay.clear()
        assert await first[0].readline() == b"a\n"


async def test_half_open_connection_stays_open_for_both_peers() -> None:
    async with relayed() as (service, relay):
        async with calling(relay) as (reader, writer):
            assert await ask(reader, writer, b"a\n") == b"a\n"
            relay.inject(HalfOpen())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ask(reader, writer, b"b\n"), 1000)
        assert service.lines == [b"a\n"]
        assert service.ends == []
        assert len(relay.connections) == 1, "the server still believes in it"


async def test_delay_and_throttle_take_expected_time() -> None:
    loop = asyncio.get_running_loop()
    async with relayed() as (_, relay):
        relay.plan(Delay(seconds=2.0), Delay(seconds=1.0, direction=Direction.TO_SERVER))
        relay.plan(Throttle(bytes_per_second=10))
        async with calling(relay) as (reader, writer):
            began = loop.time()
            assert await ask(reader, writer, b"a\n") == b"a\n"
            assert loop.time() - began == 3.0
        async with calling(relay) as (reader, writer):
            began = loop.time()
            assert await ask(reader, writer, b"123456789012345678\n") == b"123456789012345678\n"
            assert loop.time() - began == pytest.approx(1.8, abs=0.11)


async def test_corruption_is_exact() -> None:
    async with relayed() as (_, relay):
        relay.plan(Corrupt(after_bytes=1, mask=0x20))
        async with calling(relay) as (reader, writer):
            assert await ask(reader, writer, b"abc\n") == b"aBc\n"


async def test_refusing_keeps_the_port_and_open_connections() -> None:
    async with relayed() as (_, relay), calling(relay) as (reader, writer):
        assert await ask(reader, writer, b"a\n") == b"a\n"
        port = relay.port
        relay.refuse()
        assert relay.refusing
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        assert await ask(reader, writer, b"b\n") == b"b\n"
        await relay.accept()
        async with calling(relay) as (later, sender):
            assert await ask(later, sender, b"c\n") == b"c\n"
        assert relay.port == port


async def test_refusing_target_is_reset() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        async with Relay(f"127.0.0.1:{nobody.getsockname()[1]}") as relay:
            with pytest.raises(ConnectionResetError):
                async with calling(relay) as (reader, _writer):
                    await reader.read()
            assert relay.connections == ()


async def test_exit_closes_stalled_connections() -> None:
    async with echo() as service:
        async with Relay(f"127.0.0.1:{service.port}") as relay:
            reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
            writer.write(b"a\n")
            assert await reader.readline() == b"a\n"
            relay.inject(Stall(), Stall(direction=Direction.TO_SERVER))
            writer.write(b"b\n")
        assert relay.connections == ()
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()
        await settle()
        assert service.ends == ["reset"]


async def test_tls_passes_through_untouched() -> None:
    authority = trustme.CA()
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(server_side)  # pyright: ignore[reportUnknownMemberType]
    client_side = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
    async with echo(tls=server_side) as service, Relay(f"127.0.0.1:{service.port}") as relay:
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port, ssl=client_side)
        assert await ask(reader, writer, b"secret\n") == b"secret\n"
        relay.inject(Corrupt())
        writer.write(b"more\n")
        with pytest.raises(ssl.SSLError):
            await reader.readline()
        writer.close()
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            await writer.wait_closed()
        await settle()


def test_relay_addresses_are_parsed() -> None:
    assert Relay("https://127.0.0.1:6443/prefix").url == "https://127.0.0.1:0/prefix"
    assert Relay("example.org:80").url == "tcp://127.0.0.1:0"
    with pytest.raises(ValueError, match=r"example\.org"):
        Relay("example.org")


async def test_kubeconfig_of_relay_has_its_address() -> None:
    ours = {"name": "ours", "cluster": {"server": "https://127.0.0.1:6443/x", "tls-server-name": "a"}}
    other = {"name": "other", "cluster": {"server": "https://example.org"}}
    given = {"clusters": [ours, other], "users": []}
    async with Relay("https://127.0.0.1:6443") as relay:
        changed = relay.kubeconfig(given)
    assert changed["clusters"][0]["cluster"] == {
        "server": f"https://127.0.0.1:{relay.port}/x",
        "tls-server-name": "a",
    }
    assert changed["clusters"][1] == other
    assert ours["cluster"] == {"server": "https://127.0.0.1:6443/x", "tls-server-name": "a"}
