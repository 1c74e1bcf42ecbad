"""Failures of connections: their meaning, their texts, and the reaction of the transport.

| what broke                                            | then                                                    |
| ----------------------------------------------------- | ------------------------------------------------------- |
| a GET or HEAD on a connection that others had used    | again at once: servers close idle connections           |
| the handshake of TLS                                  | again, if the certificate files have changed meanwhile  |
| a connection with TLS that was cut                    | the error stands, and the own certificate is suspected: |
|                                                       | with TLS 1.3 a server refuses it after the handshake    |
| anything else                                         | the error stands (``retry`` says what the client does)  |

Each try of the first kind takes one dead connection out of the pool, and each of the second one change of the files, so
that both end.
"""

from __future__ import annotations

import math
import ssl
from enum import Enum, auto
from typing import Final, final

import msgspec

from deltaloop.api.redaction import redact

CUTS: Final = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError)
"""Errors of a connection that the other side, or the way to it, has cut: the next one may hold."""


class FailureKind(Enum):
    """Where it went wrong."""

    NAME = auto()
    REFUSED = auto()
    CONNECT = auto()
    CERTIFICATE = auto()
    TLS = auto()
    PROXY = auto()
    NO_ANSWER = auto()
    MALFORMED = auto()
    BROKE = auto()


@final
class ConnectionFailure(msgspec.Struct, frozen=True):
    """One failure.

    Attributes:
        kind: Where it went wrong.
        reason: What exactly, without data of requests or answers.
        cut: Whether the other side, or the way to it, cut a connection that was there, or nearly.
    """

    kind: FailureKind
    reason: str = ""
    cut: bool = False

    @property
    def in_handshake(self) -> bool:
        """Whether TLS itself failed."""
        return self.kind in (FailureKind.CERTIFICATE, FailureKind.TLS)

    def describe(self, address: str) -> str:
        """Say what happened.

        Args:
            address: Host and port of the server.
        """
        match self.kind:
            case FailureKind.NAME:
                return f"the host name of {address} cannot be resolved"
            case FailureKind.REFUSED:
                return f"nothing listens at {address} (connection refused)"
            case FailureKind.CONNECT:
                return f"no connection to {address}: {self.reason}"
            case FailureKind.CERTIFICATE:
                return (
                    f"the certificate of {address} is not accepted: {self.reason}; "
                    "check the CA, and tls-server-name where the server is reached by another name"
                )
            case FailureKind.TLS:
                return f"no TLS connection to {address}: {self.reason}"
            case FailureKind.PROXY:
                return f"the proxy refused to connect to {address}: {self.reason}"
            case FailureKind.NO_ANSWER:
                return f"{address} closed the connection without an answer"
            case FailureKind.MALFORMED:
                return f"what {address} answers cannot be read as HTTP: {self.reason}"
            case FailureKind.BROKE:
                return f"the connection to {address} broke: {self.reason}"


def of_connecting(error: OSError) -> ConnectionFailure:
    """Tell what the system's error means where a connection was to be made, TLS included."""
    cut = isinstance(error, CUTS)
    if isinstance(error, ConnectionRefusedError):
        return ConnectionFailure(FailureKind.REFUSED)
    if isinstance(error, ssl.CertificateError):
        reason = getattr(error, "verify_message", "") or str(error)
        return ConnectionFailure(FailureKind.CERTIFICATE, redact(reason))
    if isinstance(error, ssl.SSLError):
        # Only what OpenSSL itself found wrong has a reason.
        return ConnectionFailure(FailureKind.TLS, getattr(error, "reason", None) or type(error).__name__)
    return ConnectionFailure(FailureKind.CONNECT, redact(str(error.strerror or error)), cut)


def of_breaking(error: Exception) -> ConnectionFailure:
    """Return the meaning of an error that ended a connection; whatever it is, TLS included, has cut the connection."""
    reason = getattr(error, "strerror", None) or type(error).__name__
    return ConnectionFailure(FailureKind.BROKE, redact(str(reason)), cut=True)


REPEATED: Final = frozenset({"GET", "HEAD"})
"""Methods whose requests are sent again if a kept connection turns out to be dead."""


_PAUSE: Final = 5.0


@final
class Reuse:
    """Decide whether requests may use kept connections.

    A server may close each connection right after its answer without saying so. A request on such a connection races
    with the end of the connection, so the first end that comes too late to be seen stops the use of kept connections
    for some seconds.

    Attributes:
        begins_at: Time from which requests may use kept connections.
    """

    __slots__ = ("begins_at",)

    def __init__(self) -> None:
        """Allow it."""
        self.begins_at: float = -math.inf

    def failed(self, now: float) -> None:
        """Note that a kept connection had ended before the event loop noticed it."""
        self.begins_at = now + _PAUSE


@final
class AfterBreak(msgspec.Struct, frozen=True):
    """What to do; without any of these the error stands.

    Attributes:
        again: Send the request again at once.
        reload: Look at the certificate files, and send it again if they have changed.
        suspect: If it is not sent again, look at them before the next request.
    """

    again: bool = False
    reload: bool = False
    suspect: bool = False


def after_break(method: str, *, reused: bool, tls: bool, in_handshake: bool, cut: bool) -> AfterBreak:
    """Decide about one try.

    Args:
        method: HTTP method.
        reused: Whether the connection had been used before.
        tls: Whether it is one with TLS.
        in_handshake: Whether TLS itself failed.
        cut: Whether the other side, or the way to it, cut the connection.
    """
    if reused and method in REPEATED:
        return AfterBreak(again=True)
    return AfterBreak(reload=tls and in_handshake, suspect=tls and cut)
