"""Call the function of an admission webhook and build the response."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec

from deltaloop._internal.tracebacks import defined_at
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.json_values import mapping
from deltaloop.api.json_writing import plain_fields, write_json
from deltaloop.api.keys import join_key
from deltaloop.api.resource import DECODE_ERRORS, Resource, typed, without_data
from deltaloop.api.resource_type import Kind, as_kind
from deltaloop.api.set_fields import set_fields
from deltaloop.api.status import Status
from deltaloop.cache.lister import Lister
from deltaloop.client.core.edited_objects import edited_object
from deltaloop.webhooks.answer import Answer, SeenMismatch, Steps, failed, finished, refused_body, told
from deltaloop.webhooks.core.admission_review import (
    FieldError,
    InvalidReviewError,
    ReviewedRequest,
    admission_response,
    read_admission_review,
    refusal,
)
from deltaloop.webhooks.core.mismatches import decide_mismatch
from deltaloop.webhooks.core.object_patch import PatchOperation, patch_between
from deltaloop.webhooks.declaring import AdmissionWebhook
from deltaloop.webhooks.errors import CachesNotFilledError, InvalidReviewResultError, InvalidWebhookError
from deltaloop.webhooks.request import AdmissionRequest, Listers

_Fields: TypeAlias = dict[str, Any]
_REQUIRED: Final = "FieldValueRequired"
_TYPE: Final = "FieldValueTypeInvalid"
_KEPT: Final = ("name", "generateName", "namespace", "uid")
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def admit(webhook: AdmissionWebhook, body: bytes | bytearray, listers: Listers) -> Answer:
    return finished(admission_steps(webhook, body, listers))


def admission_steps(webhook: AdmissionWebhook, body: bytes | bytearray, listers: Listers) -> Steps[Answer]:
    """Respond to a review in steps. Every second step runs the webhook's function."""
    try:
        review = read_admission_review(body)
        _check(webhook, review)
    except InvalidReviewError as error:
        return refused_body(error, _no)
    try:
        given = _given(webhook, review)
        stored = _stored(webhook, review)
    except MalformedObjectError as error:
        return _mismatch(webhook, review, error)
    misread: list[MalformedObjectError] = []
    request = AdmissionRequest[Any](
        webhook.name, review, old=lambda: _old(webhook, review, misread), listers=_declared(webhook, listers)
    )
    found: list[FieldError] = []
    try:
        before: _Fields = plain_fields(given) if webhook.mutates and webhook.is_typed else {}
        yield
        returned = _called(webhook, given, request)
        if not webhook.mutates:
            _collect(webhook, returned, found)
        yield
        if webhook.mutates:
            return _answer(review, request, patch=_changes(webhook, stored, given, before, returned))
    except CachesNotFilledError as error:
        return failed(503, "ServiceUnavailable", str(error), error)
    except Exception as error:  # noqa: BLE001 - the function can raise any exception
        if error not in misread:
            return failed(500, "InternalError", f"webhook {webhook.name} failed: {told(error)}", error)
        if not found:
            return _passed(webhook, review, cast("MalformedObjectError", error).path, str(error), request)
    if not found:
        return _answer(review, request)
    name = request.name or (given.name if isinstance(given, Resource) else "")
    kind = review.kind
    return _answer(review, request, refused=refusal(found, group=kind.group, kind=kind.kind, name=name))


def _declared(webhook: AdmissionWebhook, listers: Listers) -> Listers:
    known = {str(each) for each in webhook.reads}

    def lister(kind: Kind) -> Lister[Any]:
        if str(as_kind(kind)) not in known:
            problem = f"its reads do not include {as_kind(kind)}. Add the kind to reads=[...]."
            raise InvalidWebhookError(webhook.name, problem)
        return listers(kind)

    return lister


def _no(uid: str, status: Status) -> bytes:
    return admission_response(uid, refused=status)


