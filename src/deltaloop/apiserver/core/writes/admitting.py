"""Mutating admission, and permission checks for the rules in roles and bindings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, final

import msgspec

from deltaloop.api import kinds
from deltaloop.api.json_values import mapping, text
from deltaloop.apiserver.core.access.rbac import RBAC_GROUP, check_escalation
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes, Operation
from deltaloop.apiserver.core.apply.ownership import fault_of_entries
from deltaloop.apiserver.core.kinds.scaling import apply_scale, scale_of
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.writes.managed_fields import entries_of
from deltaloop.apiserver.core.writes.objects import entries_as_sent
from deltaloop.apiserver.core.writes.sent_objects import Sent, check_namespace

_NAMESPACES: Final = kinds.NAMESPACE.group_resource
_LEFT_INVALID: Final = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
    "admission controller; please fix your requests: "
)
Fields = dict[str, object]
_Entries = list[dict[str, object]]


class Admitted(NamedTuple):
    sent: Sent
    entries: _Entries | None
    attributes: AdmissionAttributes


@final
class _EntriesAsSent:
    """Managed fields of an object before admission, computed when a plugin first reads them."""

    def __init__(self, find: Callable[[], _Entries], applied: _Entries | None) -> None:
        self._find, self._found = find, applied
        self._was_read = False

    def __call__(self) -> _Entries:
        self._was_read = True
        if self._found is None:
            self._found = self._find()
        return self._found

    def left(self, context: WriteContext, admitted: Fields) -> _Entries:
        """Return the entries after admission, or the previous entries with a warning if they are malformed."""
        if not self._was_read:
            return self()
        left = entries_of(admitted)
        fault = fault_of_entries(left)
        if fault:
            context.notes.stored.append(_LEFT_INVALID + fault)
            return self()
        return left


def admit_new(context: WriteContext, sent: Sent, entries: _Entries | None) -> Admitted:
    """Run mutating admission for a new object, or raise ApiError if it is rejected."""
    as_sent = _EntriesAsSent(partial(entries_as_sent, context, None, sent), entries)
    after, wanted = shown(context, {**sent.fields, "metadata": sent.metadata}), text(sent.metadata.get("name"))
    attributes = attributes_of(context, "CREATE", wanted, after=after, entries=as_sent)
    admitted = context.admission.mutate(attributes)
    if admitted is not None:
        sent, entries = _taken_over(context, sent, admitted), as_sent.left(context, admitted)
    context.served.strategy.check_new(context.served.type, wanted, context.writes)
    _check_grants(context, None, sent.fields)
    return Admitted(sent, entries, attributes)


def admit_change(context: WriteContext, sent: Sent, before: Fields, entries: _Entries | None) -> Admitted:
    """Run mutating admission for an update, or raise ApiError if it is rejected."""
    scales = context.subresource == "scale"
    as_sent = _EntriesAsSent(partial(entries_as_sent, context, before, sent), entries)
    after = shown(context, {**sent.fields, "metadata": sent.metadata})
    attributes = attributes_of(
        context,
        "UPDATE",
        context.name,
        after=after,
        before=shown(context, before),
        entries=list if scales else as_sent,  # webhooks see a Scale without managed fields
    )
    admitted = context.admission.mutate(attributes)
    if admitted is not None:
        fields = apply_scale(context.served, before, admitted) if scales else admitted
        sent, entries = _taken_over(context, sent, fields), as_sent.left(context, admitted)
    _check_grants(context, before, sent.fields)
    return Admitted(sent, entries, attributes)


def admit_alone(context: WriteContext, attributes: AdmissionAttributes) -> Fields | None:
    """Run admission for an object that is not stored, for example a binding; return None if it is unchanged."""
    admitted = context.admission.mutate(attributes)
    if admitted is not None:
        attributes = msgspec.structs.replace(attributes, after=admitted)
    effects = context.admission.validate(attributes)
    if not context.dry_run:
        for effect in effects:
            effect(context.writes)
    return admitted


def attributes_of(
    context: WriteContext,
    operation: Operation,
    name: str,
    *,
    after: Fields | None = None,
    before: Fields | None = None,
    entries: Callable[[], _Entries] = list,
) -> AdmissionAttributes:
    served = context.served
    return AdmissionAttributes(
        operation=operation,
        served=served,
        subresource=context.subresource,
        namespace=name if served.storage == _NAMESPACES else context.namespace,
        name=name,
        after=after,
        before=before,
        context=context,
        dry_run=context.dry_run,
        objects=context.objects,
        registry=context.registry,
        entries=entries,
    )


def shown(context: WriteContext, fields: Fields) -> Fields:
    if context.subresource == "scale":
        return scale_of(context.served, fields, may_be_unset=True)
    return {"kind": context.served.type.kind, "apiVersion": context.served.type.api_version, **fields}


def _taken_over(context: WriteContext, sent: Sent, fields: Fields) -> Sent:
    metadata = dict(mapping(fields["metadata"]))
    check_namespace(context.served, metadata, context.namespace)
    return sent._replace(fields=fields, metadata=metadata)


def _check_grants(context: WriteContext, before: Fields | None, after: Fields) -> None:
    served, authorizer, user = context.served, context.authorizer, context.user
    if served.type.group == RBAC_GROUP:
        context.ask(lambda: check_escalation(authorizer, user, served, context.namespace, before=before, after=after))
