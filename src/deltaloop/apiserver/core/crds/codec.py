"""Codec for custom resources, which uses the schema of their version. Whole floats are stored as integers.

In embedded objects (``x-kubernetes-embedded-resource``), a wrong type rejects the whole object, and unknown metadata
fields are dropped.

Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go (``schemaCoercingDecoder``,
``schemaCoercingConverter``); pkg/apiserver/schema/objectmeta (coerce.go, validation.go); apimachinery pkg/util/json;
encoding/json.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final, final

import msgspec

from deltaloop.api.json_values import at, copied, mapping, text, type_of
from deltaloop.api.keys import join_key
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.codec import AsSent, ConversionError, WebhookConversion
from deltaloop.apiserver.core.external_answers import ExternalAnswers
from deltaloop.apiserver.core.metadata.rules import inner_metadata_errors, normalized_metadata
from deltaloop.apiserver.core.metadata.types import (
    check_metadata_types,
    check_readable_type,
    drop_unreadable,
    json_words,
    unreadable_type,
)
from deltaloop.schemas.completing import prune, unknown_fields
from deltaloop.schemas.decoding import decode_by_schema, duplicate_field_texts
from deltaloop.schemas.field_errors import SchemaError, invalid_value
from deltaloop.schemas.go_numbers import Number, as_sent
from deltaloop.schemas.identity import embedded_objects
from deltaloop.schemas.object_meta import METADATA, UNTYPED
from deltaloop.schemas.reading import check_value
from deltaloop.schemas.types import Schema

_CONTAINERS: Final = (dict, list)
_INT64: Final = 2**63
_WRITTEN_OUT: Final = 10.0**21


def settle_numbers(fields: dict[str, Any]) -> None:
    """Normalize the numbers of an object in place, or raise BadRequestError if a number exceeds the float range."""
    waiting: list[Any] = [fields]
    for holder in waiting:  # the list grows during the loop
        for place in holder if type_of(holder) is dict else range(len(holder)):
            value = holder[place]
            if type(value) in _CONTAINERS:
                waiting.append(value)
            elif type(value) is float or (type(value) is int and not -_INT64 <= value < _INT64):
                holder[place] = stored_number(value)


def stored_number(value: Number) -> Number:
    """Return a number as it is stored, or raise BadRequestError if it exceeds the float range."""
    number = float(as_sent(value)) if isinstance(value, int) else value
    if math.isinf(number):
        raise status_errors.bad_request("json: cannot unmarshal number into Go value of type float64")
    if number.is_integer() and abs(number) < _WRITTEN_OUT:
        return int(Decimal(repr(number)))
    return number


_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def read_embedded(schema: Schema, fields: dict[str, object]) -> str:
    """Normalize the metadata of embedded objects in place, and return an error message or an empty string."""
    for path, inner in embedded_objects(schema.tree, fields):
        for name in ("apiVersion", "kind"):
            if name in inner and not isinstance(inner[name], str):
                return f"{path}.{name}: Invalid value: {_shown(inner[name])}: must be a string"
        if "metadata" in inner:
            fault = check_value(METADATA, inner["metadata"], whole=True)
            if fault is not None:
                return f"{path}.metadata: Invalid value: {_shown(inner['metadata'])}: {json_words(fault)}"
            kept = normalized_metadata(inner)
            inner["metadata"] = {name: value for name, value in kept.items() if value is not None}
    return ""


def unknown_in_embedded(schema: Schema, fields: dict[str, object]) -> list[str]:
    """Drop unknown metadata fields of embedded objects in place, and return their paths."""
    found: list[str] = []
    for path, inner in embedded_objects(schema.tree, fields):
        found += prune(METADATA, mapping(inner.get("metadata")), f"{path}.metadata")
    return found


def embedded_errors(schema: Schema, fields: dict[str, object]) -> Iterator[SchemaError]:
    """Yield the metadata errors of embedded objects, except for wrong types, which are reported elsewhere."""
    for path, inner in embedded_objects(schema.tree, fields):
        for error in inner_metadata_errors(mapping(inner.get("metadata"))):
            yield msgspec.structs.replace(error, field=f"{path}.{error.field}")


def _shown(value: object) -> str:
    return _encode(value).decode()


@final
@dataclass(frozen=True, slots=True)
class CustomCodec:
    """``Codec`` for one version of a CRD."""

    kind: ResourceType[Resource]
    schema: Schema = UNTYPED
    storage_schema: Schema | None = None
    storage_version: str = ""
    webhook: WebhookConversion | None = None
    answers: ExternalAnswers | None = None
    says_kind: bool = field(default=True, init=False)

    @property
    def serves_as_stored(self) -> bool:
        """Whether stored objects need neither a schema nor a webhook."""
        return not self.schema.source and self.webhook is None

    def asking(self, answers: ExternalAnswers | None) -> CustomCodec:
        return self if self.webhook is None else replace(self, answers=answers)

    def check_kind(self, fields: dict[str, object]) -> None:
        """Reject an object without a kind. A wrong kind is rejected later."""
        unreadable = unreadable_type(fields)
        if unreadable or not fields.get("kind"):
            why = unreadable or "Object 'Kind' is missing in the body of the request"
            raise status_errors.unrecognized(self.kind.kind, why)

    def check_made_kind(self, fields: dict[str, object]) -> None:
        check_readable_type(fields)
        api_version, kind = text(fields.get("apiVersion")), text(fields.get("kind"))
        if not kind:
            raise status_errors.internal("Object 'Kind' is missing in a patched object")  # upstream adds the object
        if api_version != self.kind.api_version:
            group, _, version = api_version.rpartition("/")
            shown = f"{group}/{version}, Kind={kind} is unstructured and is not suitable for converting"
            raise status_errors.unexplained(f'{shown} to "{self.kind.api_version}"')
        if kind != self.kind.kind:
            error = invalid_value("kind", kind, f"must be {self.kind.kind}")
            raise status_errors.another_kind(self.kind.group, kind, str(at(fields, "metadata", "name") or ""), [error])

    def is_read(self, fields: dict[str, object]) -> bool:
        said = fields.get("apiVersion"), fields.get("kind") or self.kind.kind
        return said == (self.kind.api_version, self.kind.kind)

    def read(self, fields: dict[str, object], as_sent: AsSent) -> Mapping[str, str]:
        """Check metadata, prune and set defaults. Invalid nulls in applied objects stay and are rejected later."""
        applied = as_sent == "applied"
        dropped = drop_unreadable(mapping(fields.get("metadata"))) if applied else {}
        check_metadata_types(self.kind, fields)
        why = read_embedded(self.schema, fields)
        if why:
            raise status_errors.unreadable(self.kind.kind, why, version=self.kind.version)
        decode_by_schema(self.schema, fields, applied=applied)
        return dropped

    def drop_unknown(self, fields: dict[str, object], body: bytes, as_sent: AsSent, *, told: bool) -> tuple[str, ...]:
        """Drop unknown metadata fields. Other unknown fields are pruned later."""
        del as_sent  # has no effect for custom resources
        unknown = prune(METADATA, mapping(fields.get("metadata")), "metadata")
        inside = unknown_in_embedded(self.schema, fields)
        if not told:
            return ()
        unknown += (*unknown_fields(self.schema.tree, fields), *inside)
        return (*duplicate_field_texts(body), *(f'unknown field "{path}"' for path in unknown))

    def in_version(self, fields: dict[str, object], api_version: str) -> dict[str, object]:
        if self.webhook is None or self.answers is None:
            return fields
        named: dict[str, object] = {"kind": self.kind.kind, "apiVersion": self.kind.api_version}
        return self.webhook.ask(self.answers, named | fields, api_version)

    def settle(self, fields: dict[str, object]) -> None:
        settle_numbers(fields)

    def stored(self, fields: dict[str, object]) -> dict[str, object]:
        stored_in = self.storage_version
        if self.webhook is not None:
            stored_in = text(fields.get("apiVersion")) or self.kind.api_version
            if self.answers is not None and stored_in != self.storage_version:
                fields, stored_in = self._to_stored(fields), self.storage_version
        elif self.storage_schema is not None:
            fields = copied(fields)
            decode_by_schema(self.storage_schema, fields)
        bare = {name: value for name, value in fields.items() if name not in ("kind", "apiVersion")}
        return {"apiVersion": stored_in, **bare}

    def _to_stored(self, fields: dict[str, object]) -> dict[str, object]:
        try:
            return self.in_version(fields, self.storage_version)
        except ConversionError as error:
            raise status_errors.unexplained(str(error)) from None

    def load(self, fields: dict[str, object]) -> dict[str, object] | None:
        """Prune and default the object in place, with the defaults of the stored version."""
        stored_in = fields.pop("apiVersion", "")
        if self.webhook is not None:
            if (stored_in or self.webhook.oldest) != self.kind.api_version:
                return self._converted(self.webhook, text(stored_in), fields)
            return fields if decode_by_schema(self.schema, fields) else None
        changed = decode_by_schema(self.storage_schema or self.schema, fields)
        if self.storage_schema is not None:
            changed = bool(prune(self.schema.tree, fields)) or changed
        return fields if changed else None

    def _converted(self, webhook: WebhookConversion, stored_in: str, fields: dict[str, object]) -> dict[str, object]:
        """Convert an object of another version, or return it unchanged if the webhook cannot be called."""
        complete = webhook.complete({"apiVersion": stored_in, **fields})
        if self.answers is not None:
            try:
                complete = webhook.ask(self.answers, complete, self.kind.api_version)
            except ConversionError as error:
                raise self._undecodable(fields, str(error)) from None
            del complete["apiVersion"]
        del complete["kind"]
        return complete

    def _undecodable(self, fields: dict[str, object], why: str) -> ApiError:
        metadata = mapping(fields.get("metadata"))
        namespace, name = text(metadata.get("namespace")), text(metadata.get("name"))
        return status_errors.undecodable(
            self.kind, join_key(namespace, name), text(metadata.get("resourceVersion")), why
        )
