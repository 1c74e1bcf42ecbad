"""An AdmissionReview of ``admission.k8s.io/v1``: what it asks, and the review that answers it.

What cannot be read is refused in a form that the asking server understands: as a review that says no where there is a
uid to answer to, else as a Status. Nothing that is sent makes an error of this side's.

Source: https://pkg.go.dev/k8s.io/api/admission/v1; apiserver pkg/admission/plugin/webhook/request/admissionreview.go.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.dns_names import label_key_problems
from deltaloop.api.plain_text import one_line
from deltaloop.api.resource import DECODE_ERRORS, without_data
from deltaloop.api.status import Status
from deltaloop.webhooks.core.object_patch import PatchOperation

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_LONGEST_WARNING: Final = 4096
_MOST_WARNINGS: Final = 100
_NULL: Final = b"null"

ReviewOperation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
"""What is done: in Kubernetes' words."""


@final
class InvalidReviewError(DeltaloopError):
    """What was sent is no review that could be answered; the message has no data of it.

    Attributes:
        uid: Of the review; "" if that cannot be read either.
    """

    def __init__(self, problem: str, *, uid: str = "") -> None:
        """Keep whom to answer."""
        super().__init__(problem)
        self.uid = uid


@final
class ReviewedKind(msgspec.Struct, frozen=True):
    """What kind of object is sent."""

    group: str = ""
    version: str = ""
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.group}/{self.version}/{self.kind}" if self.group else f"{self.version}/{self.kind}"


@final
class RequestUser(msgspec.Struct, frozen=True):
    """Who asks the API server.

    Attributes:
        username: The user's name, such as ``system:serviceaccount:shop:web``.
        uid: What tells users of one name apart over time; mostly empty.
        groups: The user's groups.
        extra: What else the authenticator knows.
    """

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])


@final
class ReviewedRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The request that a review is about; objects are JSON as it came, ``null`` where there is none."""

    uid: str
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
        """The object as it is to be; None if there is none."""
        return _present(self.object)

    @property
    def old(self) -> bytes | None:
        """The object as it is; None if there is none."""
        return _present(self.old_object)


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: ReviewedRequest | None = None


class _Request(msgspec.Struct):
    uid: str = ""


class _Answerable(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: _Request = msgspec.field(default_factory=_Request)


_decode: Final = msgspec.json.Decoder(_Review).decode
_decode_answerable: Final = msgspec.json.Decoder(_Answerable).decode
_encode: Final = msgspec.json.Encoder().encode


def read_admission_review(body: bytes | bytearray) -> ReviewedRequest:
    """Return what a review asks.

    Raises:
        InvalidReviewError: If it is none, or of another version.
    """
    try:
        review = _decode(body)
    except DECODE_ERRORS as error:
        raise InvalidReviewError(f"the body is no {KIND}: {without_data(error)}", uid=_uid_of(body)) from None
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        # The uid is of no use: whoever sent this would not understand a review of another version.
        raise InvalidReviewError(f"the body is no {KIND} of {API_VERSION}: put v1 into admissionReviewVersions")
    if review.request is None or not review.request.uid:
        raise InvalidReviewError(f"the {KIND} has no request with a uid")
    return review.request


def admission_response(
    uid: str,
    *,
    refused: Status | None = None,
    patch: Sequence[PatchOperation] = (),
    warnings: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
) -> bytes:
    """Return the review that answers one, as JSON.

    Args:
        uid: Of the request.
        refused: Why it is refused; None allows it.
        patch: What is to be changed of the object.
        warnings: What the client is shown; cut where they are too long or too many.
        annotations: What is noted in the audit line, by keys such as ``checked-by``.
    """
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
    """Return what is wrong with the key of an audit annotation; the server puts the webhook's name before it."""
    return [*label_key_problems(f"{webhook}/{key}")]


def _present(raw: msgspec.Raw) -> bytes | None:
    found = bytes(raw)
    return None if found == _NULL else found


def _uid_of(body: bytes | bytearray) -> str:
    try:
        review = _decode_answerable(body)
    except DECODE_ERRORS:
        return ""
    return review.request.uid if (review.api_version, review.kind) == (API_VERSION, KIND) else ""
