"""The operator on deltaloop, in the style of docs/how-to/children.md and docs/how-to/status.md."""

from __future__ import annotations

import asyncio
from typing import Any

import deltaloop as dl
from lab.bench.controller.objects import GROUP, VERSION

GREETING = dl.ResourceType[dl.Resource](GROUP, VERSION, "Greeting", "greetings")


@dl.controller(GREETING, owns=[dl.kinds.CONFIG_MAP], writes=[dl.kinds.CONFIG_MAP], workers=16)
async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
    """Make what one Greeting asks for come true."""
    greeting = await ctx.client.find(GREETING, request.name, namespace=request.namespace)
    if greeting is None:
        return
    message = greeting["spec"]["message"]

    def wanted(config_map: dict[str, Any]) -> None:
        dl.set_controller_reference(config_map, greeting, GREETING)
        config_map["data"] = {"message": message}

    await ctx.client.create_or_update(dl.kinds.CONFIG_MAP, greeting.name, wanted, namespace=greeting.namespace)
    async with ctx.status(greeting) as status:
        status["message"] = message


async def main() -> None:
    """Run until the process is told to end."""
    async with dl.connect() as client:
        await dl.Manager(client, [reconcile]).run()


if __name__ == "__main__":
    asyncio.run(main())
