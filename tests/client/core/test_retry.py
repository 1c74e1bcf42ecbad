"""Upstream's cases: client-go rest/with_retry_test.go, rest/request_test.go (``TestCheckRetryHandles429And5xx``)."""

from __future__ import annotations

import math

import pytest

from deltaloop.api.errors import DeltaloopError, MalformedObjectError
from deltaloop.api.status import Status, StatusCause, StatusDetails, error_from_status
from deltaloop.client.core.retry import RetryDecision
from deltaloop.client.errors import RequestTimeoutError, TransportError


def refused(code: int, retry_after: float | None = 1.0, *, cause: str = "") -> DeltaloopError:
    details = StatusDetails(causes=(StatusCause(reason=cause),)) if cause else None
    return error_from_status(Status(code=code, details=details), retry_after=retry_after)


def broken(**facts: bool) -> TransportError:
    return TransportError("broken", method="GET", path="/", **facts)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("code", [429, 500, 502, 503, 504, 599])
def test_error_with_retry_after_is_retried(method: str, code: int) -> None:
    assert RetryDecision(method, deadline_at=None).failed(refused(code, 7.0), now=0.0) == 7.0


@pytest.mark.parametrize("asked", [60.001, 86_400.0])
@pytest.mark.parametrize("deadline_at", [None, math.inf, 1e6])
def test_retry_after_over_one_minute_is_not_retried(asked: float, deadline_at: float | None) -> None:
    assert RetryDecision("GET", deadline_at=deadline_at).failed(refused(503, asked), now=0.0) is None
    assert RetryDecision("GET", deadline_at=deadline_at).failed(refused(503, 60.0), now=0.0) == 60.0


@pytest.mark.parametrize("code", [429, 500, 503])
def test_error_without_retry_after_is_not_retried(code: int) -> None:
    assert RetryDecision("GET", deadline_at=None).failed(refused(code, None), now=0.0) is None


@pytest.mark.parametrize("code", [301, 400, 401, 403, 404, 409, 410, 422, 428, 430, 499, 600])
def test_other_errors_are_not_retried(code: int) -> None:
    assert RetryDecision("GET", deadline_at=None).failed(refused(code, 1.0), now=0.0) is None


def test_too_large_version_is_not_retried() -> None:
    error = refused(504, 1.0, cause="ResourceVersionTooLarge")
    assert RetryDecision("GET", deadline_at=None).failed(error, now=0.0) is None


def test_ten_times_at_most() -> None:
    retry = RetryDecision("POST", deadline_at=None)
    waits = [retry.failed(refused(429), now=0.0) for _ in range(11)]
    assert waits == [1.0] * 10 + [None]


def test_delay_beyond_deadline_is_not_started() -> None:
    retry = RetryDecision("GET", deadline_at=30.0)
    assert retry.failed(refused(503, 10.0), now=19.9) == 10.0
    assert retry.failed(refused(503, 10.0), now=20.0) is None


def test_broken_connection_is_retried_only_for_get() -> None:
    assert RetryDecision("GET", deadline_at=None).failed(broken(), now=0.0) == 1.0
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert RetryDecision(method, deadline_at=None).failed(broken(), now=0.0) is None


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_unsent_request_is_retried_for_any_method(method: str) -> None:
    assert RetryDecision(method, deadline_at=None).failed(broken(sent=False, cut=True), now=0.0) == 1.0


def test_sent_write_is_not_retried() -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert RetryDecision(method, deadline_at=None).failed(broken(sent=True, cut=True), now=0.0) is None


@pytest.mark.parametrize(
    "error",
    [
        broken(refused=True),
        broken(refused=True, cut=True),
        broken(sent=False),
        RequestTimeoutError("late", method="GET", path="/"),
        MalformedObjectError("x"),
    ],
)
def test_other_failures_are_not_retried(error: DeltaloopError) -> None:
    assert RetryDecision("GET", deadline_at=None).failed(error, now=0.0) is None
