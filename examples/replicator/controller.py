"""Copy annotated ConfigMaps to other namespaces.

The annotation ``replicator.deltaloop.dev/to`` of a source is a label selector of namespaces. Each reconcile handles one
source. A new namespace triggers all sources, and a changed or deleted copy triggers its source. A label of each copy
contains its source, and an index of the cache finds the copies by this label.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import deltaloop as dl

TO = "replicator.deltaloop.dev/to"
FROM = "replicator.deltaloop.dev/from"
FINALIZER = "replicator.deltaloop.dev/copies"


def source_of(copy: dl.Resource) -> str:
    """Return the ``namespace.name`` of the source of a copy, or an empty string for other objects."""
    return copy.labels.get(FROM, "")


def by_source(obj: dl.Resource) -> list[str]:
    """Index copies by their sources."""
    return [source_of(obj)] if source_of(obj) else []


async def copies_of(request: dl.Request, ctx: dl.Context) -> list[dl.Resource]:
    """Return the copies of a source."""
    return await ctx.client.by_index(dl.kinds.CONFIG_MAP, "source", f"{request.namespace}.{request.name}")


async def target_namespaces(source: dl.Resource, client: dl.Client | dl.ReconcileClient) -> set[str]:
    """Return the namespaces that should contain a copy. A source without annotation has none."""
    if TO not in source.annotations:
        return set()
    found = await client.list(dl.kinds.NAMESPACE, selector=source.annotations[TO])
    return {each.name for each in found if each.deletion_timestamp is None} - {source.namespace}


def to_source(obj: dl.Resource) -> Iterable[str]:
    """Map a copy to the key of its source, and a source to its own key."""
    namespace, dot, name = source_of(obj).partition(".")
    if dot:
        yield f"{namespace}/{name}"
    elif TO in obj.annotations:
        yield obj.key


def replicator(sources: Iterable[str]) -> dl.Controller:
    """Return the controller.

    Args:
        sources: Keys of the sources that a new namespace triggers.
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
        targets = await target_namespaces(source, ctx.client)
        if copies.keys() != targets:
            # After a restart, the cache can contain a source that was deleted, and new copies would never be deleted.
            # Therefore read the source from the server. While it has the finalizer, it cannot be deleted during this
            # reconcile.
            source = await ctx.client.live.find(dl.kinds.CONFIG_MAP, request.name)
            if source is None or source.deletion_timestamp is not None or FINALIZER not in source.finalizers:
                return
            targets = await target_namespaces(source, ctx.client)
        data = dict(source.get("data") or {})
        for namespace in sorted(targets):
            copy = copies.get(namespace)
            if copy is None:
                metadata: dict[str, Any] = {"name": source.name, "labels": {FROM: f"{source.namespace}.{source.name}"}}
                await ctx.client.create(dl.kinds.CONFIG_MAP, {"metadata": metadata, "data": data}, namespace=namespace)
            elif dict(copy.get("data") or {}) != data:
                changed = copy.edit()
                changed["data"] = data
                await ctx.client.update(dl.kinds.CONFIG_MAP, changed, namespace=namespace)
        obsolete = copies.keys() - targets
        if obsolete:
            # The cache of namespaces can be older than these copies.
            obsolete -= await target_namespaces(source, ctx.client.live)
        for namespace in sorted(obsolete):
            await ctx.client.delete(dl.kinds.CONFIG_MAP, copies[namespace].name, namespace=namespace)

    @reconcile.cleanup
    async def delete_copies(request: dl.Request, ctx: dl.Context) -> None:
        # Read from the server: a stale cache can miss copies, which would then never be deleted.
        selector = f"{FROM}={request.namespace}.{request.name}"
        for copy in await ctx.client.live.list_all(dl.kinds.CONFIG_MAP, namespace=None, selector=selector):
            await ctx.client.delete(dl.kinds.CONFIG_MAP, copy.name, namespace=copy.namespace)

    return reconcile
