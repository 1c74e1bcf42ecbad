"""A program with versions: each Shop gets a Deployment and a Secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

import deltaloop as dl
from deltaloop.api.json_values import at

PASSWORD = "correct horse battery"


class ShopSpec(msgspec.Struct):
    """What is wanted."""

    image: str
    replicas: int = 1


class ShopStatus(msgspec.Struct):
    """What there is."""

    ready: int = 0


@dl.custom_resource(group="example.com", version="v1")
class Shop(msgspec.Struct, kw_only=True):
    """A shop."""

    metadata: dl.ObjectMeta
    spec: ShopSpec
    status: ShopStatus | None = None


def deployment(shop: Shop, **labels: str) -> dict[str, Any]:
    selector = {"shop": shop.metadata.name}
    template = {
        "metadata": {"labels": {**selector, **labels}},
        "spec": {"containers": [{"name": "web", "image": shop.spec.image}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": shop.metadata.name},
        "spec": {"replicas": shop.spec.replicas, "selector": {"matchLabels": selector}, "template": template},
    }


def secret(shop: Shop, password: str = PASSWORD) -> dict[str, Any]:
    name = f"{shop.metadata.name}-login"
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"password": password}}


Made = Callable[[Shop], list[dict[str, Any]]]


def shops(children: Made = lambda shop: [deployment(shop), secret(shop)], **keywords: Any) -> dl.Controller:
    """Return a version of the program, with other children."""

    @dl.controller(Shop, children=[dl.kinds.DEPLOYMENT, dl.kinds.SECRET], **keywords)
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        shop = await ctx.client.find(Shop, request.name)
        if shop is None:
            return
        await ctx.children.apply(*children(shop))
        running = await ctx.client.find(dl.kinds.DEPLOYMENT, request.name)
        async with ctx.status(shop) as status:
            status["ready"] = at(running or {}, "status", "readyReplicas") or 0

    return reconcile


reconcile = shops()
