import msgspec

import deltaloop as dl


class Spec(msgspec.Struct):
    text: str


class Status(msgspec.Struct):
    length: int = 0


@dl.custom_resource(group="example.com", version="v1")
class Greeting(msgspec.Struct):
    metadata: dl.ObjectMeta
    spec: Spec
    status: Status | None = None


@dl.controller(Greeting, children=["v1/ConfigMap"])
async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
    greeting = await ctx.client.find(Greeting, request.name)
    if greeting is None:
        return
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": greeting.metadata.name},
        "data": {"text": greeting.spec.text},
    }
    await ctx.children.apply(config_map)
    async with ctx.status(greeting) as status:
        status["length"] = len(greeting.spec.text)
