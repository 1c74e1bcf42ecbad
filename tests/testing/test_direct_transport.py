"""Requests that are handed to a server on the same loop: as over sockets, but for what is between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.api.status import RequestEntityTooLargeError
from deltaloop.apiserver import ApiServer, Fault, ServerOptions
from deltaloop.client import Client
from deltaloop.client.connecting import load_config
from deltaloop.client.errors import StreamEndedError, TransportError
from deltaloop.client.transport.protocol import HttpRequest
from deltaloop.testing import MemoryNetwork, run_virtual
from deltaloop.testing.deterministic_loop.processes import Process
from deltaloop.testing.harness import running_harness, state_of
from deltaloop.testing.servers.cluster import default_server_options
from deltaloop.testing.servers.direct_transport import DirectTransport

MAP = dl.kinds.CONFIG_MAP
WATCH = HttpRequest(method="GET", path="/api/v1/configmaps", query={"watch": "true"})


@asynccontextmanager
async def served() -> AsyncGenerator[tuple[ApiServer, DirectTransport]]:
    async with ApiServer(default_server_options()) as server:
        transport = DirectTransport(load_config(kubeconfig=server.kubeconfig()), server)
        yield server, transport
        await transport.close()


def in_memory(main: Coroutine[Any, Any, Any]) -> Any:
    return run_virtual(main, network=MemoryNetwork())


def client_of(server: ApiServer, transport: DirectTransport) -> Client:
    return Client(load_config(kubeconfig=server.kubeconfig()), transport=transport)


def named(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def test_direct_transport_supports_all_requests() -> None:
    async def main() -> None:
        async with served() as (server, transport):
            client = client_of(server, transport)
            await client.create(MAP, named("a", text="ä" * 100_000))
            assert len((await client.get(MAP, "a"))["data"]["text"]) == 100_000
            assert [found.name for found in await client.list_all(MAP)] == ["a"]
            seen: list[str] = []
            async with transport.stream(WATCH) as answer:
                assert answer.headers.get("content-type") == "application/json"
                chunks = aiter(answer.chunks)
                seen.append((await anext(chunks)).decode()[:15])
                assert server.faults.open_watches == 1
                await client.delete(MAP, "a")
                seen.append((await anext(chunks)).decode()[:17])
            await asyncio.sleep(1)
            assert seen == ['{"type":"ADDED"', '{"type":"DELETED"']
            assert server.faults.open_watches == 0, "who leaves a watch ends it"

    in_memory(main())


def test_too_large_body_is_rejected() -> None:
    async def main() -> None:
        async with served() as (server, transport):
            with pytest.raises(RequestEntityTooLargeError):
                await client_of(server, transport).create(MAP, named("a", text="x" * 4_000_000))

    in_memory(main())


def test_stopped_server_refuses_and_restart_ends_streams() -> None:
    async def main() -> None:
        async with served() as (server, transport):
            async with transport.stream(WATCH) as answer:
                away = asyncio.ensure_future(server.faults.restart(5.0))
                with pytest.raises(StreamEndedError, match="reset"):
                    async for _ in answer.chunks:
                        pass
            with pytest.raises(TransportError, match="refused") as caught:
                await transport.request(HttpRequest(method="GET", path="/version"))
            assert caught.value.refused
            await away
            assert (await transport.request(HttpRequest(method="GET", path="/version"))).status == 200
        with pytest.raises(TransportError):
            await transport.request(HttpRequest(method="GET", path="/version"))

    in_memory(main())


@pytest.mark.parametrize("do", ["drop", "lose"])
def test_lost_response_raises_error(do: str) -> None:
    async def main() -> bool:
        async with served() as (server, transport):
            server.faults.add(Fault(do=do, verbs=("create",)))
            body = b'{"metadata": {"name": "a"}}'
            headers = {"Content-Type": "application/json"}
            path = "/api/v1/namespaces/default/configmaps"
            with pytest.raises(TransportError) as caught:
                await transport.request(HttpRequest(method="POST", path=path, headers=headers, body=body))
            assert caught.value.cut
            return await client_of(server, transport).find(MAP, "a") is not None

    assert in_memory(main()) is (do == "lose")


def test_crash_ends_requests_of_process() -> None:
    async def main() -> None:
        async with served() as (server, transport):
            process = Process("a")

            async def watches() -> None:
                async with transport.stream(WATCH) as answer:
                    async for _ in answer.chunks:
                        pass

            process.start(watches(), name="watches")
            await asyncio.sleep(1)
            assert server.faults.open_watches == 1
            process.crash()
            await asyncio.sleep(1)
            assert server.faults.open_watches == 0
            process.dispose()

    in_memory(main())


def test_closed_transport_sends_no_requests() -> None:
    async def main() -> None:
        async with served() as (_, transport):
            async with transport.stream(WATCH) as answer:
                await transport.close()
                with pytest.raises(StreamEndedError):
                    async for _ in answer.chunks:
                        pass
            with pytest.raises(TransportError, match="closed"):
                await transport.request(HttpRequest(method="GET", path="/version"))

    in_memory(main())


def test_harness_uses_direct_transport_without_tls() -> None:
    async def main(options: ServerOptions) -> str:
        async with running_harness(ApiServer(options), direct=True) as harness:
            return type(state_of(harness).open_transport(harness.client.config)).__name__

    assert in_memory(main(default_server_options())) == "DirectTransport"
    assert in_memory(main(ServerOptions())) == "HttpTransport"
