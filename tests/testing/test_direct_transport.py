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


def test_objects_are_written_read_listed_and_watched() -> None:
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


def test_a_body_that_is_too_large_is_refused() -> None:
    async def main() -> None:
        async with served() as (server, transport):
            with pytest.raises(RequestEntityTooLargeError):
                await client_of(server, transport).create(MAP, named("a", text="x" * 4_000_000))

    in_memory(main())


def test_a_server_that_is_not_there_refuses_and_one_that_restarts_breaks_off() -> None:
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
def test_an_answer_that_is_lost_is_an_error_and_no_answer(do: str) -> None:
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


def test_a_crash_ends_what_its_process_has_asked_for() -> None:
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


def test_a_transport_that_is_closed_sends_nothing() -> None:
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


def test_a_harness_hands_requests_over_unless_its_server_has_tls() -> None:
    async def main(options: ServerOptions) -> str:
        async with running_harness(ApiServer(options), direct=True) as harness:
            return type(state_of(harness).open_transport(harness.client.config)).__name__

    assert in_memory(main(default_server_options())) == "DirectTransport"
    assert in_memory(main(ServerOptions())) == "HttpTransport"
