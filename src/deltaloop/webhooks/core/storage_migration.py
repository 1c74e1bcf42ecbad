"""A change of the version that a definition's objects are stored in: what is to be done, how far it is, when it ends.

A definition lists in ``status.storedVersions`` every version in which an object may be stored, and none of these can be
taken out of it. A version leaves that list once every object has been written again, by a server that stores the new
one.

1. Every object is written again, without a change; the server stores it in the new version, or not at all if it is.
2. How far that is stands in an annotation of the definition: the token of the next page. Whoever begins again goes on
   there. A token that has expired comes with one that goes on at the same place, in what there is now: what was made
   meanwhile is stored in the new version.
3. Entries of ``metadata.managedFields`` that name a version which is not stored or served any more get the new one: a
   server rejects every apply to an object whose entries name a version that has left the definition.
4. When no object is left, the others are taken out of ``status.storedVersions``, if the definition still stores the
   same version, and the annotation goes.

A failure of one object does not keep the others: it is named at the end, nothing is taken out of the list, and the next
run begins anew, since it is before the place that was reached.

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
"""Where a definition says how far a migration is."""


@final
@dataclass(frozen=True, slots=True)
class StoredVersions:
    """What a definition says of the versions that its objects are stored in.

    Attributes:
        kind: The kind, in the version by which its objects are asked for: the new one, if it is served.
        wanted: The version that objects are stored in now.
        others: Versions that some may still be stored in.
        kept: Versions that entries of ``managedFields`` may name.
    """

    kind: ResourceType[Resource]
    wanted: str
    others: tuple[str, ...]
    kept: frozenset[str]


class _ProgressForm(msgspec.Struct, rename={"continue_": "continue"}):
    version: str
    continue_: str
    written: int


@final
@dataclass(frozen=True, slots=True)
class MigrationProgress:
    """How far a migration is.

    Attributes:
        continue_: Token of the next page.
        written: How many objects were written before it.
    """

    continue_: str
    written: int


def stored_versions(definition: Mapping[str, Any]) -> StoredVersions:
    """Read a definition.

    Raises:
        MalformedObjectError: If it stores or serves no version.
    """
    spec = mapping(definition.get("spec"))
    versions = [mapping(each) for each in items(spec.get("versions"))]
    wanted = next((text(each.get("name")) for each in versions if each.get("storage") is True), "")
    served = [text(each.get("name")) for each in versions if each.get("served") is True]
    name = text(at(definition, "metadata", "name"))
    if not wanted or not served:
        raise MalformedObjectError(f"CustomResourceDefinition {name} has no version that is stored, or none is served")
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
    """Return the merge patch after which the entries of an object name no version that leaves; {} if they do not.

    Args:
        metadata: Metadata of the object.
        versions: Versions of its definition.
    """
    entries, group = [mapping(entry) for entry in items(metadata.get("managedFields"))], versions.kind.group
    kept = {f"{group}/{version}" for version in versions.kept}
    if all(text(entry.get("apiVersion")) in kept for entry in entries):
        return {}
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for entry in entries:
        renamed: dict[str, Any] = dict(entry)
        if text(entry.get("apiVersion")) not in kept:
            renamed["apiVersion"] = f"{group}/{versions.wanted}"
        # An entry of the same writer in the new version takes over the fields.
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
    """Return how far a migration to a version is; None if it is to begin."""
    written = text(mapping(at(definition, "metadata", "annotations")).get(ANNOTATION))
    try:
        form = msgspec.json.decode(written, type=_ProgressForm)
    except msgspec.MsgspecError:
        return None
    return MigrationProgress(form.continue_, form.written) if form.version == wanted and form.continue_ else None


def progress_patch(wanted: str, progress: MigrationProgress | None) -> dict[str, Any]:
    """Return the merge patch that says how far a migration is; with None, nothing of it is left."""
    value: str | None = None
    if progress is not None:
        value = msgspec.json.encode(_ProgressForm(wanted, progress.continue_, progress.written)).decode()
    return {"metadata": {"annotations": {ANNOTATION: value}}}
