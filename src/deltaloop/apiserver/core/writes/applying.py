"""Server-side apply as a verb: create what is missing, merge into what is there, write only what changed.

Source: apiserver pkg/endpoints/handlers/patch.go (``applyPatcher``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from deltaloop.api.resource import Resource
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.kinds.scaling import scale_config
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.writes.managed_fields import apply_fields
from deltaloop.apiserver.core.writes.sent_objects import decode_sent
from deltaloop.schemas.json_values import at, items, mapping, text


class ApplyWrites(Protocol):
    """The verbs that an apply comes down to (``Operations``)."""

    registry: Registry

    def find(self, served: ServedResource, namespace: str, name: str) -> Resource | None:
        """Return the present object, or None."""
        ...

    def create(
        self,
        served: ServedResource,
        namespace: str,
        fields: dict[str, object],
        *,
        stamp: Stamp,
        dry_run: bool = False,
        entries: list[dict[str, object]] | None = None,
        updated: str = "",
    ) -> Resource:
        """Store a new object."""
        ...

    def update(
        self,
        served: ServedResource,
        namespace: str,
        name: str,
        fields: dict[str, object],
        *,
        stamp: Stamp,
        subresource: str = "",
        dry_run: bool = False,
        entries: list[dict[str, object]] | None = None,
    ) -> Resource:
        """Store an object anew."""
        ...


@dataclass(frozen=True, slots=True)
class Applied:
    """The object after an apply, and whether the apply created it."""

    object: Resource
    created: bool


def apply_object(
    writes: ApplyWrites,
    served: ServedResource,
    namespace: str,
    name: str,
    applied: dict[str, object],
    *,
    stamp: Stamp,
    force: bool = False,
    subresource: str = "",
    dry_run: bool = False,
) -> Applied:
    """Apply an object.

    Args:
        writes: The verbs.
        served: The resource.
        namespace: Namespace in the URL.
        name: Name in the URL.
        applied: The fields that the manager wants; for ``scale`` a ``Scale``.
        stamp: The time, a new uid, and the manager.
        force: Whether to take fields over from other managers.
        subresource: "", ``status`` or ``scale``.
        dry_run: Whether to do everything but store it.

    Raises:
        ApiError: What the real server answers in each case; nothing has changed then.
    """
    current = writes.find(served, namespace, name)
    if current is None and subresource:
        raise failures.not_found(served.type, name)
    if subresource == "scale" and current is not None:
        applied = scale_config(served, current.name, current.namespace, applied)
    live = decode_object(served, current) if current is not None else None
    merged = apply_fields(writes.registry, served, live, applied, stamp, force=force, subresource=subresource)
    metadata = mapping(merged["metadata"])
    entries = [mapping(entry) for entry in items(metadata.pop("managedFields", None))]
    if live is None:
        _check_new(served, name, text(at(applied, "metadata", "uid")), merged)
        created = writes.create(served, namespace, merged, stamp=stamp, dry_run=dry_run, entries=entries, updated=name)
        return Applied(created, created=True)
    sent = mapping(applied.get("metadata"))
    for field in ("uid", "resourceVersion"):
        # Only what was sent is a condition; what was merged from the present object says nothing.
        if field in sent:
            metadata[field] = sent[field]
    updated = writes.update(
        served,
        namespace,
        name,
        merged,
        stamp=stamp,
        subresource="" if subresource == "scale" else subresource,
        dry_run=dry_run,
        entries=entries,
    )
    return Applied(updated, created=False)


def _check_new(served: ServedResource, name: str, uid: str, merged: dict[str, object]) -> None:
    """Refuse to create what was meant for an object that is not there."""
    if uid:
        decode_sent(served, merged, as_sent="applied")
        reason = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise failures.conflict(served.type, name, reason)
