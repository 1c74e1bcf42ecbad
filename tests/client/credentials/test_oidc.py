"""When an issuer is asked, in virtual time; over real sockets it is in ``test_every_configuration``."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs

import msgspec
import pytest

from deltaloop.api.redaction import SecretText
from deltaloop.client import (
    ClientConfig,
    Credential,
    HttpRequest,
    HttpResponse,
    OidcCredentials,
    OidcProvider,
    StreamResponse,
)
from deltaloop.client.core.credential import bearer
from deltaloop.client.credentials.oidc import _shared_lock, shared_oidc_credentials
from deltaloop.errors import CredentialsError, TransportError
from tests.client.authority import Authority
from tests.client.fake_transport import After, FakeTransport, json_answer, logged
from tests.client.tokens import id_token

EPOCH = 1_800_000_000.0
DISCOVERY = json_answer({"token_endpoint": "https://tokens.example/path/token?tenant=a%20b"})
FIRST = id_token(EPOCH + 3600.0, name="first")
SECOND = id_token(EPOCH + 7200.0, name="second")


def wall_clock() -> float:
    return EPOCH + asyncio.get_running_loop().time()


class Issuer:
    """Keeps the configurations that transports were opened with; all share one script."""

    def __init__(self, *answers: HttpResponse | Exception | After) -> None:
        self.transport = FakeTransport(*answers)
        self.opened: list[ClientConfig] = []

    def open(self, config: ClientConfig) -> FakeTransport:
        self.opened.append(config)
        return self.transport

    def credentials(self, *, id_token: str = FIRST, refresh_token: str = "planted-refresh") -> OidcCredentials:
        provider = OidcProvider(
            issuer_url="https://issuer.example/realm/",
            client_id="me",
            client_secret=SecretText("planted-secret"),
            id_token=SecretText(id_token) if id_token else None,
            refresh_token=SecretText(refresh_token) if refresh_token else None,
        )
        return OidcCredentials(provider, open_transport=self.open, wall_clock=wall_clock)


def refreshed(token: str = SECOND, **more: str) -> HttpResponse:
    return json_answer({"id_token": token, **more})


async def test_valid_token_is_used_without_request() -> None:
    issuer = Issuer()
    source = issuer.credentials()
    assert await source.credential() == bearer(FIRST)
    assert not issuer.opened
    assert repr(source) == "<OidcCredentials https://issuer.example/realm/>"


async def test_token_is_refreshed_shortly_before_expiry() -> None:
    issuer = Issuer(DISCOVERY, refreshed())
    source = issuer.credentials()
    await asyncio.sleep(3590.0)
    assert await asyncio.gather(*(source.credential() for _ in range(5))) == [bearer(SECOND)] * 5
    discovery, refresh = issuer.transport.requests
    assert [config.server for config in issuer.opened] == ["https://issuer.example", "https://tokens.example"]
    assert (discovery.method, discovery.path) == ("GET", "/realm/.well-known/openid-configuration")
    assert (refresh.method, refresh.path, refresh.query) == ("POST", "/path/token", {"tenant": "a b"})
    assert refresh.headers["Authorization"].startswith("Basic ")
    assert refresh.body is not None
    assert parse_qs(refresh.body.decode())["refresh_token"] == ["planted-refresh"]
    assert issuer.transport.closed


async def test_rejected_token_is_refreshed() -> None:
    issuer = Issuer(DISCOVERY, refreshed())
    source = issuer.credentials()
    assert await source.renew(bearer(FIRST)) == bearer(SECOND)


async def test_new_refresh_token_is_used_afterwards(caplog: pytest.LogCaptureFixture) -> None:
    third = id_token(EPOCH + 10_800.0, name="third")
    issuer = Issuer(DISCOVERY, refreshed(refresh_token="planted-rotated"), DISCOVERY, refreshed(third))
    source = issuer.credentials(id_token="")
    assert await source.credential() == bearer(SECOND)
    assert await source.renew(bearer(SECOND)) == bearer(third)
    body = issuer.transport.requests[-1].body
    assert body is not None
    assert parse_qs(body.decode())["refresh_token"] == ["planted-rotated"]
    assert [record.levelname for record in logged(caplog)].count("WARNING") == 1


async def test_without_a_refresh_token_no_refresh_is_possible() -> None:
    source = Issuer().credentials(refresh_token="")
    assert await source.credential() == bearer(FIRST)
    assert await source.renew(bearer(FIRST)) is None
    await asyncio.sleep(3600.0)
    with pytest.raises(CredentialsError, match="refresh-token"):
        await source.credential()


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([json_answer({}, status=404)], "404.*idp-issuer-url"),
        ([json_answer({"token_endpoint": "https://[planted"})], "/.well-known/openid-configuration"),
        ([json_answer({"token_endpoint": "https://me:planted@h/t"})], "/.well-known/openid-configuration"),
        ([DISCOVERY, json_answer({"error": "invalid_grant", "x": "planted"}, status=400)], "invalid_grant"),
        ([TransportError("GET /x: nothing listens", method="GET", path="/x")], "nothing listens"),
    ],
)
async def test_failed_refreshes_raise_error_without_secrets(
    answers: list[HttpResponse | Exception | After], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    source = Issuer(*answers).credentials()
    await asyncio.sleep(3590.0)
    assert await source.credential() == bearer(FIRST), "until it expires it serves"
    await asyncio.sleep(60.0)
    source = Issuer(*answers).credentials(id_token="")
    with pytest.raises(CredentialsError, match=message) as caught:
        await source.credential()
    assert str(caught.value).startswith("OIDC issuer https://issuer.example/realm/: ")
    shown = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in logged(caplog))
    assert "planted" not in str(caught.value) + shown + repr(source)


async def test_silent_issuer_times_out() -> None:
    source = Issuer(DISCOVERY, After(60.0, refreshed())).credentials(id_token="")
    with pytest.raises(CredentialsError, match="30 s"):
        await source.credential()
    assert asyncio.get_running_loop().time() == 30.0


async def test_failed_refresh_is_not_repeated_within_second() -> None:
    issuer = Issuer(json_answer({}, status=500), DISCOVERY, refreshed())
    source = issuer.credentials(id_token="")
    for _ in range(3):
        with pytest.raises(CredentialsError):
            await source.credential()
    await asyncio.sleep(1.0)
    assert await source.credential() == bearer(SECOND)


async def test_the_log_names_the_issuer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "deltaloop.client")
    source = Issuer(DISCOVERY, After(2.0, refreshed(refresh_token="planted-2"))).credentials(id_token="")
    await source.credential()
    records = [record for record in logged(caplog) if "issuer" in record.__dict__]
    assert [(record.levelname, record.__dict__["issuer"]) for record in records] == [
        ("WARNING", "https://issuer.example/realm/"),
        ("INFO", "https://issuer.example/realm/"),
    ]
    assert (records[1].__dict__["duration"], records[1].__dict__["lifetime"]) == (2.0, 7198.0)


async def test_issuer_is_reached_with_its_certificate_authority(authority: Authority, tmp_path: Path) -> None:
    answer = json_answer({"token_endpoint": "https://tokens.example/t"})
    for ca_data, ca_file in ((authority.pem, None), (None, tmp_path / "ca"), (None, None)):
        issuer = Issuer(answer, refreshed())
        provider = OidcProvider(
            issuer_url="https://issuer.example/realmX",
            client_id="me",
            refresh_token=SecretText("planted"),
            ca_data=ca_data,
            ca_file=ca_file,
        )
        await OidcCredentials(provider, open_transport=issuer.open, wall_clock=wall_clock).credential()
        for config in issuer.opened:
            assert (config.tls.ca_data, config.tls.ca_file) == (ca_data, ca_file)
            assert (config.max_response_bytes, config.source) == (
                1024 * 1024,
                "OIDC issuer https://issuer.example/realmX",
            )
        discovery, refresh = issuer.transport.requests
        assert (discovery.headers, discovery.query, discovery.body) == ({"Accept": "application/json"}, {}, None)
        assert discovery.path == "/realmX/.well-known/openid-configuration"
        assert refresh.headers["Accept"] == "application/json"
        assert refresh.headers["Content-Type"] == "application/x-www-form-urlencoded"


async def test_connection_to_issuer_is_closed_after_failure() -> None:
    issuer = Issuer(TransportError("down", method="GET", path="/x"))
    with pytest.raises(CredentialsError, match=r"down.*idp-certificate-authority") as caught:
        await issuer.credentials(id_token="").credential()
    assert issuer.transport.closed
    assert caught.value.source == "OIDC issuer https://issuer.example/realm/"
    assert isinstance(caught.value.__cause__, TransportError)


async def test_rejected_token_without_refresh_token_is_not_sent_again() -> None:
    source = Issuer().credentials(refresh_token="")
    assert await source.renew(bearer(FIRST)) is None
    with pytest.raises(CredentialsError, match="refresh-token"):
        await source.credential()


async def test_refresh_that_returns_rejected_token_renews_nothing() -> None:
    source = Issuer(DISCOVERY, refreshed(FIRST)).credentials()
    assert await source.renew(bearer(FIRST)) is None


def test_tokens_are_not_shown() -> None:
    provider = OidcProvider(issuer_url="https://i", client_id="c", id_token=SecretText("planted"))
    assert "planted" not in repr(provider)
    assert "planted" not in msgspec.json.encode(str(provider)).decode()


class Rotating:
    """An issuer that gives a new refresh token each time, and revokes all of them if one is sent twice."""

    def __init__(self) -> None:
        self.asked, self.release = threading.Event(), threading.Event()
        self.present = "planted-refresh"
        self.revoked = False
        self.refreshes = 0

    def open(self, config: ClientConfig) -> Rotating:
        del config
        return self

    async def request(self, request: HttpRequest) -> HttpResponse:
        if request.method == "GET":
            return DISCOVERY
        assert request.body is not None
        (sent,) = parse_qs(request.body.decode())["refresh_token"]
        self.revoked = self.revoked or sent != self.present
        self.refreshes += 1
        self.present = f"planted-rotated-{self.refreshes}"
        given = self.present
        self.asked.set()
        while not self.release.is_set():  # noqa: ASYNC110 - it is set in another thread
            await asyncio.sleep(0.002)
        if self.revoked:
            return json_answer({"error": "invalid_grant"}, status=400)
        return refreshed(refresh_token=given)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[StreamResponse]:
        raise AssertionError("an identity provider is asked, and not watched")

    async def close(self) -> None:
        pass


def rotating(issuer: Rotating) -> OidcCredentials:
    provider = OidcProvider(
        issuer_url="https://issuer.example", client_id="me", refresh_token=SecretText("planted-refresh")
    )
    return OidcCredentials(provider, open_transport=issuer.open, wall_clock=lambda: EPOCH)


async def joined(source: OidcCredentials, waits: threading.Event) -> Credential:
    """Ask for a credential, and say that this has begun."""
    asked = asyncio.create_task(source.credential())
    await asyncio.sleep(0)
    waits.set()
    return await asked


def test_two_loops_send_refresh_token_once() -> None:
    """The work's loop and that of the lease's renewal share the credentials."""
    issuer = Rotating()
    source, waits = rotating(issuer), threading.Event()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(asyncio.run, source.credential())
        assert issuer.asked.wait(5.0)
        second = threads.submit(asyncio.run, joined(source, waits))
        assert waits.wait(5.0)
        issuer.release.set()
        assert first.result(5.0) == second.result(5.0) == bearer(SECOND)
    assert (issuer.refreshes, issuer.revoked) == (1, False)


@pytest.mark.real_time
async def test_cancellation_does_not_interrupt_refresh() -> None:
    """The token that was sent may be void by then, and the new one would be lost."""
    issuer = Rotating()
    source = rotating(issuer)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await source.credential()
    issuer.release.set()
    assert await source.credential() == bearer(SECOND)
    assert (issuer.refreshes, issuer.revoked) == (1, False)


def test_kubeconfig_read_twice_shares_oidc_credentials() -> None:
    provider = OidcProvider(issuer_url="https://shared.example", client_id="me", refresh_token=SecretText("planted-1"))
    again = OidcProvider(issuer_url="https://shared.example", client_id="me", refresh_token=SecretText("planted-1"))
    assert shared_oidc_credentials(provider) is shared_oidc_credentials(again)
    other = replace(provider, refresh_token=SecretText("planted-2"))
    assert shared_oidc_credentials(provider) is not shared_oidc_credentials(other), "somebody has logged in again"


def test_threads_share_oidc_credentials_of_kubeconfig() -> None:
    provider = OidcProvider(issuer_url="https://turns.example", client_id="me", refresh_token=SecretText("planted"))
    with ThreadPoolExecutor(1) as threads:
        with _shared_lock:
            found = threads.submit(shared_oidc_credentials, provider)
            with pytest.raises(TimeoutError):
                found.result(0.05)
        assert found.result(5.0) is shared_oidc_credentials(provider)
