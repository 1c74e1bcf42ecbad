"""Manifests that are loaded at start: in which order, and what becomes of each.

Namespaces go first, then CRDs, then the rest in the order in which they were read, so that what an object needs is
there before it. What exists already is merged with (RFC 7386), so loading twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.json_values import at, is_mapping, items, mapping, text
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.writes.field_validation import FieldValidation, check_object
from deltaloop.apiserver.core.writes.operations import Operations
from deltaloop.apiserver.core.writes.patching import apply_patch

_FIRST: Final = {"Namespace": 0, "CustomResourceDefinition": 1}
_MERGE: Final = "application/merge-patch+json"


class ManifestError(DeltaloopError):
    """A manifest cannot be loaded; the message says which and why.

    Attributes:
        source: The file that the manifest is from.
        number: Which document of it, from 1.
    """

    def __init__(self, reason: str, *, source: str, number: int) -> None:
        """Keep where."""
        super().__init__(f"{source}, document {number}: {reason}")
        self.source = source
        self.number = number


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object, and where it was read."""

    source: str
    number: int
    fields: dict[str, object]

    def error(self, reason: str) -> ManifestError:
        """Return an error about it."""
        return ManifestError(reason, source=self.source, number=self.number)


def manifests_of(documents: Iterable[object], *, source: str) -> Iterator[Manifest]:
    """Turn the documents of one file into manifests; a ``List`` stands for its items.

    Raises:
        ManifestError: If one is no object, or does not say what it is.
    """
    for number, document in enumerate(documents, start=1):
        if not is_mapping(document):
            raise ManifestError("it is no object", source=source, number=number)
        listed = document["items"] if document.get("kind") == "List" and "items" in document else [document]
        for fields in items(listed):
            if not text(mapping(fields).get("kind")) or not text(mapping(fields).get("apiVersion")):
                raise ManifestError("it has no kind or no apiVersion", source=source, number=number)
            yield Manifest(source, number, mapping(fields))


def in_order(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Return manifests so that what an object needs comes before it."""
    return sorted(manifests, key=lambda manifest: _FIRST.get(text(manifest.fields["kind"]), 2))


def load_manifest(operations: Operations, manifest: Manifest, *, stamp: Stamp) -> None:
    """Create an object, or merge a manifest into the one that is there.

    Raises:
        ManifestError: If the server rejects it, for example because of an unknown field, does not serve its kind, or
            does not get to serve what it defines.
    """
    fields = manifest.fields
    group, _, version = text(fields["apiVersion"]).rpartition("/")
    kind = text(fields["kind"])
    served = operations.registry.find_kind(group, version, kind)
    if served is None:
        raise manifest.error(f"{kind} of {text(fields['apiVersion'])} is not served here; is its CRD missing?")
    name = text(at(fields, "metadata", "name"))
    namespace = (text(at(fields, "metadata", "namespace")) or "default") if served.type.namespaced else ""
    body = msgspec.json.encode(fields)
    try:
        check_object(served, fields, body, FieldValidation.STRICT)
        if name and operations.store.get(served.storage, served.key(namespace, name)) is not None:
            stored = operations.patch(
                served, namespace, name, lambda current: apply_patch(_MERGE, current, body, served), stamp=stamp
            )
        else:
            stored = operations.create(served, namespace, fields, stamp=stamp)
    except ApiError as error:
        raise manifest.error(str(error)) from error
    unserved = served.strategy.why_unserved(stored.to_dict())
    if unserved:
        raise manifest.error(unserved)
