"""What creating and updating make of an object, and what is wrong with that.

The server owns uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, generation (where it counts),
resourceVersion and managedFields (``managed_fields``). Where status is a subresource, the main endpoint
leaves it alone and ``/status`` changes nothing else, but for metadata of most built-in kinds.

Source: apiserver pkg/registry/rest/create.go, update.go; apiextensions-apiserver
pkg/registry/customresource/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from deltaloop.api.json_values import copied, integer, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.apply.field_manager import Writer, with_entries
from deltaloop.apiserver.core.metadata.generated_names import GENERATED_TRIES, generated_name
from deltaloop.apiserver.core.metadata.rules import mark_errors, metadata_errors, new_finalizer_errors
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.status_errors import refuse_invalid
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.apiserver.core.wire.requests import parse_revision
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.writes.managed_fields import (
    can_be_owned,
    changed_entries,
    entries_of,
    new_entries,
    with_old_times,
)
from deltaloop.apiserver.core.writes.sent_objects import Sent, check_said_kind, check_versions
from deltaloop.schemas.completing import initial_status, without_zeros
from deltaloop.schemas.field_errors import SchemaError
from deltaloop.schemas.json_in_parts import encode_sorted
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


def new_object(context: WriteContext, fields: dict[str, object], metadata: dict[str, object]) -> dict[str, object]:
    """Return the object that a create stores, without a name if it is to be generated."""
    served = context.served
    kept = {name: value for name, value in metadata.items() if name not in _SERVER_FIELDS}
    kept["uid"] = context.uid
    kept["creationTimestamp"] = context.time
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


def told_by_status(served: ServedResource, errors: list[SchemaError]) -> list[SchemaError]:
    """Return which errors in metadata count for a write to ``/status``: not those of what is put back before a look.

    Source: Kubernetes pkg/registry (``PrepareForUpdate`` of status strategies), pkg/registry/core/pod/strategy.go.
    """
    restores = served.flags.status_restores
    if restores == "metadata":
        return []
    return [error for error in errors if restores != "deletion" or error.field != "metadata.deletionTimestamp"]


def new_errors(served: ServedResource, created: dict[str, object]) -> list[SchemaError]:
    """Return what is wrong with a new object."""
    errors = metadata_errors(served, mapping(created["metadata"]), new=True)
    strategy, rules = served.strategy, served.rules
    errors += [*rules.kept_errors(created, new=True), *strategy.validate(created), *strategy.validate_new(created)]
    return [*errors, *rules.tagged_errors(created)]


def changed_errors(
    served: ServedResource, before: dict[str, object], after: dict[str, object], *, whole: bool
) -> list[SchemaError]:
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


class New(NamedTuple):
    """A new object that can be stored.

    Attributes:
        fields: The object with its managed fields.
        name: Its name.
        key: Its key in the store.
        existing: The object of that name; None if there is none.
        version: Resource version that it was sent with.
        is_versioned: Whether that is a number.
        is_generated: Whether the server has generated the name.
    """

    fields: dict[str, object]
    name: str
    key: str
    existing: Resource | None
    version: str
    is_versioned: bool
    is_generated: bool


def make_new(context: WriteContext, sent: Sent, entries: list[dict[str, object]] | None) -> New:
    """Return a new object with its name, its managed fields, and the fields that the server sets.

    Args:
        context: The write.
        sent: The object as admission has left it.
        entries: Its managed fields if they are known; None makes the manager the owner of all fields.

    Raises:
        InvalidError: If the object is invalid.
    """
    served, strategy, objects = context.served, context.served.strategy, context.objects
    version = text(sent.metadata.pop("resourceVersion", ""))
    created = new_object(context, sent.fields, sent.metadata)
    metadata = mapping(created["metadata"])
    is_generated = not metadata.get("name") and bool(text(metadata.get("generateName")))
    if is_generated:
        metadata["name"] = _unused_name(context, text(metadata["generateName"]))
    strategy.prepare_new(created)
    name = text(mapping(created["metadata"]).get("name"))
    if entries is None and not can_be_owned(context.registry, served, sent.fields):
        entries = []
    refuse_invalid(served.type, name, new_errors(served, created))
    context.notes.stored.extend(new_warnings(strategy, created))
    served.codec.settle(created)
    created = with_entries(created, _entries_of_new(context, created, sent) if entries is None else entries)
    refuse_invalid(served.type, name, strategy.finish_new(created, objects, context))
    key = served.key(context.namespace, name)
    existing = objects.get(served.storage, key)
    return New(created, name, key, existing, version, bool(parse_revision(version)), is_generated)


def _entries_of_new(context: WriteContext, created: dict[str, object], sent: Sent) -> list[dict[str, object]]:
    """Return the managed fields of a new object; marks that it was sent with have an owner, although it lacks them."""
    by_author: dict[str, object] = {**without_zeros(context.served.schema.tree, created)}
    by_author["metadata"] = {**mapping(by_author["metadata"]), **sent.marks}
    return new_entries(context.registry, context.served, by_author, writer_of(context))


def _unused_name(context: WriteContext, base: str) -> str:
    name = ""
    for attempt in range(GENERATED_TRIES):
        name = generated_name(base, random=context.random, attempt=attempt)
        if context.objects.get(context.served.storage, context.served.key(context.namespace, name)) is None:
            break
    return name


class Changed(NamedTuple):
    """A changed object that can be stored, and whether it is stored even if it equals the present one."""

    fields: dict[str, object]
    differs: bool


def make_changed(
    context: WriteContext,
    current: Resource,
    before: dict[str, object],
    sent: Sent,
    entries: list[dict[str, object]] | None,
    *,
    empty: bool,
    pruned: tuple[str, ...],
) -> Changed:
    """Return a changed object with its managed fields and the fields that the server sets.

    Args:
        context: The write.
        current: The present object.
        before: The same, decoded.
        sent: The object as admission has left it.
        entries: Its managed fields if they are known; None makes the manager the owner of the fields that change.
        empty: Whether it was sent with an empty part that counts as a change.
        pruned: Paths of applied fields that are not stored; they count as changes, too.

    Raises:
        ApiError: If the object is invalid, or about another object or version.
    """
    served, strategy, written, part = context.served, context.served.strategy, context.subresource, part_of(context)
    fields, metadata = sent.fields, sent.metadata
    errors = check_versions(served, current, metadata, as_sent=sent.as_sent)
    check_said_kind(served, fields)
    errors += mark_errors(mapping(before["metadata"]), metadata, sent.dropped)
    if part == "status":
        errors = told_by_status(served, errors)
    if not part:
        strategy.keep(before, {**fields, "metadata": metadata})
    after = updated_object(served, before, fields, metadata, subresource=part)
    drops = counts_as_change(served, pruned, subresource=written)
    differs = empty or drops
    if differs and not written:
        count_change(before, after)
    errors += changed_errors(served, before, after, whole=not part)
    notes = context.notes.stored
    notes.extend(str(error) for error in errors if error.tolerated)
    refuse_invalid(served.type, context.name, errors)
    if not part:
        notes.extend(changed_warnings(strategy, before, after))
    elif part == "status":
        notes.extend(strategy.warn_status(after))
    if entries is None and not can_be_owned(context.registry, served, fields):
        entries = entries_of(before)
    served.codec.settle(after)
    if entries is None:
        found = changed_entries(
            context.registry, served, before, after, metadata.get("managedFields"), writer_of(context)
        )
        after = with_entries(after, found)
    else:
        after = with_entries(after, entries)
        if not drops:
            after = with_old_times(before, after)
    if not part:
        name = text(mapping(after["metadata"])["name"])
        refuse_invalid(served.type, name, strategy.finish_update(before, after, context.objects, context))
    return Changed(after, differs)


def part_of(context: WriteContext) -> str:
    """Return the part of the object that is written; a ``Scale`` changes the whole object."""
    return "" if context.subresource == "scale" else context.subresource


def writer_of(context: WriteContext) -> Writer:
    """Return the writer as managed fields name it. A real server loses the time of a write through a ``Scale``."""
    time = "" if context.subresource == "scale" else context.time
    return Writer(context.manager, time, context.subresource)


def entries_as_sent(context: WriteContext, before: dict[str, object] | None, sent: Sent) -> list[dict[str, object]]:
    """Return the managed fields that a write leaves before admission, whose changes belong to nobody.

    Args:
        context: The write.
        before: The present object, decoded; None for a new one.
        sent: The object as sent.
    """
    served = context.served
    if not can_be_owned(context.registry, served, sent.fields):
        return entries_of(before or {})
    fields, metadata = copied(sent.fields), copied(sent.metadata)
    if before is None:
        created = new_object(context, fields, metadata)
        served.strategy.prepare_new(created)
        served.codec.settle(created)
        return _entries_of_new(context, created, sent)
    part = part_of(context)
    if not part:
        served.strategy.keep(before, {**fields, "metadata": metadata})
    after = updated_object(served, before, fields, metadata, subresource=part)
    served.codec.settle(after)
    return changed_entries(context.registry, served, before, after, metadata.get("managedFields"), writer_of(context))


def _desired(fields: dict[str, object]) -> bytes:
    # Where status is a subresource, both sides have the same one by now; elsewhere it counts like any other field.
    return encode_sorted(
        {name: value for name, value in fields.items() if name not in ("kind", "apiVersion", "metadata")}
    )
