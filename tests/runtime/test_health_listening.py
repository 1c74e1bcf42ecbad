"""Where a health server listens, to whom it answers and with what, and how it ends."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp.compression_utils import ZLibDecompressor

from deltaloop._internal.http_connections import BoundedServer
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.references import Trigger
from deltaloop.errors import HealthServerError, RequestTimeoutError
from deltaloop.runtime.core.history import History, Reconciled
from deltaloop.runtime.core.readiness import Check
from deltaloop.runtime.program import health_server
from deltaloop.runtime.program.bind_address import BindAddress
from deltaloop.runtime.program.health_pages import EXPLAIN_PATH, explanation, metrics_page, probe
from deltaloop.runtime.program.health_server import HealthServer, _is_local
from deltaloop.runtime.program.pages import HttpPage, LocalRoute, Route
from tests.having import having
from tests.runtime.worlds import now

TEXT = "text/plain; charset=utf-8"


class Asked:
    """A route that keeps what it was asked."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.ended: list[str] = []
        self.seconds = seconds

    async def __call__(self, rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        self.asked.append((rest, dict(query)))
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("answered")
        return HttpPage(b"page")


def port_of(server: HealthServer) -> int:
    return int(server.url.rpartition(":")[2])


async def hang_up(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def exchange(
    server: HealthServer, request: str, *, context: ssl.SSLContext | None = None
) -> tuple[int, str, str]:
    """Send a request as it stands; return status, headers and body of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server), ssl=context)
    writer.write(request.replace("\n", "\r\n").encode() + b"\r\n\r\n")
    answer = (await reader.read()).decode()
    await hang_up(writer)
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split(" ")[1]), head.lower(), body


def has_ipv6() -> bool:
    with suppress(OSError), socket.socket(socket.AF_INET6) as probed:
        probed.bind(("::1", 0))
        return True
    return False


# -- where


def test_health_server_listens_on_loopback_by_default() -> None:
    listen = BindAddress()
    assert (listen.host, listen.port, listen.certificate, listen.key) == ("127.0.0.1", 0, None, None)
    assert not listen.token_review
    assert HttpPage(b"x") == HttpPage(b"x", TEXT, 200)


@pytest.mark.parametrize("port", [0, 65535])
def test_port_must_be_between_0_and_65535(port: int) -> None:
    assert BindAddress(port=port).port == port
    beyond = -1 if port == 0 else 65536
    with pytest.raises(InvalidArgumentError, check=having(argument="BindAddress.port")):
        BindAddress(port=beyond)


def test_bind_address_is_parsed_with_options() -> None:
    files = {"certificate": Path("c"), "key": Path("k")}
    listen = BindAddress.parse("localhost:8443", **files, token_review=True)
    assert listen == BindAddress(host="localhost", port=8443, **files, token_review=True)
    named = BindAddress.parse("BOX:80")
    assert named is not None
    assert named.host == "BOX"
    for wrong in ("localhost:\u0663", "localhost:", "80", ":"):
        with pytest.raises(InvalidArgumentError, check=having(argument="address")):
            BindAddress.parse(wrong)
    with pytest.raises(InvalidArgumentError, check=having(argument="BindAddress.certificate")):
        BindAddress(key=Path("k"))
    wrong_type: Any = 80
    with pytest.raises(TypeError, check=having(option="BindAddress.host")):
        BindAddress(host=wrong_type)


@pytest.mark.parametrize(
    ("host", "shown"),
    [("127.0.0.1", "http://127.0.0.1:"), ("::1", "http://[::1]:"), ("localhost", "http://localhost:")],
)
async def test_url_is_available_while_server_runs(host: str, shown: str, caplog: pytest.LogCaptureFixture) -> None:
    if host == "::1" and not has_ipv6():
        pytest.skip("no IPv6 loopback on this machine")
    caplog.set_level(logging.INFO, "deltaloop.runtime")
    server = HealthServer(BindAddress(host=host), {"/b": Asked(), "/a": Asked()})
    async with server as entered:
        assert entered is server
        assert server.url.startswith(shown)
        [told] = [vars(record) for record in caplog.records if "is listening" in record.getMessage()]
        assert (told["url"], told["paths"]) == (server.url, ["/a", "/b"])
        port = port_of(server)
        assert port > 0
    with pytest.raises(RuntimeError, match="no address"):
        _ = server.url
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_url_of_all_interfaces_is_unspecified_address() -> None:
    server = HealthServer(BindAddress(host="", port=8080), {})
    listener: Any = object()
    server._listener, server._port = listener, 8080
    assert server.url == "http://0.0.0.0:8080"


async def test_closed_connections_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_server, "_MOST_CONNECTIONS", 3)
    async with HealthServer(BindAddress(), {"/page": Asked()}) as server:
        reader, idle = await asyncio.open_connection("127.0.0.1", port_of(server))
        for _ in range(6):
            assert (await exchange(server, "GET /page HTTP/1.0"))[0] == 200
            await asyncio.sleep(0.1)
        assert not reader.at_eof()
        assert server._server is not None
        assert len(server._server.connections) == 1, "nothing is kept of those"
        idle.write(b"GET /page HTTP/1.0\r\n\r\n")
        assert (await reader.read()).endswith(b"page")
        await hang_up(idle)


async def test_unusable_address_raises_error_with_cause() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(HealthServerError, match=rf"127.0.0.1:{port} ") as caught:
            await HealthServer(BindAddress(port=port), {}).__aenter__()
        assert (caught.value.host, caught.value.port) == ("127.0.0.1", port)
    with pytest.raises(HealthServerError, match=r"cannot listen on 192\.0\.2\.1:0 for health or metrics: .") as caught:
        await HealthServer(BindAddress(host="192.0.2.1"), {}).__aenter__()
    assert (caught.value.host, caught.value.port) == ("192.0.2.1", 0)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def certificate(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "cert.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(path))
    return path


@pytest.fixture
def trust(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)  # pyright: ignore[reportUnknownMemberType]  # PyOpenSSL
    return context


async def test_unusable_certificate_raises_error_with_file(tmp_path: Path) -> None:
    missing, broken = tmp_path / "missing.pem", tmp_path / "broken.pem"
    broken.write_text("no certificate")
    for path, reason in ((missing, "No such file"), (broken, ".")):
        with pytest.raises(HealthServerError, match=rf"{path.name}: {reason}") as caught:
            await HealthServer(BindAddress(host="localhost", port=7, certificate=path, key=path), {}).__aenter__()
        assert (caught.value.host, caught.value.port) == ("localhost", 7)


async def test_missing_tls_handshake_times_out_after_ten_seconds(certificate: Path) -> None:
    async with HealthServer(BindAddress(certificate=certificate, key=certificate), {}) as server:
        assert server.url.startswith("https://127.0.0.1:")
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
        begun = now()
        assert await reader.read() == b""
        assert now() - begun == pytest.approx(10.0, abs=0.5)
        await hang_up(writer)


# -- with what


async def test_responses_have_no_store_and_nosniff_headers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    routes: dict[str, Route] = {"/page": Asked(), "/numbers": metrics_page(lambda: (b"1", "text/numbers"))}
    async with HealthServer(BindAddress(), routes) as server:
        status, headers, body = await exchange(server, "GET /page HTTP/1.0")
        assert (status, body) == (200, "page")
        assert f"content-type: {TEXT}" in headers
        assert "x-content-type-options: nosniff" in headers
        assert "cache-control: no-store" in headers.split("\r\n")
        assert "www-authenticate" not in headers
        assert "content-type: text/numbers" in (await exchange(server, "GET /numbers HTTP/1.0"))[1]
        assert (await exchange(server, "HEAD /page HTTP/1.0"))[::2] == (200, "")
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            status, _, body = await exchange(server, f"{method} /page HTTP/1.0")
            assert (status, body) == (405, "method not allowed\n")
    assert not [record for record in caplog.records if record.name.startswith("aiohttp")], "requests are not logged"


async def test_route_receives_rest_of_path_and_query() -> None:
    page = Asked()
    async with HealthServer(BindAddress(), {"/other": Asked(), "/page": page}) as server:
        for path in ("/page", "/page/", "/page/x/y/", "/page?a=1&a=2&b="):
            assert (await exchange(server, f"GET {path} HTTP/1.0"))[0] == 200
        assert page.asked == [("", {}), ("", {}), ("x/y", {}), ("", {"a": ["1", "2"], "b": [""]})]
        for path in ("/", "/pages", "/pag", "/x/page"):
            assert (await exchange(server, f"GET {path} HTTP/1.0"))[::2] == (404, "not found\n")


async def test_failing_page_is_logged_with_path(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        raise ValueError("planted")

    async with HealthServer(BindAddress(), {"/page": broken}) as server:
        assert (await exchange(server, "GET /page/x HTTP/1.0"))[::2] == (500, "internal error\n")
    [record] = [record for record in caplog.records if record.name == "deltaloop.runtime"]
    assert (vars(record)["path"], record.levelno) == ("/page", logging.ERROR)
    assert record.exc_info is not None


# -- to whom


class Reviewed:
    """Knows one token, which may get one path."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, token: str, path: str) -> bool:
        self.asked.append((token, path))
        if token == "late":
            raise RequestTimeoutError("no answer", method="POST", path="/")
        return (token, path) == ("good", "/page/x")


async def test_only_reviewed_tokens_can_read_pages(
    certificate: Path, trust: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    listen = BindAddress(certificate=certificate, key=certificate, token_review=True)
    page, reviewed = Asked(), Reviewed()
    async with HealthServer(listen, {"/page": page}, may_get=reviewed) as server:

        async def status(authorization: str, path: str = "/page/x") -> int:
            request = f"GET {path} HTTP/1.0{authorization and chr(10) + 'Authorization: ' + authorization}"
            code, headers, body = await exchange(server, request, context=trust)
            assert ("www-authenticate: bearer" in headers) is (code == 401)
            assert (
                body
                == {
                    200: "page",
                    401: "unauthorized\n",
                    403: "forbidden\n",
                    404: "not found\n",
                    503: "tokens cannot be reviewed now\n",
                }[code]
            )
            return code

        for none in ("", "Bearer", "Bearer  ", "Basic good", "good"):
            assert await status(none) == 401
        assert reviewed.asked == []
        assert await status("Bearer good") == 200
        assert await status("bEARER   good ") == 200
        assert await status("Bearer bad") == 403
        assert await status("Bearer good", "/page") == 403
        assert await status("Bearer late") == 503
        assert await status("", "/none") == 404
        assert reviewed.asked == [
            ("good", "/page/x"),
            ("good", "/page/x"),
            ("bad", "/page/x"),
            ("good", "/page"),
            ("late", "/page/x"),
        ]
        assert len(page.asked) == 2
    [record] = [record for record in caplog.records if "cannot review token" in record.getMessage()]
    assert (record.levelno, vars(record)["error"]) == (logging.WARNING, "RequestTimeoutError")


async def test_tokens_are_not_reviewed_by_default() -> None:
    reviewed = Reviewed()
    async with HealthServer(BindAddress(), {"/page": Asked()}, may_get=reviewed) as server:
        assert (await exchange(server, "GET /page HTTP/1.0"))[0] == 200
    assert reviewed.asked == []


@pytest.mark.parametrize(
    ("host", "remote", "local"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1:80", "127.0.0.1", True),
        ("127.3.2.1:80", "127.0.0.1", True),
        ("localhost:80", "::1", True),
        ("localhost", "::1", True),
        ("[::1]", "::1", True),
        ("[::1]:80", "127.0.0.1", True),
        ("[::2]:80", "127.0.0.1", False),
        ("[X::1]:80", "127.0.0.1", False),
        ("", "127.0.0.1", False),
        ("evil.example:80", "127.0.0.1", False),
        ("10.0.0.1:80", "127.0.0.1", False),
        ("localhost", "10.0.0.1", False),
        ("127.0.0.1", None, False),
    ],
)
def test_local_request_needs_loopback_peer_and_host(host: str, remote: Any, local: bool) -> None:
    request: Any = SimpleNamespace(headers={"Host": host}, remote=remote)
    assert _is_local(request) is local


async def test_local_page_rejects_remote_hosts() -> None:
    page = Asked()
    async with HealthServer(BindAddress(), {"/local": LocalRoute(page), "/page": Asked()}) as server:
        assert (await exchange(server, "GET /local HTTP/1.0"))[0] == 403  # no name at all
        refused = await exchange(server, "GET /local HTTP/1.0\nHost: evil.example")
        assert refused[::2] == (403, "forbidden: this page is for requests from the same machine\n")
        assert page.asked == []
        assert (await exchange(server, "GET /local/x?a=1 HTTP/1.0\nHost: localhost"))[::2] == (200, "page")
        assert page.asked == [("x", {"a": ["1"]})]
        assert (await exchange(server, "GET /page HTTP/1.0\nHost: evil.example"))[0] == 200


# -- how it ends


async def test_page_is_canceled_after_client_disconnects() -> None:
    page = Asked(60.0)
    async with HealthServer(BindAddress(), {"/page": page}) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
        writer.write(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(1.0)
        await hang_up(writer)
        await asyncio.sleep(1.0)
        assert page.ended == ["cancelled"]


@pytest.mark.parametrize(("seconds", "ended"), [(0.5, "answered"), (5.0, "cancelled")])
async def test_pending_response_has_one_second_at_shutdown(seconds: float, ended: str) -> None:
    page = Asked(seconds)
    async with HealthServer(BindAddress(), {"/page": page}) as server:
        _, idle = await asyncio.open_connection("127.0.0.1", port_of(server))
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
        writer.write(b"GET /page HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(0.1)
        leaving = now()
    assert now() - leaving == pytest.approx(0.4 if ended == "answered" else 2.0, abs=0.1)  # one to end, one to be cut
    assert page.ended == [ended]
    assert (await reader.read()).endswith(b"page") is (ended == "answered")
    await hang_up(idle, writer)


async def test_request_body_is_neither_read_nor_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[object] = []

    class Noted(ZLibDecompressor):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            unpacked.append(arguments)
            super().__init__(*arguments, **options)

    monkeypatch.setattr("aiohttp.http_parser.ZLibDecompressor", Noted)
    async with HealthServer(BindAddress(), {"/page": Asked()}) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
        writer.write(
            b"POST /page HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 1000000\r\n\r\nnot gzip"
        )
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 405")
        begun = now()
        await asyncio.wait_for(reader.read(), 5.0)
        assert now() - begun < 1.0, "the connection ends, and nobody waits for the rest"
        assert unpacked == []
        await hang_up(writer)


# -- pages


async def test_probe_returns_one_check_or_all() -> None:
    checks = (Check(name="ping", ok=True), Check(name="cache", ok=False, message="v1/Pod"))
    page = probe(lambda: checks)
    assert await page("", {}) == HttpPage(b"[+]ping ok\n[-]cache failed: v1/Pod\ncheck failed\n", TEXT, 500)
    assert await page("ping", {}) == HttpPage(b"ok", TEXT, 200)
    assert await page("cache", {}) == HttpPage(b"[-]cache failed: v1/Pod\ncheck failed\n", TEXT, 500)
    assert await page("none", {}) == HttpPage(b"no such check\n", TEXT, 404)
    assert await page("", {"exclude": ["cache"]}) == HttpPage(b"ok", TEXT, 200)
    assert await page("", {"exclude": ["cache", "ping"], "verbose": [""]}) == HttpPage(
        b"[+]cache excluded: ok\n[+]ping excluded: ok\ncheck passed\n", TEXT, 200
    )
    assert await metrics_page(lambda: (b"1", "x"))("more", {}) == HttpPage(b"not found\n", TEXT, 404)
    assert await metrics_page(lambda: (b"1", "x"))("", {}) == HttpPage(b"1", "x", 200)


def reconciled(key: str, kind: str = "v1/ConfigMap") -> Reconciled:
    return Reconciled(
        controller="maps", kind=kind, key=key, number=7, ended_at=90.0, seconds=0.5, attempt=1, result="success",
        error="", triggers=(Trigger(source="timer", verb="tick"),), triggers_dropped=0, writes=(), writes_dropped=0,
    )  # fmt: skip


async def test_explanation_contains_specified_object() -> None:
    history = History()
    for run in (reconciled("default/a"), reconciled("a", "v1/Node"), reconciled("other/a")):
        history.add(run)
    leader: list[str | None] = [None]
    page = explanation(history, clock=lambda: 100.0, standby_of=lambda: leader[0])
    assert EXPLAIN_PATH == "/explain"

    async def told(**query: str) -> tuple[int, dict[str, Any]]:
        answer = await page("", {name: [value] for name, value in query.items()})
        assert answer.content_type == "application/json"
        return answer.status, json.loads(answer.body)

    status, body = await told(name="a", namespace="default")
    assert status == 200
    assert sorted(run["key"] for run in body["reconciles"]) == ["a", "default/a"]
    assert body["reconciles"][0]["secondsAgo"] == 10.0
    assert "standby" not in body
    _, body = await told(name="a", namespace="default", kind="configmap")
    assert [run["key"] for run in body["reconciles"]] == ["default/a"]
    assert await told(name="b", namespace="default") == (404, {"reconciles": []})
    for leader[0] in ("", "pod-1"):
        assert (await told(name="b"))[1]["standby"] == {"leader": leader[0]}
    shard = {"range": "80", "owner": "pod-2"}
    page = explanation(history, clock=lambda: 100.0, standby_of=lambda: None, shard_of={"default/a": shard}.get)
    assert (await told(name="a", namespace="default"))[1]["shard"] == shard
    assert "shard" not in (await told(name="b"))[1]
    for rest, query in (("", {}), ("x", {"name": ["a"]}), ("", {"name": [""]})):
        wrong = await page(rest, query)
        assert (wrong.status, wrong.body[:11], wrong.content_type) == (400, b"bad request", TEXT)


async def test_request_of_closed_connection_is_not_handled() -> None:
    answered: list[object] = []

    async def answer(request: object) -> Any:
        answered.append(request)

    gone: Any = SimpleNamespace(protocol=object())
    with pytest.raises(ConnectionResetError):
        await BoundedServer(answer, most=1, logger=logging.getLogger("deltaloop.runtime.http"))._answered(gone)
    assert answered == []


async def test_unread_responses_are_bounded_in_total() -> None:
    page = HttpPage(b"x" * 9 * 2**20)

    async def large(rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        return page

    async with HealthServer(BindAddress(), {"/large": large, "/page": Asked()}) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server), limit=1)
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.sleep(1.0)
        status, headers, _ = await exchange(server, "GET /large HTTP/1.0")
        assert (status, "retry-after: 1" in headers) == (503, True)
        assert (await exchange(server, "GET /page HTTP/1.0"))[0] == 200, "a probe has its place"
        await asyncio.sleep(30.0)
        status, _, body = await exchange(server, "GET /large HTTP/1.0")
        assert (status, len(body)) == (200, len(page.body))
        assert reader is not None
        await hang_up(writer)


async def test_keep_alive_connection_serves_sequential_requests() -> None:
    async with HealthServer(BindAddress(), {"/page": Asked()}) as server, aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.get(f"{server.url}/page") as answer:
                assert (answer.status, await answer.text()) == (200, "page")
