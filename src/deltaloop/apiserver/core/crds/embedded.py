"""Objects inside custom resources (``x-kubernetes-embedded-resource``): they have a type, and metadata as any object.

    read       a wrong type refuses the whole; metadata is written as Go writes it
    unknown    what metadata does not have is dropped, and named where the client asks for it
    errors     the rules of names, labels and the like

Source: apiextensions-apiserver pkg/apiserver/schema/objectmeta (coerce.go, validation.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from deltaloop.api.json_values import mapping
from deltaloop.apiserver.core.metadata.go_words import json_words
from deltaloop.apiserver.core.metadata.rules import inner_metadata_errors, normalized_metadata
from deltaloop.schemas.faults import FieldError
from deltaloop.schemas.identity import embedded_objects
from deltaloop.schemas.object_meta import METADATA
from deltaloop.schemas.pruning import prune
from deltaloop.schemas.reading import check_value
from deltaloop.schemas.types import Schema

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def read_embedded(schema: Schema, fields: dict[str, object]) -> str:
    """Write the metadata of objects inside as Go writes it, in place; return why one cannot be read, "" if all can."""
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
    """Drop what the metadata of objects inside does not have, in place, and return the paths."""
    found: list[str] = []
    for path, inner in embedded_objects(schema.tree, fields):
        found += prune(METADATA, mapping(inner.get("metadata")), f"{path}.metadata")
    return found


def embedded_errors(schema: Schema, fields: dict[str, object]) -> Iterator[FieldError]:
    """Yield what is wrong with the metadata of objects inside; what does not have its type is told elsewhere."""
    for path, inner in embedded_objects(schema.tree, fields):
        for error in inner_metadata_errors(mapping(inner.get("metadata"))):
            yield msgspec.structs.replace(error, field=f"{path}.{error.field}")


def _shown(value: object) -> str:
    return _encode(value).decode()
