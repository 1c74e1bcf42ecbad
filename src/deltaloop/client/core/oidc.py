"""Protocol of OpenID Connect: expiry of ID tokens, refresh requests and their responses.

Messages contain no text from the issuer, except OAuth error codes such as ``invalid_grant``.

Source: client-go plugin/pkg/client/auth/oidc/oidc.go; OpenID Connect Discovery 1.0; RFC 6749 sections 2.3.1, 5.2, 6.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote_plus, urlencode

import msgspec

from deltaloop.api.redaction import SecretText
from deltaloop.client.core.credential import is_header_value

DISCOVERY: Final = "/.well-known/openid-configuration"
FORM: Final = "application/x-www-form-urlencoded"
_ERROR_CODE: Final = re.compile(r"[a-z_]{3,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcProvider:
    """Issuer and tokens from the ``auth-provider`` field of a kubeconfig.

    Attributes:
        issuer_url: ``https://`` address of the issuer.
        client_id: Client ID registered with the issuer.
        client_secret: Client secret, or None.
        id_token: ID token for the API server, or None.
        refresh_token: Refresh token, or None.
        ca_data: PEM certificates of the issuer's CA. Without ``ca_data`` and ``ca_file``, the system's CAs are used.
        ca_file: File with the certificates of the issuer's CA.
        timeout: Time limit in seconds for a refresh.
    """

    issuer_url: str
    client_id: str
    client_secret: SecretText | None = None
    id_token: SecretText | None = None
    refresh_token: SecretText | None = None
    ca_data: bytes | None = field(default=None, repr=False)
    ca_file: Path | None = None
    timeout: float = 30.0

    @property
    def name(self) -> str:
        """Name of the issuer in messages."""
        return f"OIDC issuer {self.issuer_url}"


class UnusableAnswerError(Exception):
    """The issuer's response is not usable. The message contains no data from the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEndpoint:
    """Token endpoint, and whether the client secret goes into the body instead of the ``Authorization`` header."""

    url: str
    secret_in_body: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRequest:
    authorization: SecretText | None
    body: SecretText


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """Result of a refresh; ``refresh_token`` is None if it did not change, otherwise the old token may be invalid."""

    id_token: SecretText
    refresh_token: SecretText | None


class _Claims(msgspec.Struct):
    exp: float = 0.0


class _Discovery(msgspec.Struct):
    token_endpoint: str = ""
    token_endpoint_auth_methods_supported: list[str] | None = None


class _Tokens(msgspec.Struct):
    id_token: str = ""
    refresh_token: str = ""


class _Error(msgspec.Struct):
    error: str = ""


def expiry_of(id_token: str) -> float:
    """Return the expiry of a token in seconds since 1970, or 0 if it is unknown, without verifying its signature."""
    _, _, rest = id_token.partition(".")
    payload = rest.partition(".")[0]
    try:
        decoded = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        exp = msgspec.json.decode(decoded, type=_Claims).exp
    except (binascii.Error, ValueError, RecursionError):  # includes the errors of msgspec
        return 0.0
    return exp if math.isfinite(exp) else 0.0


def read_discovery(status: int, body: bytes) -> TokenEndpoint:
    """Return the https token endpoint from the issuer's discovery document, or raise UnusableAnswerError."""
    if status != 200:
        raise UnusableAnswerError(
            f"the discovery document {DISCOVERY} has status {status}. Correct idp-issuer-url in the kubeconfig."
        )
    try:
        found = msgspec.json.decode(body, type=_Discovery)
    except (ValueError, RecursionError):
        found = _Discovery()
    if not found.token_endpoint.startswith("https://"):
        raise UnusableAnswerError(
            f"the discovery document {DISCOVERY} must contain a token endpoint with https. "
            "Correct idp-issuer-url in the kubeconfig."
        )
    methods = found.token_endpoint_auth_methods_supported
    # The default is the header (OpenID Connect Discovery 1.0, section 3).
    in_body = methods is not None and "client_secret_basic" not in methods and "client_secret_post" in methods
    return TokenEndpoint(url=found.token_endpoint, secret_in_body=in_body)


def refresh_request(provider: OidcProvider, refresh_token: SecretText, endpoint: TokenEndpoint) -> RefreshRequest:
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token.reveal()}
    secret = provider.client_secret
    if secret and not endpoint.secret_in_body:
        pair = f"{quote_plus(provider.client_id)}:{quote_plus(secret.reveal())}"
        header = SecretText(f"Basic {base64.b64encode(pair.encode()).decode('ascii')}")
        return RefreshRequest(authorization=header, body=SecretText(urlencode(form)))
    form["client_id"] = provider.client_id
    if secret:
        form["client_secret"] = secret.reveal()
    return RefreshRequest(authorization=None, body=SecretText(urlencode(form)))


def read_refreshed(status: int, body: bytes, *, refresh_token: SecretText) -> Refreshed:
    """Decode the response of the token endpoint to a refresh, or raise UnusableAnswerError without an ID token."""
    if status != 200:
        raise UnusableAnswerError(_refusal(status, body))
    try:
        tokens = msgspec.json.decode(body, type=_Tokens)
    except (ValueError, RecursionError):
        raise UnusableAnswerError("the token endpoint returned no tokens. Contact its administrator.") from None
    if not tokens.id_token or not is_header_value(tokens.id_token):
        raise UnusableAnswerError(
            "the issuer returned no ID token for the refresh token. Log in again with the scope 'openid', "
            "or use an exec plugin if the issuer never returns ID tokens on a refresh."
        )
    another = tokens.refresh_token and tokens.refresh_token != refresh_token.reveal()
    return Refreshed(
        id_token=SecretText(tokens.id_token),
        refresh_token=SecretText(tokens.refresh_token) if another else None,
    )


def _refusal(status: int, body: bytes) -> str:
    try:
        code = msgspec.json.decode(body, type=_Error).error
    except (ValueError, RecursionError):
        code = ""
    if code == "invalid_grant":
        return "the refresh token is no longer valid (invalid_grant). Log in again."
    if code in ("invalid_client", "unauthorized_client"):
        return f"the issuer rejected the client ({code}). Correct client-id and client-secret in the kubeconfig."
    what = f"{status}, {code}" if _ERROR_CODE.fullmatch(code) else str(status)
    return f"the token endpoint rejected the request ({what}). Log in again."
