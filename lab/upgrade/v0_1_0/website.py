"""Serves a page for each Website: a ConfigMap holds it, a Deployment of nginx serves it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

import deltaloop as dl
from deltaloop.crds import PrinterColumn


class WebsiteSpec(msgspec.Struct):
    """What is asked for.

    Attributes:
        html: The page.
        replicas: How many servers it has.
    """

    html: Annotated[str, Meta(min_length=1)]
    replicas: Annotated[int, Meta(ge=0)] = 1


class WebsiteStatus(msgspec.Struct, rename="camel"):
    """What was found.

    Attributes:
        ready_replicas: How many servers are ready.
    """

    ready_replicas: int = 0


@dl.custom_resource(
    group="example.com",
    version="v1",
    printer_columns=[PrinterColumn("Replicas", ".spec.replicas"), PrinterColumn("Ready", ".status.readyReplicas")],
)
class Website(msgspec.Struct, kw_only=True):
    """A page, served by so many replicas."""

    metadata: dl.ObjectMeta
    spec: WebsiteSpec
    status: WebsiteStatus | None = None


@dl.controller(Website, children=[dl.kinds.CONFIG_MAP, dl.kinds.DEPLOYMENT], workers=4, timeout=30.0)
async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
    """Make what one Website asks for come true."""
    website = await ctx.client.find(Website, request.name)
    if website is None:
        return  # what it owned is garbage collected
    await ctx.children.apply(page(website), server(website))
    deployment = await ctx.client.get(dl.kinds.DEPLOYMENT, request.name)
    async with ctx.status(website) as status:
        status["readyReplicas"] = deployment.get("status", {}).get("readyReplicas", 0)


def page(website: Website) -> dict[str, Any]:
    """Return the ConfigMap with the page."""
    data = {"index.html": website.spec.html}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": website.metadata.name}, "data": data}


def server(website: Website) -> dict[str, Any]:
    """Return the Deployment of nginx that serves the page."""
    name = website.metadata.name
    labels = {"website": name}
    container = {
        "name": "nginx",
        "image": "nginxinc/nginx-unprivileged:1.29",
        "ports": [{"name": "http", "containerPort": 8080}],
        "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "page", "configMap": {"name": name}}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": website.spec.replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
