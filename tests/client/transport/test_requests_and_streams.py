from __future__ import annotations

import asyncio
import base64
import gc
import logging
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from deltaloop.api.redaction import SecretText
from deltaloop.client import (
    BasicAuth,
    ClientConfig,
    HttpRequest,
    Pool,
    StaticToken,
    TlsConfig,
    TokenFile,
)
from deltaloop.client.transport.http_transport import HttpTransport, make_socket
from deltaloop.errors import RequestTimeoutError, StreamEndedError, TransportError
from tests.client.authority import Authority
from tests.client.loopback import abort, free_port, raw_server, serving
from tests.having import having

pytestmark = [pytest.mark.real_time, pytest.mark.usefixtures("no_proxy")]

GET = HttpRequest(method="GET", path="/x", timeout=5.0)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


async def echo(request: web.Request) -> web.Response:
    return web.json_response(
        {
            "method": request.method,
            "path": request.path_qs,
            "headers": {name.lower(): value for name, value in request.headers.items()},
            "body": (await request.read()).decode(),
        }
    )


async def asked(config: ClientConfig, request: HttpRequest = GET) -> dict[str, Any]:
    transport = HttpTransport(config)
    try:
        return dict(msgspec_json((await transport.request(request)).body))
    finally:
        await transport.close()


def msgspec_json(body: bytes) -> dict[str, Any]:
    import msgspec

    return msgspec.json.decode(body, type=dict[str, Any])


async def failure(config: ClientConfig, request: HttpRequest = GET) -> TransportError:
    transport = HttpTransport(config)
    try:
        with pytest.raises(TransportError) as caught:
            await transport.request(request)
        return caught.value
    finally:
        await transport.close()


async def test_server_receives_complete_request() -> None:
    async with serving(echo) as address:
        config = ClientConfig(server=f"http://{address}/prefiX/", user_agent="test/1")
        query = {"labelSelector": "a=b,c in (d, e+f)", "continue": "x/y&z=ä"}
        request = HttpRequest(
            method="PATCH",
            path="/api/v1/a%2Fb",
            query=query,
            headers={"Content-Type": "x/y"},
            body=b"body",
            timeout=5.0,
        )
        seen = await asked(config, request)
    assert seen["method"] == "PATCH"
    path, _, text = seen["path"].partition("?")
    assert path == "/prefiX/api/v1/a%2Fb"
    import urllib.parse

    assert dict(urllib.parse.parse_qsl(text)) == query
    assert seen["body"] == "body"
    headers = seen["headers"]
    assert headers["user-agent"] == "test/1"
    assert headers["content-type"] == "x/y"
    assert headers["accept-encoding"] == "gzip"
    assert "authorization" not in headers
    assert "cookie" not in headers


async def test_response_has_status_headers_and_body() -> None:
    async def refuse(_: web.Request) -> web.Response:
        answer = web.Response(status=422, text="no")
        answer.headers.add("Warning", '299 - "one"')
        answer.headers.add("Warning", '299 - "two"')
        return answer

    async with serving(refuse) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        answer = await transport.request(GET)
        await transport.close()
    assert (answer.status, answer.body) == (422, b"no")
    assert answer.headers.get_all("warning") == ['299 - "one"', '299 - "two"']


async def test_gzip_is_requested_unless_disabled() -> None:
    async def compressed(request: web.Request) -> web.Response:
        answer = web.Response(body=b"x" * 100_000)
        answer.enable_compression()
        answer.headers["Asked"] = request.headers["Accept-Encoding"]
        return answer

    async with serving(compressed) as address:
        for compression, encoding in ((True, "gzip"), (False, "identity")):
            transport = HttpTransport(ClientConfig(server=f"http://{address}", compression=compression))
            answer = await transport.request(GET)
            async with transport.stream(GET) as stream:
                assert stream.headers.get("asked") == "identity"
            await transport.close()
            assert answer.headers.get("asked") == encoding
            assert answer.body == b"x" * 100_000


