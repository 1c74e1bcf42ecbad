"""Errors of the way to the server: configuration and connection. What the server itself says is an ``ApiError``."""

from __future__ import annotations

from deltaloop.api.errors import DeltaloopError, InvalidArgumentError


class ConfigError(InvalidArgumentError):
    """A kubeconfig, or the in-cluster files, cannot be used; the message names the file, the entry and the cure."""


class CredentialsError(DeltaloopError):
    """Credentials were to be had from somebody, and were not: a plugin failed, or an issuer refused or did not answer.

    Nothing was sent to the API server. The message says who failed, and what to do. It never holds what was given out.

    Attributes:
        source: Who failed: ``exec plugin 'name'`` or ``OIDC issuer <address>``.
    """

    def __init__(self, source: str, problem: str) -> None:
        """Name the source and what went wrong with it."""
        super().__init__(f"{source}: {problem}")
        self.source = source


class TransportError(DeltaloopError):
    """A request got no usable answer: the fault lies between here and the server, or with a server that is gone.

    Attributes:
        method: HTTP method.
        path: URL path, without query.
        refused: True if nothing listens at the address, so the request was certainly not carried out.
        sent: False if the request was certainly not sent; True if the server may have carried it out.
        cut: True if a connection that was there, or nearly, was cut by the other side or on the way; the next one may
            hold. False for what will be the same the next time, such as a certificate that is not accepted.
    """

    def __init__(
        self, message: str, *, method: str, path: str, refused: bool = False, sent: bool = True, cut: bool = False
    ) -> None:
        """Keep the request's name and what is known about its fate."""
        super().__init__(message)
        self.method = method
        self.path = path
        self.refused = refused
        self.sent: bool = sent and not refused
        self.cut: bool = cut and not refused


class RequestTimeoutError(TransportError, TimeoutError):
    """No answer came within the request's time limit; the server may have carried it out."""


class ResponseTooLargeError(TransportError):
    """An answer is larger than ``ClientConfig`` allows, or unpacks to so much that it cannot be data.

    Ask for less (a page by ``ListOptions.limit``, or ``metadata_only``), or raise ``max_response_bytes``.
    """


class StreamEndedError(TransportError):
    """A stream broke off in the middle: the connection was lost, or its client-side deadline passed."""


class WaitTimeoutError(DeltaloopError, TimeoutError):
    """What ``wait_for`` waited for did not happen in time; the message says what was last seen, without data.

    Attributes:
        condition: What was waited for.
        last_seen: What was there instead.
    """

    def __init__(self, message: str, *, condition: str, last_seen: str) -> None:
        """Keep what was wanted and what was found."""
        super().__init__(message)
        self.condition = condition
        self.last_seen = last_seen
