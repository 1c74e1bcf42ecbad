"""How custom resources are read and written: by the schema of their version.

Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go (``schemaCoercingDecoder``,
``schemaCoercingConverter``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from deltaloop.api.json_values import at, copied, mapping, text
from deltaloop.api.keys import join_key
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.codec import AsSent, ConversionError, WebhookConversion
from deltaloop.apiserver.core.crds.embedded import read_embedded, unknown_in_embedded
from deltaloop.apiserver.core.crds.stored_numbers import settle_numbers
from deltaloop.apiserver.core.metadata.types import (
    check_metadata_types,
    check_readable_type,
    drop_unreadable,
    unreadable_type,
)
from deltaloop.apiserver.core.outside import Outside
from deltaloop.schemas.decoding import decode_by_schema, duplicate_field_texts
from deltaloop.schemas.faults import invalid_value
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
        storage_version: The API version that objects are stored in.
        webhook: What converts objects to other versions; None if they are the same but for what schemas say.
        outside: Has the webhook asked; None if it cannot be, and objects stay in their version.
    """

    kind: ResourceType[Resource]
    schema: Schema = UNTYPED
    storage_schema: Schema | None = None
    storage_version: str = ""
    webhook: WebhookConversion | None = None
    outside: Outside | None = None

    @property
    def says_kind(self) -> bool:
        """It has to."""
        return True

    @property
    def serves_as_stored(self) -> bool:
        """Without a schema and a webhook."""
        return not self.schema.source and self.webhook is None

    def asking(self, outside: Outside | None) -> CustomCodec:
        """Convert by the webhook, if there is one."""
        return self if self.webhook is None else replace(self, outside=outside)

    def check_kind(self, fields: dict[str, object]) -> None:
        """Refuse what has no kind; another one is refused later."""
        unreadable = unreadable_type(fields)
        if unreadable or not fields.get("kind"):
            why = unreadable or "Object 'Kind' is missing in the body of the request"
            raise failures.unrecognized(self.kind.kind, why)

    def check_made_kind(self, fields: dict[str, object]) -> None:
        """Refuse another kind or version, and what says none."""
        check_readable_type(fields)
        api_version, kind = text(fields.get("apiVersion")), text(fields.get("kind"))
        if not kind:
            raise failures.internal("Object 'Kind' is missing in a patched object")  # there, its data is said, too
        if api_version != self.kind.api_version:
            group, _, version = api_version.rpartition("/")
            shown = f"{group}/{version}, Kind={kind} is unstructured and is not suitable for converting"
            raise failures.unexplained(f'{shown} to "{self.kind.api_version}"')
        if kind != self.kind.kind:
            error = invalid_value("kind", f'"{kind}"', f"must be {self.kind.kind}")
            raise failures.another_kind(self.kind.group, kind, str(at(fields, "metadata", "name") or ""), [error])

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

    def in_version(self, fields: dict[str, object], api_version: str) -> dict[str, object]:
        """Return an object in another version, as the webhook has it."""
        if self.webhook is None or self.outside is None:
            return fields
        named: dict[str, object] = {"kind": self.kind.kind, "apiVersion": self.kind.api_version}
        return self.webhook.ask(self.outside, named | fields, api_version)

    def settle(self, fields: dict[str, object]) -> None:
        """Write whole numbers without a point."""
        settle_numbers(fields)

    def stored(self, fields: dict[str, object]) -> dict[str, object]:
        """Return it as the version that is stored has it."""
        stored_in = self.storage_version
        if self.webhook is not None:
            stored_in = text(fields.get("apiVersion")) or self.kind.api_version
            if self.outside is not None and stored_in != self.storage_version:
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
            raise failures.unexplained(str(error)) from None

    def load(self, fields: dict[str, object]) -> dict[str, object] | None:
        """Prune and default it in place: defaults are those of the version that it is stored in."""
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
        """Return an object of another version in this one, or as it is if the webhook cannot be asked."""
        complete = webhook.complete({"apiVersion": stored_in, **fields})
        if self.outside is not None:
            try:
                complete = webhook.ask(self.outside, complete, self.kind.api_version)
            except ConversionError as error:
                raise self._undecodable(fields, str(error)) from None
            del complete["apiVersion"]
        del complete["kind"]
        return complete

    def _undecodable(self, fields: dict[str, object], why: str) -> ApiError:
        metadata = mapping(fields.get("metadata"))
        namespace, name = text(metadata.get("namespace")), text(metadata.get("name"))
        return failures.undecodable(self.kind, join_key(namespace, name), text(metadata.get("resourceVersion")), why)
