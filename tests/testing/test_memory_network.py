"""Connections in memory: as on sockets, but the same in each run, and out of reach of the machine's."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.testing import Cut, MemoryNetwork, Relay, Stall, embedded_harness, run_virtual
from deltaloop.testing.deterministic_loop.memory_network import NetworkLoop
from deltaloop.testing.deterministic_loop.processes import Process

MAP = dl.kinds.CONFIG_MAP
Served = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


def in_memory(main: Coroutine[Any, Any, Any]) -> Any:
    return run_virtual(main, network=MemoryNetwork())


@asynccontextmanager
async def connected(
    served: Served, limit: int = 2**16
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    server = await asyncio.start_server(served, "127.0.0.1", 0, limit=limit)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("localhost", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        server.close()
        await asyncio.sleep(1)  # the other end hears of it


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1000):
        writer.write(data)
    writer.write(b"end")
    writer.close()


def test_bytes_arrive_in_order_and_directions_end_separately() -> None:
    async def main() -> bytes:
        async with connected(echo) as (reader, writer):
            for number in range(1000):
                writer.write(b"%d," % number)
            writer.write_eof()
            assert writer.get_extra_info("peername")[0] == "localhost"
            return await reader.read()

    assert in_memory(main()) == b"".join(b"%d," % number for number in range(1000)) + b"end"


def test_memory_network_does_not_use_ports_of_machine() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as real:
            port = real.getsockname()[1]
            with pytest.raises(ConnectionRefusedError, match=f"{port} "):
                await asyncio.open_connection("127.0.0.1", port)
            async with await asyncio.start_server(echo, "127.0.0.1", port):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write_eof()
                assert await reader.read() == b"end"
                writer.close()
                with pytest.raises(OSError) as caught:
                    await asyncio.start_server(echo, "localhost", port)
                assert caught.value.errno == errno.EADDRINUSE
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)

    in_memory(main())


def test_servers_on_any_address_are_reachable_with_different_ports() -> None:
    async def main() -> None:
        servers = [await asyncio.start_server(echo, host, 0) for host in (None, "0.0.0.0", "127.0.0.1")]
        ports = [server.sockets[0].getsockname()[1] for server in servers]
        assert len({*ports}) == 3
        for port in ports:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write_eof()
            assert await reader.read() == b"end"
            writer.close()
        for server in servers:
            server.close()

    in_memory(main())


def _held_back(network: MemoryNetwork) -> tuple[int, int]:
    go_on = asyncio.Event()

    async def main() -> tuple[int, int]:
        async def lazy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await go_on.wait()
            while await reader.read(2**16):
                pass
            writer.close()

        async with connected(lazy) as (_, writer):
            sent = 0
            while True:
                writer.write(b"x" * 10_000)
                sent += 10_000
                try:
                    async with asyncio.timeout(1):
                        await writer.drain()
                except TimeoutError:
                    break
                if sent > 10_000_000:
                    break
            before = sent
            go_on.set()
            for _ in range(1000):
                writer.write(b"x" * 10_000)
                await writer.drain()
            return before, writer.transport.get_write_buffer_size()

    return run_virtual(main(), network=network)


def test_unread_bytes_block_writer() -> None:
    before, left = _held_back(MemoryNetwork())
    assert before < 1_000_000
    assert left <= 2**16


@pytest.mark.parametrize("reads_all", [True, False])
def test_close_with_unread_bytes_is_reset(reads_all: bool) -> None:
    async def main() -> bytes:
        async def closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if reads_all:
                await reader.readexactly(4)
            writer.write(b"what was written arrives")
            transport = writer.transport
            if not reads_all:
                assert isinstance(transport, asyncio.Transport)
                transport.pause_reading()
                await asyncio.sleep(0.1)
            transport.close()

        async with connected(closes) as (reader, writer):
            await asyncio.sleep(0.05)
            writer.write(b"ping")
            first = await reader.readexactly(24)
            assert first == b"what was written arrives"
            return await reader.read()

    if reads_all:
        assert in_memory(main()) == b""
    else:
        with pytest.raises(ConnectionResetError):
            in_memory(main())


def test_write_to_closed_peer_raises_error() -> None:
    async def main() -> None:
        async def leaves(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        lost = asyncio.get_running_loop().create_future()

        class Keeps(asyncio.Protocol):
            def eof_received(self) -> bool:
                return True

            def connection_lost(self, exc: Exception | None) -> None:
                lost.set_result(exc)

        async with await asyncio.start_server(leaves, "127.0.0.1", 1):
            transport, _ = await asyncio.get_running_loop().create_connection(Keeps, "127.0.0.1", 1)
            await asyncio.sleep(1)
            transport.write(b"?")
            assert isinstance(await lost, ConnectionResetError)
            with pytest.raises(ValueError, match="high"):
                transport.set_write_buffer_limits(high=1, low=2)

    in_memory(main())


async def _work(options: ServerOptions) -> tuple[list[str], float]:
    async with ApiServer(options) as server, dl.connect(kubeconfig=server.kubeconfig()) as client:
        seen = list[str]()
        async with client.watch(MAP, namespace="default") as events:
            for number in range(3):
                fields: dict[str, Any] = {
                    "metadata": {"name": f"m{number}", "namespace": "default"},
                    "data": {"x": "y" * 300_000},
                }
                await client.create(MAP, fields)
            async for event in events:
                seen.append(f"{event.type.value} {event.object.name} {len(event.object['data']['x'])}")
                if len(seen) == 3:
                    break
        return seen, asyncio.get_running_loop().time()


@pytest.mark.parametrize("tls", [True, False])
def test_api_server_behaves_like_on_sockets(tls: bool) -> None:
    options = ServerOptions(insecure_http=not tls)
    assert in_memory(_work(options)) == run_virtual(_work(options))


def test_rejected_certificate_ends_connection() -> None:
    async def main() -> None:
        async with ApiServer() as server:
            stranger = ServerOptions()
            async with ApiServer(stranger) as other:
                config = other.kubeconfig()
                config["clusters"][0]["cluster"]["server"] = server.url
                async with dl.connect(kubeconfig=config) as client:
                    with pytest.raises(dl.errors.TransportError, match=r"certificate of 127.0.0.1:\d+"):
                        await client.get(MAP, "x", namespace="default")

    in_memory(main())


def test_relay_faults_affect_memory_network() -> None:
    async def main() -> None:
        async with ApiServer(ServerOptions(insecure_http=True)) as server, Relay(server.url) as relay:
            config = server.kubeconfig()
            config["clusters"][0]["cluster"]["server"] = relay.url
            async with dl.connect(kubeconfig=config) as client:
                await client.list(MAP)
                for connection in relay.connections:
                    connection.inject(Stall())
                with pytest.raises(dl.errors.RequestTimeoutError):
                    await client.list(MAP, timeout=5)
                relay.plan(Cut(), connections=None)
                with pytest.raises(dl.errors.TransportError):
                    await client.list(MAP)
                relay.clear()
                await client.list(MAP)
                relay.refuse()
                for connection in relay.connections:
                    connection.abort()
                with pytest.raises(dl.errors.TransportError, match="refused"):
                    await client.list(MAP)

    in_memory(main())


def test_crashed_process_leaves_network() -> None:
    async def main() -> None:
        heard = list[bytes]()

        async def hears(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.read())
            writer.close()

        async with await asyncio.start_server(hears, "127.0.0.1", 1):

            async def program() -> None:
                _, writer = await asyncio.open_connection("127.0.0.1", 1)
                await asyncio.start_server(echo, "127.0.0.1", 2)
                writer.write(b"I live")
                try:
                    await asyncio.sleep(3600)
                finally:
                    writer.write(b"no clean-up is run")

            process = Process("a")
            process.start(program())
            await asyncio.sleep(1)
            process.crash()
            await asyncio.sleep(1)
            assert heard == [b"I live"]
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", 2)
            process.dispose()

    in_memory(main())


def _trace(network: MemoryNetwork | None) -> list[str]:
    @dl.controller(MAP, name="copies", children=["v1/Secret"], predicates=[dl.predicates.HasLabels("copied")])
    async def copies(request: dl.Request, ctx: dl.Context) -> None:
        found = await ctx.client.find(MAP, request.name, namespace=request.namespace)
        if found is not None:
            metadata = {"name": request.name, "namespace": request.namespace}
            await ctx.children.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})

    async def main() -> list[str]:
        async with embedded_harness(seed=7) as harness:
            await harness.start(copies)
            for number in range(5):
                metadata: dict[str, Any] = {"name": f"m{number}", "namespace": "default", "labels": {"copied": "yes"}}
                await harness.client.create(MAP, {"metadata": metadata})
            await harness.settled()
            return [str(write) for write in harness.writes]

    return run_virtual(main(), network=network)


def test_program_behaves_equally_on_sockets_and_in_memory() -> None:
    assert _trace(MemoryNetwork()) == _trace(None)


def test_loop_without_network_uses_sockets() -> None:
    assert NetworkLoop.network is None
