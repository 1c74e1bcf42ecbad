"""What can go wrong on the way to a server, in words that help whoever has to mend it."""

from __future__ import annotations

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
    """Tell what an error means that ended a connection which stood."""
    reason = getattr(error, "strerror", None) or type(error).__name__
    return ConnectionFailure(FailureKind.BROKE, redact(str(reason)), isinstance(error, CUTS))
