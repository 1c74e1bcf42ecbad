"""Errors of caches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from deltaloop.api.errors import DeltaloopError, InvalidArgumentError
from deltaloop.api.redaction import redact


def describe_error(error: BaseException) -> str:
    """Return the type and the redacted text of an error on one line."""
    text = str(redact(str(error)))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class SyncFailure(msgspec.Struct, frozen=True):
    """A cache that did not sync in time.

    Attributes:
        resource: Kind, such as ``v1/Pod``, with namespace and selectors.
        waited: Seconds that ``wait_for_sync`` waited.
        last_error: Last error of a list or watch, or None.
        failing_for: Seconds since the first error after the last success, or None.
        stopped: Whether the informer has stopped.
        refused: Whether the server denied access (401, 403) or does not know the kind (404).
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
            end = "cannot sync: the server rejects list or watch requests, or does not serve the kind"
        if self.last_error is None:
            return f"the cache of {self.resource} {end}; no request failed: the server is slow, or received no request"
        since = f"failing for {self.failing_for:.1f} s, " if self.failing_for is not None else ""
        return f"the cache of {self.resource} {end}: {since}last error {describe_error(self.last_error)}"


class CacheSyncError(DeltaloopError, TimeoutError):
    """One or more caches did not sync in time.

    The message names each kind and its last error.

    Usually the resource is forbidden or unknown. Grant list and watch, install the CRD, or increase the timeout.

    Attributes:
        failures: One entry for each cache that has not synced.
    """

    def __init__(self, failures: Iterable[SyncFailure]) -> None:
        self.failures: tuple[SyncFailure, ...] = tuple(failures)
        super().__init__("; ".join(str(failure) for failure in self.failures))

    @property
    def resource(self) -> str:
        """Kind of the first cache that has not synced."""
        return self.failures[0].resource

    @property
    def last_error(self) -> BaseException | None:
        """Last error of the first cache that has not synced."""
        return self.failures[0].last_error

    def __reduce__(self) -> tuple[type[CacheSyncError], tuple[tuple[SyncFailure, ...]]]:
        return CacheSyncError, (self.failures,)


class InformerStoppedError(DeltaloopError):
    """An informer has stopped, or already runs, and cannot perform the operation.

    Create a new informer.
    """


class NotFreshError(DeltaloopError, TimeoutError):
    """A cache did not reach a resource version in time.

    The server is slow, the watch is broken, or the version belongs to another kind.

    Attributes:
        resource: Kind of the cached objects, such as ``v1/Pod``.
        wanted: Expected resource version.
        reached: Current version of the cache.
    """

    def __init__(self, resource: str, *, wanted: str, reached: str, waited: float) -> None:
        super().__init__(
            f"the cache of {resource} has not reached resource version {wanted} within {waited:g} s; "
            f"it is at {reached or 'none'}"
        )
        self.resource = resource
        self.wanted = wanted
        self.reached = reached


class TransformError(DeltaloopError):
    """A transform raised, or changed the key of an object.

    Fix the function; its exception is the cause.

    Attributes:
        key: Key of the object.
    """

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"the transform of {key!r} {problem}")
        self.key = key


class TransactionError(DeltaloopError):
    """Some writes of a transaction failed because their objects have no key.

    The others succeeded.

    Attributes:
        failures: Exceptions by zero-based position in the transaction.
        total: Number of writes in the transaction, including failed ones.
    """

    def __init__(self, failures: Mapping[int, Exception], total: int) -> None:
        self.failures: dict[int, Exception] = dict(failures)
        self.total = total
        super().__init__(f"{len(self.failures)} of {total} writes failed: their objects have no key")


class FifoClosedError(DeltaloopError):
    """The queue of deltas is closed and empty."""


class RequeueError(DeltaloopError):
    """Exception of a process function that requests to requeue its deltas and to raise ``cause`` to the caller.

    Attributes:
        cause: Exception for the caller of the process function.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(describe_error(cause))
        self.cause = cause


class IndexerConflictError(InvalidArgumentError):
    """An index with this name and another function exists.

    Choose another name.

    Attributes:
        names: Conflicting names.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names: tuple[str, ...] = tuple(sorted(names))
        super().__init__(f"indexer conflict: {', '.join(map(repr, self.names))} exist(s) with another function")


class UnknownIndexError(InvalidArgumentError):
    """The index does not exist.

    The message lists the existing indexes.

    Attributes:
        name: Requested name.
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        listed = ", ".join(map(repr, sorted(known))) or "none"
        super().__init__(f"index with name {name!r} does not exist; known: {listed}")
