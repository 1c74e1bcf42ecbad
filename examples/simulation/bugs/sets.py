"""StatefulSet of nodes with claims. The rebuilt operators create the set, and the environment creates its Pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import deltaloop as dl

SET, POD, CLAIM = dl.kinds.STATEFUL_SET, dl.kinds.POD, dl.kinds.PERSISTENT_VOLUME_CLAIM
MOST_PODS: Final = 3
_NAME: Final = "set"
_LABELS: Final = {"app": _NAME}


def pod_name(node: int) -> str:
    """Return the name of the Pod of a node."""
    return f"{_NAME}-{node}"


def claim_name(node: int) -> str:
    """Return the name of the claim of a node."""
    return f"data-{_NAME}-{node}"


async def size(ctx: dl.Context) -> str | None:
    """Return the number of nodes of the cached set, or None without a set."""
    found = await ctx.client.find(SET, _NAME)
    return None if found is None else str(found["spec"]["replicas"])


async def ready(ctx: dl.Context) -> str:
    """Return the number of ready nodes of the cached set."""
    found = await ctx.client.find(SET, _NAME)
    return "0" if found is None else str(found.get("status", {}).get("readyReplicas", 0))


async def put_set(ctx: dl.Context, nodes: str, *, finalizers: Sequence[str] = ()) -> None:
    """Create or scale the set.

    Args:
        ctx: Context of the reconcile.
        nodes: Number of nodes.
        finalizers: Finalizers of the Pods of a new set.
    """
    present = await size(ctx)
    if present is None:
        await ctx.client.create(SET, _set(int(nodes), finalizers))
    elif present != nodes:
        await ctx.client.patch(SET, _NAME, {"spec": {"replicas": int(nodes)}})


def _set(nodes: int, finalizers: Sequence[str]) -> dict[str, Any]:
    container = {"name": "node", "image": "node:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {
        "replicas": nodes,
        "serviceName": _NAME,
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS, "finalizers": [*finalizers]}, "spec": {"containers": [container]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return {"metadata": {"name": _NAME}, "spec": spec}


async def terminating(ctx: dl.Context, node: int, *, live: bool = False) -> dl.Resource | None:
    """Return the Pod of a node if it is terminating.

    Args:
        ctx: Context of the reconcile.
        node: Number of the node.
        live: Whether to confirm the state of a terminating Pod with the server.
    """
    found = await ctx.client.find(POD, pod_name(node))
    if live and found is not None and found.deletion_timestamp is not None:
        found = await ctx.client.live.find(POD, found.name)
    return None if found is None or found.deletion_timestamp is None else found


async def delete_claim(ctx: dl.Context, node: int) -> None:
    """Delete the current claim of a node if it exists."""
    live = ctx.client.live
    found = await live.find(CLAIM, claim_name(node))
    if found is not None and found.deletion_timestamp is None:
        await live.delete(CLAIM, claim_name(node))
