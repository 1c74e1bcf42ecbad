"""Server-side apply as a verb: create what is missing, merge into what is there, write only what changed.

Source: apiserver pkg/endpoints/handlers/patch.go (``applyPatcher``).
"""

from __future__ import annotations

from dataclasses import dataclass

from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.kinds.scaling import scale_config
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.writes.managed_fields import apply_fields
from deltaloop.apiserver.core.writes.operations import Operations
from deltaloop.apiserver.core.writes.sent_objects import decode_sent
from deltaloop.schemas.pruning import unknown_fields


@dataclass(frozen=True, slots=True)
class Applied:
    """The object after an apply, and whether the apply created it."""

    object: Resource
    created: bool


def apply_object(
    operations: Operations,
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
        operations: The verbs that an apply comes down to.
        served: The kind that the request names, as it is served.
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
    served = served.asking(stamp.outside)
    current = operations.find(served, namespace, name)
    if current is None and subresource:
        raise failures.not_found(served.type, name)
    if subresource == "scale" and current is not None:
        applied = scale_config(served, current.name, current.namespace, applied)
    live = decode_object(served, current) if current is not None else None
    merged = apply_fields(operations.registry, served, live, applied, stamp, force=force, subresource=subresource)
    pruned = unknown_fields(served.schema.tree, merged) if served.schema.source and live is not None else ()
    metadata = mapping(merged["metadata"])
    entries = [mapping(entry) for entry in items(metadata.pop("managedFields", None))]
    if live is None:
        _check_new(served, name, text(at(applied, "metadata", "uid")), merged)
        created = operations.create(
            served, namespace, merged, stamp=stamp, dry_run=dry_run, entries=entries, updated=name
        )
        return Applied(created, created=True)
    sent = mapping(applied.get("metadata"))
    for field in ("uid", "resourceVersion"):
        # Only what was sent is a condition; what was merged from the present object says nothing.
        if field in sent:
            metadata[field] = sent[field]
    updated = operations.update(
        served,
        namespace,
        name,
        merged,
        stamp=stamp,
        subresource=subresource,
        dry_run=dry_run,
        entries=entries,
        pruned=tuple(pruned),
    )
    return Applied(updated, created=False)


def _check_new(served: ServedResource, name: str, uid: str, merged: dict[str, object]) -> None:
    """Refuse to create what was meant for an object that is not there."""
    if uid:
        decode_sent(served, merged, as_sent="applied")
        reason = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise failures.conflict(served.type, name, reason)
