"""How custom resources are read and written: by the schema of their version.

Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go (``schemaCoercingDecoder``,
``schemaCoercingConverter``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.codec import AsSent
from deltaloop.apiserver.core.crds.embedded import read_embedded, unknown_in_embedded
from deltaloop.apiserver.core.crds.stored_numbers import settle_numbers
from deltaloop.apiserver.core.metadata.types import check_metadata_types, drop_unreadable, unreadable_type
from deltaloop.schemas.decoding import decode_by_schema, duplicate_field_texts
from deltaloop.schemas.json_values import copied, mapping
from deltaloop.schemas.object_meta import METADATA, UNTYPED
from deltaloop.schemas.pruning import prune, unknown_fields
from deltaloop.schemas.types import Schema


@final
@dataclass(frozen=True, slots=True)
class CustomCodec:
    """Of one version of a definition; says what ``Codec`` says.

    Attributes:
        kind: The kind of the objects, with group and version.
        schema: The compiled schema of this version.
        storage_schema: That of the version that objects are stored in, where it is another one; what it does not have
            is lost.
    """

    kind: ResourceType[Resource]
    schema: Schema = UNTYPED
    storage_schema: Schema | None = None

    @property
    def says_kind(self) -> bool:
        """It has to."""
        return True

    @property
    def serves_as_stored(self) -> bool:
        """Without a schema."""
        return not self.schema.source

    def check_kind(self, fields: dict[str, object]) -> None:
        """Refuse what has no kind; another one is refused later."""
        unreadable = unreadable_type(fields)
        if unreadable or not fields.get("kind"):
            why = unreadable or "Object 'Kind' is missing in the body of the request"
            raise failures.unrecognized(self.kind.kind, why)

    def is_read(self, fields: dict[str, object]) -> bool:
        """Tell whether it is of this kind and version."""
        said = fields.get("apiVersion"), fields.get("kind") or self.kind.kind
        return said == (self.kind.api_version, self.kind.kind)

    def read(self, fields: dict[str, object], as_sent: AsSent) -> Mapping[str, str]:
        """Check metadata, prune, and fill in defaults; applied nulls that may not be stay, to be refused."""
        applied = as_sent == "applied"
        dropped = drop_unreadable(mapping(fields.get("metadata"))) if applied else {}
        check_metadata_types(self.kind, fields)
        why = read_embedded(self.schema, fields)
        if why:
            raise failures.unreadable(self.kind.kind, why, version=self.kind.version)
        decode_by_schema(self.schema, fields, applied=applied)
        return dropped

    def drop_unknown(self, fields: dict[str, object], body: bytes, as_sent: AsSent, *, told: bool) -> tuple[str, ...]:
        """Drop what metadata does not have; the rest goes when the object is pruned."""
        del as_sent  # it is read the same way each time
        unknown = prune(METADATA, mapping(fields.get("metadata")), "metadata")
        inside = unknown_in_embedded(self.schema, fields)
        if not told:
            return ()
        unknown += (*unknown_fields(self.schema.tree, fields), *inside)
        return (*duplicate_field_texts(body), *(f'unknown field "{path}"' for path in unknown))

    def settle(self, fields: dict[str, object]) -> None:
        """Write whole numbers without a point."""
        settle_numbers(fields)

    def stored(self, fields: dict[str, object]) -> dict[str, object]:
        """Return it as the version that is stored has it."""
        if self.storage_schema is None:
            return fields
        fields = copied(fields)
        decode_by_schema(self.storage_schema, fields)
        return fields

    def load(self, fields: dict[str, object]) -> dict[str, object] | None:
        """Prune and default it in place: defaults are those of the version that it is stored in."""
        changed = decode_by_schema(self.storage_schema or self.schema, fields)
        if self.storage_schema is not None:
            changed = bool(prune(self.schema.tree, fields)) or changed
        return fields if changed else None
