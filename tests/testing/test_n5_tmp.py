from __future__ import annotations
import msgspec, pytest, asyncio
import deltaloop as dl
from deltaloop.testing import Harness, crash_at_every_write

class Spec(msgspec.Struct):
    colour: str = "red"
class Status(msgspec.Struct):
    coats: int = 0

@dl.custom_resource(group="example.com", version="v1", storage=True)
class Paint(msgspec.Struct, kw_only=True):
    metadata: dl.ObjectMeta
    spec: Spec
    status: Status | None = None

class OldSpec(msgspec.Struct):
    color: str = "red"
@dl.custom_resource(group="example.com", version="v1alpha1", kind="Paint", storage=False)
class OldPaint(msgspec.Struct, kw_only=True):
    metadata: dl.ObjectMeta
    spec: OldSpec
    status: Status | None = None

@dl.convert(OldPaint, Paint)
def up(old: OldPaint) -> Paint:
    return Paint(metadata=old.metadata, spec=Spec(old.spec.color), status=old.status)
@dl.convert(Paint, OldPaint)
def down(new: Paint) -> OldPaint:
    return OldPaint(metadata=new.metadata, spec=OldSpec(new.spec.colour), status=new.status)

@dl.mutate(Paint)
def darken(paint: Paint) -> None:
    paint.spec.colour = "dark"

@dl.validate("v1/ConfigMap")
def check(obj) -> None:
    return None

@dl.controller(Paint, children=[dl.kinds.CONFIG_MAP], finalizer="example.com/paint")
async def reconcile(request, ctx):
    paint = await ctx.client.find(Paint, request.name, namespace=request.namespace)
    if paint is not None:
        await ctx.children.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": request.name}, "data": {"c": paint.spec.colour}})
        async with ctx.status(paint) as status:
            status["coats"] = 2

@reconcile.cleanup
async def clean(request, ctx, *args):
    pass

async def scenario(harness: Harness) -> None:
    @harness.always
    async def always(client):
        for p in await client.list(Paint, namespace="default"):
            assert p.spec.colour == "dark"
        await client.list(OldPaint, namespace="default")
    await harness.install(dl.crd_of(Paint, OldPaint))
    await harness.start(reconcile, webhooks=[darken, check, up, down])
    await harness.client.create(OldPaint, {"metadata": {"name": "a"}, "spec": {}})
    await harness.settled()
    await harness.client.patch(OldPaint, "a", {"spec": {"color": "blue"}})
    await harness.settled()
    await harness.client.delete(Paint, "a")
    await harness.settled()

async def test_it():
    print(await crash_at_every_write(scenario))
