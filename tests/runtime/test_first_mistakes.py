"""Mistakes of a first program: each gives one clear error that names the line, and the key is parked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

import deltaloop as dl
from deltaloop._internal.tracebacks import own_frames
from deltaloop.errors import (
    InvalidArgumentError,
    InvalidChildrenError,
    InvalidResultError,
    InvalidSelectorError,
    MalformedObjectError,
    UnknownResourceError,
    WaitOnLoopError,
)
from deltaloop.testing import Harness
from deltaloop.workqueue import RateLimitingQueue

MAPS = dl.kinds.CONFIG_MAP
Reconcile = Callable[[dl.Request, dl.Context], Awaitable[Any]]


@dl.custom_resource(group="example.com", version="v1")
class Paint(msgspec.Struct, kw_only=True):
    metadata: dl.ObjectMeta


async def with_status(request: dl.Request, ctx: dl.Context) -> None:
    with ctx.status(await ctx.client.get(MAPS, request.name)):
        pass


async def waits(request: dl.Request, ctx: dl.Context) -> None:
    ctx.wait(ctx.client.get(MAPS, request.name))


async def old_version(_: dl.Request, ctx: dl.Context) -> None:
    await ctx.children.apply({"apiVersion": "extensions/v1beta1", "kind": "Deployment", "metadata": {"name": "a"}})


async def old_undeclared(_: dl.Request, ctx: dl.Context) -> None:
    await ctx.children.apply({"apiVersion": "batch/v1beta1", "kind": "CronJob", "metadata": {"name": "a"}})


async def no_child(_: dl.Request, ctx: dl.Context) -> None:
    await ctx.children.apply(None)


async def class_as_child(_: dl.Request, ctx: dl.Context) -> None:
    await ctx.children.apply(Paint)


async def nameless_child(_: dl.Request, ctx: dl.Context) -> None:
    await ctx.children.apply({"metadata": {"name": "a"}})


async def returns_bool(_: dl.Request, __: dl.Context) -> Any:
    return True


async def returns_dict(_: dl.Request, __: dl.Context) -> Any:
    return {"requeue_after": 5}


async def typo_in_kind(_: dl.Request, ctx: dl.Context) -> None:
    await ctx.client.get("Deplyment", "a")


async def bad_selector(_: dl.Request, ctx: dl.Context) -> None:
    await ctx.client.list(MAPS, selector="a=b=c")


async def namespace_of_node(_: dl.Request, ctx: dl.Context) -> None:
    await ctx.client.get(dl.kinds.NODE, "a", namespace="default")


async def status_of_none(_: dl.Request, ctx: dl.Context) -> None:
    async with ctx.status(None):
        pass


async def creates_class(_: dl.Request, ctx: dl.Context) -> None:
    given: Any = Paint
    await ctx.client.create(Paint, given)


async def creates_none(_: dl.Request, ctx: dl.Context) -> None:
    nothing: Any = None
    await ctx.client.create(MAPS, nothing)


async def parked_after(harness: Harness, reconcile: Reconcile, **declared: Any) -> list[BaseException | None]:
    replica = await harness.start(dl.controller(MAPS, name="maps", **declared)(reconcile))
    await harness.client.create(MAPS, {"metadata": {"name": "a"}})
    await harness.advance(30)
    (loop,) = replica.manager.loops
    found: RateLimitingQueue[str] = loop.queue
    parked = [letter.error for letter in found.dead_letters()]
    await replica.crash()
    return parked


@pytest.mark.parametrize(
    ("mistake", "error", "field", "hint"),
    [
        (with_status, WaitOnLoopError, {"call": "with ctx.status(...)"}, "async with"),
        (waits, WaitOnLoopError, {"call": "ctx.wait(...)"}, "Await"),
        (old_version, InvalidChildrenError, {}, "Write apps/v1/Deployment"),
        (old_undeclared, InvalidChildrenError, {}, "'batch/v1/CronJob'"),
        (no_child, InvalidChildrenError, {}, "got a NoneType"),
        (class_as_child, InvalidChildrenError, {}, "got the class Paint"),
        (nameless_child, InvalidChildrenError, {}, "apiVersion and kind"),
        (returns_bool, InvalidResultError, {"returned": "bool"}, "Result"),
        (returns_dict, InvalidResultError, {"returned": "dict"}, "Result"),
        (typo_in_kind, UnknownResourceError, {"name": "Deplyment"}, "apps/v1/Deployment"),
        (bad_selector, InvalidSelectorError, {}, "found '='"),
        (namespace_of_node, InvalidArgumentError, {}, "v1/Node"),
        (status_of_none, InvalidArgumentError, {}, "got None"),
        (creates_class, MalformedObjectError, {"given": True}, "Write Paint(...)"),
        (creates_none, MalformedObjectError, {"given": True}, "NoneType"),
    ],
)
async def test_programming_error_parks_key_with_source_location(
    mistake: Reconcile, error: type[Exception], field: dict[str, object], hint: str, deltaloop_harness: Harness
) -> None:
    writes = [MAPS, "example.com/v1/Paint"]
    (found,) = await parked_after(deltaloop_harness, mistake, children=["apps/v1/Deployment"], writes=writes)
    assert type(found) is error
    assert {name: getattr(found, name) for name in field} == field
    assert hint in str(found)
    assert found is not None
    (place,) = own_frames(found)
    assert place.startswith(__file__)
    assert place.endswith(f" in {getattr(mistake, '__name__', '')}")


async def test_undeclared_children_park_key(deltaloop_harness: Harness) -> None:
    (found,) = await parked_after(deltaloop_harness, no_child)
    assert type(found) is InvalidChildrenError
    assert "children=[...]" in str(found)


async def test_declared_kind_can_be_installed_later(deltaloop_harness: Harness) -> None:
    @dl.controller(MAPS, writes=["example.com/v1/Paint"])
    async def creates(request: dl.Request, ctx: dl.Context) -> None:
        if request.name == "a":
            await ctx.client.apply("paints.example.com", {"metadata": {"name": "a"}}, namespace="default")

    await deltaloop_harness.start(creates)
    await deltaloop_harness.client.create(MAPS, {"metadata": {"name": "a"}})
    await deltaloop_harness.advance(30)
    await deltaloop_harness.install(Paint)
    await deltaloop_harness.advance(60)
    await deltaloop_harness.client.get(Paint, "a", namespace="default")


async def test_shared_error_parks_only_controller_without_declaration(deltaloop_harness: Harness) -> None:
    shared = UnknownResourceError("of one discovery", name="example.com/v1/Paint")

    async def raises(_: dl.Request, __: dl.Context) -> None:
        raise shared

    declares = dl.controller(MAPS, name="declares", writes=["example.com/v1/Paint"])(raises)
    replica = await deltaloop_harness.start(dl.controller(MAPS, name="maps")(raises), declares)
    await deltaloop_harness.client.create(MAPS, {"metadata": {"name": "a"}})
    await deltaloop_harness.advance(5)
    assert [len(loop.queue.dead_letters()) for loop in replica.manager.loops] == [1, 0]
    await replica.crash()


async def test_settled_raises_programming_error(deltaloop_harness: Harness) -> None:
    await deltaloop_harness.start(dl.controller(MAPS)(bad_selector))
    await deltaloop_harness.client.create(MAPS, {"metadata": {"name": "a"}})
    with pytest.raises(InvalidSelectorError):
        await deltaloop_harness.settled()


@pytest.mark.parametrize("cached", [False, True])
async def test_mapper_that_returns_string_is_logged_with_location(
    cached: bool, deltaloop_harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    def wrong(obj: dl.Resource) -> Any:
        return obj.name

    def wrong_with_caches(obj: dl.Resource, _: dl.Caches) -> Any:
        return obj.name

    to = wrong_with_caches if cached else wrong
    made = dl.controller(MAPS, name="maps", watches=[dl.Watch(dl.kinds.SECRET, to=to)])(returns_nothing)
    await deltaloop_harness.start(made)
    await deltaloop_harness.client.create(dl.kinds.SECRET, {"metadata": {"name": "a"}})
    await deltaloop_harness.settled()
    records = [vars(record) for record in caplog.records]
    places: list[list[str]] = [each["where"] for each in records if "InvalidRequestsError" in each.get("raised", "")]
    assert places
    for (place,) in places:
        assert place.startswith(__file__)
        assert place.endswith(f"{to.__name__}")


async def returns_nothing(_: dl.Request, __: dl.Context) -> None: ...
