"""Serves a page for each Website: a ConfigMap holds it, a Deployment of nginx serves it."""

from __future__ import annotations

from typing import Any

import deltaloop as dl

WEBSITE = dl.ResourceType[dl.Resource]("example.com", "v1", "Website", "websites")


@dl.controller(
    WEBSITE,
    children=[dl.kinds.CONFIG_MAP, dl.kinds.DEPLOYMENT],
    writes=[dl.Access(WEBSITE, verbs=("patch",), subresource="status")],
    workers=4,
    timeout=30.0,
)
async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
    """Make what one Website asks for come true."""
    website = await ctx.client.find(WEBSITE, request.name, namespace=request.namespace)
    if website is None or website.deletion_timestamp is not None:
        return  # what it owned is garbage collected
    await ctx.children.apply(page(website), server(website))
    deployment = await ctx.client.get(dl.kinds.DEPLOYMENT, website.name, namespace=website.namespace)
    async with ctx.status(website) as status:
        status["readyReplicas"] = deployment.get("status", {}).get("readyReplicas", 0)


def page(website: dl.Resource) -> dict[str, Any]:
    """Return the ConfigMap with the page."""
    data = {"index.html": website["spec"]["html"]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": website.name}, "data": data}


def server(website: dl.Resource) -> dict[str, Any]:
    """Return the Deployment of nginx that serves the page."""
    labels = {"website": website.name}
    container = {
        "name": "nginx",
        "image": "nginxinc/nginx-unprivileged:1.29",
        "ports": [{"name": "http", "containerPort": 8080}],
        "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "page", "configMap": {"name": website.name}}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": website["spec"]["replicas"], "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": website.name}, "spec": spec}
