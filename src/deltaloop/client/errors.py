"""Errors of configuration and connections. ``ApiError`` represents error responses of the server."""

from __future__ import annotations

from typing import Self

from deltaloop.api.errors import DeltaloopError, InvalidArgumentError


class ConfigError(InvalidArgumentError):
    """A kubeconfig or in-cluster file is not usable.

    Attributes:
        where: File and entry of the invalid field, or empty.
    """

    where: str = ""

    def at(self, where: object) -> Self:
        """Add the file and entry to the message, and return the error."""
        self.where = f"{where}: {self.where}".removesuffix(": ")
        Exception.__init__(self, f"{where}: {self}")
        return self


class CredentialsError(DeltaloopError):
    """A credential plugin or OIDC issuer did not provide credentials.

    No request was sent to the API server. The message names the source and the remedy, and contains no credentials.

    Attributes:
        source: Source of the failure: ``exec plugin 'name'`` or ``OIDC issuer <address>``.
    """

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}")
        self.source = source


class TransportError(DeltaloopError):
    """A request received no usable response, because of the connection or the server.

    Attributes:
        method: HTTP method.
        path: URL path, without the query.
        refused: Whether the connection was refused, so the server did not execute the request.
        sent: Whether the request may have been sent. If true, the server may have executed it.
        cut: Whether the peer or the network closed a connection that was established or nearly established. A new
            connection may succeed. False for permanent failures, such as an untrusted certificate.
    """

    def __init__(
        self, message: str, *, method: str, path: str, refused: bool = False, sent: bool = True, cut: bool = False
    ) -> None:
        super().__init__(message)
        self.method = method
        self.path = path
        self.refused = refused
        self.sent: bool = sent and not refused
        self.cut: bool = cut and not refused


class RequestTimeoutError(TransportError, TimeoutError):
    """No response arrived before the timeout.

    The server may have executed the request.
    """


class ResponseTooLargeError(TransportError):
    """A response exceeds the limits of ``ClientConfig``, or has an implausible compression ratio.

    Request less data (``ListOptions.limit`` or ``metadata_only``), or increase ``max_response_bytes``.
    """


class StreamEndedError(TransportError):
    """A stream broke, because the connection was lost or a client-side limit expired."""


class WaitTimeoutError(DeltaloopError, TimeoutError):
    """The condition of ``wait_for`` was not fulfilled before the timeout.

    The message describes the last state, without the object's data.

    Attributes:
        condition: Name of the condition.
        last_seen: Last known state of the object.
    """

    def __init__(self, message: str, *, condition: str, last_seen: str) -> None:
        super().__init__(message)
        self.condition = condition
        self.last_seen = last_seen
