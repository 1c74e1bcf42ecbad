"""Codec for built-in kinds, which behaves like Go's types.

Source: apimachinery pkg/runtime/serializer/json, pkg/runtime/codec.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, final

from deltaloop.api.json_values import text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.codec import AsSent, WebhookConversion
from deltaloop.apiserver.core.external_answers import ExternalAnswers
from deltaloop.apiserver.core.metadata.types import check_readable_type, converting_words, json_words, unreadable_type
from deltaloop.apiserver.core.strategy import Conversion
from deltaloop.schemas.completing import complete_object, prune
from deltaloop.schemas.converting import convert_object
from deltaloop.schemas.decoding import duplicate_field_texts
from deltaloop.schemas.object_meta import UNTYPED
from deltaloop.schemas.reading import read_object
from deltaloop.schemas.types import Schema

_MOST_FIELDS: Final = 100  # unknown or duplicate fields in a message, like on the real server


@final
@dataclass(frozen=True, slots=True)
class BuiltInCodec:
    kind: ResourceType[Resource]
    schema: Schema = UNTYPED
    known: AbstractSet[tuple[str, str]] = frozenset()
    conversion: Conversion | None = None
    says_kind: bool = field(default=False, init=False)
    webhook: WebhookConversion | None = field(default=None, init=False)

    @property
    def serves_as_stored(self) -> bool:
        return self.conversion is None

    def asking(self, answers: ExternalAnswers | None) -> BuiltInCodec:
        del answers
        return self

    @property
    def _name(self) -> tuple[str, str]:
        return self.kind.api_version, self.kind.kind

    def check_kind(self, fields: dict[str, object]) -> None:
        """Reject another kind, with the messages of a server that decodes by the body's kind."""
        wanted, unreadable = self.kind.kind, unreadable_type(fields)
        if unreadable:
            raise status_errors.unrecognized(wanted, unreadable)
        api_version, kind = self._said(fields)
        version = api_version.rpartition("/")[2]
        if not self._is_known(api_version, kind):
            why = f'no kind "{kind}" is registered for version "{api_version}"'
            raise status_errors.unreadable(wanted, why, said=kind, version=version)
        if kind != wanted:
            raise status_errors.unreadable(wanted, self._no_conversion(version, kind), said=kind, version=version)

    def check_made_kind(self, fields: dict[str, object]) -> None:
        """Reject another kind. An object without a kind is accepted."""
        check_readable_type(fields)
        api_version, kind = self._said(fields)
        if not self._is_known(api_version, kind):
            scheme = 'in scheme "pkg/runtime/scheme.go:111"'
            raise status_errors.internal(f'no kind "{kind}" is registered for version "{api_version}" {scheme}')
        if kind != self.kind.kind:
            raise status_errors.unexplained(self._no_conversion(api_version.rpartition("/")[2], kind))

    def _said(self, fields: dict[str, object]) -> tuple[str, str]:
        """Return the object's API version and kind, with the codec's as defaults."""
        return text(fields.get("apiVersion")) or self.kind.api_version, text(fields.get("kind")) or self.kind.kind

    def _is_known(self, api_version: str, kind: str) -> bool:
        return (api_version, kind) in self.known or (api_version, kind) == self._name

    def _no_conversion(self, version: str, kind: str) -> str:
        group = self.kind.group.partition(".")[0] or "core"
        return f"converting ({version}.{kind}) to ({group}.{self.kind.kind}): unknown conversion"

    def is_read(self, fields: dict[str, object]) -> bool:
        """Return whether the object has this kind and no API version or a known API version."""
        api_version, kind = fields.get("apiVersion"), fields.get("kind") or self.kind.kind
        return kind == self.kind.kind and (not api_version or (api_version, kind) in self.known)

    def read(self, fields: dict[str, object], as_sent: AsSent) -> Mapping[str, str]:
        if as_sent == "patched" and not fields.get("apiVersion"):
            return {}  # an object without version after a patch is read as empty, and rejected later
        tree = self.schema.tree
        if as_sent == "applied" and (fault := convert_object(tree, fields)) is not None:
            raise status_errors.not_convertible(self.kind, fields, converting_words(fault))
        fault = read_object(tree, fields)
        if fault is not None and as_sent == "applied":
            raise status_errors.not_convertible(self.kind, fields, json_words(fault))
        if fault is not None:
            raise status_errors.unreadable(self.kind.kind, json_words(fault), version=self.kind.version)
        complete_object(tree, fields)
        return {}

    def drop_unknown(self, fields: dict[str, object], body: bytes, as_sent: AsSent, *, told: bool) -> tuple[str, ...]:
        """Drop the fields that Go's decoder drops. After a patch, an object without version has no known fields."""
        if as_sent == "patched" and not fields.get("apiVersion"):
            dropped = sorted(fields.keys() - {"apiVersion", "kind"})
        else:
            dropped = prune(self.schema.tree, fields)
        if not told:
            return ()
        return (*duplicate_field_texts(body), *(f'unknown field "{path}"' for path in dropped))[:_MOST_FIELDS]

    def in_version(self, fields: dict[str, object], api_version: str) -> dict[str, object]:
        del api_version
        return fields

    def settle(self, fields: dict[str, object]) -> None:
        """Do nothing."""

    def stored(self, fields: dict[str, object]) -> dict[str, object]:
        return fields if self.conversion is None else self.conversion.to_stored(fields)

    def load(self, fields: dict[str, object]) -> dict[str, object] | None:
        return None if self.conversion is None else self.conversion.from_stored(fields)
