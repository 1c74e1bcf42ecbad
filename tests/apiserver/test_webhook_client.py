"""How webhooks are reached: services by the options' map, hosts of this machine, and nothing else.

What comes of the answers is the contract's: ``tests/conformance/test_webhooks.py``.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from deltaloop.apiserver import ServerOptions
from deltaloop.apiserver.core import webhook_calls
from deltaloop.apiserver.core.webhook_calls import Endpoint, WebhookCall, WebhookCalls, endpoint_of
from deltaloop.apiserver.core.wire.incoming import FREE, Incoming
from deltaloop.apiserver.tls import CertificateAuthority
from deltaloop.apiserver.webhook_client import WebhookClient
from deltaloop.errors import InvalidArgumentError
from tests.apiserver.serving import loop_clock
from tests.having import having

SERVICE = {"namespace": "ns", "name": "hook", "path": "/p", "port": 443}


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, str]:
    """A server's TLS for ``hook.ns.svc`` only, and the bundle that trusts it."""
    from datetime import UTC, datetime, timedelta

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("hook.ns.svc")]), critical=True)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    path = Path(tmp_path_factory.mktemp("tls")) / "server.pem"
    formats = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(key.private_bytes(*formats) + certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context, base64.b64encode(certificate).decode()


@asynccontextmanager
async def serving(context: ssl.SSLContext, answer: Callable[[], web.Response], asked: list[Any]) -> AsyncGenerator[int]:
    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        asked.append((request.path_qs, request.headers["Host"], json.loads(await request.read())))
        return answer()

    runner = web.ServerRunner(web.Server(serve), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def called(client: WebhookClient, endpoint: Endpoint) -> webhook_calls.Called:
    call = WebhookCall(endpoint=endpoint, seconds=3, kind="K", api_version="g/v1", request=b'{"a":1}')
    try:
        (found,) = cast("tuple[webhook_calls.Called]", await client.answer(WebhookCalls((call,))))
        return found
    finally:
        await client.close()


async def test_service_is_called_at_its_address_with_its_host_name(
    certified: tuple[ssl.SSLContext, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    asked: list[Any] = []
    async with serving(certified[0], lambda: web.Response(text="{}"), asked) as port:
        endpoint = endpoint_of({"service": SERVICE, "caBundle": certified[1]})
        for services in (
            {"ns/hook": f"127.0.0.1:{port}"},
            {"ns/hook:443": f"127.0.0.1:{port}", "ns/hook": "127.0.0.1:1"},
        ):
            found = await called(WebhookClient(services, frozenset()), endpoint)
            assert (found.failure, found.status, found.body) == ("", 200, b"{}")
            path, host, body = asked.pop()
            assert (path, host) == ("/p?timeout=3s", "hook.ns.svc:443")
            assert body == {"kind": "K", "apiVersion": "g/v1", "request": {"uid": found.uid, "a": 1}}


async def test_ca_bundle_with_a_leaf_certificate_trusts_only_that_certificate() -> None:
    authority = CertificateAuthority.make()
    context, other = (authority.server_context(host="127.0.0.1") for _ in range(2))
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cadata=authority.ca_pem.decode())
    asked: list[Any] = []
    async with serving(context, lambda: web.Response(text="{}"), asked) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
        own = ssl.DER_cert_to_PEM_cert(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        writer.close()
        await writer.wait_closed()
        bundle = base64.b64encode("# Prüfstelle\n".encode() + own.encode()).decode()
        url = f"https://127.0.0.1:{port}/p"
        found = await called(WebhookClient({}, frozenset()), endpoint_of({"url": url, "caBundle": bundle}))
        assert (found.failure, found.detail, found.status) == ("", "", 200)
    async with serving(other, lambda: web.Response(text="{}"), asked) as port:
        url = f"https://127.0.0.1:{port}/p"
        found = await called(WebhookClient({}, frozenset()), endpoint_of({"url": url, "caBundle": bundle}))
        assert (found.failure, found.detail) == ("certificate", "certificate signed by unknown authority")


async def test_certificate_for_another_name_is_rejected(certified: tuple[ssl.SSLContext, str]) -> None:
    asked: list[Any] = []
    async with serving(certified[0], lambda: web.Response(text="{}"), asked) as port:
        endpoint = endpoint_of({"service": {**SERVICE, "name": "other"}, "caBundle": certified[1]})
        found = await called(WebhookClient({"ns/other": f"127.0.0.1:{port}"}, frozenset()), endpoint)
        assert (found.failure, found.detail) == ("certificate", "certificate is not valid for other.ns.svc")
        assert asked == []


async def test_redirects_are_not_followed_and_response_size_is_bounded(
    certified: tuple[ssl.SSLContext, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltaloop.apiserver.webhook_client.MOST_BYTES", 100)
    endpoint = endpoint_of({"service": SERVICE, "caBundle": certified[1]})
    for answer, status, failure in (
        (lambda: web.Response(status=302, headers={"Location": "/elsewhere"}), 302, ""),
        (lambda: web.Response(body=b"x" * 101), 0, "too large"),
    ):
        asked: list[Any] = []
        async with serving(certified[0], answer, asked) as port:
            found = await called(WebhookClient({"ns/hook": f"127.0.0.1:{port}"}, frozenset()), endpoint)
            assert (found.status, found.failure, len(asked)) == (status, failure, 1)


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ({"service": SERVICE}, "service ns/hook has no address. Add it to ServerOptions.webhook_services."),
        (
            {"url": "https://example.com/p"},
            "the host of a webhook must be this machine, got example.com. Add it to ServerOptions.webhook_hosts",
        ),
        (
            {"url": "https://169.254.169.254/"},
            ("the host of a webhook must be this machine, got 169.254.169.254. Add it to ServerOptions.webhook_hosts"),
        ),
        (
            {"url": "https://localhost:1/p", "caBundle": base64.b64encode(b"planted-value").decode()},
            "unable to load root certificates: unable to parse bytes as PEM block",
        ),
    ],
)
async def test_disallowed_hosts_are_not_called(
    client: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint = endpoint_of(client)
    found = await called(WebhookClient({"ns/another": "127.0.0.1:1"}, frozenset({"other.example.com"})), endpoint)
    assert (found.failure, found.detail) == ("not allowed", words)
    shown = caplog.text + repr(found) + repr(endpoint) + str([vars(record) for record in caplog.records])
    assert "planted-value" not in shown
    assert client.get("caBundle", "planted-value") not in shown


async def test_hosts_in_the_options_can_be_called() -> None:
    client = WebhookClient({}, frozenset({"hook.invalid"}))
    found = await called(client, endpoint_of({"url": "https://hook.invalid/"}))
    assert found.failure != "not allowed"


@pytest.mark.parametrize(
    "services",
    [{"hook": "127.0.0.1:1"}, {"ns/hook": "127.0.0.1"}, {"ns/hook": "https://127.0.0.1:1"}, {"ns/hook": "u@h:1"}],
)
def test_invalid_webhook_services_are_rejected(services: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="ServerOptions.webhook_services")):
        ServerOptions(webhook_services=services, wall_clock=loop_clock)
    ServerOptions(webhook_services={"ns/hook:8443": "[::1]:9"})


@pytest.mark.parametrize(
    ("url", "detail"),
    [
        ("https://localhost:99999/p", "dial tcp: address 99999: invalid port"),
        (f"https://localhost:{'9' * 5000}/", f"dial tcp: address {'9' * 2048}: invalid port"),
        ("https://localhost:port/", 'Unparsable URL: parse "https://localhost:port/": invalid port ":port" after host'),
        ("https://lo cal/", 'Unparsable URL: parse "https://lo cal/": invalid character " " in host name'),
        ("https://[::1/", "Unparsable URL: parse \"https://[::1/\": missing ']' in host"),
        ("https://%zz/", 'Unparsable URL: parse "https://%zz/": invalid URL escape "%zz"'),
    ],
)
async def test_invalid_url_is_a_failed_call(url: str, detail: str) -> None:
    found = await called(WebhookClient({}, frozenset()), endpoint_of({"url": url}))
    assert (found.failure, found.detail) == ("not allowed", detail)


@pytest.mark.parametrize(
    "host",
    [
        "[::1%25lo]:1",
        "[::1%25%20]:1",
        "b\u00fccher.invalid",
        f"{'a' * 70}.invalid",
        "a..b",
        "*.invalid",
        ":1",
        "\u2024",
    ],
)
async def test_invalid_host_is_a_failed_call(host: str) -> None:
    endpoint = endpoint_of({"url": f"https://{host}/a b/../%2e%2e/c"})
    found = await called(WebhookClient({}, frozenset({endpoint.host})), endpoint)
    assert found.failure != ""
    assert found.status == 0


@pytest.mark.parametrize("client", [None, {}, {"url": ""}, {"url": 3}, {"service": {}}, {"service": {"port": 70000}}])
async def test_configuration_without_an_address_is_a_failed_call(client: object) -> None:
    found = await called(WebhookClient({}, frozenset()), endpoint_of(client))
    assert found.failure == "not allowed"


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("", None),
        ("0", 0),
        ("5", 5),
        ("+5", 5),
        ("-5", 0),
        ("1.5", None),
        ("1_0", None),
        ("\u0661", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None),
        ("9" * 18, int("9" * 18)),
        ("9" * 19, None),
        ("9" * 400, None),
        ("9" * 5000, None),
    ],
)
def test_retry_after_is_read_as_in_go(written: str, seconds: int | None) -> None:
    assert webhook_calls.wait_before_retry(503, written) == seconds
    assert webhook_calls.wait_before_retry(429, written) == seconds
    assert webhook_calls.wait_before_retry(404, written) is None


async def test_long_retry_after_is_bounded_by_the_webhook_timeout(certified: tuple[ssl.SSLContext, str]) -> None:
    endpoint = endpoint_of({"service": SERVICE, "caBundle": certified[1]})
    asked: list[Any] = []
    headers = {"Retry-After": "9" * 18}
    async with serving(certified[0], lambda: web.Response(status=503, headers=headers), asked) as port:
        found = await called(WebhookClient({"ns/hook": f"127.0.0.1:{port}"}, frozenset()), endpoint)
        assert (found.failure, len(asked)) == ("timeout", 1)


async def test_webhook_cookies_are_not_sent_again(certified: tuple[ssl.SSLContext, str]) -> None:
    cookies: list[str | None] = []

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        cookies.append(request.headers.get("Cookie"))
        return web.Response(headers={"Set-Cookie": "a=b; Path=/", "Retry-After": "0"}, status=503)

    runner = web.ServerRunner(web.Server(serve), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certified[0]).start()
        client = WebhookClient({"ns/hook": f"127.0.0.1:{runner.addresses[0][1]}"}, frozenset())
        await called(client, endpoint_of({"service": SERVICE, "caBundle": certified[1]}))
    finally:
        await runner.cleanup()
    assert set(cookies) == {None}
    assert len(cookies) > 1


async def test_webhook_responses_share_a_size_bound(certified: tuple[ssl.SSLContext, str]) -> None:
    endpoint = endpoint_of({"service": SERVICE, "caBundle": certified[1]})
    asked: list[Any] = []
    async with serving(certified[0], lambda: web.Response(body=b"x" * (FREE + 10)), asked) as port:
        incoming = Incoming(most=15)
        client = WebhookClient({"ns/hook": f"127.0.0.1:{port}"}, frozenset(), incoming)
        kept = await called(client, endpoint)
        assert (kept.failure, incoming.held) == ("", 10)
        refused = await called(client, endpoint)
        assert refused.failure == "too many"
        del kept
        assert incoming.held == 0
