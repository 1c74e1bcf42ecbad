"""Classify connection failures, describe them, and decide the reaction of the transport.

| failure                                             | reaction                                                      |
| --------------------------------------------------- | ------------------------------------------------------------- |
| a GET or HEAD on a reused connection                | repeat at once, because servers close idle connections        |
| a TLS handshake                                     | repeat if the certificate files have changed                  |
| a TLS connection that was cut                       | raise the error, and check the client certificate, because a  |
|                                                     | TLS 1.3 server rejects it after the handshake                 |
| any other failure                                   | raise the error (``retry`` decides about further attempts)    |
"""

from __future__ import annotations

import math
import ssl
from typing import Final, Literal, TypeAlias, final

import msgspec

from deltaloop.api.redaction import redact

CUTS: Final = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError)
"""Errors of a connection that the peer or the network closed. A new connection may succeed."""


FailureKind: TypeAlias = (
    "Literal['name', 'refused', 'connect', 'certificate', 'tls', 'proxy', 'no_answer', 'malformed', 'broke']"
)


_TEXTS: Final[dict[FailureKind, str]] = {
    "name": "cannot resolve the host name of {address}",
    "refused": "connection refused at {address}: no server listens there",
    "connect": "cannot connect to {address}: {reason}",
    "certificate": (
        "cannot verify the certificate of {address}: {reason}; "
        "check the CA, and tls-server-name if the address differs from the name in the certificate"
    ),
    "tls": "cannot establish TLS with {address}: {reason}",
    "proxy": "the proxy did not connect to {address}: {reason}",
    "no_answer": "{address} closed the connection without a response",
    "malformed": "cannot read the response of {address} as HTTP: {reason}",
    "broke": "the connection to {address} broke: {reason}",
}


@final
class ConnectionFailure(msgspec.Struct, frozen=True):
    """Failure of a connection; ``cut`` means that an established connection was closed. The reason contains no data."""

    kind: FailureKind
    reason: str = ""
    cut: bool = False

    @property
    def in_handshake(self) -> bool:
        return self.kind in ("certificate", "tls")

    def describe(self, address: str) -> str:
        return _TEXTS[self.kind].format(address=address, reason=self.reason)


def of_connecting(error: OSError) -> ConnectionFailure:
    """Return the failure for an error that occurred while connecting, including the TLS handshake."""
    cut = isinstance(error, CUTS)
    if isinstance(error, ConnectionRefusedError):
        return ConnectionFailure("refused")
    if isinstance(error, ssl.CertificateError):
        reason = getattr(error, "verify_message", "") or str(error)
        return ConnectionFailure("certificate", redact(reason))
    if isinstance(error, ssl.SSLError):
        # Only errors from OpenSSL have a reason.
        return ConnectionFailure("tls", getattr(error, "reason", None) or type(error).__name__)
    return ConnectionFailure("connect", redact(str(error.strerror or error)), cut)


def of_breaking(error: Exception) -> ConnectionFailure:
    """Return the failure for an error that ended an established connection. It always counts as cut."""
    reason = getattr(error, "strerror", None) or type(error).__name__
    return ConnectionFailure("broke", redact(str(reason)), cut=True)


REPEATED: Final = frozenset({"GET", "HEAD"})
"""Methods that are repeated if a reused connection turns out to be dead."""


_PAUSE: Final = 5.0


@final
class Reuse:
    """Decision whether requests can use kept connections.

    A server may close each connection right after its response, so that a request races with the close. The first close
    that the event loop notices too late stops reuse until ``begins_at``.
    """

    __slots__ = ("begins_at",)

    def __init__(self) -> None:
        self.begins_at: float = -math.inf

    def failed(self, now: float) -> None:
        """Record that a kept connection was closed before the event loop noticed it."""
        self.begins_at = now + _PAUSE


@final
class AfterBreak(msgspec.Struct, frozen=True):
    """Reaction to a failed attempt. Without any of these flags, the error is raised.

    Attributes:
        again: Repeat the request at once.
        reload: Check the certificate files, and repeat the request if they have changed.
        suspect: Check the certificate files before the next request, unless this request is repeated.
    """

    again: bool = False
    reload: bool = False
    suspect: bool = False


def after_break(method: str, *, reused: bool, tls: bool, in_handshake: bool, cut: bool) -> AfterBreak:
    if reused and method in REPEATED:
        return AfterBreak(again=True)
    return AfterBreak(reload=tls and in_handshake, suspect=tls and cut)
