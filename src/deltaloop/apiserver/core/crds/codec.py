"""How custom resources are read and written: by the schema of their version.

Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go (``schemaCoercingDecoder``,
``schemaCoercingConverter``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.builtin.unknown_fields import drop_unknown_metadata
from deltaloop.apiserver.core.codec import AsSent, Fields
from deltaloop.apiserver.core.crds.stored_numbers import settle_numbers
from deltaloop.apiserver.core.metadata.types import check_metadata_types, drop_unreadable, unreadable_type
from deltaloop.schemas.decoding import decode_by_schema, duplicate_field_texts, prune_by_schema, unknown_field_texts
from deltaloop.schemas.json_values import copied, mapping


@final
@dataclass(frozen=True, slots=True)
class CustomCodec:
    """Of one version of a definition; says what ``Codec`` says.

    Attributes:
        kind: Its type.
        schema: Its OpenAPI v3 schema as JSON bytes, if any.
        storage_schema: That of the version that objects are stored in, where it is another one; what it does not have
            is lost.
    """

    kind: ResourceType[Resource]
    schema: bytes = b""
    storage_schema: bytes = b""

    @property
    def says_kind(self) -> bool:
        """It has to."""
        return True

    @property
    def serves_as_stored(self) -> bool:
        """Without a schema."""
        return not self.schema

    def check_kind(self, fields: Fields) -> None:
        """Refuse what has no kind; another one is refused later."""
        unreadable = unreadable_type(fields)
        if unreadable or not fields.get("kind"):
            why = unreadable or "Object 'Kind' is missing in the body of the request"
            raise failures.unrecognized(self.kind.kind, why)

    def is_read(self, fields: Fields) -> bool:
        """Tell whether it is of this kind and version."""
        said = fields.get("apiVersion"), fields.get("kind") or self.kind.kind
        return said == (self.kind.api_version, self.kind.kind)

    def read(self, fields: Fields, as_sent: AsSent) -> None:
        """Check metadata, prune, and fill in defaults; applied nulls that may not be stay, to be refused."""
        if as_sent == "applied":
            drop_unreadable(mapping(fields.get("metadata")))
        check_metadata_types(self.kind, fields, unstructured=True)
        decode_by_schema(self.schema, fields, applied=as_sent == "applied")

    def drop_unknown(self, fields: Fields, body: bytes, as_sent: AsSent, *, told: bool) -> tuple[str, ...]:
        """Drop what metadata does not have; the rest goes when the object is pruned."""
        del as_sent  # it is read the same way each time
        unknown = drop_unknown_metadata(fields)
        if not told:
            return ()
        of_metadata = (f'unknown field "{path}"' for path in unknown)
        return (*duplicate_field_texts(body), *of_metadata, *unknown_field_texts(self.schema, fields))

    def settle(self, fields: Fields) -> None:
        """Write whole numbers without a point."""
        settle_numbers(fields)

    def stored(self, fields: Fields) -> Fields:
        """Return it as the version that is stored has it."""
        if not self.storage_schema:
            return fields
        fields = copied(fields)
        decode_by_schema(self.storage_schema, fields)
        return fields

    def load(self, fields: Fields) -> Fields | None:
        """Prune and default it in place: defaults are those of the version that it is stored in."""
        changed = decode_by_schema(self.storage_schema or self.schema, fields)
        if self.storage_schema:
            changed = prune_by_schema(self.schema, fields) or changed
        return fields if changed else None
