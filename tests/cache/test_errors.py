"""What the errors say."""

from __future__ import annotations

import pickle

from deltaloop.cache.errors import CacheSyncError, RequeueError, SyncFailure, describe_error
from tests.cache.fake_source import api_error


def test_a_sync_error_names_the_kind_the_error_and_since_when() -> None:
    error = CacheSyncError(
        [SyncFailure("v1/Pod", 30.0, api_error(403, message="pods is forbidden"), 28.42), SyncFailure("v1/Node", 30.0)]
    )
    assert str(error) == (
        "the cache of v1/Pod has not synced within 30 s: failing for 28.4 s, "
        "last error ForbiddenError: pods is forbidden; "
        "the cache of v1/Node has not synced within 30 s; no error was seen: the server is slow, or was never asked"
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