def _answer(
    review: ReviewedRequest,
    request: AdmissionRequest[Any] | None = None,
    *,
    refused: Status | None = None,
    patch: list[PatchOperation] | None = None,
    warnings: Sequence[str] = (),
) -> Answer:
    body = admission_response(
        review.uid,
        refused=refused,
        patch=patch or (),
        warnings=warnings if request is None else (*request.warnings, *warnings),
        annotations=None if request is None else request.annotations,
    )
    return Answer(200, body, "denied" if refused is not None else "allowed")


def _check(webhook: AdmissionWebhook, review: ReviewedRequest) -> None:
    """Reject reviews that the webhook is not declared for. The cluster's configuration may be out of date."""
    kind, own = review.kind, webhook.type
    wrong = ""
    if review.operation not in webhook.operations:
        wrong = f"operation {review.operation}"
    elif review.sub_resource not in (webhook.subresources or ("",)):
        wrong = f"subresource {review.sub_resource!r}"
    elif not review.sub_resource and (kind.group, kind.version, kind.kind) != (own.group, own.version, own.kind):
        wrong = f"a {kind}"
    if wrong:
        raise InvalidReviewError(
            f"webhook {webhook.name} does not handle {wrong}. Apply the output of `deltaloop generate webhooks`.",
            uid=review.uid,
        )
    if (review.old if review.operation == "DELETE" else review.new) is None:
        raise InvalidReviewError(f"a review of {review.operation} must contain an object, got none", uid=review.uid)


def _given(webhook: AdmissionWebhook, review: ReviewedRequest) -> Any:
    raw = review.old if review.operation == "DELETE" else review.new
    assert raw is not None
    return _object(webhook, review, raw)


def _stored(webhook: AdmissionWebhook, review: ReviewedRequest) -> _Fields:
    """Decode the object before the function runs, so that an unreadable object does not count as its failure."""
    return {} if review.new is None or not webhook.mutates else _fields(review.new)


def _old(webhook: AdmissionWebhook, review: ReviewedRequest, misread: list[MalformedObjectError]) -> Any:
    """Return the stored object, or None. Untyped mutations get a ``Resource``."""
    if review.old is None:
        return None
    try:
        found = _resource(webhook, review, review.old)
        return typed(webhook.type, found) if webhook.is_typed or not webhook.mutates else found
    except MalformedObjectError as error:
        misread.append(error)
        raise


def _object(webhook: AdmissionWebhook, review: ReviewedRequest, raw: bytes) -> Any:
    if webhook.mutates and not webhook.is_typed:
        return _fields(raw)
    return typed(webhook.type, _resource(webhook, review, raw))


def _resource(webhook: AdmissionWebhook, review: ReviewedRequest, raw: bytes) -> Resource:
    own = webhook.type if (review.kind.group, review.kind.kind) == (webhook.type.group, webhook.type.kind) else None
    if review.operation == "CONNECT":  # options of a connection have no metadata
        place = {"name": review.name, **({"namespace": review.namespace} if review.namespace else {})}
        return Resource.from_dict({"metadata": place, **_fields(raw)}, own)
    return Resource.from_json(raw, own)


def _fields(raw: bytes) -> _Fields:
    try:
        return _decode(raw)
    except DECODE_ERRORS as error:
        raise MalformedObjectError(f"the object cannot be read: {without_data(error)}") from None


def _mismatch(webhook: AdmissionWebhook, review: ReviewedRequest, error: MalformedObjectError) -> Answer:
    new, old = _if_readable(review.new), _if_readable(review.old)
    judged = old if review.operation == "DELETE" else new
    model: Any = webhook.type.model if webhook.is_typed and judged is not None else None
    decision = decide_mismatch(
        review.operation, model, new, old, subresource=review.sub_resource, problem=str(error) or "it is not readable"
    )
    if decision.rejecting is None:
        return _passed(webhook, review, decision.first.field, decision.first.problem)
    found = decision.rejecting
    message = f"does not fit {model.__name__}: {found.problem}" if model is not None else found.problem
    finding = FieldError(found.field or "metadata", message, _REQUIRED if found.absent else _TYPE)
    kind = webhook.type.kind
    return _answer(review, refused=refusal([finding], group=review.kind.group, kind=kind, name=review.name))


