"""Admission webhook plugins: mutating webhooks are called in sequence, validating webhooks concurrently.

A call interrupts the write, which restarts with the response (``core/external_answers.py``), so this code must be
deterministic.

Source: apiserver pkg/admission/plugin/webhook/request/admissionreview.go, errors/statuserror.go; apiserver
pkg/admission/plugin/webhook/mutating/dispatcher.go, validating/dispatcher.go.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, cast, final

import msgspec

from deltaloop.api import kinds
from deltaloop.api.dns_names import label_key_problems
from deltaloop.api.errors import DeltaloopError
from deltaloop.api.json_values import copied, integer, is_mapping, items, json_type, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError, Status, StatusDetails, error_from_status
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.admission.admission_request import (
    as_sent,
    expression_variables,
    has_own_kind,
    in_version,
    read_anew,
    request_fields,
)
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.apiserver.core.admission.matching import is_exempt, matched_resource
from deltaloop.apiserver.core.admission_expressions import unmet
from deltaloop.apiserver.core.json_patch import MAX_OPERATIONS, JsonPatchError, apply_operations
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.status_errors import UnreadableObjectError, shown_kind
from deltaloop.apiserver.core.webhook_calls import (
    Called,
    FailedCallError,
    WebhookCall,
    WebhookCalls,
    endpoint_of,
    read_answer,
    wrong_type,
)
from deltaloop.schemas.json_in_parts import decode_in_parts, encode_sorted
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
    """Parse a response."""
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


_MUTATING: Final = kinds.MUTATING_WEBHOOK_CONFIGURATION.group_resource
_VALIDATING: Final = kinds.VALIDATING_WEBHOOK_CONFIGURATION.group_resource
_ALL: Final = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
_NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_SECONDS: Final = 10


class _FailedError(Exception):
    """Failed call or invalid response; the failure policy decides."""


@final
@dataclass(frozen=True, slots=True)
class _Invocation:
    hook: Mapping[str, object]
    served: ServedResource

    @property
    def name(self) -> str:
        return text(self.hook.get("name"))

    @property
    def ignores_failure(self) -> bool:
        return self.hook.get("failurePolicy") == "Ignore"


@lru_cache(maxsize=64)
def _hooks_of(raw: bytes) -> tuple[Mapping[str, object], ...]:
    fields = mapping(decode_in_parts(raw))
    return tuple(mapping(hook) for hook in items(fields.get("webhooks")))


def _hooks(configurations: Sequence[Resource]) -> Iterator[Mapping[str, object]]:
    for configuration in sorted(configurations, key=lambda item: item.name):
        yield from _hooks_of(configuration.raw)


def _invocation(hook: Mapping[str, object], attributes: AdmissionAttributes) -> _Invocation | None:
    served = matched_resource(hook, attributes)
    if served is None:
        return None
    conditions = items(hook.get("matchConditions"))
    if conditions:
        variables = expression_variables(attributes, served)
        request = mapping(variables["request"])
        # The object can be in another version, but the resource is the requested resource.
        request["resource"] = request["requestResource"]
        is_unmet, faults = unmet(conditions, variables)
        if is_unmet or (faults and hook.get("failurePolicy") == "Ignore"):
            return None
        if faults:
            why = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
            raise status_errors.protected(attributes.served.type, attributes.name, why)
    return _Invocation(hook, served)


def _call(invocation: _Invocation, attributes: AdmissionAttributes) -> WebhookCall:
    """Return the call of a webhook."""
    hook = invocation.hook
    if attributes.dry_run and hook.get("sideEffects") not in _NO_SIDE_EFFECTS:
        raise status_errors.bad_request(f'admission webhook "{invocation.name}" does not support dry run')
    version = next((item for item in texts(hook.get("admissionReviewVersions")) if item in VERSIONS), None)
    if version is None:
        known = ", ".join(VERSIONS)
        raise _FailedError(
            f"could not create admission objects: webhook does not accept known AdmissionReview versions ({known})"
        )
    shown, before = in_version(attributes, invocation.served)
    request = {**request_fields(attributes, invocation.served), "object": shown, "oldObject": before}
    return WebhookCall(
        endpoint=endpoint_of(hook.get("clientConfig")),
        seconds=integer(hook.get("timeoutSeconds")) or _SECONDS,
        kind=KIND,
        api_version=f"{GROUP}/{version}",
        request=encode_sorted(request),
    )


def _ask(attributes: AdmissionAttributes, calls: tuple[WebhookCall, ...]) -> tuple[Called, ...]:
    answers = attributes.context.answers
    assert answers is not None
    return cast("tuple[Called, ...]", answers.ask(WebhookCalls(calls)))


def _response(call: WebhookCall, called: Called, *, mutating: bool) -> AdmissionResponse:
    version = call.api_version.rpartition("/")[2]
    try:
        return read_response(read_answer(call, called), version=version, uid=called.uid, mutating=mutating)
    except FailedCallError as error:
        raise _FailedError(f"failed to call webhook: {error}") from None
    except InvalidResponseError as error:
        raise _FailedError(f"received invalid webhook response: {error}") from None


def _note(invocation: _Invocation, attributes: AdmissionAttributes, response: AdmissionResponse) -> None:
    attributes.context.notes.stored.extend(response.warnings)
    for name, value in response.annotations.items():
        key = f"{invocation.name}/{name}"
        if not label_key_problems(key):
            attributes.context.notes.annotations.setdefault(key, value)


def _fail(invocation: _Invocation, error: _FailedError) -> ApiError:
    return status_errors.internal(f'failed calling webhook "{invocation.name}": {error}')


def _is_asked(attributes: AdmissionAttributes, resource: str) -> bool:
    configured = attributes.objects.count(resource) > 0
    return configured and attributes.context.answers is not None and not is_exempt(attributes)


def _mutate(attributes: AdmissionAttributes) -> dict[str, object] | None:
    """Call the mutating webhooks in sequence, and return the changed object or None."""
    if not _is_asked(attributes, _MUTATING):
        return None
    configurations = attributes.objects.list(_MUTATING).items
    hooks = tuple(_hooks(configurations))
    attributes = first = as_sent(attributes)
    rounds = attributes.reinvocation
    asked_before = rounds.of(_MUTATING)
    if rounds.is_second:
        asked_before.see(attributes.after)
    for position, hook in enumerate(hooks):
        if rounds.is_second and not asked_before.is_due(position):
            continue
        turn = len(hooks) * rounds.is_second + position
        attributes, asked, has_changed = _ask_one(hook, attributes, turn)
        if has_changed:
            rounds.is_wanted = rounds.shows_managers = True
            asked_before.see_change()
        if asked and hook.get("reinvocationPolicy") == "IfNeeded":
            asked_before.note(position)
    asked_before.leave(attributes.after)
    return None if attributes is first else attributes.after


def _ask_one(
    hook: Mapping[str, object], attributes: AdmissionAttributes, turn: int
) -> tuple[AdmissionAttributes, bool, bool]:
    """Call one webhook; return the new attributes, whether it was called, and whether the object changed."""
    invocation = _invocation(hook, attributes)
    if invocation is None:
        return attributes, False, False
    try:
        call = replace(_call(invocation, attributes), turn=turn)
        response = _response(call, _ask(attributes, (call,))[0], mutating=True)
        _note(invocation, attributes, response)
        if not response.allowed:
            raise denied(invocation.name, response.result)
        operations = _operations(response)
    except _FailedError as error:
        if invocation.ignores_failure:
            return attributes, True, False
        raise _fail(invocation, error) from None
    if not operations:
        return attributes, True, False
    if attributes.after is None:
        raise status_errors.internal(
            f'admission webhook "{invocation.name}" attempted to modify the object, which is not supported for '
            "this operation"
        )
    patched = _patched(invocation, attributes, operations)
    if patched == attributes.after:
        return attributes, True, False
    return msgspec.structs.replace(attributes, after=patched), True, True


def _operations(response: AdmissionResponse) -> list[object]:
    try:
        return patch_of(response)
    except InvalidResponseError as error:
        raise _FailedError(str(error)) from None


def _patched(
    invocation: _Invocation, attributes: AdmissionAttributes, operations: Sequence[object]
) -> dict[str, object]:
    """Return the patched object in the requested version, or raise ApiError if the patch is not valid."""
    shown, _ = in_version(attributes, invocation.served)
    try:
        result = apply_operations(copied(mapping(shown)), operations)
    except JsonPatchError as error:
        raise status_errors.internal(str(error)) from None
    if not is_mapping(result):
        raise status_errors.internal(
            "the patch of an admission webhook must not change the kind or version of the object"
        )
    if has_own_kind(attributes):
        invocation.served.codec.check_made_kind(result)
    try:
        return read_anew(attributes, invocation.served, result)[0]
    except UnreadableObjectError as error:
        raise status_errors.internal(error.why) from None


def _validate(attributes: AdmissionAttributes) -> None:
    """Call the validating webhooks concurrently; the first denial counts."""
    if not _is_asked(attributes, _VALIDATING):
        return
    configurations = attributes.objects.list(_VALIDATING).items
    found = [item for hook in _hooks(configurations) if (item := _invocation(hook, attributes)) is not None]
    asked: list[tuple[_Invocation, WebhookCall]] = []
    for invocation in found:
        try:
            asked.append((invocation, _call(invocation, attributes)))
        except _FailedError as error:
            if not invocation.ignores_failure:
                raise _fail(invocation, error) from None
    if not asked:
        return
    answers = _ask(attributes, tuple(call for _, call in asked))
    refusals: list[ApiError] = []
    for (invocation, call), called in zip(asked, answers, strict=True):
        try:
            response = _response(call, called, mutating=False)
        except _FailedError as error:
            if not invocation.ignores_failure:
                refusals.append(_fail(invocation, error))
            continue
        _note(invocation, attributes, response)
        if not response.allowed:
            refusals.append(denied(invocation.name, response.result))
    if refusals:
        raise refusals[0]


MUTATING_WEBHOOKS: Final = Plugin(operations=_ALL, mutate=_mutate)
VALIDATING_WEBHOOKS: Final = Plugin(operations=_ALL, validate=_validate)
