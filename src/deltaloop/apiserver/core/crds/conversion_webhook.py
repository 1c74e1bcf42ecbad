"""Conversion of custom resources by a webhook.

    stored object ─(prune and default with the stored version's schema)─▶ review ─▶ webhook
    served object ◀─(prune with the served version's schema)─ restore metadata except labels and annotations ◀─ response

Stored objects specify their version. Objects without a version, from older or foreign stores, have the oldest version
in ``status.storedVersions``.

Source: apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go, pkg/apiserver/customresource_handler.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast, final

import msgspec

from deltaloop.api.json_values import at, copied, is_mapping, items, json_type, mapping, text
from deltaloop.apiserver.core.codec import ConversionError
from deltaloop.apiserver.core.external_answers import ExternalAnswers
from deltaloop.apiserver.core.metadata.rules import annotation_errors, label_errors
from deltaloop.apiserver.core.status_errors import shown_kind
from deltaloop.apiserver.core.webhook_calls import (
    Called,
    Endpoint,
    FailedCallError,
    WebhookCall,
    WebhookCalls,
    read_answer,
)
from deltaloop.schemas.completing import prune
from deltaloop.schemas.decoding import decode_by_schema
from deltaloop.schemas.field_errors import SchemaError
from deltaloop.schemas.go_numbers import go_type
from deltaloop.schemas.types import Schema

SECONDS: Final = 30
_GROUP: Final = "apiextensions.k8s.io"
_KIND: Final = "ConversionReview"
_OVERDUE: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_encode: Final = msgspec.json.Encoder().encode

Fields = dict[str, object]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionWebhook:
    """Conversion webhook of one CRD. A change of the CRD's conversion or versions creates a new webhook."""

    kind: str = field(compare=False)
    endpoint: Endpoint = field(compare=False)
    review_version: str = field(compare=False)
    schemas: Mapping[str, Schema] = field(repr=False, compare=False)
    stored: str = field(compare=False)
    oldest: str = field(compare=False)
    definition: str

    def complete(self, stored: Fields) -> Fields:
        api_version = text(stored.pop("apiVersion", "")) or self.oldest
        schema = self.schemas.get(api_version)
        if schema is not None:
            decode_by_schema(schema, stored)
        return {"kind": self.kind, "apiVersion": api_version, **stored}

    def review(self, objects: Iterable[Fields], api_version: str) -> WebhookCall:
        """Return the call that converts objects of one other version, or raise ConversionError if it is undefined."""
        objects = list(objects)
        for direction, version in (("to", api_version), ("from", text(objects[0].get("apiVersion")))):
            if version not in self.schemas:
                raise ConversionError(f"request to convert CR {direction} an invalid group/version: {version}")
        request = {"desiredAPIVersion": api_version, "objects": [_unversioned(obj) for obj in objects]}
        return WebhookCall(
            endpoint=self.endpoint,
            seconds=SECONDS,
            kind=_KIND,
            api_version=f"{_GROUP}/{self.review_version}",
            request=_encode(request),
            overdue=_OVERDUE,
        )

    def answered(
        self, objects: Sequence[Fields], api_version: str, call: WebhookCall, called: Called
    ) -> list[Fields | ConversionError]:
        source = f"conversion webhook for {shown_kind(text(objects[0].get('apiVersion')), self.kind)}"
        try:
            found = _objects_of(read_answer(call, called), called.uid, self.review_version)
        except FailedCallError as error:
            raise ConversionError(f"{source} failed: {error}") from None
        if len(found) != len(objects):
            raise ConversionError(f"{source} returned {len(found)} objects, expected {len(objects)}")
        return [self._taken(source, *pair, api_version) for pair in zip(objects, found, strict=True)]

    def _taken(self, source: str, original: Fields, answer: object, api_version: str) -> Fields | ConversionError:
        try:
            result = _checked(source, original, answer, api_version)
        except ConversionError as error:
            return error
        schema = self.schemas[api_version]
        if schema.source:
            prune(schema.tree, result)
        return result

    def ask(self, answers: ExternalAnswers, obj: Fields, api_version: str) -> Fields:
        if obj.get("apiVersion") == api_version:
            return obj
        question = WebhookCalls((self.review((obj,), api_version),))
        (called,) = cast("tuple[Called]", answers.ask(question))
        (result,) = self.answered([obj], api_version, question.calls[0], called)
        if isinstance(result, ConversionError):
            raise result
        return result


