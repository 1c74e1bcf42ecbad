"""Errors of a validation, and the Status that rejects the request.

If an error has a path, the object is invalid: 422 Invalid, with a cause for each error. Otherwise the request is not
allowed: 403 Forbidden.

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
    """Error that a validation reports for a field or a request.

    Attributes:
        path: Path of the field, for example ``spec.replicas`` or ``spec.ports[0].name``. Empty for the whole request,
            for example if the user lacks a permission.
        message: Description of the problem and its solution, for the user who sent the request.
        reason: ``FieldValueInvalid``, ``FieldValueRequired``, ``FieldValueDuplicate``, ``FieldValueForbidden``,
            ``FieldValueNotSupported``, ``FieldValueTooLong``, ``FieldValueTooMany``, ``FieldValueNotFound``,
            ``FieldValueTypeInvalid``, or a custom reason.
    """

    path: str
    message: str
    reason: str = "FieldValueInvalid"

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def refusal(findings: Sequence[FieldError], *, group: str, kind: str, name: str) -> Status:
    """Build the Status that rejects a request. Errors beyond ``MOST_FINDINGS`` are only counted."""
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
