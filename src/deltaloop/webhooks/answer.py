"""Responses to reviews, with their details for logs and metrics.

::

    controller_runtime_webhook_latency_seconds{webhook}           ``answered``
    controller_runtime_webhook_requests_total{webhook,code}       ``answered``
    controller_runtime_webhook_requests_in_flight{webhook}        ``in_flight``
    deltaloop_webhook_reviews_total{webhook,outcome}              ``answered``
    deltaloop_webhook_certificate_expiry_timestamp_seconds        ``certificate_valid_until``

The label ``webhook`` is the path of the request, like in controller-runtime. Requests for unknown paths are not
counted.

Source: controller-runtime pkg/webhook/internal/metrics/metrics.go.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeVar, final

from deltaloop.api.status import Status
from deltaloop.webhooks.core.admission_review import InvalidReviewError
from deltaloop.webhooks.errors import InvalidReviewResultError, InvalidWebhookError

Outcome: TypeAlias = Literal["allowed", "denied", "converted", "invalid", "failed"]
"""Result of a review: ``invalid`` means an unusable review, ``failed`` a failure of this program."""


@final
class SeenMismatch(NamedTuple):
    """Object that does not fit a class, for the log, without its data; ``field`` is empty for the whole object."""

    key: str
    field: str
    problem: str
    objects: int = 1


class Answer(NamedTuple):
    """Response to a review. If the HTTP status is not 200, the API server applies the failure policy."""

    status: int
    body: bytes
    outcome: Outcome
    error: Exception | None = None
    mismatch: SeenMismatch | None = None
    key: str = ""


def told(error: Exception) -> str:
    """Describe a function's error without data of an object; the program's exceptions are reduced to their class."""
    if isinstance(error, InvalidReviewResultError | InvalidWebhookError):
        return error.problem
    return type(error).__name__


def failed(code: int, reason: str, message: str, error: Exception | None = None) -> Answer:
    """Return a failure, so that the failure policy decides. The message must not contain data of objects."""
    return Answer(code, Status(message=message, reason=reason, code=code).to_json(), "failed", error)


def refused_body(error: InvalidReviewError, answer: Callable[[str, Status], bytes]) -> Answer:
    """Reject an invalid review: with the review that ``answer`` builds if its uid is known, otherwise with a Status."""
    status = Status(message=str(error), reason="BadRequest", code=400)
    if error.uid:
        return Answer(200, answer(error.uid, status), "invalid")
    return Answer(400, status.to_json(), "invalid")


class WebhookMetrics(Protocol):
    """Hooks that are called on the event loop and must not block."""

    def in_flight(self, path: str, number: int) -> None:
        """Report the number of reviews that are in progress at a path."""
        ...

    def certificate_valid_until(self, seconds: float) -> None:
        """Report the expiry of a newly served certificate in seconds since 1970."""
        ...

    def answered(self, path: str, code: int, outcome: Outcome, seconds: float) -> None:
        """Report a response: its HTTP status, outcome, and the seconds since the request arrived."""
        ...


T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]


def finished(steps: Steps[T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
