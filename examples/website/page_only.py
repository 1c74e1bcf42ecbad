"""Keep a ConfigMap with the page of each Website, for comparisons with other libraries."""

from __future__ import annotations

from typing import Any

import deltaloop as dl

WEBSITE = dl.ResourceType[dl.Resource]("example.com", "v1", "Website", "websites")


@dl.controller(WEBSITE, owns=[dl.kinds.CONFIG_MAP], writes=[dl.kinds.CONFIG_MAP, WEBSITE], workers=4)
async def website(request: dl.Request, ctx: dl.Context) -> None:
    """Create or update the ConfigMap of one Website."""
    found = await ctx.client.find(WEBSITE, request.name)
    if found is None:
        return  # its ConfigMap is garbage collected

    def page(config_map: dict[str, Any]) -> None:
        config_map["data"] = {"index.html": found["spec"]["html"]}
        dl.set_controller_reference(config_map, found, WEBSITE)

    await ctx.client.create_or_update(dl.kinds.CONFIG_MAP, found.name, page, namespace=found.namespace)
    async with ctx.status(found) as status:
        status["page"] = found.name
