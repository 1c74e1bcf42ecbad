"""Errors of the way to the server: configuration and connection. What the server itself says is an ``ApiError``."""

from __future__ import annotations

from deltaloop.api.errors import DeltaloopError, InvalidInputError


class ConfigError(InvalidInputError):
    """A kubeconfig, or the in-cluster files, cannot be used; the message names the file, the entry and the cure."""


class TransportError(DeltaloopError):
    """A request got no usable answer: the fault lies between here and the server, or with a server that is gone.

    Attributes:
        method: HTTP method.
        path: URL path, without query.
        refused: True if nothing listens at the address, so the request was certainly not carried out.
        sent: False if the request was certainly not sent; True if the server may have carried it out.
    """

    def __init__(self, message: str, *, method: str, path: str, refused: bool = False, sent: bool = True) -> None:
        """Keep the request's name and what is known about its fate."""
        super().__init__(message)
        self.method = method
        self.path = path
        self.refused = refused
        self.sent = sent and not refused


class RequestTimeoutError(TransportError, TimeoutError):
    """No answer came within the request's time limit; the server may have carried it out."""


class StreamEndedError(TransportError):
    """A stream broke off in the middle: the connection was lost, or its client-side deadline passed."""
