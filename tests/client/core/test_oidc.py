from __future__ import annotations

import base64
import contextlib
import math
from urllib.parse import parse_qs

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.redaction import SecretText
from deltaloop.client.core.oidc import (
    OidcProvider,
    TokenEndpoint,
    UnusableAnswerError,
    expiry_of,
    read_discovery,
    read_refreshed,
    refresh_request,
)
from tests.client.tokens import id_token

OLD = SecretText("planted-old")


def provider(secret: str = "") -> OidcProvider:
    return OidcProvider(
        issuer_url="https://i", client_id="me & co", client_secret=SecretText(secret) if secret else None
    )


def test_expiry_is_read_from_token() -> None:
    assert expiry_of(id_token(1_900_000_000)) == 1_900_000_000.0


def test_token_with_unusable_expiry_is_expired() -> None:
    for claims in (b"{}", b'{"exp": 1e400}', b'{"exp": null}'):
        assert expiry_of(f"a.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.c") == 0.0


def test_default_timeout_of_issuer_is_half_minute() -> None:
    assert provider().timeout == 30.0


@pytest.mark.parametrize("token", ["", "planted", "a.b", "a.!!!.c", f"a.{base64.b64encode(b'[]').decode()}.c", "a..c"])
def test_token_without_expiry_is_expired(token: str) -> None:
    assert expiry_of(token) == 0.0


@given(st.text())
def test_expiry_of_any_token_is_finite(text: str) -> None:
    for token in (text, f"x.{text}.y"):
        assert math.isfinite(expiry_of(token))


def test_discovery() -> None:
    found = read_discovery(200, b'{"token_endpoint": "https://i/token", "issuer": "https://i"}')
    assert found == TokenEndpoint(url="https://i/token", secret_in_body=False)


@pytest.mark.parametrize(
    ("methods", "in_body"),
    [
        (["client_secret_basic", "client_secret_post"], False),
        (["client_secret_post"], True),
        (["private_key_jwt"], False),
    ],
)
def test_discovery_determines_client_authentication(methods: list[str], in_body: bool) -> None:
    body = msgspec.json.encode({"token_endpoint": "https://i/t", "token_endpoint_auth_methods_supported": methods})
    assert read_discovery(200, body).secret_in_body is in_body


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (404, b"planted", "404.*idp-issuer-url"),
        (200, b"planted", "https.*idp-issuer-url"),
        (200, b"{}", "idp-issuer-url"),
        (200, b'{"token_endpoint": 5}', "idp-issuer-url"),
        (200, b'{"token_endpoint": "http://planted"}', "https.*idp-issuer-url"),
        (200, b"\xff", "idp-issuer-url"),
    ],
)
def test_invalid_oidc_discovery_raises_error(status: int, body: bytes, message: str) -> None:
    with pytest.raises(UnusableAnswerError, match=message) as caught:
        read_discovery(status, body)
    assert "planted" not in str(caught.value)


def test_refresh_request_with_secret_in_header() -> None:
    request = refresh_request(provider("s:&"), OLD, TokenEndpoint(url="https://i/t", secret_in_body=False))
    assert request.authorization is not None
    assert base64.b64decode(request.authorization.reveal().removeprefix("Basic ")) == b"me+%26+co:s%3A%26"
    assert parse_qs(request.body.reveal()) == {"grant_type": ["refresh_token"], "refresh_token": ["planted-old"]}
    assert "planted" not in repr(request)


def test_refresh_request_with_secret_in_body_and_without_secret() -> None:
    endpoint = TokenEndpoint(url="https://i/t", secret_in_body=True)
    request = refresh_request(provider("s"), OLD, endpoint)
    assert request.authorization is None
    assert parse_qs(request.body.reveal()) == {
        "grant_type": ["refresh_token"],
        "refresh_token": ["planted-old"],
        "client_id": ["me & co"],
        "client_secret": ["s"],
    }
    public = refresh_request(provider(), OLD, TokenEndpoint(url="https://i/t", secret_in_body=False))
    assert public.authorization is None
    assert "client_secret" not in parse_qs(public.body.reveal())


def test_refreshed() -> None:
    kept = read_refreshed(200, b'{"id_token": "planted-id", "refresh_token": "planted-old"}', refresh_token=OLD)
    assert (kept.id_token.reveal(), kept.refresh_token) == ("planted-id", None)
    rotated = read_refreshed(200, b'{"id_token": "planted-id", "refresh_token": "planted-new"}', refresh_token=OLD)
    assert rotated.refresh_token == SecretText("planted-new")
    assert "planted" not in repr(rotated)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, b'{"error": "invalid_grant", "error_description": "planted"}', "invalid_grant"),
        (401, b'{"error": "invalid_client"}', "invalid_client.*client-id and client-secret"),
        (400, b'{"error": "invalid_scope"}', "400, invalid_scope"),
        (400, b'{"error": "Planted! secret"}', "400"),
        (503, b"planted", "503"),
        (302, b"", "302"),
        (200, b"planted", "tokens"),
        (200, b'{"access_token": "planted"}', "ID token.*'openid'"),
        (200, b'{"id_token": "planted\\r\\nx"}', "ID token"),
        (200, b'{"id_token": 5}', "tokens"),
    ],
)
def test_failed_refresh_raises_error(status: int, body: bytes, message: str) -> None:
    with pytest.raises(UnusableAnswerError, match=message) as caught:
        read_refreshed(status, body, refresh_token=OLD)
    assert "planted" not in str(caught.value).lower()


@given(
    st.integers(100, 599) | st.just(200), st.binary() | st.dictionaries(st.text(), st.text()).map(msgspec.json.encode)
)
def test_any_issuer_response_raises_only_unusable_answer_error(status: int, body: bytes) -> None:
    for read in (lambda: read_discovery(status, body), lambda: read_refreshed(status, body, refresh_token=OLD)):
        with contextlib.suppress(UnusableAnswerError):
            read()
