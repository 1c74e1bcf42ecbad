"""Errors of caches.

DeltaloopError
├── CacheSyncError           a cache did not fill in time: names each kind, its last error and since when
├── InformerStoppedError     the caller uses an informer after its end
├── NotFreshError            a cache did not reach a version in time
├── TransformError           the user's transform raised, or changed what an object is called
├── TransactionError         some writes of a transaction could not be done
├── FifoClosedError          the queue of deltas is closed and empty: the consumer's loop ends
├── RequeueError             raised by a process function that wants its deltas again
├── VeryShortWatchError      a server or proxy ends watches at once; reported, never raised
├── WatchListEndedError      a server ended a streamed list before it was whole; reported, never raised
├── WatchListStalledError    a server began a streamed list and sent no more of it; reported, never raised
├── ServerRestoredError     a server's resource versions are lower than before; reported, never raised
├── RepeatedContinueError    a server's list never ends; reported by reflectors
└── InvalidArgumentError
    ├── IndexerConflictError an index of that name exists with another function
    └── UnknownIndexError    there is no index of that name
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from deltaloop.api.errors import DeltaloopError, InvalidArgumentError
from deltaloop.api.redaction import redact


def describe_error(error: BaseException) -> str:
    """Return an error's type and redacted text on one line."""
    text = str(redact(str(error)))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class SyncFailure(msgspec.Struct, frozen=True):
    """One cache that did not fill in time.

    Attributes:
        resource: Its kind, such as ``v1/Pod``, with namespace and selectors where there are any.
        waited: How many seconds ``wait_for_sync`` had waited.
        last_error: The last error of list or watch, or None if there was none.
        failing_for: Seconds since the first of the errors without a success between, or None.
        stopped: Whether the informer had ended, so that it would never fill.
        refused: Whether the server says that it is not allowed (401, 403), or that there is no such kind (404).
    """

    resource: str
    waited: float
    last_error: BaseException | None = None
    failing_for: float | None = None
    stopped: bool = False
    refused: bool = False

    def __str__(self) -> str:
        end = "has stopped" if self.stopped else f"has not synced within {self.waited:g} s"
        if self.refused and not self.stopped:
            end = "cannot fill: the server refuses to list or watch it, or does not know it"
        if self.last_error is None:
            return f"the cache of {self.resource} {end}; no error was seen: the server is slow, or was never asked"
        since = f"failing for {self.failing_for:.1f} s, " if self.failing_for is not None else ""
        return f"the cache of {self.resource} {end}: {since}last error {describe_error(self.last_error)}"


class CacheSyncError(DeltaloopError, TimeoutError):
    """One or several caches did not fill in time; the message names each kind, its last error and since when.

    A forbidden or unknown resource is the usual cause: grant list and watch, install the CRD, or wait longer.

    Attributes:
        failures: One for each cache that is not full, at least one.
    """

    def __init__(self, failures: Iterable[SyncFailure]) -> None:
        """Keep what is known about each cache."""
        self.failures: tuple[SyncFailure, ...] = tuple(failures)
        super().__init__("; ".join(str(failure) for failure in self.failures))

    @property
    def resource(self) -> str:
        """The kind of the first cache that is not full."""
        return self.failures[0].resource

    @property
    def last_error(self) -> BaseException | None:
        """The last error of the first cache that is not full."""
        return self.failures[0].last_error

    def __reduce__(self) -> tuple[type[CacheSyncError], tuple[tuple[SyncFailure, ...]]]:
        return CacheSyncError, (self.failures,)


class InformerStoppedError(DeltaloopError):
    """An informer has stopped, or runs already, and cannot do what was asked; make a new one."""


class NotFreshError(DeltaloopError, TimeoutError):
    """A cache did not reach a resource version in time: the server is slow, the watch is broken, or it is not of it.

    Attributes:
        resource: The kind that the informer caches, such as ``v1/Pod``.
        wanted: The resource version that was waited for.
        reached: The version that the cache has come to.
    """

    def __init__(self, resource: str, *, wanted: str, reached: str, waited: float) -> None:
        """Keep both versions."""
        super().__init__(
            f"the cache of {resource} has not reached resource version {wanted} within {waited:g} s; "
            f"it is at {reached or 'none'}"
        )
        self.resource = resource
        self.wanted = wanted
        self.reached = reached


class TransformError(DeltaloopError):
    """A transform raised, or gave back an object of another name; mend the function.

    What it raised is the cause.

    Attributes:
        key: Key of the object.
    """

    def __init__(self, key: str, problem: str) -> None:
        """Name the object."""
        super().__init__(f"the transform of {key!r} {problem}")
        self.key = key


class TransactionError(DeltaloopError):
    """Some writes of a transaction could not be done, because their objects have no key; the others were.

    Attributes:
        failures: Place in the transaction, beginning with 0, and what was raised.
        total: How many writes the transaction had, failed or not.
    """

    def __init__(self, failures: Mapping[int, Exception], total: int) -> None:
        """Keep the failures."""
        self.failures: dict[int, Exception] = dict(failures)
        self.total = total
        super().__init__(f"{len(self.failures)} of {total} writes failed: their objects have no key")


class FifoClosedError(DeltaloopError):
    """The queue of deltas is closed and empty: nothing will come any more."""


class RequeueError(DeltaloopError):
    """Raised by a process function: put the deltas back unless newer ones wait, and raise ``cause`` to the caller.

    Attributes:
        cause: What the process function's caller gets.
    """

    def __init__(self, cause: Exception) -> None:
        """Keep the cause."""
        super().__init__(describe_error(cause))
        self.cause = cause


class VeryShortWatchError(DeltaloopError):
    """A watch ended within a second and brought nothing: a server or proxy between that cuts streams at once."""


class WatchListEndedError(DeltaloopError):
    """A server, or a proxy between, ended a streamed list before it was whole; the list is asked for in pages."""


class WatchListStalledError(DeltaloopError):
    """A server began a streamed list and sent no more of it for too long; lists are asked for in pages for a while.

    It may send changes: then it does not know the request, and takes it for an ordinary watch.
    """


class ServerRestoredError(DeltaloopError):
    """A server says lower resource versions than before: it was restored from a backup, or is another one.

    Attributes:
        before: The resource version that the cache had come to.
        now: The lower resource version that the server gives.
    """

    def __init__(self, before: str, now: str) -> None:
        """Keep both versions."""
        super().__init__(f"the server's resource version went back from {before} to {now}")
        self.before = before
        self.now = now


class RepeatedContinueError(DeltaloopError):
    """A list would never end: a continue token came again, or page after page brings nothing new."""


class IndexerConflictError(InvalidArgumentError):
    """An index of that name exists already, with another function; choose another name.

    Attributes:
        names: The names that are taken.
    """

    def __init__(self, names: Iterable[str]) -> None:
        """Keep the names."""
        self.names: tuple[str, ...] = tuple(sorted(names))
        super().__init__(f"indexer conflict: {', '.join(map(repr, self.names))} exist(s) with another function")


class UnknownIndexError(InvalidArgumentError):
    """There is no index of that name; the message lists those that there are.

    Attributes:
        name: The name asked for.
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        """Keep the name."""
        self.name = name
        listed = ", ".join(map(repr, sorted(known))) or "none"
        super().__init__(f"index with name {name!r} does not exist; known: {listed}")
