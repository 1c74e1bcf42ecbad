"""ConversionReview of ``apiextensions.k8s.io/v1``.

Source: https://pkg.go.dev/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 (``ConversionReview``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

import msgspec

from deltaloop.api.plain_text import one_line
from deltaloop.api.resource import DECODE_ERRORS, without_data
from deltaloop.webhooks.core.admission_review import InvalidReviewError

API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "ConversionReview"
_encode: Final = msgspec.json.Encoder().encode


@final
class ConversionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request of a conversion review; ``desired`` is the target API version."""

    uid: str
    desired: str = msgspec.field(name="desiredAPIVersion")
    objects: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: ConversionRequest | None = None


_decode: Final = msgspec.json.Decoder(_Review).decode
_decode_loose: Final = msgspec.json.Decoder(dict[str, Any]).decode


def read_conversion_review(body: bytes | bytearray) -> ConversionRequest:
    """Return the request of a review, or raise InvalidReviewError."""
    try:
        review = _decode(body)
    except DECODE_ERRORS as error:
        raise InvalidReviewError(f"the body must be {KIND}: {without_data(error)}", uid=_uid_of(body)) from None
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise InvalidReviewError(f"the body must be {KIND} of {API_VERSION}. Add v1 to conversionReviewVersions.")
    if review.request is None or not review.request.uid:
        raise InvalidReviewError(f"the {KIND} must contain a request with a uid")
    return review.request


def converted_response(uid: str, objects: Sequence[dict[str, Any] | msgspec.Raw]) -> bytes:
    """Build the response with the converted objects, in the order of the request."""
    return _response(uid, {"status": "Success"}, objects)


def unconverted_response(uid: str, why: str) -> bytes:
    """Build the response for a failure. A single failed object fails the review."""
    return _response(uid, {"status": "Failure", "message": one_line(why)}, ())


def _response(uid: str, result: dict[str, str], objects: Sequence[dict[str, Any] | msgspec.Raw]) -> bytes:
    response = {"uid": uid, "result": result, "convertedObjects": objects}
    return _encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _uid_of(body: bytes | bytearray) -> str:
    try:
        review = _decode_loose(body)
    except DECODE_ERRORS:
        return ""
    request = review.get("request")
    if (review.get("apiVersion"), review.get("kind")) != (API_VERSION, KIND) or not isinstance(request, dict):
        return ""
    uid: object = request.get("uid")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return uid if isinstance(uid, str) else ""