async def test_large_body_is_sent_and_received() -> None:
    async def mirror(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    body = bytes(range(256)) * 16_384
    async with serving(mirror) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        answer = await transport.request(HttpRequest(method="POST", path="/", body=body, timeout=5.0))
        await transport.close()
    assert answer.body == body


async def test_redirects_are_not_followed() -> None:
    async def away(_: web.Request) -> web.Response:
        raise web.HTTPFound("http://127.0.0.1:1/elsewhere")

    async with serving(away) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        assert (await transport.request(GET)).status == 302
        await transport.close()


async def test_refused_port_is_reported() -> None:
    error = await failure(ClientConfig(server=f"http://127.0.0.1:{free_port()}"))
    assert error.refused
    assert not error.sent
    assert (error.method, error.path) == ("GET", "/x")
    assert "refused at 127.0.0.1:" in str(error)


async def test_refused_port_of_name_with_several_addresses_is_reported() -> None:
    error = await failure(ClientConfig(server=f"http://localhost:{free_port()}"))
    assert error.refused


async def test_unknown_host_is_reported() -> None:
    error = await failure(ClientConfig(server="http://nowhere.invalid"))
    assert not error.refused
    assert not error.sent
    assert "nowhere.invalid" in str(error)


async def test_slow_response_times_out_as_sent() -> None:
    async def slow(_: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    async with serving(slow) as address:
        request = HttpRequest(method="POST", path="/x", timeout=0.1)
        error = await failure(ClientConfig(server=f"http://{address}"), request)
        assert isinstance(error, RequestTimeoutError)
        assert error.sent
        assert "from 127.0.0.1" in str(error)
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        with pytest.raises(RequestTimeoutError):
            async with transport.stream(HttpRequest(method="GET", path="/x", timeout=0.1)):
                pass
        await transport.close()


@pytest.mark.parametrize("kept", [False, True])
async def test_write_check_that_fails_after_connecting_prevents_request(kept: bool) -> None:
    served: list[int] = []

    async def script(number: int, writer: asyncio.StreamWriter) -> None:
        served.append(number)
        writer.write(OK)

    def refuse() -> None:
        raise LookupError("not now")

    async with raw_server(script) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        if kept:
            await transport.request(GET)
        with pytest.raises(LookupError, match="not now"):
            await transport.request(HttpRequest(method="PUT", path="/x", timeout=5.0, body=b"{}", before_send=refuse))
        assert (await transport.request(GET)).body == b"ok"
        await transport.close()
    assert served == list(range(2 if kept else 1))


async def test_stalled_body_times_out() -> None:
    async def half(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    async with raw_server(half) as address:
        error = await failure(
            ClientConfig(server=f"http://{address}"), HttpRequest(method="GET", path="/x", timeout=0.1)
        )
    assert isinstance(error, RequestTimeoutError)


async def test_connection_that_is_never_accepted_times_out_as_unsent(
    authority: Authority,
) -> None:
    silent = socket.socket()
    silent.bind(("127.0.0.1", 0))
    silent.listen(1)  # the kernel accepts, but nobody answers the TLS greeting
    try:
        config = ClientConfig(
            server=f"https://127.0.0.1:{silent.getsockname()[1]}", tls=TlsConfig(ca_data=authority.pem)
        )
        error = await failure(config, HttpRequest(method="POST", path="/x", timeout=0.1))
    finally:
        silent.close()
    assert isinstance(error, RequestTimeoutError)
    assert not error.sent
    assert "no connection from" in str(error)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
async def test_server_that_closes_without_response_is_reported(method: str) -> None:
    served: list[int] = []

    async def close(number: int, writer: asyncio.StreamWriter) -> None:
        served.append(number)
        writer.close()

    async with raw_server(close) as address:
        error = await failure(
            ClientConfig(server=f"http://{address}"), HttpRequest(method=method, path="/x", timeout=5.0)
        )
    assert error.sent
    assert not error.refused
    assert served == [0]
    assert "closed the connection" in str(error)


@pytest.mark.parametrize(("method", "attempts"), [("GET", 3), ("POST", 2), ("PUT", 2), ("PATCH", 2), ("DELETE", 2)])
async def test_dead_kept_connection_is_replaced_for_reads(method: str, attempts: int) -> None:
    served: list[int] = []

    async def die_second(number: int, writer: asyncio.StreamWriter) -> None:
        served.append(number)
        if number == 1:
            writer.close()
        else:
            writer.write(OK)

    async with raw_server(die_second) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        assert (await transport.request(GET)).body == b"ok"
        request = HttpRequest(method=method, path="/x", timeout=5.0)
        if method == "GET":
            assert (await transport.request(request)).body == b"ok"
        else:  # whether it was carried out is not known: whoever called has to decide
            with pytest.raises(TransportError) as caught:
                await transport.request(request)
            assert caught.value.sent
        await transport.close()
    assert len(served) == attempts


async def close_at_once(writer: asyncio.StreamWriter) -> None:
    writer.close()


async def reset_at_once(writer: asyncio.StreamWriter) -> None:
    abort(writer)


async def close_a_turn_later(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(0)
    writer.close()


async def say_goodbye(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")


KEPT_BY_HTTP_10 = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize(
    ("ends", "head"),
    [
        (close_at_once, OK),
        (reset_at_once, OK),
        (close_a_turn_later, OK),
        (say_goodbye, OK),
        (close_at_once, KEPT_BY_HTTP_10),
    ],
)
async def test_write_uses_no_connection_that_ended_after_response(
    ends: Callable[[asyncio.StreamWriter], Awaitable[None]], head: bytes, encrypted: bool, authority: Authority
) -> None:
    async def answer(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await ends(writer)

    async with raw_server(answer, tls=authority.server_context() if encrypted else None) as address:
        tls = TlsConfig(ca_data=authority.pem) if encrypted else TlsConfig()
        transport = HttpTransport(ClientConfig(server=f"{'https' if encrypted else 'http'}://{address}", tls=tls))
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert (await transport.request(GET)).body == b"ok"
            assert (await transport.request(HttpRequest(method=method, path="/x", timeout=5.0))).body == b"ok"
        await transport.close()


async def test_write_through_a_proxy_that_closes_after_each_answer() -> None:
    async def answer(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        writer.close()

    async with raw_server(answer) as proxy:
        transport = HttpTransport(ClientConfig(server="http://shop.example", proxy_url=f"http://{proxy}"))
        assert (await transport.request(GET)).body == b"ok"
        assert (await transport.request(HttpRequest(method="POST", path="/x", timeout=5.0))).body == b"ok"
        await transport.close()


async def test_connections_that_end_late_fail_one_write_only() -> None:
    async def answer(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await asyncio.sleep(0.001)
        writer.close()

    failed = 0
    async with raw_server(answer) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        for _ in range(5):
            assert (await transport.request(GET)).body == b"ok"
            try:
                await transport.request(HttpRequest(method="POST", path="/x", timeout=5.0))
            except TransportError:
                failed += 1
        await transport.close()
    assert failed <= 1


async def test_truncated_body_raises_error() -> None:
    async def half(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.close()

    async with raw_server(half) as address:
        error = await failure(ClientConfig(server=f"http://{address}"))
    assert error.sent
    assert not isinstance(error, RequestTimeoutError)


async def test_rubbish_in_place_of_http() -> None:
    async def rubbish(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        writer.close()

    async with raw_server(rubbish) as address:
        error = await failure(ClientConfig(server=f"http://{address}"))
    assert error.sent


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)


STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


async def streamed(script: Callable[[int, asyncio.StreamWriter], Awaitable[None]]) -> bytes:
    received = bytearray()
    async with raw_server(script) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        try:
            async with transport.stream(GET) as answer:
                assert answer.status == 200
                async for chunk in answer.chunks:
                    received += chunk
        finally:
            await transport.close()
    return bytes(received)


async def test_complete_stream_is_read() -> None:
    async def end(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + chunked(b"one\n", b"two\n"))
        await writer.drain()
        await asyncio.sleep(0.01)
        writer.write(chunked(b"three\n") + b"0\r\n\r\n")

    assert await streamed(end) == b"one\ntwo\nthree\n"


async def test_large_stream_is_read_completely() -> None:
    data = bytes(range(256)) * 20_000

    async def send(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        for start in range(0, len(data), 7919):
            writer.write(chunked(data[start : start + 7919]))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    assert await streamed(send) == data


@pytest.mark.parametrize("how", [abort, asyncio.StreamWriter.close])
async def test_broken_stream_raises_error(how: Callable[[asyncio.StreamWriter], None]) -> None:
    async def die(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + chunked(b"one\n"))
        await writer.drain()
        await asyncio.sleep(0.01)
        how(writer)

    with pytest.raises(StreamEndedError, match="GET /x: ") as caught:
        await streamed(die)
    assert caught.value.path == "/x"


async def test_leaving_a_stream_closes_its_connection() -> None:
    gone = asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while True:
                await answer.write(b"x\n")
                await asyncio.sleep(0.005)
        except (ConnectionError, asyncio.CancelledError):
            gone.set()
            raise

    async with serving(endless) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        async with transport.stream(GET) as answer:
            assert (await anext(answer.chunks)).startswith(b"x\n")
        async with asyncio.timeout(2):
            await gone.wait()
        await transport.close()


async def test_watches_do_not_block_other_calls() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path != "/watch":
            return web.Response(text="ok")
        stream = web.StreamResponse()
        await stream.prepare(request)
        await stream.write(b"x")
        await asyncio.sleep(30)
        return stream

    async with serving(answer) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        watch = HttpRequest(method="GET", path="/watch", timeout=5.0)
        streams = [transport.stream(watch) for _ in range(110)]  # aiohttp's limit is 100
        for stream in streams:
            await stream.__aenter__()
        elected = HttpRequest(method="GET", path="/x", timeout=5.0, pool=Pool.LEADER_ELECTION)
        for request in (GET, elected):
            assert (await transport.request(request)).body == b"ok"
        for stream in streams:
            await stream.__aexit__(None, None, None)
        await transport.close()


async def test_closed_transport_raises_an_error() -> None:
    transport = HttpTransport(ClientConfig(server="http://127.0.0.1:1"))
    await transport.close()
    await transport.close()
    with pytest.raises(TransportError, check=having(sent=False)) as caught:
        await transport.request(GET)
    assert not caught.value.sent


async def test_canceled_request_leaves_no_connection(authority: Authority) -> None:
    async def slow(_: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    async with serving(slow, tls=authority.server_context()) as address:
        transport = HttpTransport(ClientConfig(server=f"https://{address}", tls=TlsConfig(ca_data=authority.pem)))
        task = asyncio.create_task(transport.request(GET))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await transport.close()
    gc.collect()  # an unclosed connection would warn, and warnings are errors


# TLS


async def test_tls_with_correct_ca_succeeds(authority: Authority) -> None:
    async with serving(echo, tls=authority.server_context()) as address:
        config = ClientConfig(server=f"https://{address}", tls=TlsConfig(ca_data=authority.pem))
        assert (await asked(config))["method"] == "GET"
    gc.collect()


async def test_tls_without_ca_fails(authority: Authority) -> None:
    async with serving(echo, tls=authority.server_context()) as address:
        error = await failure(ClientConfig(server=f"https://{address}"))
    assert not error.sent
    assert not error.refused
    assert "the certificate of 127.0.0.1:" in str(error)
    assert "unable to get local issuer certificate; check the CA" in str(error)


async def test_tls_under_another_name(authority: Authority) -> None:
    async with serving(echo, tls=authority.server_context("kubernetes.default.svc")) as address:
        tls = TlsConfig(ca_data=authority.pem)
        error = await failure(ClientConfig(server=f"https://{address}", tls=tls))
        assert "tls-server-name" in str(error)
        named = TlsConfig(ca_data=authority.pem, server_name="kubernetes.default.svc")
        assert (await asked(ClientConfig(server=f"https://{address}", tls=named)))["method"] == "GET"


async def test_tls_unchecked(authority: Authority) -> None:
    async with serving(echo, tls=authority.server_context("other")) as address:
        config = ClientConfig(server=f"https://{address}", tls=TlsConfig(insecure_skip_verify=True))
        assert (await asked(config))["method"] == "GET"


@pytest.mark.usefixtures("temporary_files")
async def test_client_certificate_is_sent(authority: Authority) -> None:
    async def who(request: web.Request) -> web.Response:
        assert request.transport is not None
        certificate = request.transport.get_extra_info("peercert")
        return web.json_response({"names": [value for _, value in certificate["subjectAltName"]]})

    async with serving(who, tls=authority.server_context(wants_client_certificate=True)) as address:
        tls = TlsConfig(
            ca_data=authority.pem,
            client_certificate_data=authority.client_certificate,
            client_key_data=SecretText(authority.client_key.decode()),
        )
        assert (await asked(ClientConfig(server=f"https://{address}", tls=tls)))["names"] == ["client@example.org"]
        without = await failure(ClientConfig(server=f"https://{address}", tls=TlsConfig(ca_data=authority.pem)))
        assert not without.refused


async def test_https_where_http_is_spoken(authority: Authority) -> None:
    async with serving(echo) as address:
        error = await failure(ClientConfig(server=f"https://{address}", tls=TlsConfig(ca_data=authority.pem)))
    assert not error.sent
    assert "TLS" in str(error)


# Credentials


async def test_credentials_are_sent_over_tls(authority: Authority) -> None:
    async with serving(echo, tls=authority.server_context()) as address:
        config = ClientConfig(
            server=f"https://{address}",
            tls=TlsConfig(ca_data=authority.pem),
            credentials=StaticToken(SecretText("planted-token")),
        )
        assert (await asked(config))["headers"]["authorization"] == "Bearer planted-token"


@pytest.mark.parametrize(
    "credentials", [StaticToken(SecretText("planted-token")), BasicAuth("me", SecretText("planted"))]
)
async def test_credentials_are_not_sent_without_tls(
    credentials: StaticToken | BasicAuth, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(echo) as address:
        seen = await asked(ClientConfig(server=f"http://{address}", credentials=credentials))
    assert "authorization" not in seen["headers"]
    assert "sending no credentials" in caplog.text
    assert "planted" not in caplog.text


async def test_replaced_token_is_read_after_unauthorized(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "token"
    path.write_text("planted-old")
    valid, attempts = "planted-old", 0

    async def check(request: web.Request) -> web.Response:
        nonlocal attempts
        attempts += 1
        good = request.headers.get("Authorization") == f"Bearer {valid}"
        return web.Response(status=200 if good else 401, text="ok" if good else "Unauthorized")

    async with serving(check, tls=authority.server_context()) as address:
        transport = HttpTransport(
            ClientConfig(server=f"https://{address}", tls=TlsConfig(ca_data=authority.pem), credentials=TokenFile(path))
        )
        assert (await transport.request(GET)).status == 200
        valid = "planted-new"
        assert (await transport.request(GET)).status == 401  # the file is still the old one: no second try
        assert attempts == 2
        path.write_text("planted-new")
        post = HttpRequest(method="POST", path="/x", body=b"body", timeout=5.0)
        assert (await transport.request(post)).status == 200
        assert attempts == 4
        valid = "planted-third"
        path.write_text("planted-third")
        async with transport.stream(GET) as answer:
            assert answer.status == 200
        valid = "planted-fourth"
        path.write_text("planted-wrong")
        before = attempts
        assert (await transport.request(GET)).status == 401  # one retry, and no more
        assert attempts == before + 2
        await transport.close()
    assert "planted" not in caplog.text


async def test_error_contains_no_headers(authority: Authority) -> None:
    async def rubbish(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: planted\r\n\r\n")
        request.transport.close()
        raise asyncio.CancelledError

    async with serving(rubbish, tls=authority.server_context()) as address:
        credentials = StaticToken(SecretText("planted-token"))
        error = await failure(
            ClientConfig(server=f"https://{address}", tls=TlsConfig(ca_data=authority.pem), credentials=credentials)
        )
    seen: BaseException | None = error
    while seen is not None:
        assert "planted" not in repr(seen)
        seen = seen.__cause__ or seen.__context__


# Proxies


async def test_proxy_is_used_and_its_error_is_named() -> None:
    lines: list[bytes] = []

    async def proxy(_: int, writer: asyncio.StreamWriter) -> None:
        lines.append(b"asked")
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    async with raw_server(proxy) as address:
        config = ClientConfig(server="https://far.example:6443", proxy_url=f"http://me:planted@{address}")
        error = await failure(config)
    assert "proxy did not connect to far.example:6443: 403" in str(error)
    assert not error.sent
    assert lines == [b"asked"]
    assert "planted" not in f"{error!r} {error.__cause__!r} {error.__context__!r}"


async def test_proxy_of_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_port()}")
    error = await failure(ClientConfig(server="https://far.example:6443"))
    assert error.refused
    assert not error.sent


@asynccontextmanager
async def tunnelling(
    status: bytes = b"200 OK", *, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[tuple[str, list[str]], None]:
    """A proxy that connects to whatever it is asked for; gives its address, and the heads that it got."""
    heads: list[str] = []
    pumps: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heads.append(head)
        host, _, port = head.split(" ")[1].rpartition(":")
        server_reader, server = await asyncio.open_connection(host.strip("[]"), int(port))
        writer.write(b"HTTP/1.0 " + status + b"\r\nVia: x\r\n\r\n")
        pumps.add(asyncio.create_task(pump(reader, server)))
        pumps.add(asyncio.create_task(pump(server_reader, writer)))

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"127.0.0.1:{listener.sockets[0].getsockname()[1]}", heads
    finally:
        listener.close()
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


@pytest.mark.parametrize("encrypted", [False, True])
async def test_proxy_tunnels_to_tls_server(encrypted: bool, authority: Authority) -> None:
    tls = authority.server_context()
    async with (
        serving(echo, tls=authority.server_context()) as address,
        tunnelling(tls=tls if encrypted else None) as (proxy, heads),
    ):
        scheme = "https" if encrypted else "http"
        config = ClientConfig(
            server=f"https://{address}",
            tls=TlsConfig(ca_data=authority.pem),
            credentials=StaticToken(SecretText("planted-token")),
            proxy_url=f"{scheme}://me:pass%2Fword@{proxy}",
        )
        transport = HttpTransport(config)
        for _ in range(2):
            seen = msgspec_json((await transport.request(GET)).body)
            assert seen["headers"]["authorization"] == "Bearer planted-token"
            assert seen["path"] == "/x"
            assert "proxy-authorization" not in seen["headers"]
        await transport.close()
    assert len(heads) == 1
    assert heads[0].startswith(f"CONNECT {address} HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:pass/word').decode()}\r\n" in heads[0]
    assert "planted-token" not in heads[0]


async def test_proxy_receives_absolute_url_for_server_without_tls() -> None:
    async with serving(echo) as address:
        config = ClientConfig(server="http://far.example:81/below", proxy_url=f"http://me:pw@{address}")
        transport = HttpTransport(config)
        raw = await transport.request(GET)
        await transport.close()
    headers = msgspec_json(raw.body)["headers"]
    assert headers["host"] == "far.example:81"
    assert headers["proxy-authorization"] == f"Basic {base64.b64encode(b'me:pw').decode()}"


async def test_unreachable_proxy_is_named_in_error() -> None:
    config = ClientConfig(server="https://far.example:6443", proxy_url=f"http://me:planted@127.0.0.1:{free_port()}")
    error = await failure(config)
    assert "refused at the proxy 127.0.0.1" in str(error)
    assert "planted" not in str(error)


async def test_ipv6_server_is_reached() -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(OK)
        await reader.read()
        writer.close()
        over.set()

    over = asyncio.Event()
    heads: list[str] = []
    try:
        listener = await asyncio.start_server(connected, "::1", 0)
    except OSError:
        pytest.skip("this machine has no ::1")
    port = listener.sockets[0].getsockname()[1]
    transport = HttpTransport(ClientConfig(server=f"http://[::1]:{port}"))
    assert (await transport.request(GET)).body == b"ok"
    await transport.close()
    await over.wait()
    listener.close()
    assert f"Host: [::1]:{port}\r\n" in heads[0]


# Sockets


async def test_sockets_have_keepalive_options() -> None:
    with make_socket(socket.AF_INET, socket.SOCK_STREAM, 0) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
            assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30


async def test_connections_are_kept_and_reused() -> None:
    peers: set[object] = set()

    async def who(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(text="ok")

    async with serving(who) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        for _ in range(5):
            await transport.request(GET)
        await transport.close()
    assert len(peers) == 1


async def test_streamed_list_is_compressed_and_releases_connection() -> None:
    seen: list[tuple[str, object]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append((request.headers["Accept-Encoding"], request.transport))
        response = web.Response(body=b"x" * 1_000_000)
        response.enable_compression()
        return response

    async with serving(answer) as address:
        transport = HttpTransport(ClientConfig(server=f"http://{address}"))
        bounded = HttpRequest(method="GET", path="/x", timeout=5.0, bounded=True)
        for _ in range(2):
            async with transport.stream(bounded) as response:
                assert sum([len(chunk) async for chunk in response.chunks]) == 1_000_000
        await transport.request(GET)
        await transport.close()
    assert [encoding for encoding, _ in seen] == ["gzip", "gzip", "gzip"]
    assert len({id(connection) for _, connection in seen}) == 1


async def test_cut_connections_differ_from_permanent_failures(authority: Authority) -> None:
    async def reset(_: int, writer: asyncio.StreamWriter) -> None:
        abort(writer)

    async with raw_server(reset) as address:
        found = await failure(ClientConfig(server=f"http://{address}"))
        assert (found.cut, found.sent) == (True, True)

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        abort(writer)

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        at_handshake = await failure(ClientConfig(server=f"https://127.0.0.1:{port}"))
    assert (at_handshake.cut, at_handshake.sent) == (True, False)
    refused = await failure(ClientConfig(server=f"http://127.0.0.1:{free_port()}"))
    assert (refused.cut, refused.refused) == (False, True)
    async with serving(echo, tls=authority.server_context()) as address:
        untrusted = await failure(ClientConfig(server=f"https://{address}"))
        assert (untrusted.cut, untrusted.sent) == (False, False)


def connecting(port: int) -> int:
    """Return how many sockets of this machine have sent their first packet to a port, and no answer has come."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return sum(entry[2].endswith(f":{port:04X}") and entry[3] == "02" for entry in fields)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux' table of sockets")
@pytest.mark.parametrize("pool", list(Pool))
async def test_lost_connection_attempt_of_leader_election_is_repeated_quickly(pool: Pool) -> None:
    """A listener whose queue is full drops what comes, as a network does; the kernel tries again after a second."""
    loop = asyncio.get_running_loop()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = [await asyncio.open_connection("127.0.0.1", port)]
        transport = HttpTransport(ClientConfig(server=f"http://127.0.0.1:{port}"))
        asked = asyncio.create_task(transport.request(HttpRequest(method="GET", path="/x", timeout=10.0, pool=pool)))
        wanted = 2 if pool is Pool.LEADER_ELECTION else 1
        began_at = loop.time()
        while connecting(port) < wanted:
            assert loop.time() < began_at + 5.0, "it has one connection under way, and waits"
            await asyncio.sleep(0.01)
        if pool is Pool.REQUESTS:
            await asyncio.sleep(0.3)
            assert connecting(port) == 1, "ordinary calls leave it to the kernel"
        asked.cancel()
        await asyncio.wait([asked])
        await transport.close()
        for _, writer in fillers:
            writer.close()


async def test_refused_connection_of_leader_election_fails_immediately() -> None:
    request = HttpRequest(method="GET", path="/x", timeout=5.0, pool=Pool.LEADER_ELECTION)
    error = await failure(ClientConfig(server=f"http://127.0.0.1:{free_port()}"), request)
    assert error.refused
    assert "connection refused" in str(error)
