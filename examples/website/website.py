"""Serves a page for each Website: a ConfigMap holds it, a Deployment of nginx serves it."""

from __future__ import annotations

from typing import Any

import deltaloop as dl

WEBSITE = dl.ResourceType[dl.Resource]("example.com", "v1", "Website", "websites")


@dl.controller(
    WEBSITE,
    owns=[dl.kinds.CONFIG_MAP, dl.kinds.DEPLOYMENT],
    writes=[
        dl.Access(dl.kinds.CONFIG_MAP, verbs=("create", "update")),
        dl.Access(dl.kinds.DEPLOYMENT, verbs=("create", "update")),
        dl.Access(WEBSITE, verbs=("patch",), subresource="status"),
    ],
    workers=4,
    timeout=30.0,
)
async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
    """Make what one Website asks for come true."""
    website = await ctx.client.find(WEBSITE, request.name, namespace=request.namespace)
    if website is None or website.deletion_timestamp is not None:
        return  # what it owned is garbage collected

    def page(config_map: dict[str, Any]) -> None:
        dl.set_controller_reference(config_map, website, WEBSITE)
        config_map["data"] = {"index.html": website["spec"]["html"]}

    def server(deployment: dict[str, Any]) -> None:
        dl.set_controller_reference(deployment, website, WEBSITE)
        # What exists keeps the fields that the API server or a person has set; only the replicas are ours for good.
        spec = deployment.setdefault("spec", nginx(website.name))
        spec["replicas"] = website["spec"]["replicas"]

    await ctx.client.create_or_update(dl.kinds.CONFIG_MAP, website.name, page, namespace=website.namespace)
    _, deployment = await ctx.client.create_or_update(
        dl.kinds.DEPLOYMENT, website.name, server, namespace=website.namespace
    )
    async with ctx.status(website) as status:
        status["readyReplicas"] = deployment.get("status", {}).get("readyReplicas", 0)


def nginx(name: str) -> dict[str, Any]:
    """Return the spec of a Deployment that serves the ConfigMap of that name."""
    labels = {"website": name}
    container = {
        "name": "nginx",
        "image": "nginxinc/nginx-unprivileged:1.29",
        "ports": [{"name": "http", "containerPort": 8080}],
        "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "page", "configMap": {"name": name}}]}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