def _passed(
    webhook: AdmissionWebhook,
    review: ReviewedRequest,
    field: str,
    problem: str,
    request: AdmissionRequest[Any] | None = None,
) -> Answer:
    """Allow a request without a verdict, because only the stored object does not fit."""
    where = f" at {field}" if field else ""
    warning = f"webhook {webhook.name} did not check this request: the stored {webhook.type.kind} does not fit{where}"
    given = _answer(review, request, warnings=[warning])
    return given._replace(mismatch=SeenMismatch(join_key(review.namespace, review.name), field, problem))


def _if_readable(raw: bytes | None) -> _Fields | None:
    try:
        return None if raw is None else _decode(raw)
    except DECODE_ERRORS:
        return None


def _called(webhook: AdmissionWebhook, given: Any, request: AdmissionRequest[Any]) -> Any:
    call: Callable[..., Any] = webhook.function
    return call(given, request) if webhook.takes_request else call(given)


def _collect(webhook: AdmissionWebhook, returned: object, found: list[FieldError]) -> None:
    """Add the errors that a function returned or yielded. Errors that were yielded before a failure are kept."""
    if returned is None:
        return
    single = isinstance(returned, FieldError) or not isinstance(returned, Iterable)
    listed: Iterable[object] = [cast("object", returned)] if single else cast("Iterable[object]", returned)
    for each in listed:
        if not isinstance(each, FieldError):
            problem = f"its function must return or yield dl.FieldError(path, message), got {type(each).__name__}"
            raise _wrong(webhook, problem)
        found.append(each)


def _changes(
    webhook: AdmissionWebhook, stored: _Fields, given: Any, before: _Fields, changed: Any
) -> list[PatchOperation]:
    edited = given if changed is None else changed
    if webhook.is_typed:
        if not isinstance(edited, type(given)):
            problem = f"its function must return {type(given).__name__} or None, got {type(edited).__name__}"
            raise _wrong(webhook, problem)
        after: Mapping[str, Any] = edited_object(stored, before, plain_fields(edited), set_fields(edited))
    else:
        after = edited
        if not isinstance(after, Mapping):
            raise _wrong(webhook, f"its function must return a dict or None, got {type(changed).__name__}")
    result = _decode(write_json(after, "the changed object"))
    _check_names(webhook, stored, result)
    patch = patch_between(stored, result)
    if patch and webhook.is_typed:
        _check_fit(webhook, result)
    return patch


def _check_fit(webhook: AdmissionWebhook, result: _Fields) -> None:
    """Reject results that do not fit the class, because the server's schema would blame the user for them."""
    try:
        typed(webhook.type, Resource.from_dict(result, webhook.type))
    except MalformedObjectError as error:
        kind, place = webhook.type.kind, f" at {error.path}" if error.path else ""
        raise _wrong(
            webhook, f"its function returned an object that does not fit {kind}{place}", detail=f": {error}"
        ) from None


def _wrong(webhook: AdmissionWebhook, problem: str, *, detail: str = "") -> InvalidReviewResultError:
    where = defined_at(webhook.function)
    return InvalidReviewResultError(webhook.name, problem, detail=detail, where=where)


def _check_names(webhook: AdmissionWebhook, stored: _Fields, result: _Fields) -> None:
    was, now = mapping(stored.get("metadata")), mapping(result.get("metadata"))
    changed = [f"metadata.{name}" for name in _KEPT if was.get(name) != now.get(name)]
    changed += [name for name in ("apiVersion", "kind") if stored.get(name) != result.get(name)]
    if changed:
        raise _wrong(webhook, f"its function must not change {changed[0]}")
