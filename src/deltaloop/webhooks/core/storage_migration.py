"""Migrate the objects of a definition to a new storage version.

``status.storedVersions`` of a definition lists every version in which an object may be stored. A version can leave the
list once a server with the new storage version has rewritten all objects.

1. Each object is written without a change. The server stores it in the new version, unless it already is.
2. The progress is the token of the next page, in an annotation of the definition. The error for an expired token
   contains a new token that continues at the same place in the current list.
3. ``metadata.managedFields`` entries that name a version which is no longer stored or served are changed to the new
   version. A server rejects every apply to an object whose entries name a removed version.
4. At the end, the other versions are removed from ``status.storedVersions``, if the storage version is unchanged.

If an object fails, the others are still written, but ``storedVersions`` is not changed. The next run starts from the
beginning, because the failed object precedes the saved token.

Source: kubernetes-sigs/kube-storage-version-migrator; KEP-4192.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import msgspec

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType

ANNOTATION: Final = "webhooks.deltaloop.dev/storage-migration"
"""Annotation of a definition that stores the progress of a migration."""


@final
@dataclass(frozen=True, slots=True)
class StoredVersions:
    """Versions in which a definition stores its objects."""

    kind: ResourceType[Resource]
    wanted: str
    others: tuple[str, ...]
    kept: frozenset[str]


@final
class MigrationProgress(msgspec.Struct, frozen=True, rename={"continue_": "continue"}):
    """Progress of a migration: the token of the next page, and the number of objects written before it."""

    continue_: str
    written: int
    version: str = ""


def stored_versions(definition: Mapping[str, Any]) -> StoredVersions:
    """Read the versions of a definition, or raise MalformedObjectError if no version is stored or served."""
    spec = mapping(definition.get("spec"))
    versions = [mapping(each) for each in items(spec.get("versions"))]
    wanted = next((text(each.get("name")) for each in versions if each.get("storage") is True), "")
    served = [text(each.get("name")) for each in versions if each.get("served") is True]
    name = text(at(definition, "metadata", "name"))
    if not wanted or not served:
        raise MalformedObjectError(f"CustomResourceDefinition {name} must have a stored version and a served version")
    kind = ResourceType[Resource](
        text(spec.get("group")),
        wanted if wanted in served else served[0],
        text(at(spec, "names", "kind")),
        text(at(spec, "names", "plural")),
        namespaced=spec.get("scope") == "Namespaced",
    )
    listed = texts(at(definition, "status", "storedVersions"))
    others = tuple(each for each in listed if each != wanted)
    return StoredVersions(kind, wanted, others, frozenset({*served, wanted}.difference(others)))


def entries_patch(metadata: Mapping[str, Any], versions: StoredVersions) -> dict[str, Any]:
    """Return the merge patch that replaces outdated versions in an object's ``managedFields``, or {}."""
    entries, group = [mapping(entry) for entry in items(metadata.get("managedFields"))], versions.kind.group
    kept = {f"{group}/{version}" for version in versions.kept}
    if all(text(entry.get("apiVersion")) in kept for entry in entries):
        return {}
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for entry in entries:
        renamed: dict[str, Any] = dict(entry)
        if text(entry.get("apiVersion")) not in kept:
            renamed["apiVersion"] = f"{group}/{versions.wanted}"
        # If the same writer has an entry in the new version, that entry takes over the fields.
        identity = tuple(text(renamed.get(name)) for name in ("manager", "operation", "apiVersion", "subresource"))
        same = found.get(identity)
        if same is not None:
            renamed["fieldsV1"] = _union(mapping(same.get("fieldsV1")), mapping(renamed.get("fieldsV1")))
            renamed["time"] = max(text(same.get("time")), text(renamed.get("time")))
        found[identity] = renamed
    changed = {"managedFields": [*found.values()], "resourceVersion": metadata.get("resourceVersion")}
    return {"metadata": changed}


def _union(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    both = {name: _union(mapping(one[name]), mapping(other[name])) for name in one.keys() & other.keys()}
    return {**one, **other, **both}


def progress_of(definition: Mapping[str, Any], wanted: str) -> MigrationProgress | None:
    """Return the progress of a migration to a version, or None if it has not started."""
    written = text(mapping(at(definition, "metadata", "annotations")).get(ANNOTATION))
    try:
        progress = msgspec.json.decode(written, type=MigrationProgress)
    except msgspec.MsgspecError:
        return None
    return progress if progress.version == wanted and progress.continue_ else None


def progress_patch(wanted: str, progress: MigrationProgress | None) -> dict[str, Any]:
    """Return the merge patch that saves the progress. None deletes it."""
    value: str | None = None
    if progress is not None:
        value = msgspec.json.encode(msgspec.structs.replace(progress, version=wanted)).decode()
    return {"metadata": {"annotations": {ANNOTATION: value}}}
