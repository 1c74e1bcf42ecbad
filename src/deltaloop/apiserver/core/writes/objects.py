"""Construction and validation of created and updated objects.

If status is a subresource, the main endpoint does not change it, and ``/status`` changes only the status, and for most
built-in kinds also metadata.

Source: apiserver pkg/registry/rest/create.go, update.go; apiextensions-apiserver
pkg/registry/customresource/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from deltaloop.api.json_values import copied, integer, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.apply.field_manager import Writer, with_entries
from deltaloop.apiserver.core.metadata.rules import (
    GENERATED_TRIES,
    generated_name,
    mark_errors,
    metadata_errors,
    new_finalizer_errors,
)
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.status_errors import refuse_invalid
from deltaloop.apiserver.core.strategy import Strategy, with_clients_metadata
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
_NOT_DESIRED: Final = {"kind", "apiVersion", "metadata"}
_ABSENT: Final = object()
_KEPT_FIELDS: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def new_object(context: WriteContext, fields: dict[str, object], metadata: dict[str, object]) -> dict[str, object]:
    """Return the object to create, still without a generated name."""
    served = context.served
    kept = {name: value for name, value in metadata.items() if name not in _SERVER_FIELDS}
    kept["uid"] = context.moment.uid
    kept["creationTimestamp"] = context.moment.time
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
    old = mapping(current["metadata"])
    if subresource == "status":
        result = {name: value for name, value in current.items() if name != "status"}
        result["metadata"] = with_clients_metadata(old, metadata, served.flags.status_metadata)
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
    counted = served.flags.generation and _differ(result, current)
    also = served.flags.counted
    if counted or (also and kept.get(also) != old.get(also)):
        kept["generation"] = integer(kept.get("generation")) + 1
    return result


def has_empty_part(served: ServedResource, fields: dict[str, object]) -> bool:
    part = served.strategy.counts_empty
    return bool(part) and part in fields and has_empty(served.schema.tree.fields[part], fields[part])


def counts_as_change(served: ServedResource, pruned: Iterable[str], *, subresource: str) -> bool:
    if not served.status:
        return any(pruned)
    return any((path.split(".")[0] == "status") is (subresource == "status") for path in pruned)


def count_change(before: dict[str, object], after: dict[str, object]) -> None:
    """Increment the generation of a changed object in place, unless it was already incremented."""
    metadata, old = mapping(after["metadata"]), mapping(before["metadata"]).get("generation")
    if metadata.get("generation") == old:
        metadata["generation"] = integer(old) + 1


def told_by_status(served: ServedResource, errors: list[SchemaError]) -> list[SchemaError]:
    """Return the metadata errors that apply to ``/status``, which restores some metadata before validation."""
    restores = served.flags.status_restores
    if restores == "metadata":
        return []
    return [error for error in errors if restores != "deletion" or error.field != "metadata.deletionTimestamp"]


def new_errors(served: ServedResource, created: dict[str, object]) -> list[SchemaError]:
    errors = metadata_errors(served, mapping(created["metadata"]), new=True)
    strategy, rules = served.strategy, served.rules
    errors += [*rules.kept_errors(created, new=True), *strategy.validate(created), *strategy.validate_new(created)]
    return [*errors, *rules.tagged_errors(created)]


def changed_errors(
    served: ServedResource, before: dict[str, object], after: dict[str, object], *, whole: bool
) -> list[SchemaError]:
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
    return (*strategy.warn_new(created), *strategy.warn_wanted(created), *strategy.warn(created))


def changed_warnings(strategy: Strategy, before: dict[str, object], after: dict[str, object]) -> tuple[str, ...]:
    """Return warnings about a change. A new generation indicates that the spec changed."""
    wanted_otherwise = mapping(before["metadata"]).get("generation") != mapping(after["metadata"]).get("generation")
    about_wanted = strategy.warn_wanted(after) if wanted_otherwise else ()
    return (*strategy.warn_update(before, after), *about_wanted, *strategy.warn(after))


def has_finalizers(served: ServedResource, fields: dict[str, object]) -> bool:
    if mapping(fields["metadata"]).get("finalizers"):
        return True
    return served.strategy.is_held(fields)


def ends_with_update(served: ServedResource, fields: dict[str, object]) -> bool:
    metadata = mapping(fields["metadata"])
    if "deletionTimestamp" not in metadata or metadata.get("deletionGracePeriodSeconds", 0) != 0:
        return False
    return not has_finalizers(served, fields)


class New(NamedTuple):
    """New object that can be stored; ``is_versioned`` means a resource version other than 0 in the request."""

    fields: dict[str, object]
    name: str
    key: str
    existing: Resource | None
    version: str
    is_versioned: bool
    is_generated: bool


def make_new(context: WriteContext, sent: Sent, entries: list[dict[str, object]] | None) -> New:
    """Return a new object with its server-side fields, or raise InvalidError."""
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
    refuse_invalid(served.type, name, strategy.finish_new(created, objects, context.moment))
    key = served.key(context.namespace, name)
    existing = objects.get(served.storage, key)
    return New(created, name, key, existing, version, bool(parse_revision(version)), is_generated)


def _entries_of_new(context: WriteContext, created: dict[str, object], sent: Sent) -> list[dict[str, object]]:
    """Return the managed fields of a new object, including those of sent but dropped deletion marks."""
    by_author: dict[str, object] = {**without_zeros(context.served.schema.tree, created)}
    by_author["metadata"] = {**mapping(by_author["metadata"]), **sent.marks}
    return new_entries(context.registry, context.served, by_author, writer_of(context))


def _unused_name(context: WriteContext, base: str) -> str:
    name = ""
    for attempt in range(GENERATED_TRIES):
        name = generated_name(base, random=context.moment.random, attempt=attempt)
        if context.objects.get(context.served.storage, context.served.key(context.namespace, name)) is None:
            break
    return name


class Changed(NamedTuple):
    """Changed object that can be stored, and whether to store it even if it equals the current object."""

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
    """Return a changed object with its server-side fields, or raise ApiError if it is invalid."""
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
        refuse_invalid(served.type, name, strategy.finish_update(before, after, context.objects, context.moment))
    return Changed(after, differs)


def part_of(context: WriteContext) -> str:
    """Return the written part of the object, which is the whole object for a ``Scale``."""
    return "" if context.subresource == "scale" else context.subresource


def writer_of(context: WriteContext) -> Writer:
    """Return the writer for managed fields. A real server does not record the time of a write through a ``Scale``."""
    time = "" if context.subresource == "scale" else context.moment.time
    return Writer(context.manager, time, context.subresource)


def entries_as_sent(context: WriteContext, before: dict[str, object] | None, sent: Sent) -> list[dict[str, object]]:
    """Return the managed fields before admission, whose changes have no owner."""
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


def _differ(one: dict[str, object], other: dict[str, object]) -> bool:
    """Return whether the JSON of the desired states differs, without regard to the order of keys."""
    # Both objects have the same status if it is a subresource. Otherwise it counts like other fields.
    for name in (one.keys() | other.keys()) - _NOT_DESIRED:
        first, second = one.get(name, _ABSENT), other.get(name, _ABSENT)
        # Python considers 1, 1.0 and True equal.
        if first is not second and (first != second or encode_sorted(first) != encode_sorted(second)):
            return True
    return False
