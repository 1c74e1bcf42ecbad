"""AdmissionReview of ``admission.k8s.io/v1``.

An invalid review is rejected with a review if the uid is known, otherwise with a Status. No input may cause an internal
error.

If an error has a path, the object is invalid: 422 Invalid, with a cause for each error. Otherwise the request is not
allowed: 403 Forbidden.

Source: https://pkg.go.dev/k8s.io/api/admission/v1; apiserver pkg/admission/plugin/webhook/request/admissionreview.go;
apimachinery pkg/apis/meta/v1/types.go (``CauseType``), pkg/api/errors ``NewInvalid``, ``NewForbidden``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.dns_names import label_key_problems
from deltaloop.api.plain_text import one_line
from deltaloop.api.resource import DECODE_ERRORS, without_data
from deltaloop.api.status import Status, StatusCause, StatusDetails
from deltaloop.webhooks.core.object_patch import PatchOperation

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_LONGEST_WARNING: Final = 4096
_MOST_WARNINGS: Final = 100
_NULL: Final = b"null"

ReviewOperation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@final
class InvalidReviewError(DeltaloopError):
    """The body is not a valid review.

    The message contains no data of the body.

    Attributes:
        uid: Identifier of the review, or "" if it cannot be read.
    """

    def __init__(self, problem: str, *, uid: str = "") -> None:
        super().__init__(problem)
        self.uid = uid


@final
class ReviewedKind(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.group}/{self.version}/{self.kind}" if self.group else f"{self.version}/{self.kind}"


@final
class RequestUser(msgspec.Struct, frozen=True):
    """User who sent a request to the API server.

    Attributes:
        username: Name of the user, for example ``system:serviceaccount:shop:web``.
        uid: Identifier that distinguishes users who had the same name over time. Often empty.
        groups: Groups of the user.
        extra: Other information from the authenticator.
    """

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])


class ReviewRequest(msgspec.Struct, frozen=True, kw_only=True):
    uid: str


@final
class ReviewedRequest(ReviewRequest, frozen=True, kw_only=True, rename="camel"):
    """Request in an admission review. Objects are unchanged JSON, or ``null`` if they are absent."""

    kind: ReviewedKind
    operation: ReviewOperation
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: RequestUser = RequestUser()
    object: msgspec.Raw = msgspec.Raw(_NULL)
    old_object: msgspec.Raw = msgspec.Raw(_NULL)
    dry_run: bool | None = None
    options: dict[str, Any] | None = None

    @property
    def new(self) -> bytes | None:
        return _present(self.object)

    @property
    def old(self) -> bytes | None:
        return _present(self.old_object)


R = TypeVar("R", bound=ReviewRequest)


class Review(msgspec.Struct, Generic[R], frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: R | None = None


class _Request(msgspec.Struct):
    uid: str = ""


class _Answerable(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: _Request = msgspec.field(default_factory=_Request)


_decode: Final = msgspec.json.Decoder(Review[ReviewedRequest]).decode
_decode_answerable: Final = msgspec.json.Decoder(_Answerable).decode
_encode: Final = msgspec.json.Encoder().encode


def read_review(
    body: bytes | bytearray, decode: Callable[[bytes | bytearray], Review[R]], api_version: str, kind: str
) -> R:
    """Return the request of a review, or raise InvalidReviewError."""
    try:
        review = decode(body)
    except DECODE_ERRORS as error:
        uid = _uid_of(body, api_version, kind)
        raise InvalidReviewError(f"the body must be {kind}: {without_data(error)}", uid=uid) from None
    if (review.api_version, review.kind) != (api_version, kind):
        # The uid is not used, because the sender would not understand a review of a different version.
        field = f"{kind[0].lower()}{kind[1:]}Versions"
        raise InvalidReviewError(f"the body must be {kind} of {api_version}. Add v1 to {field}.")
    if review.request is None or not review.request.uid:
        raise InvalidReviewError(f"the {kind} must contain a request with a uid")
    return review.request


def _uid_of(body: bytes | bytearray, api_version: str, kind: str) -> str:
    try:
        review = _decode_answerable(body)
    except DECODE_ERRORS:
        return ""
    return review.request.uid if (review.api_version, review.kind) == (api_version, kind) else ""


def read_admission_review(body: bytes | bytearray) -> ReviewedRequest:
    """Return the request of a review, or raise InvalidReviewError."""
    return read_review(body, _decode, API_VERSION, KIND)


def admission_response(
    uid: str,
    *,
    refused: Status | None = None,
    patch: Sequence[PatchOperation] = (),
    warnings: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
) -> bytes:
    """Build the response to a review, as JSON. ``refused`` None allows the request. Long warnings are shortened."""
    response: dict[str, Any] = {"uid": uid, "allowed": refused is None}
    if refused is not None:
        response["status"] = msgspec.Raw(refused.to_json())
    elif patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(_encode(patch)).decode()
    if warnings:
        response["warnings"] = [one_line(each, longest=_LONGEST_WARNING) for each in warnings[:_MOST_WARNINGS]]
    if annotations:
        response["auditAnnotations"] = dict(annotations)
    return _encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def annotation_problems(webhook: str, key: str) -> list[str]:
    """Return the problems of an audit annotation's key. The server adds the webhook's name as a prefix."""
    return [*label_key_problems(f"{webhook}/{key}")]


def _present(raw: msgspec.Raw) -> bytes | None:
    found = bytes(raw)
    return None if found == _NULL else found


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
