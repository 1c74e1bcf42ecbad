"""What the transport says and leaves behind when something fails, and what it does not do unasked."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from deltaloop.api.redaction import SecretText
from deltaloop.client import ClientConfig, Credential, HttpRequest, Pool, StaticToken, TlsConfig
from deltaloop.client.core.credential import bearer
from deltaloop.client.transport.http_transport import HttpTransport, make_socket
from deltaloop.errors import CredentialsError, RequestTimeoutError, TransportError
from tests.client.authority import Authority
from tests.client.fake_transport import logged
from tests.client.loopback import free_port, raw_server, serving
from tests.having import having

pytestmark = [pytest.mark.real_time, pytest.mark.usefixtures("no_proxy")]

GET = HttpRequest(method="GET", path="/x", timeout=5.0)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


async def failure(config: ClientConfig, request: HttpRequest = GET) -> TransportError:
    transport = HttpTransport(config)
    try:
        with pytest.raises(TransportError) as caught:
            await transport.request(request)
        return caught.value
    finally:
        await transport.close()


async def test_failed_connection_has_system_error_as_cause() -> None:
    error = await failure(ClientConfig(server=f"http://127.0.0.1:{free_port()}"))
    assert isinstance(error.__cause__, ConnectionRefusedError)
    assert error.__suppress_context__
    assert str(error).startswith("GET /x: ")


@pytest.mark.parametrize(
    ("server", "address"), [("http://nowhere.invalid", ":80"), ("https://nowhere.invalid", ":443")]
)
async def test_error_names_default_port(server: str, address: str) -> None:
    assert f"nowhere.invalid{address}" in str(await failure(ClientConfig(server=server)))


async def test_timeout_error_names_duration_and_request() -> None:
    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(30 if request.path == "/slow" else 0)
        return web.Response(text="ok")

    async with serving(slow) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        for path, timeout in (("/x", None), ("/slow", 0.05)):  # on a connection that stands, it is sent at once
            request = HttpRequest(method="PUT", path=path, timeout=timeout)
            reading = HttpRequest(method="GET", path=path, timeout=timeout)
            if timeout is None:
                await transport.request(request)
                async with transport.stream(reading) as answer:
                    assert [chunk async for chunk in answer.chunks] == [b"ok"]
                continue
            with pytest.raises(RequestTimeoutError) as caught:
                await transport.request(request)
            error = caught.value
            assert str(error) == f"PUT /slow: no response from {address} within 0.05 s"
            assert (error.method, error.path) == ("PUT", "/slow")
            assert (error.sent, error.refused, error.cut) == (True, False, False)
            with pytest.raises(RequestTimeoutError, match=f"GET /slow: .*{address}.* 0.05 s"):
                async with transport.stream(reading):
                    pass
        await transport.close()


async def test_request_after_close_is_named_in_error() -> None:
    transport = HttpTransport(ClientConfig(server="http://127.0.0.1:1"))
    await transport.close()
    with pytest.raises(TransportError, check=having(sent=False)) as caught:
        await transport.request(HttpRequest(method="PUT", path="/y"))
    assert (caught.value.method, caught.value.path, caught.value.refused) == ("PUT", "/y", False)
    assert repr(transport).endswith("Transport http://127.0.0.1:1>")


# Time limits


@pytest.mark.parametrize("timeout", [None, math.inf])
async def test_request_without_timeout_completes(timeout: float | None) -> None:
    async def script(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)

    async with raw_server(script) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        request = HttpRequest(method="GET", path="/x", timeout=timeout)
        assert (await transport.request(request)).body == b"ok"
        async with transport.stream(request) as answer:
            assert [chunk async for chunk in answer.chunks] == [b"ok"]
        await transport.close()


async def test_timeout_of_stream_applies_to_opening() -> None:
    go_on = asyncio.Event()

    async def script(number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        await writer.drain()
        if number:
            await go_on.wait()
        writer.write(b"ok")

    async with raw_server(script) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        for timeout in (None, 0.5):
            async with transport.stream(HttpRequest(method="GET", path="/x", timeout=timeout)) as answer:
                await asyncio.sleep(0.55 if timeout else 0)
                go_on.set()
                assert [chunk async for chunk in answer.chunks] == [b"ok"]
            go_on.clear()
        await transport.close()


async def test_request_canceled_during_body_closes_connection() -> None:
    begun, gone = asyncio.Event(), asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while True:
                await answer.write(b"x\n")
                begun.set()
                await asyncio.sleep(0.005)
        except (ConnectionError, asyncio.CancelledError):
            gone.set()
            raise

    async with serving(endless) as address, asyncio.timeout(20):
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        asked = asyncio.create_task(transport.request(GET))
        await begun.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await gone.wait()
        await transport.close()


# Credentials


class Scripted:
    """Credentials that give, and renew to, what the test says."""

    def __init__(self, first: Credential | Exception, second: Credential | Exception | None = None) -> None:
        self.first, self.second = first, second
        self.rejected: list[Credential] = []

    async def credential(self) -> Credential:
        if isinstance(self.first, Exception):
            raise self.first
        return self.first

    async def renew(self, rejected: Credential) -> Credential | None:
        self.rejected.append(rejected)
        if isinstance(self.second, Exception):
            raise self.second
        return self.second


class Gate:
    """A server that lets one token in; counts connections that are open."""

    def __init__(self, token: str, *, endless: bool = False) -> None:
        self.token = token
        self.endless = endless  # refusals
        self.peers: list[object] = []
        self.transports: list[asyncio.BaseTransport] = []
        self.first_was_closed: bool | None = None

    async def serve(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        self.peers.append(request.transport.get_extra_info("peername"))
        self.transports.append(request.transport)
        good = request.headers.get("Authorization") == f"Bearer {self.token}"
        if good and self.endless and len(self.peers) > 1:
            self.first_was_closed = await self.is_closed(0)
        if good or not self.endless:
            return web.Response(status=200 if good else 401, text="ok")
        answer = web.StreamResponse(status=401)
        await answer.prepare(request)
        await answer.write(b"no")
        await self.is_closed(len(self.peers) - 1)
        return answer

    async def is_closed(self, number: int) -> bool:
        """Wait a moment for the client to close a connection whose answer it has not read."""
        until = asyncio.get_running_loop().time() + 2.0
        while (  # noqa: ASYNC110 - nothing tells of it
            not self.transports[number].is_closing() and asyncio.get_running_loop().time() < until
        ):
            await asyncio.sleep(0.005)
        return self.transports[number].is_closing()


@pytest.mark.parametrize(
    "second", [CredentialsError("issuer", "planted nothing"), TimeoutError("the login's own"), None, bearer("new")]
)
async def test_unauthorized_response_renews_credential_once(
    second: Credential | Exception | None, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "deltaloop.client")
    tls = authority.server_context()

    async def request(transport: HttpTransport) -> int:
        return (await transport.request(GET)).status

    async def stream(transport: HttpTransport) -> int:
        async with transport.stream(GET) as answer:
            return answer.status

    for status in (request, stream):
        caplog.clear()
        first, gate = bearer("old"), Gate("new", endless=second is not None)
        credentials = Scripted(first, second)
        async with serving(gate.serve, tls=tls) as address:
            transport = HttpTransport(
                ClientConfig(server=f"https://{address}", tls=TlsConfig(ca_data=authority.pem), credentials=credentials)
            )
            if isinstance(second, Exception):
                with pytest.raises(type(second)) as caught:
                    await status(transport)
                assert caught.value is second
                assert await gate.is_closed(0)
            else:
                assert await status(transport) == (200 if second else 401)
            await transport.close()
        assert credentials.rejected == [first]
        assert len(gate.peers) == (2 if isinstance(second, Credential) else 1)
        assert gate.first_was_closed in (None, True)
        said = [(record.getMessage(), record.__dict__["server"]) for record in logged(caplog)]
        wanted = ("renewed credentials after the server rejected them", address)
        assert said == [wanted] * isinstance(second, Credential)


@pytest.mark.parametrize("error", [CredentialsError("issuer", "down"), TimeoutError("the login's own")])
async def test_error_of_credentials_is_raised_before_sending(error: Exception, authority: Authority) -> None:
    gate = Gate("x")
    async with serving(gate.serve, tls=authority.server_context()) as address:
        tls = TlsConfig(ca_data=authority.pem)
        transport = HttpTransport(ClientConfig(server=f"https://{address}", tls=tls, credentials=Scripted(error)))
        with pytest.raises(type(error)) as caught:
            await transport.request(GET)
        assert caught.value is error
        with pytest.raises(type(error)) as caught:
            async with transport.stream(GET):
                pass
        assert caught.value is error
        await transport.close()
    assert gate.peers == []


async def test_long_login_leaves_full_request_timeout(authority: Authority) -> None:
    class Slow(Scripted):
        async def renew(self, rejected: Credential) -> Credential | None:
            await asyncio.sleep(0.55)
            return await super().renew(rejected)

    gate = Gate("old")
    async with serving(gate.serve, tls=authority.server_context()) as address:
        config = ClientConfig(
            server=f"https://{address}",
            tls=TlsConfig(ca_data=authority.pem),
            credentials=Slow(bearer("old"), bearer("new")),
        )
        transport = HttpTransport(config)
        assert (await transport.request(GET)).status == 200
        gate.token = "new"
        assert (await transport.request(HttpRequest(method="GET", path="/x", timeout=0.5))).status == 200
        await transport.close()


async def test_unsent_credentials_are_named_with_their_server(caplog: pytest.LogCaptureFixture) -> None:
    HttpTransport(ClientConfig(server="http://h:1", credentials=StaticToken(SecretText("planted"))))
    HttpTransport(ClientConfig(server="http://h:1"))
    (record,) = logged(caplog)
    assert (record.levelname, record.__dict__["server"]) == ("WARNING", "http://h:1")


# Connections


async def test_each_kind_of_call_has_connections_of_its_own() -> None:
    peers: dict[str, object] = {}

    async def who(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers[request.path] = request.transport.get_extra_info("peername")
        return web.Response(text="ok")

    async with serving(who) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        elected = Pool.LEADER_ELECTION
        await transport.request(HttpRequest(method="GET", path="/a"))
        await transport.request(HttpRequest(method="GET", path="/b", pool=elected))
        async with transport.stream(HttpRequest(method="GET", path="/c")) as answer:
            assert [chunk async for chunk in answer.chunks] == [b"ok"]
        for path, pool in (("/list", Pool.REQUESTS), ("/lease", elected)):
            async with transport.stream(HttpRequest(method="GET", path=path, pool=pool, bounded=True)) as answer:
                assert [chunk async for chunk in answer.chunks] == [b"ok"]
        await transport.close()
    assert len({peers["/a"], peers["/b"], peers["/c"]}) == 3
    assert (peers["/list"], peers["/lease"]) == (peers["/a"], peers["/b"])


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_read_on_dead_connection_is_retried_once(method: str) -> None:
    served: list[int] = []

    async def die_from_the_second_on(number: int, writer: asyncio.StreamWriter) -> None:
        served.append(number)
        if number:
            writer.close()
        else:
            writer.write(OK)

    async with raw_server(die_from_the_second_on) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        await transport.request(GET)
        with pytest.raises(TransportError) as caught:
            await transport.request(HttpRequest(method=method, path="/x", timeout=5.0))
        assert (caught.value.sent, caught.value.cut) == (True, True)
        await transport.close()
    assert len(served) == 3


async def test_too_large_response_is_not_retried() -> None:
    """The answer broke off in its body, which is no sign of a connection that was dead."""
    served: list[int] = []

    async def half(number: int, writer: asyncio.StreamWriter) -> None:
        served.append(number)
        if number == 0:
            writer.write(OK)
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.close()

    async with raw_server(half) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        await transport.request(GET)
        with pytest.raises(TransportError) as caught:
            await transport.request(GET)
        assert caught.value.sent
        await transport.close()
    assert served == [0, 1]


async def test_requests_have_no_unexpected_headers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[dict[str, str]] = []

    async def tempt(request: web.Request) -> web.Response:
        seen.append({name.lower(): value for name, value in request.headers.items()})
        answer = web.Response(text="ok")
        answer.set_cookie("a", "b")
        return answer

    (tmp_path / "netrc").write_text("default login planted password planted\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with serving(tempt) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address.replace('127.0.0.1', 'localhost')}"))
        for _ in range(2):
            await transport.request(GET)
        await transport.close()
    for headers in seen:
        assert not {"cookie", "authorization"} & set(headers)


async def test_certificate_of_proxy_is_verified(authority: Authority) -> None:
    async with serving(Gate("x").serve, tls=authority.server_context()) as address:
        config = ClientConfig(server="http://far.example", proxy_url=f"https://{address}")
        error = await failure(config)
    assert "certificate of far.example:80" in str(error)
    assert not error.sent


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_rejected_client_certificate_files_are_checked_before_next_request(
    method: str, authority: Authority, tmp_path: Path
) -> None:
    """With TLS 1.3 the refusal comes after the handshake, as a cut."""
    other = Authority(trustme.CA())
    (tmp_path / "crt").write_bytes(other.client_certificate)
    (tmp_path / "key").write_bytes(other.client_key)
    tls = TlsConfig(ca_data=authority.pem, client_certificate_file=tmp_path / "crt", client_key_file=tmp_path / "key")
    request = HttpRequest(method=method, path="/x", timeout=5.0, body=b"{}" if method == "POST" else None)
    async with serving(Gate("x").serve, tls=authority.server_context(wants_client_certificate=True)) as address:
        transport = HttpTransport(ClientConfig(server=f"https://{address}", tls=tls))
        with pytest.raises(TransportError) as caught:
            await transport.request(request)
        assert caught.value.cut
        (tmp_path / "crt").write_bytes(authority.client_certificate)
        (tmp_path / "key").write_bytes(authority.client_key)
        assert (await transport.request(request)).status == 401
        await transport.close()


async def test_other_failures_than_tls_do_not_reload_certificates(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "deltaloop.client")
    (tmp_path / "ca").write_bytes(authority.pem)
    config = ClientConfig(server=f"https://127.0.0.1:{free_port()}", tls=TlsConfig(ca_file=tmp_path / "ca"))
    transport = HttpTransport(config)
    for _ in range(3):
        with pytest.raises(TransportError):
            await transport.request(GET)
        (tmp_path / "ca").write_bytes(Authority(trustme.CA()).pem)
    await transport.close()
    assert logged(caplog) == []


async def test_large_request_bodies_are_sent_in_pieces() -> None:
    async def size(request: web.Request) -> web.Response:
        return web.Response(text=f"{len(await request.read())} {request.headers.get('Content-Length')}")

    async with serving(size) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        for length in (0, 1, 1024 * 1024 - 1, 1024 * 1024, 1024 * 1024 + 1):
            answer = await transport.request(HttpRequest(method="POST", path="/x", body=b"x" * length, timeout=5.0))
            assert answer.body == b"%d %d" % (length, length)
        await transport.close()


async def test_path_is_sent_as_quoted() -> None:
    async def path(request: web.Request) -> web.Response:
        return web.Response(text=request.raw_path)

    async with serving(path) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        answer = await transport.request(HttpRequest(method="GET", path="/api/a%3Ab%7E", query={"x": "a/b"}))
        assert answer.body == b"/api/a%3Ab%7E?x=a/b"
        await transport.close()


# Sockets


NUMBERS = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 30_000}


async def test_keepalive_finds_dead_peer_within_minute() -> None:
    with make_socket(socket.AF_INET, socket.SOCK_STREAM, 0) as made:
        assert made.family is socket.AF_INET
        assert made.type is socket.SOCK_STREAM
        found = {
            name: made.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
            for name in NUMBERS
            if hasattr(socket, name)
        }
    assert found == {name: number for name, number in NUMBERS.items() if name in found}


@pytest.mark.skipif(not hasattr(socket, "TCP_KEEPIDLE"), reason="needs TCP_KEEPIDLE, to call it otherwise")
async def test_keepalive_settings_on_other_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    idle = socket.TCP_KEEPIDLE
    for name in NUMBERS:
        monkeypatch.delattr(socket, name, raising=False)
    monkeypatch.setattr(socket, "TCP_KEEPALIVE", idle, raising=False)
    with make_socket(socket.AF_INET, socket.SOCK_STREAM, 0) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert made.getsockopt(socket.IPPROTO_TCP, idle) == 30
