"""AdmissionReview requests and responses.

Source: apiserver pkg/admission/plugin/webhook/request/admissionreview.go, errors/statuserror.go.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

import msgspec

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.json_values import integer, is_mapping, items, json_type, mapping, text, texts
from deltaloop.api.status import ApiError, Status, StatusDetails, error_from_status
from deltaloop.apiserver.core.json_patch import MAX_OPERATIONS
from deltaloop.apiserver.core.status_errors import shown_kind
from deltaloop.apiserver.core.webhook_calls import FailedCallError, wrong_type
from deltaloop.schemas.nesting import decode_json

GROUP: Final = "admission.k8s.io"
KIND: Final = "AdmissionReview"
VERSIONS: Final = ("v1", "v1beta1")
_LOWEST_REFUSAL: Final = 400


class InvalidResponseError(DeltaloopError):
    """Invalid webhook response; the message is the real server's."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionResponse:
    allowed: bool
    patch: bytes = b""
    patch_type: str = ""
    result: Mapping[str, object]
    warnings: tuple[str, ...] = ()
    annotations: Mapping[str, str]


def read_response(fields: object, *, version: str, uid: str, mutating: bool) -> AdmissionResponse:
    """Parse a response.

    Raises FailedCallError for a wrong type, and InvalidResponseError if it does not fit the request.
    """
    review = mapping(fields)
    response = review.get("response")
    if not is_mapping(response):
        raise InvalidResponseError("webhook response was absent")
    if review.get("kind") == KIND and review.get("apiVersion") == f"{GROUP}/{_OTHER[version]}":
        raise FailedCallError(f"converting ({_OTHER[version]}.{KIND}) to ({version}.{KIND}): unknown conversion")
    for name, (types, go_type) in _TYPES.items():
        value = response.get(name)
        if value is not None and not isinstance(value, types):
            raise wrong_type(value, f"AdmissionResponse.response.{name}", go_type)
    encoded = text(response.get("patch"))
    try:
        patch = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise FailedCallError(f"illegal base64 data at input byte {_first_fault(encoded)}") from None
    patch_type = response.get("patchType")
    if version == "v1":
        for fault in _faults(review, response, uid):
            raise InvalidResponseError(fault)
        for fault in _patch_faults(patch, patch_type, mutating=mutating):
            raise InvalidResponseError(fault)
    elif mutating and patch:
        patch_type = "JSONPatch"  # v1beta1 ignores the response's patchType
    return AdmissionResponse(
        allowed=response.get("allowed") is True,
        patch=patch if mutating else b"",
        patch_type=text(patch_type),
        result=mapping(response.get("status")),
        warnings=texts(response.get("warnings")),
        annotations={name: text(value) for name, value in mapping(response.get("auditAnnotations")).items()},
    )


_OTHER: Final = {"v1": "v1beta1", "v1beta1": "v1"}
# Allowed JSON type of each field, and its Go type.
_TYPES: Final[Mapping[str, tuple[type, str]]] = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "status": (dict, "v1.Status"),
    "patch": (str, "[]uint8"),
    "patchType": (str, "v1.PatchType"),
    "auditAnnotations": (dict, "map[string]string"),
    "warnings": (list, "[]string"),
}
_ALPHABET: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def _first_fault(encoded: str) -> int:
    """Return the position of the first invalid base64 character."""
    match = _ALPHABET.match(encoded)
    return match.end() if match is not None else 0


def _faults(review: Mapping[str, object], response: Mapping[str, object], uid: str) -> Iterator[str]:
    if response.get("uid", "") != uid:
        found = json.dumps(text(response.get("uid")), ensure_ascii=False)
        yield f'expected response.uid="{uid}", got {found}'
    found_kind = shown_kind(text(review.get("apiVersion")), text(review.get("kind")))
    wanted = shown_kind(f"{GROUP}/v1", KIND)
    if found_kind != wanted:
        yield f"expected webhook response of {wanted}, got {found_kind}"


def _patch_faults(patch: bytes, patch_type: object, *, mutating: bool) -> Iterator[str]:
    if not mutating:
        if patch:
            yield "validating webhook may not return response.patch"
        if patch_type is not None:
            yield "validating webhook may not return response.patchType"
    elif patch and patch_type is None:
        yield "webhook returned response.patch but not response.patchType"
    elif not patch and patch_type is not None:
        yield "webhook returned response.patchType but not response.patch"
    elif patch_type == "":
        yield 'webhook returned invalid response.patchType of ""'


def patch_of(response: AdmissionResponse) -> list[object]:
    if not response.patch:
        return []
    try:
        operations: object = decode_json(response.patch)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidResponseError(f"received undecodable patch in webhook response: {error}") from None
    if json_type(operations) not in ("array", "null"):
        raise InvalidResponseError("received undecodable patch in webhook response: it must be a list of operations")
    if len(items(operations)) > MAX_OPERATIONS:
        raise InvalidResponseError(
            f"received undecodable patch in webhook response: it must have at most {MAX_OPERATIONS} operations, "
            f"got {len(items(operations))}"
        )
    if items(operations) and response.patch_type != "JSONPatch":
        raise InvalidResponseError(f'unsupported patch type "{response.patch_type}"')
    return items(operations)


def denied(name: str, result: Mapping[str, object]) -> ApiError:
    """Return the error for a denied request, with the webhook's status."""
    message, reason = text(result.get("message")), text(result.get("reason"))
    why = f": {message or reason}" if message or reason else " without explanation"
    try:
        details = msgspec.convert(result.get("details"), StatusDetails | None, strict=False)
    except msgspec.ValidationError:
        details = None
    status = Status(
        message=f'admission webhook "{name}" denied the request{why}',
        reason=reason,
        details=details,
        code=max(integer(result.get("code")), _LOWEST_REFUSAL),
    )
    return error_from_status(status)
