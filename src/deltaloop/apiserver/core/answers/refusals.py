"""How a refusal is answered beside its Status: headers, form, warnings, and whether the server is to blame.

Source: apiserver pkg/endpoints/handlers/responsewriters/errors.go, pkg/server/filters/priority-and-fairness.go.
"""

from __future__ import annotations

from http import HTTPStatus

from deltaloop.api.status import ApiError, Status
from deltaloop.apiserver.core.status_errors import UnreadableObjectError


def headers(status: Status) -> dict[str, str]:
    """Return the headers that a refusal has of its own: when to come again."""
    seconds = status.details.retry_after_seconds if status.details is not None else 0
    return {"Retry-After": str(seconds)} if seconds else {}


def is_indented(status: Status) -> bool:
    """Tell whether the Status is written for people: to whoever takes no form that there is."""
    return status.code == HTTPStatus.NOT_ACCEPTABLE


def has_warnings(error: ApiError) -> bool:
    """Tell whether a refusal carries the warnings about what was sent; what cannot be read has no fields to warn of."""
    return not isinstance(error, UnreadableObjectError)


def is_unexpected(code: int, *, logged: bool, fault: str) -> bool:
    """Tell whether an answer is a failure of the server that nobody has heard of.

    Args:
        code: Of the answer.
        logged: Whether it was logged already.
        fault: What was struck on request; "" for nothing.
    """
    return code == HTTPStatus.INTERNAL_SERVER_ERROR and not logged and not fault
