"""What a validation has found, and the Status that refuses a request for it.

    a finding with a path      the object is invalid: 422 Invalid, with a cause for each finding
    none has one               the request is not allowed, whatever the object's fields are: 403 Forbidden

Source: apimachinery pkg/apis/meta/v1/types.go (``CauseType``), pkg/api/errors ``NewInvalid``, ``NewForbidden``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

import msgspec

from deltaloop.api.plain_text import one_line
from deltaloop.api.status import Status, StatusCause, StatusDetails

MOST_FINDINGS: Final = 100
_LONGEST: Final = 1024
_LONGEST_MESSAGE: Final = 8 * 1024


@final
class FieldError(msgspec.Struct, frozen=True):
    """What keeps an object, or a request, from being accepted.

    Attributes:
        path: The field, as Kubernetes writes it: ``spec.replicas``, ``spec.ports[0].name``; "" means the request as a
            whole, such as that this user may not do it.
        message: What is wrong, and what would be right, for the one who sent the request.
        reason: Kubernetes' word for it: ``FieldValueInvalid``, ``FieldValueRequired``, ``FieldValueDuplicate``,
            ``FieldValueForbidden``, ``FieldValueNotSupported``, ``FieldValueTooLong``, ``FieldValueTooMany``,
            ``FieldValueNotFound``, ``FieldValueTypeInvalid``; or one of your own.
    """

    path: str
    message: str
    reason: str = "FieldValueInvalid"

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def refusal(findings: Sequence[FieldError], *, group: str, kind: str, name: str) -> Status:
    """Return the Status that refuses a request.

    Args:
        findings: At least one; those beyond ``MOST_FINDINGS`` are counted only.
        group: API group of the object.
        kind: Its kind.
        name: Its name; empty if it has none yet.
    """
    shown, rest = findings[:MOST_FINDINGS], len(findings) - MOST_FINDINGS
    texts = [one_line(str(each), longest=_LONGEST) for each in shown]
    if rest > 0:
        texts.append(f"and {rest} more")
    is_invalid = any(each.path for each in findings)
    causes = tuple(
        StatusCause(
            reason=one_line(each.reason, longest=_LONGEST) if each.path else "",
            message=one_line(each.message, longest=_LONGEST),
            field=one_line(each.path, longest=_LONGEST),
        )
        for each in shown
    )
    return Status(
        message=one_line("; ".join(texts), longest=_LONGEST_MESSAGE),
        reason="Invalid" if is_invalid else "Forbidden",
        details=StatusDetails(name=name, group=group, kind=kind, causes=causes),
        code=422 if is_invalid else 403,
    )