def _unversioned(obj: Fields) -> Fields:
    """Return the object without its resource version, which webhooks do not receive."""
    metadata = {name: value for name, value in mapping(obj.get("metadata")).items() if name != "resourceVersion"}
    return {**obj, "metadata": metadata}


def _objects_of(answer: object, uid: str, review_version: str) -> list[object]:
    """Return the objects of a response, or raise FailedCallError if it is an error or does not match the review."""
    wanted, said = f"{_GROUP}/{review_version}", (text(at(answer, "apiVersion")), text(at(answer, "kind")))
    if said != (wanted, _KIND):
        _check_said(said, review_version)
    response = at(answer, "response")
    if not is_mapping(response):
        raise FailedCallError("no response provided")
    if review_version == "v1" and text(response.get("uid")) != uid:
        raise FailedCallError(f'expected response.uid="{uid}", got {_quoted(text(response.get("uid")))}')
    status = text(at(response, "result", "status"))
    if status != "Success":
        words = f"response.result.status was '{status}', not 'Success'"
        raise FailedCallError(text(at(response, "result", "message")) or words)
    return items(response.get("convertedObjects"))


def _check_said(said: tuple[str, str], review_version: str) -> None:
    """Reject a response of another kind with Go's message; v1beta1 accepts a response without a kind."""
    api_version, kind = said
    versions = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
    if not api_version and not kind:
        if review_version == "v1":
            wanted = shown_kind(f"{_GROUP}/v1", _KIND)
            raise FailedCallError(f"expected webhook response of {wanted}, got {shown_kind('', '')}")
        return
    if kind == _KIND and api_version in versions:
        other = api_version.rpartition("/")[2]
        raise FailedCallError(
            f"converting ({other}.{_KIND}) to ({review_version}.{_KIND}): unknown conversion",
        )
    raise FailedCallError(
        f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
    )


def _quoted(value: str) -> str:
    return _encode(value).decode()


def _checked(source: str, original: Fields, answer: object, api_version: str) -> Fields:
    if answer is None:
        raise ConversionError("unexpected end of JSON input")
    if not is_mapping(answer):
        raise ConversionError(
            f"json: cannot unmarshal {json_type(answer)} into Go value of type map[string]interface {{}}"
        )
    result: Fields = copied(answer)
    if not text(result.get("kind")):
        raise ConversionError("Object 'Kind' is missing in a converted object")
    said = text(result.get("apiVersion"))
    if said != api_version:
        words = f"invalid groupVersion (expected {api_version}, received {said or '/'})"
        raise ConversionError(f"{source} returned invalid object at index 0: {words}")
    kind = text(original["kind"])
    if result["kind"] != kind:
        words = f"invalid kind (expected {kind}, received {result['kind']})"
        raise ConversionError(f"{source} returned invalid object at index 0: {words}")
    before, after = mapping(original.get("metadata")), result.get("metadata")
    for name, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        old, new = text(before.get(name)), text(at(after, name))
        if old != new:
            raise ConversionError(f"{source} returned invalid object: must have the same {shown}: {old} != {new}")
    result["metadata"] = _restored(f"{source} returned invalid metadata: ", before, mapping(after))
    return result


def _restored(source: str, before: Fields, after: Fields) -> Fields:
    """Return the original metadata with the webhook's labels and annotations."""
    result: Fields = copied(before)
    for name in ("labels", "annotations"):
        value = after.get(name)
        if value is None:
            result.pop(name, None)
            continue
        if not is_mapping(value):
            raise ConversionError(source + f"invalid metadata.{name} of type {go_type(value)} in converted object")
        texts: dict[str, str] = {}
        for key, inner in value.items():
            if not isinstance(inner, str):
                words = f"metadata.{name}[{key}] must be a string, but is {go_type(inner)} in converted object"
                raise ConversionError(source + words)
            texts[key] = inner
        if value == before.get(name):
            continue
        wrong = [*(label_errors(texts) if name == "labels" else annotation_errors(texts, "metadata.annotation"))]
        if wrong:
            raise ConversionError(source + _aggregate(wrong))
        result[name] = value
    return result


def _aggregate(errors: list[SchemaError]) -> str:
    shown = list(dict.fromkeys(str(error) for error in errors))
    return shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"
