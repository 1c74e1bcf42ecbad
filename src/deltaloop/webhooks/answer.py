"""What a review is answered with, and what the log and the metrics are told of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias, final

from deltaloop.api.status import Status
from deltaloop.webhooks.core.admission_review import InvalidReviewError
from deltaloop.webhooks.errors import InvalidReviewResultError, InvalidWebhookError

Outcome: TypeAlias = Literal["allowed", "denied", "converted", "invalid", "failed"]
"""Allowed, or denied by the function's word; converted; sent in a form that means nothing; failed on this side."""


@final
class SeenMisfit(NamedTuple):
    """An object that does not fit a class, for the log.

    Attributes:
        key: Key of the object.
        field: Path of the value; empty for the object as a whole.
        problem: Description without any data of the object.
        objects: Number of objects of the review that do not fit.
    """

    key: str
    field: str
    problem: str
    objects: int = 1


class Answer(NamedTuple):
    """The answer to a review.

    Attributes:
        status: HTTP status; what is not 200 is no answer to the API server, and the failure policy decides.
        body: A review, or a Status.
        outcome: What it comes to.
        error: Why it failed.
        misfit: Object that does not fit a class, if the review is not refused for it.
        key: Key of the object whose conversion failed.
    """

    status: int
    body: bytes
    outcome: Outcome
    error: Exception | None = None
    misfit: SeenMisfit | None = None
    key: str = ""


def told(error: Exception) -> str:
    """Return what others may be told of an error of a function: nothing that may be of an object.

    Of what the function itself has raised that is the class; what we found out is said in full.
    """
    if isinstance(error, InvalidReviewResultError | InvalidWebhookError):
        return error.problem
    return type(error).__name__


def failed(code: int, reason: str, message: str, error: Exception | None = None) -> Answer:
    """Return what tells the API server that there is no answer; it has no data of objects."""
    return Answer(code, Status(message=message, reason=reason, code=code).to_json(), "failed", error)


def refused_body(error: InvalidReviewError, answer: Callable[[str, Status], bytes]) -> Answer:
    """Return the refusal of what is no review: as a review if there is a uid to answer to, else as a Status.

    Args:
        error: What is wrong.
        answer: Makes the review that says no.
    """
    status = Status(message=str(error), reason="BadRequest", code=400)
    if error.uid:
        return Answer(200, answer(error.uid, status), "invalid")
    return Answer(400, status.to_json(), "invalid")
