"""OpenID Connect: when an id token expires, how a new one is asked for, and what the issuer's answers mean.

A kubeconfig's ``auth-provider`` of the name ``oidc`` has an id token, which is sent as a bearer token, and a refresh
token. Shortly before the id token expires, the issuer's discovery document is read and a new one is asked for at the
token endpoint that it names. When to do so: ``core/expiring_credential.py``.

Nothing of what the issuer says is in a message, except a code of OAuth's form, such as `invalid_grant`.

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
    """An issuer, and what was got from it, as a kubeconfig's ``auth-provider`` has it.

    Attributes:
        issuer_url: ``https://`` address of the issuer.
        client_id: Who we are to the issuer.
        client_secret: How we prove it, if we can.
        id_token: What is sent to the API server, or None.
        refresh_token: What a new id token is had for, or None.
        ca_data: PEM certificates that the issuer's certificate must come from; without any, the system's.
        ca_file: The same, in a file.
        timeout: Seconds until a refresh is given up.
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
        """What to call it in messages."""
        return f"OIDC issuer {self.issuer_url}"


class UnusableAnswerError(Exception):
    """What the issuer answered cannot be used; the text says why and what to do, and holds nothing of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEndpoint:
    """Where to refresh, and whether the client's secret goes into the body instead of the ``Authorization`` header."""

    url: str
    secret_in_body: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRequest:
    """What to POST to the token endpoint."""

    authorization: SecretText | None
    body: SecretText


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What a refresh gave.

    Attributes:
        id_token: The new id token.
        refresh_token: The refresh token for the next time, if it is another one; the old one may be void then.
    """

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
    """Return when a token expires, in seconds since 1970; 0 if it does not say, or is no JSON web token.

    Its signature is not checked: that is up to the API server.
    """
    _, _, rest = id_token.partition(".")
    payload = rest.partition(".")[0]
    try:
        decoded = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        exp = msgspec.json.decode(decoded, type=_Claims).exp
    except (binascii.Error, ValueError, RecursionError):  # also what msgspec raises
        return 0.0
    return exp if math.isfinite(exp) else 0.0


def read_discovery(status: int, body: bytes) -> TokenEndpoint:
    """Find the token endpoint in the issuer's discovery document.

    Raises:
        UnusableAnswerError: If it is not there.
    """
    if status != 200:
        raise UnusableAnswerError(
            f"its discovery document {DISCOVERY} was answered with {status}; correct idp-issuer-url in the kubeconfig"
        )
    try:
        found = msgspec.json.decode(body, type=_Discovery)
    except (ValueError, RecursionError):
        found = _Discovery()
    if not found.token_endpoint.startswith("https://"):
        raise UnusableAnswerError(
            f"its discovery document {DISCOVERY} names no token endpoint with https; "
            "correct idp-issuer-url in the kubeconfig"
        )
    methods = found.token_endpoint_auth_methods_supported
    # Without a word about it, it is the header (OpenID Connect Discovery 1.0, section 3).
    in_body = methods is not None and "client_secret_basic" not in methods and "client_secret_post" in methods
    return TokenEndpoint(url=found.token_endpoint, secret_in_body=in_body)


def refresh_request(provider: OidcProvider, refresh_token: SecretText, endpoint: TokenEndpoint) -> RefreshRequest:
    """Write the request for a new id token."""
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
    """Read what the token endpoint answered.

    Args:
        status: HTTP status code.
        body: The body of the issuer's answer.
        refresh_token: The one that was sent.

    Raises:
        UnusableAnswerError: If there is no id token in it.
    """
    if status != 200:
        raise UnusableAnswerError(_refusal(status, body))
    try:
        tokens = msgspec.json.decode(body, type=_Tokens)
    except (ValueError, RecursionError):
        raise UnusableAnswerError("its token endpoint did not answer with tokens; ask whoever runs it") from None
    if not tokens.id_token or not is_header_value(tokens.id_token):
        raise UnusableAnswerError(
            "it gave no id token for the refresh token; log in again and ask for the scope 'openid', "
            "or use an exec plugin if it does not give id tokens on a refresh"
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
        return "it does not accept the refresh token any more (invalid_grant); log in again"
    if code in ("invalid_client", "unauthorized_client"):
        return f"it does not accept this client ({code}); correct client-id and client-secret in the kubeconfig"
    what = f"{status}, {code}" if _ERROR_CODE.fullmatch(code) else str(status)
    return f"its token endpoint refused ({what}); log in again"
