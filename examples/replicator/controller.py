"""Keeps a copy of marked ConfigMaps in every namespace that asks for them.

A ConfigMap with the annotation ``replicator.deltaloop.dev/to`` is copied into all namespaces whose labels it selects.
The reconciler is asked about a source; a namespace that appears asks for all sources, a copy that somebody changes or
deletes asks for its source. Copies say where they come from by a label, which an index of the cache files them under.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import deltaloop as dl

TO = "replicator.deltaloop.dev/to"
FROM = "replicator.deltaloop.dev/from"
FINALIZER = "replicator.deltaloop.dev/copies"


def source_of(copy: dl.Resource) -> str:
    """Return the label of a copy: ``namespace.name`` of its source; empty if it is no copy."""
    return copy.labels.get(FROM, "")


def by_source(obj: dl.Resource) -> list[str]:
    """File copies under their sources."""
    return [source_of(obj)] if source_of(obj) else []


async def copies_of(request: dl.Request, ctx: dl.Context) -> list[dl.Resource]:
    """Return the copies of a source."""
    return await ctx.client.by_index(dl.kinds.CONFIG_MAP, "source", f"{request.namespace}.{request.name}")


async def wanted_by(source: dl.Resource, client: dl.Client | dl.ReconcileClient) -> set[str]:
    """Return the namespaces that are to have a copy; none if the source is marked no more."""
    if TO not in source.annotations:
        return set()
    found = await client.list(dl.kinds.NAMESPACE, selector=source.annotations[TO])
    return {each.name for each in found if each.deletion_timestamp is None} - {source.namespace}


def to_source(obj: dl.Resource) -> Iterable[str]:
    """Map a copy to the key of its source, and a source to its own."""
    namespace, dot, name = source_of(obj).partition(".")
    if dot:
        yield f"{namespace}/{name}"
    elif TO in obj.annotations:
        yield obj.key


def replicator(sources: Iterable[str]) -> dl.Controller:
    """Make the controller.

    Args:
        sources: Keys of the sources that a new namespace asks for.
    """
    keys = tuple(sources)

    @dl.controller(
        dl.kinds.CONFIG_MAP,
        name="replicator",
        predicates=[dl.predicates.Where(lambda obj: TO in obj.annotations)],
        watches=[
            dl.Watch(
                dl.kinds.CONFIG_MAP, to=to_source, predicates=[dl.predicates.Where(lambda obj: bool(source_of(obj)))]
            ),
            dl.Watch(dl.kinds.NAMESPACE, to=lambda _: keys),
        ],
        indexers={"source": by_source},
        writes=[dl.kinds.CONFIG_MAP],
        finalizer=FINALIZER,
        workers=4,
    )
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        source = await ctx.client.find(dl.kinds.CONFIG_MAP, request.name)
        if source is None:
            return
        copies = {copy.namespace: copy for copy in await copies_of(request, ctx)}
        wanted = await wanted_by(source, ctx.client)
        if copies.keys() != wanted:
            # After a restart the cache may be older than the end of the source, and nobody would look for what is made
            # then: the server is asked. As long as the finalizer is there, only this controller lets a source go, and
            # not while this runs.
            source = await ctx.client.live.find(dl.kinds.CONFIG_MAP, request.name)
            if source is None or source.deletion_timestamp is not None or FINALIZER not in source.finalizers:
                return
            wanted = await wanted_by(source, ctx.client)
        data = dict(source.get("data") or {})
        for namespace in sorted(wanted):
            copy = copies.get(namespace)
            if copy is None:
                metadata: dict[str, Any] = {"name": source.name, "labels": {FROM: f"{source.namespace}.{source.name}"}}
                await ctx.client.create(dl.kinds.CONFIG_MAP, {"metadata": metadata, "data": data}, namespace=namespace)
            elif dict(copy.get("data") or {}) != data:
                changed = copy.edit()
                changed["data"] = data
                await ctx.client.update(dl.kinds.CONFIG_MAP, changed, namespace=namespace)
        unwanted = copies.keys() - wanted
        if unwanted:
            # The cache of namespaces may be older than these copies.
            unwanted -= await wanted_by(source, ctx.client.live)
        for namespace in sorted(unwanted):
            await ctx.client.delete(dl.kinds.CONFIG_MAP, copies[namespace].name, namespace=namespace)

    @reconcile.cleanup
    async def delete_copies(request: dl.Request, ctx: dl.Context) -> None:
        # A cache that lags lacks copies, and nobody would look for them once the source is gone: the server is asked.
        selector = f"{FROM}={request.namespace}.{request.name}"
        for copy in await ctx.client.live.list_all(dl.kinds.CONFIG_MAP, namespace=None, selector=selector):
            await ctx.client.delete(dl.kinds.CONFIG_MAP, copy.name, namespace=copy.namespace)

    return reconcile
