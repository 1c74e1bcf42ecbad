"""Errors that a reflector reports."""

from __future__ import annotations

from deltaloop._internal.root_error import DeltaloopError


class VeryShortWatchError(DeltaloopError):
    """A watch ended within a second and without events, because a server or proxy closes streams immediately."""


class WatchListEndedError(DeltaloopError):
    """A server or proxy ended a streamed list before it was complete.

    The reflector lists in pages instead.
    """


class WatchListStalledError(DeltaloopError):
    """A streamed list made no progress for too long.

    The reflector lists in pages for a while.

    If the server sends changes, it does not know the request and treats it as an ordinary watch.
    """


class ServerRestoredError(DeltaloopError):
    """The server's resource versions went back: it was restored from a backup, or is another server.

    Attributes:
        before: Resource version of the cache.
        now: Lower resource version of the server.
    """

    def __init__(self, before: str, now: str) -> None:
        super().__init__(f"the server's resource version went back from {before} to {now}")
        self.before = before
        self.now = now


class RepeatedContinueError(DeltaloopError):
    """A list would never end: a continue token was repeated, or pages contain no new objects."""
