"""The built-in kinds as the real server serves them: short names, categories, verbs, subresources, generation.

They come from the tables (``builtin.tables``). Reviews, which are answered and never stored, are no resources here.

Source: Kubernetes, ``api/discovery`` for names and verbs; the ``strategy.go`` of each kind in ``pkg/registry`` for
the flags.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.builtin.codec import BuiltInCodec
from deltaloop.apiserver.core.builtin.tables import BuiltInTables, KindEntry
from deltaloop.apiserver.core.kinds.all_kinds import STRATEGIES
from deltaloop.apiserver.core.kinds.cells import declared_cell
from deltaloop.apiserver.core.kinds.types import BuiltInTypes
from deltaloop.apiserver.core.served_resource import NAME_COLUMN, PrinterColumn, ScalePaths, ServedResource
from deltaloop.apiserver.core.strategy import PLAIN, Strategy

_REVIEWS: Final = ("authentication.k8s.io", "authorization.k8s.io")
_PARTS: Final = ("approval", "ephemeralcontainers", "resize")
_CREATED_AT: Final = PrinterColumn("Created At", "date", "", "When the object was created.")
_KNOWN: Final = {(known.group, known.version, known.kind): known for known in kinds.BUILT_IN}


def _type(entry: KindEntry) -> ResourceType[Resource]:
    known = _KNOWN.get((entry.group, entry.version, entry.kind))
    if known is not None:
        return known
    return ResourceType[Resource](entry.group, entry.version, entry.kind, entry.plural, entry.namespaced)


def _columns(entry: KindEntry) -> tuple[PrinterColumn, ...]:
    """Return the columns of a kind's table, as a real server says them; some of numbers say that they hold strings.

    Columns of priority 1 are the ones that ``kubectl get -o wide`` adds.
    """
    found = tuple(
        PrinterColumn(column.name, column.type, "", format=column.format, priority=column.priority)
        for column in entry.columns
    )
    return found or (NAME_COLUMN, _CREATED_AT)


def _strategy(entry: KindEntry) -> Strategy:
    of_version = f"{entry.plural}.{entry.version}.{entry.group}"
    return STRATEGIES.get(of_version) or STRATEGIES.get(entry.group_resource, PLAIN)


def _served(entry: KindEntry, tables: BuiltInTables, types: BuiltInTypes) -> ServedResource:
    scale, kind = "scale" in entry.subresources, _type(entry)
    schema, strategy = types.schema(entry.api_version, entry.kind), _strategy(entry)
    return ServedResource(
        type=kind,
        singular=entry.kind.lower(),
        list_kind=f"{entry.kind}List",
        short_names=entry.short_names,
        categories=entry.categories,
        verbs=entry.verbs,
        priority=tables.priority_of(entry.api_version),
        status="status" in entry.subresources,
        scale_paths=ScalePaths(label_selector=entry.selector) if scale else None,
        finalize="finalize" in entry.subresources,
        flags=entry.flags,
        schema=schema,
        rules=types.rules(entry.type),
        field_labels=entry.field_labels,
        label_refusal=entry.label_refusal,
        parts=tuple(name for name in entry.subresources if name in _PARTS),
        columns=_columns(entry),
        cells={name: declared_cell(words) for name, words in entry.cells.items()},
        stored_in=entry.stored_in,
        etcd_prefix=entry.etcd_prefix or entry.plural,
        strategy=strategy,
        deprecation=entry.deprecation,
        codec=BuiltInCodec(kind, schema, types.kinds, strategy.conversion),
    )


def built_in_resources(tables: BuiltInTables, types: BuiltInTypes) -> tuple[ServedResource, ...]:
    """Return all of them."""
    return tuple(_served(entry, tables, types) for entry in tables.kinds if entry.group not in _REVIEWS)
