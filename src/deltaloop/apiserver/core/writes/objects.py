"""What creating and updating make of an object, and what is wrong with that.

The server owns uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, generation (where it counts),
resourceVersion and managedFields (``managed_fields``). Where status is a subresource, the main endpoint
leaves it alone and ``/status`` changes nothing else, but for metadata of most built-in kinds.

Source: apiserver pkg/registry/rest/create.go, update.go; apiextensions-apiserver
pkg/registry/customresource/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from deltaloop.api.json_values import integer, mapping, texts
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.metadata.rules import metadata_errors, new_finalizer_errors
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.completing import initial_status
from deltaloop.schemas.faults import FieldError
from deltaloop.schemas.reading import has_empty

_SERVER_FIELDS: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)
_KEPT_FIELDS: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def new_object(
    served: ServedResource, fields: dict[str, object], metadata: dict[str, object], *, stamp: Stamp
) -> dict[str, object]:
    """Return the object that a create stores, without a name if it is to be generated."""
    kept = {name: value for name, value in metadata.items() if name not in _SERVER_FIELDS}
    kept["uid"] = stamp.uid
    kept["creationTimestamp"] = stamp.time
    if served.flags.generation:
        kept["generation"] = 1
    result = {**fields, "metadata": kept}
    if served.status and not served.strategy.status_when_new:
        result.pop("status", None)
        status = initial_status(served.schema.tree)
        if status is not None:
            result["status"] = status
    return result


def updated_object(
    served: ServedResource,
    current: dict[str, object],
    fields: dict[str, object],
    metadata: dict[str, object],
    *,
    subresource: str,
) -> dict[str, object]:
    """Return the object that an update stores.

    Args:
        served: The kind that the request names, as it is served.
        current: The object as it is.
        fields: The object as sent, or as patched.
        metadata: Its normalized metadata.
        subresource: "", ``status`` or ``finalize``.
    """
    old = mapping(current["metadata"])
    if subresource == "status":
        result = {name: value for name, value in current.items() if name != "status"}
        result["metadata"] = _with_status_metadata(served, old, metadata)
        if fields.get("status") is not None:
            result["status"] = fields["status"]
        served.strategy.prepare_status(current, result)
        return result
    if subresource:
        return served.strategy.parts[subresource](current, {**fields, "metadata": metadata})
    kept = {name: value for name, value in metadata.items() if name not in _SERVER_FIELDS}
    kept.pop("generation", None)
    kept.update({name: old[name] for name in _KEPT_FIELDS if name in old})
    result = {**fields, "metadata": kept}
    if served.status:
        result.pop("status", None)
        if "status" in current:
            result["status"] = current["status"]
    served.strategy.prepare_update(current, result)
    kept = mapping(result["metadata"])
    counted = served.flags.generation and _desired(result) != _desired(current)
    also = served.flags.counted
    if counted or (also and kept.get(also) != old.get(also)):
        kept["generation"] = integer(kept.get("generation")) + 1
    return result


def has_empty_part(served: ServedResource, fields: dict[str, object]) -> bool:
    """Whether an object as sent has an empty list or map that counts as a change, although it is not stored."""
    part = served.strategy.counts_empty
    return bool(part) and part in fields and has_empty(served.schema.tree.fields[part], fields[part])


def counts_as_change(served: ServedResource, pruned: Iterable[str], *, subresource: str) -> bool:
    """Whether fields that are not stored are in the part of an object that is written."""
    if not served.status:
        return any(pruned)
    return any((path.split(".")[0] == "status") is (subresource == "status") for path in pruned)


def count_change(before: dict[str, object], after: dict[str, object]) -> None:
    """Raise the generation of a changed object, in place, unless another change has raised it."""
    metadata, old = mapping(after["metadata"]), mapping(before["metadata"]).get("generation")
    if metadata.get("generation") == old:
        metadata["generation"] = integer(old) + 1


def _with_status_metadata(served: ServedResource, old: dict[str, object], sent: dict[str, object]) -> dict[str, object]:
    """Return the metadata that a write to ``/status`` leaves."""
    taken = served.flags.status_metadata
    if not taken:
        return old
    result = {name: value for name, value in old.items() if name not in taken}
    return result | {name: sent[name] for name in sent if name in taken}


def told_by_status(served: ServedResource, errors: list[FieldError]) -> list[FieldError]:
    """Return which errors in metadata count for a write to ``/status``: not those of what is put back before a look.

    Source: Kubernetes pkg/registry (``PrepareForUpdate`` of status strategies), pkg/registry/core/pod/strategy.go.
    """
    restores = served.flags.status_restores
    if restores == "metadata":
        return []
    return [error for error in errors if restores != "deletion" or error.field != "metadata.deletionTimestamp"]


def new_errors(served: ServedResource, created: dict[str, object]) -> list[FieldError]:
    """Return what is wrong with a new object."""
    errors = metadata_errors(served, mapping(created["metadata"]), new=True)
    strategy, rules = served.strategy, served.rules
    errors += [*rules.kept_errors(created, new=True), *strategy.validate(created), *strategy.validate_new(created)]
    return [*errors, *rules.tagged_errors(created)]


def changed_errors(
    served: ServedResource, before: dict[str, object], after: dict[str, object], *, whole: bool
) -> list[FieldError]:
    """Return what is wrong with a changed object, and with changing it so.

    Args:
        served: The object's kind, as it is served.
        before: The object as it is.
        after: The object as it is to be.
        whole: Whether it was written as a whole, not through a subresource.
    """
    errors = metadata_errors(served, mapping(after["metadata"]), new=whole and served.flags.base_rechecked)
    if whole:
        strategy, rules = served.strategy, served.rules
        errors += [*rules.kept_errors(after, new=False), *strategy.validate(after)]
        errors += [*rules.fixed_errors(before, after), *strategy.validate_update(before, after)]
        errors += rules.tagged_errors(after, before)
    else:
        errors += served.strategy.validate_status(before, after)
    if "deletionTimestamp" in mapping(after["metadata"]):
        old, new = mapping(before["metadata"]).get("finalizers"), mapping(after["metadata"]).get("finalizers")
        errors += new_finalizer_errors(texts(old), texts(new))
    return errors


def new_warnings(strategy: Strategy, created: dict[str, object]) -> tuple[str, ...]:
    """Return what the author of a new object is to be warned about."""
    return (*strategy.warn_new(created), *strategy.warn_wanted(created), *strategy.warn(created))


def changed_warnings(strategy: Strategy, before: dict[str, object], after: dict[str, object]) -> tuple[str, ...]:
    """Return what the author of a change is to be warned about; the generation tells whether what is wanted changed."""
    wanted_otherwise = mapping(before["metadata"]).get("generation") != mapping(after["metadata"]).get("generation")
    about_wanted = strategy.warn_wanted(after) if wanted_otherwise else ()
    return (*strategy.warn_update(before, after), *about_wanted, *strategy.warn(after))


def refuse(served: ServedResource, name: str, errors: Iterable[FieldError]) -> None:
    """Refuse a write if there are errors that are not tolerated.

    Raises:
        InvalidError: Naming all of them.
    """
    found = [error for error in errors if not error.tolerated]
    if found:
        raise failures.invalid(served.type, name, found)


def has_finalizers(served: ServedResource, fields: dict[str, object]) -> bool:
    """Tell whether something still holds an object that is being deleted."""
    if mapping(fields["metadata"]).get("finalizers"):
        return True
    return served.strategy.is_held(fields)


def ends_with_update(served: ServedResource, fields: dict[str, object]) -> bool:
    """Tell whether an update removed the last thing that held an object that is being deleted."""
    metadata = mapping(fields["metadata"])
    if "deletionTimestamp" not in metadata or metadata.get("deletionGracePeriodSeconds", 0) != 0:
        return False
    return not has_finalizers(served, fields)


def _desired(fields: dict[str, object]) -> bytes:
    # Where status is a subresource, both sides have the same one by now; elsewhere it counts like any other field.
    return _encode({name: value for name, value in fields.items() if name not in ("kind", "apiVersion", "metadata")})
