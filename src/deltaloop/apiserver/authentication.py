"""Who asks: nobody in particular, the one user that there is, or somebody with wrong credentials.

The one user may do everything. Without credentials a request is ``system:anonymous`` and may see health and version.
"""

from __future__ import annotations

import hmac
import ipaddress
from typing import Final, final

from deltaloop.api.redaction import SecretText
from deltaloop.apiserver.core import failures

ANONYMOUS: Final = "system:anonymous"
ADMIN: Final = "deltaloop:admin"
_PUBLIC: Final = ("healthz", "livez", "readyz", "version")


@final
class Authenticator:
    """Compares bearer tokens in constant time."""

    def __init__(self, token: SecretText | None) -> None:
        """Expect this token; None lets everybody do everything (plain HTTP)."""
        self._token = token

    def user_of(self, authorization: str) -> str:
        """Return who sent a request with this ``Authorization`` header.

        Raises:
            UnauthorizedError: If it carries wrong credentials.
        """
        if self._token is None:
            return ADMIN
        if not authorization:
            return ANONYMOUS
        scheme, _, given = authorization.partition(" ")
        expected = self._token.reveal().encode()
        # Compared even if the scheme is wrong, so that the time tells nothing.
        right = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), expected)
        if scheme.lower() != "bearer" or not right:
            raise failures.unauthorized()
        return ADMIN


def is_public(segments: tuple[str, ...]) -> bool:
    """Tell whether anybody may read a path."""
    return bool(segments) and segments[0] in _PUBLIC


def is_own_host(host: str, *, listening_on: str) -> bool:
    """Tell whether a ``Host`` header names this machine; a page in a browser that was lured here names another.

    Args:
        host: The header, with or without a port.
        listening_on: The address that the server listens on.
    """
    name = host.strip().lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    return name == listening_on or is_loopback(name)


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address stands for this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
