"""Loading of manifests at start: namespaces, then CRDs, then other objects; existing objects are merged (RFC 7386)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.json_values import at, is_mapping, items, mapping, text
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.wire.bodies import SentBody
from deltaloop.apiserver.core.write_options import FieldValidation
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.field_validation import check_object
from deltaloop.apiserver.core.writes.patch import patch
from deltaloop.apiserver.core.writes.patching import apply_patch
from deltaloop.apiserver.core.writes.server_state import ServerState

_FIRST: Final = {"Namespace": 0, "CustomResourceDefinition": 1}
_MERGE: Final = "application/merge-patch+json"


class ManifestError(DeltaloopError):
    """Manifest that cannot be loaded.

    Attributes:
        source: File of the manifest.
        number: Number of the document in the file, from 1, or 0 for the whole file.
    """

    def __init__(self, reason: str, *, source: str, number: int = 0) -> None:
        super().__init__(f"{source}, document {number}: {reason}" if number else reason)
        self.source = source
        self.number = number


@dataclass(frozen=True, slots=True)
class Manifest:
    """Object with its source.

    Attributes:
        source: File of the manifest.
        number: Number of the document in the file, from 1.
        fields: Decoded object.
    """

    source: str
    number: int
    fields: dict[str, object]

    def error(self, reason: str) -> ManifestError:
        """Return an error for this manifest."""
        return ManifestError(reason, source=self.source, number=self.number)


def manifests_of(documents: Iterable[object], *, source: str) -> Iterator[Manifest]:
    """Yield the manifests in the documents of a file, including the items of a ``List``, or raise ManifestError."""
    for number, document in enumerate(documents, start=1):
        if not is_mapping(document):
            raise ManifestError("must be an object", source=source, number=number)
        listed = document["items"] if document.get("kind") == "List" and "items" in document else [document]
        for fields in items(listed):
            if not text(mapping(fields).get("kind")) or not text(mapping(fields).get("apiVersion")):
                raise ManifestError("must have kind and apiVersion", source=source, number=number)
            yield Manifest(source, number, mapping(fields))


def in_order(manifests: Iterable[Manifest]) -> list[Manifest]:
    return sorted(manifests, key=lambda manifest: _FIRST.get(text(manifest.fields["kind"]), 2))


def load_manifest(state: ServerState, manifest: Manifest, *, moment: Moment) -> None:
    """Create or merge the object; raises ManifestError if the server rejects it or cannot serve it."""
    fields = manifest.fields
    group, _, version = text(fields["apiVersion"]).rpartition("/")
    kind = text(fields["kind"])
    served = state.registry.find_kind(group, version, kind)
    if served is None:
        raise manifest.error(f"{kind} of {text(fields['apiVersion'])} is not served. Is its CRD missing?")
    name = text(at(fields, "metadata", "name"))
    namespace = (text(at(fields, "metadata", "namespace")) or "default") if served.type.namespaced else ""
    body = msgspec.json.encode(fields)
    try:
        check_object(served, fields, SentBody(raw=body, content_type=""), FieldValidation.STRICT)
        if name and state.store.get(served.storage, served.key(namespace, name)) is not None:
            context = state.own_write(served, namespace, name, moment)
            stored = patch(context, lambda current: apply_patch(_MERGE, current, body, served))
        else:
            stored = create(state.own_write(served, namespace, "", moment), fields)
    except ApiError as error:
        raise manifest.error(str(error)) from error
    unserved = served.strategy.why_unserved(stored.to_dict())
    if unserved:
        raise manifest.error(unserved)
