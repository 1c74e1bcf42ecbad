"""What the errors say."""

from __future__ import annotations

import pickle

import pytest

from deltaloop.api.errors import DeltaloopError, InvalidArgumentError
from deltaloop.cache.core.reflector.errors import ServerRestoredError
from deltaloop.cache.errors import (
    CacheSyncError,
    IndexerConflictError,
    NotFreshError,
    RequeueError,
    SyncFailure,
    TransactionError,
    TransformError,
    UnknownIndexError,
    describe_error,
)
from tests.cache.fake_source import api_error


def test_sync_error_names_kind_error_and_duration() -> None:
    error = CacheSyncError(
        [SyncFailure("v1/Pod", 30.0, api_error(403, message="pods is forbidden"), 28.42), SyncFailure("v1/Node", 30.0)]
    )
    assert str(error) == (
        "the cache of v1/Pod has not synced within 30 s: failing for 28.4 s, "
        "last error ForbiddenError: pods is forbidden; "
        "the cache of v1/Node has not synced within 30 s; no request failed: the server is slow, or received no request"
    )
    assert error.resource == "v1/Pod"
    assert isinstance(error, TimeoutError)
    assert str(error.last_error) == "pods is forbidden"
    assert "has stopped" in str(SyncFailure("v1/Pod", 3.0, stopped=True))


def test_a_sync_error_can_be_pickled() -> None:
    error = CacheSyncError([SyncFailure("v1/Pod", 30.0, None, None)])
    assert pickle.loads(pickle.dumps(error)).failures == error.failures


def test_secrets_in_a_text_are_hidden() -> None:
    assert "hunter2" not in describe_error(ValueError("password=hunter2"))
    assert describe_error(ValueError()) == "ValueError"
    assert "hunter2" not in str(RequeueError(ValueError("password=hunter2")))


ILL = api_error(500, message="ill")


REFUSED = "cannot sync: the server rejects list or watch requests, or does not serve the kind"


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (SyncFailure("pods", 2.5, ILL), "has not synced within 2.5 s: "),
        (SyncFailure("pods", 2.5, ILL, 0.0), "has not synced within 2.5 s: failing for 0.0 s, "),
        (SyncFailure("pods", 2.5, ILL, stopped=True), "has stopped: "),
        (SyncFailure("pods", 2.5, ILL, refused=True), f"{REFUSED}: "),
        (SyncFailure("pods", 2.5, ILL, stopped=True, refused=True), "has stopped: "),
    ],
)
def test_failure_text_shows_whether_error_is_permanent(failure: SyncFailure, says: str) -> None:
    assert str(failure) == f"the cache of pods {says}last error InternalServerError: ill"


def test_errors_keep_their_fields() -> None:
    stale = NotFreshError("pods", wanted="7", reached="", waited=1.5)
    assert (stale.resource, stale.wanted, stale.reached) == ("pods", "7", "")
    assert str(stale) == "the cache of pods has not reached resource version 7 within 1.5 s; it is at none"
    assert "at 6" in str(NotFreshError("pods", wanted="7", reached="6", waited=1.5))
    assert isinstance(stale, TimeoutError)

    writes = TransactionError({1: ILL, 4: ILL}, 7)
    assert (writes.failures, writes.total) == ({1: ILL, 4: ILL}, 7)
    assert str(writes) == "2 of 7 writes failed: their objects have no key"

    transform = TransformError("a/b", "raised")
    assert (transform.key, str(transform)) == ("a/b", "the transform of 'a/b' raised")

    again = RequeueError(ILL)
    assert (again.cause, str(again)) == (ILL, "InternalServerError: ill")

    back = ServerRestoredError("9", "3")
    assert (back.before, back.now) == ("9", "3")
    assert str(back) == "the server's resource version went back from 9 to 3"

    taken = IndexerConflictError(["b", "a"])
    assert taken.names == ("a", "b")
    assert str(taken) == "indexer conflict: 'a', 'b' exist(s) with another function"

    unknown = UnknownIndexError("x", ["b", "a"])
    assert unknown.name == "x"
    assert str(unknown) == "index with name 'x' does not exist; known: 'a', 'b'"
    assert str(UnknownIndexError("x", [])).endswith("known: none")
    assert all(isinstance(each, DeltaloopError) for each in (stale, writes, transform, again, back))
    assert all(isinstance(each, InvalidArgumentError) for each in (taken, unknown))
