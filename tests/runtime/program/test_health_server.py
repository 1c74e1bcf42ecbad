"""Health, readiness and metrics over HTTP."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import aiohttp.web
import pytest
import trustme

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.status import ForbiddenError, Status
from deltaloop.client import Client, ClientConfig
from deltaloop.errors import HealthServerError
from deltaloop.metrics import ProgramMetrics
from deltaloop.runtime import Context, Manager, ManagerOptions, Request, controller
from deltaloop.runtime.core.readiness import Check
from deltaloop.runtime.program import health_server
from deltaloop.runtime.program.bind_address import BindAddress
from deltaloop.runtime.program.health_pages import metrics_page, probe
from deltaloop.runtime.program.health_server import HealthServer
from deltaloop.runtime.program.pages import HttpPage
from deltaloop.runtime.program.token_reviews import review_tokens
from tests.client.loopback import serving
from tests.having import having
from tests.runtime.worlds import world


async def fetch(url: str, *, method: str = "GET", **options: Any) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.request(method, url, **options) as answer:
        return answer.status, await answer.text()


def ok() -> tuple[Check, ...]:
    return (Check(name="ping", ok=True),)


def failing() -> tuple[Check, ...]:
    return (Check(name="ping", ok=True), Check(name="cache", ok=False, message="v1/Pod"))


async def test_probes_respond_like_kubernetes() -> None:
    async with HealthServer(BindAddress(), {"/healthz": probe(ok), "/readyz": probe(failing)}) as server:
        assert await fetch(f"{server.url}/healthz") == (200, "ok")
        assert await fetch(f"{server.url}/healthz?verbose") == (200, "[+]ping ok\ncheck passed\n")
        assert await fetch(f"{server.url}/readyz") == (500, "[+]ping ok\n[-]cache failed: v1/Pod\ncheck failed\n")
        assert await fetch(f"{server.url}/readyz?exclude=cache") == (200, "ok")
        assert await fetch(f"{server.url}/readyz/ping") == (200, "ok")
        assert (await fetch(f"{server.url}/readyz/cache"))[0] == 500
        assert (await fetch(f"{server.url}/readyz/nothing"))[0] == 404
        assert (await fetch(f"{server.url}/secret"))[0] == 404
        assert (await fetch(f"{server.url}/healthz", method="POST", data=b"x" * 10_000))[0] == 405


async def test_server_survives_hostile_requests() -> None:
    async with HealthServer(BindAddress(), {"/healthz": probe(ok)}) as server:
        port = int(server.url.rpartition(":")[2])
        for hostile in (
            b"\x00\x01\x02\r\n\r\n",
            b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\nX: " + b"b" * 100_000 + b"\r\n\r\n",
            b"GET /healthz/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(hostile)
            first = (await reader.readline()).decode(errors="replace")
            assert first.startswith(("HTTP/1.1 4", "HTTP/1.0 4")), first
            writer.close()
            await writer.wait_closed()
        assert await fetch(f"{server.url}/healthz") == (200, "ok")


async def test_failing_page_returns_error_without_details(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> tuple[bytes, str]:
        raise RuntimeError("planted-secret")

    async with HealthServer(BindAddress(), {"/metrics": metrics_page(broken)}) as server:
        assert await fetch(f"{server.url}/metrics") == (500, "internal error\n")
        assert (await fetch(f"{server.url}/metrics/x"))[0] == 404
    assert "page of the health server failed" in caplog.text


async def test_error_contains_used_port_or_missing_certificate(tmp_path: Path) -> None:
    async with HealthServer(BindAddress(), {}) as server:
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(HealthServerError, match=rf"127.0.0.1:{port} is in use"):
            await HealthServer(BindAddress(port=port), {}).__aenter__()
    with pytest.raises(HealthServerError, match=r"no\.pem"):
        await HealthServer(BindAddress(certificate=tmp_path / "no.pem", key=tmp_path / "no.pem"), {}).__aenter__()
    with pytest.raises(RuntimeError):
        _ = server.url


@pytest.mark.parametrize(
    ("address", "host", "port"), [("127.0.0.1:8080", "127.0.0.1", 8080), (":9", "", 9), ("[::1]:0", "::1", 0)]
)
def test_bind_addresses_are_parsed(address: str, host: str, port: int) -> None:
    listen = BindAddress.parse(address)
    assert listen is not None
    assert (listen.host, listen.port) == (host, port)


def test_invalid_bind_addresses_are_rejected_and_zero_disables() -> None:
    assert BindAddress.parse("0") is None
    assert BindAddress.parse("") is None
    for wrong in ("8080", "localhost", "a:b", "a:-1"):
        with pytest.raises(InvalidArgumentError):
            BindAddress.parse(wrong)
    with pytest.raises(InvalidArgumentError, check=having(argument="BindAddress.port")):
        BindAddress(port=70_000)
    with pytest.raises(InvalidArgumentError, check=having(argument="BindAddress.certificate")):
        BindAddress(certificate=Path("x"))
    with pytest.raises(InvalidArgumentError, check=having(argument="BindAddress.token_review")):
        BindAddress(token_review=True)


async def test_metrics_over_tls_need_token_allowed_by_server(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "cert.pem"))
    reviewed: list[str] = []

    async def handle(request: aiohttp.web.Request) -> aiohttp.web.StreamResponse:
        body = await request.json()
        if body["kind"] == "TokenReview":
            token = body["spec"]["token"]
            reviewed.append(token)
            body["status"] = {"authenticated": token != "unknown", "user": {"username": token}}
        else:
            assert body["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
            body["status"] = {"allowed": body["spec"]["user"] == "prometheus"}
        return aiohttp.web.json_response(body, status=201)

    trust = ssl.create_default_context()
    authority.configure_trust(trust)  # pyright: ignore[reportUnknownMemberType]  # PyOpenSSL
    listen = BindAddress(certificate=tmp_path / "cert.pem", key=tmp_path / "cert.pem", token_review=True)
    with pytest.raises(InvalidArgumentError, check=having(argument="BindAddress.token_review")):
        HealthServer(listen, {})
    async with serving(handle) as address, Client(ClientConfig(server=f"http://{address}")) as client:
        routes = {"/metrics": metrics_page(lambda: (b"numbers", "text/plain"))}
        async with HealthServer(listen, routes, may_get=review_tokens(client)) as server:
            for header, expected in (
                (None, (401, "unauthorized\n")),
                ("Basic abc", (401, "unauthorized\n")),
                ("Bearer unknown", (403, "forbidden\n")),
                ("Bearer somebody", (403, "forbidden\n")),
                ("Bearer prometheus", (200, "numbers")),
            ):
                headers = {} if header is None else {"Authorization": header}
                for _ in range(2):  # the second time from the short memory
                    assert await fetch(f"{server.url}/metrics", ssl=trust, headers=headers) == expected
    assert reviewed == ["unknown", "somebody", "prometheus"]

    async def cannot(token: str, path: str) -> bool:
        raise ForbiddenError(Status(code=403, reason="Forbidden", message="no reviews for you"))

    async with HealthServer(listen, routes, may_get=cannot) as server:
        answer = await fetch(f"{server.url}/metrics", ssl=trust, headers={"Authorization": "Bearer x"})
        assert answer == (503, "tokens cannot be reviewed now\n")


async def test_a_manager_serves_health_and_all_its_metrics() -> None:
    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None: ...

    metrics = ProgramMetrics()
    async with (
        world() as w,
        w.running(
            reconcile,
            metrics=metrics.controllers,
            metrics_page=metrics.render,
            health=BindAddress(),
        ) as manager,
    ):
        await w.put("a")
        await asyncio.sleep(1.0)
        url = manager.servers["health"].url
        assert await fetch(f"{url}/healthz") == (200, "ok")
        status, text = await fetch(f"{url}/readyz?verbose")
        assert status == 200
        assert "[+]leader ok: no election" in text
        page = metrics.render()[0].decode()
    for line in (
        'controller_runtime_reconcile_total{controller="maps",result="success"} 1.0',
        'controller_runtime_reconcile_total{controller="maps",result="error"} 0.0',
        'controller_runtime_reconcile_time_seconds_count{controller="maps"} 1.0',
        'controller_runtime_max_concurrent_reconciles{controller="maps"} 1.0',
        'controller_runtime_active_workers{controller="maps"} 0.0',
        'deltaloop_reconcile_triggers_total{controller="maps",source="informer",verb="add"} 1.0',
        'workqueue_adds_total{name="maps"} 1.0',
    ):
        assert line in page


@asynccontextmanager
async def connections(
    server: HealthServer, number: int, sent: bytes = b""
) -> AsyncGenerator[list[asyncio.StreamReader]]:
    port = int(server.url.rpartition(":")[2])
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(number)]
    for _, writer in held:
        writer.write(sent)
    await asyncio.sleep(0.1)
    try:
        yield [reader for reader, _ in held]
    finally:
        for _, writer in held:
            writer.transport.abort()


async def ended(reader: asyncio.StreamReader) -> bool:
    await asyncio.sleep(0.001)
    return reader.at_eof() or reader.exception() is not None


async def test_probe_replaces_longest_idle_connection() -> None:
    sent = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-"
    async with HealthServer(BindAddress(), {"/healthz": probe(ok)}) as server, connections(server, 100, sent) as held:
        for _ in range(3):
            assert await fetch(f"{server.url}/healthz") == (200, "ok")
        assert await ended(held[0])
        assert not await ended(held[-1])


async def test_connection_with_pending_response_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_server, "_MOST_CONNECTIONS", 10)
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        asked.set()
        await answer.wait()
        return HttpPage(b"at last")

    async with HealthServer(BindAddress(), {"/slow": slow}) as server:
        waiting = asyncio.create_task(fetch(f"{server.url}/slow"))
        await asked.wait()
        async with connections(server, 15) as held:
            states = [await ended(reader) for reader in held]
            assert states == [True] * 6 + [False] * 9
            answer.set()
            assert await waiting == (200, "at last")


async def test_keep_alive_connection_can_be_replaced_after_response(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_server, "_MOST_CONNECTIONS", 3)
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    async with HealthServer(BindAddress(), {"/healthz": probe(ok)}) as server, connections(server, 3, request) as held:
        for reader in held:
            assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200 OK\r\n")
        assert await fetch(f"{server.url}/healthz") == (200, "ok")
        assert [await ended(reader) for reader in held] == [True, False, False]


async def test_new_connection_is_closed_if_all_others_await_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_server, "_MOST_CONNECTIONS", 10)
    answer = asyncio.Event()

    async def slow(rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        await answer.wait()
        return HttpPage(b"at last")

    request = b"GET /slow HTTP/1.0\r\n\r\n"
    async with HealthServer(BindAddress(), {"/slow": slow}) as server, connections(server, 10, request) as held:
        async with connections(server, 1) as more:
            assert await ended(more[0])
        answer.set()
        assert all([(await reader.read()).endswith(b"at last") for reader in held])


async def test_a_connection_without_a_request_ends_after_ten_seconds() -> None:
    async with HealthServer(BindAddress(), {"/healthz": probe(ok)}) as server:
        async with connections(server, 1, b"GET /healthz HTTP/1.1\r\nHost: x\r\n") as held:
            await asyncio.sleep(9.8)
            assert not await ended(held[0])
            await asyncio.sleep(0.1)
            assert await ended(held[0])
        async with connections(server, 1, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n") as held:
            await asyncio.sleep(55)
            assert (await held[0].readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200 OK\r\n")
            assert not await ended(held[0])
            await asyncio.sleep(6)
            assert await ended(held[0])


async def test_metrics_without_a_page_are_refused() -> None:
    async with world() as w:
        with pytest.raises(InvalidArgumentError, check=having(argument="ManagerOptions.metrics")):
            Manager(w.client, [], options=ManagerOptions(metrics=BindAddress()))
