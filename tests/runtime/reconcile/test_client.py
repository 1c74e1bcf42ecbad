"""The client of reconciles: caches, own writes, helpers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import AlreadyExistsError, ConflictError, NotFoundError
from deltaloop.cache import InformerFactory
from deltaloop.client import (
    Client,
    DeleteOptions,
    HttpRequest,
    HttpResponse,
    HttpTransport,
    OperationResult,
    StreamResponse,
    Transport,
    WriteOptions,
)
from deltaloop.errors import AlreadyOwnedError, RequestTimeoutError
from deltaloop.runtime import (
    set_controller_reference,
    set_owner_reference,
)
from deltaloop.runtime.objects.cached_views import CacheView, Views
from deltaloop.runtime.program.wiring import cached_form
from tests.having import having
from tests.runtime.worlds import CM, Held, client_of_reconcile, cm, held, now, world, writer


async def test_get_list_and_index_show_own_writes_before_cache() -> None:
    async with held() as h:
        created = await h.client.create(CM, cm("a", team="red"))
        assert h.informer.indexer.get_by_key("default/a") is None
        assert await h.client.get(CM, "a") == created
        assert (await h.client.list(CM, namespace="default", selector="x!=y")).items == (created,)
        assert await h.client.by_index(CM, "team", "red") == [created]
        fields = created.edit()
        fields["data"]["team"] = "blue"
        updated = await h.client.update(CM, fields)
        assert await h.client.by_index(CM, "team", "red") == []
        assert await h.client.by_index(CM, "team", "blue") == [updated]
        await h.client.delete(CM, "a")
        assert await h.client.find(CM, "a") is None
        assert len(await h.client.list(CM)) == 0
        assert await h.client.by_index(CM, "team", "blue") == []
        with pytest.raises(NotFoundError, match='configmaps "a" not found'):
            await h.client.get(CM, "a")
        await h.catch_up()
        assert await h.client.find(CM, "a") is None
        assert len(h.view.overlay) == 0
        assert writer(h.attribution, created.uid, updated.resource_version) == ("maps", 41)
        assert writer(h.attribution, created.uid, "") == ("maps", 41)


@pytest.mark.parametrize("keep", [False, True])
async def test_own_writes_have_the_form_of_cached_objects(keep: bool) -> None:
    def marked(obj: Resource) -> Resource:
        fields = obj.to_dict()
        fields["data"] = {"seen": "yes"}
        return Resource.from_dict(fields, CM)

    options = dl.InformerOptions(keep_managed_fields=keep, transform=marked)
    async with world() as w, InformerFactory(w.client, options=options) as factory:
        informer = factory.informer(CM)
        await factory.wait_for_sync()
        view = CacheView(informer, namespace=None, transform=cached_form(options), clock=now)
        views = Views()
        views.add(CM, view)
        client = client_of_reconcile(w.client, views, "maps")
        created = await client.create(CM, cm("a", team="red"))
        assert "managedFields" in created["metadata"]
        at_once = await client.get(CM, "a")
        await informer.wait_for_resource_version(created.resource_version)
        later = informer.indexer.get_by_key("default/a")
        assert later is not None
        assert ("managedFields" in at_once["metadata"]) is keep
        assert at_once.to_dict() == later.to_dict()


async def test_object_with_finalizer_is_visible_after_delete() -> None:
    async with held() as h:
        await h.client.create(CM, {"metadata": {"name": "a", "namespace": "default", "finalizers": ["x.dev/y"]}})
        await h.client.delete(CM, "a")
        marked = await h.client.get(CM, "a")
        assert marked.deletion_timestamp is not None
        assert await h.client.remove_finalizer(CM, marked, "x.dev/y") is not None
        await h.catch_up()
        assert await h.client.find(CM, "a") is None


async def test_delete_is_limited_to_object_that_was_read() -> None:
    async with held() as h:
        await h.client.create(CM, cm("a"))
        await h.client.delete(CM, "a", options=DeleteOptions(dry_run=True))
        await h.client.get(CM, "a")
        await h.freeze()
        await h.w.client.delete(CM, "a", namespace="default")
        await h.w.client.create(CM, cm("a", second="yes"))
        with pytest.raises(ConflictError):
            await h.client.delete(CM, "a")
        assert (await h.w.data_of("a")) == {"second": "yes"}


async def test_delete_with_explicit_uid_is_limited_to_that_object() -> None:
    async with held() as h:
        seen = await h.client.create(CM, cm("a"))
        with pytest.raises(ConflictError):
            await h.client.delete(CM, "a", options=DeleteOptions(uid="another"))
        assert (await h.w.client.get(CM, "a", namespace="default")).uid == seen.uid
        await h.client.delete(CM, "a", options=DeleteOptions(uid=seen.uid))
        assert await h.client.find(CM, "a") is None


async def test_dry_run_leaves_no_own_write() -> None:
    async with held() as h:
        await h.client.create(CM, cm("a"), options=WriteOptions(dry_run=True))
        assert await h.client.find(CM, "a") is None
        assert len(h.attribution) == 0


class Losing:
    """Carries writes out, or not, and loses the answers."""

    def __init__(self, below: Transport, *, carry_out: bool, error: Callable[[], BaseException]) -> None:
        self.below = below
        self.carry_out = carry_out
        self.error = error
        self.loses = True

    async def request(self, request: HttpRequest) -> HttpResponse:
        if request.method == "GET" or not self.loses:
            return await self.below.request(request)
        if self.carry_out:
            await self.below.request(request)
        raise self.error()

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[StreamResponse]:
        return self.below.stream(request)

    async def close(self) -> None:
        await self.below.close()


def no_answer() -> BaseException:
    return RequestTimeoutError("no answer", method="PUT", path="/")


@asynccontextmanager
async def losing(
    *, carry_out: bool, error: Callable[[], BaseException] = no_answer
) -> AsyncGenerator[tuple[Held, Losing]]:
    transports: list[Losing] = []

    def over(client: Client) -> Client:
        transports.append(Losing(HttpTransport(client.config), carry_out=carry_out, error=error))
        return Client(client.config, transport=transports[0])

    async with held(over) as h, h.client.live:
        yield h, transports[0]


@pytest.mark.parametrize("carry_out", [True, False])
@pytest.mark.parametrize(
    "error", [lambda: RequestTimeoutError("no answer", method="PUT", path="/"), asyncio.CancelledError]
)
async def test_object_is_read_from_server_after_write_without_response(
    carry_out: bool, error: Callable[[], BaseException]
) -> None:
    async with losing(carry_out=carry_out, error=error) as (h, _):
        before = await h.w.put("a", team="red")
        await h.catch_up()
        fields = before.edit()
        fields["data"]["team"] = "blue"
        with pytest.raises((RequestTimeoutError, asyncio.CancelledError)):
            await h.client.update(CM, fields)
        team = "blue" if carry_out else "red"
        assert [one.name for one in await h.client.by_index(CM, "team", team)] == ["a"]
        assert (await h.client.get(CM, "a"))["data"]["team"] == team
        assert h.view.is_uncertain("default/a") is not carry_out  # the same version proves nothing
        with pytest.raises((RequestTimeoutError, asyncio.CancelledError)):
            await h.client.create(CM, cm("b"))
        assert [one.name for one in await h.client.list(CM)] == (["a", "b"] if carry_out else ["a"])
        with pytest.raises((RequestTimeoutError, asyncio.CancelledError)):
            await h.client.delete(CM, "a")
        assert (await h.client.find(CM, "a") is None) is carry_out


async def test_state_before_next_write_is_unknown_after_write_without_response() -> None:
    async with losing(carry_out=True) as (h, transport):
        before = await h.w.put("a", team="red")
        await h.catch_up()
        fields = before.edit()
        fields["data"]["team"] = "blue"
        with pytest.raises(RequestTimeoutError):
            await h.client.update(CM, fields)
        transport.loses = False
        await h.client.patch(CM, "a", {"data": {"team": "blue"}})
        (write,) = h.client.writes
        assert write.before is None, "the cache has what was there before the lost write"
        assert not write.is_known_change


@pytest.mark.parametrize("carry_out", [True, False])
async def test_lists_are_read_from_server_after_lost_create_of_generated_name(
    carry_out: bool,
) -> None:
    async with losing(carry_out=carry_out) as (h, _):
        with pytest.raises(RequestTimeoutError):
            await h.client.create(CM, {"metadata": {"generateName": "made-", "namespace": "default"}})
        assert len(await h.client.list(CM, namespace="default")) == int(carry_out)
        assert len(await h.client.list(CM)) == int(carry_out)
        assert h.view.is_uncertain("default/made-x")
        assert not h.view.is_uncertain("default/a")
        assert not h.view.has_unknown_names("other")
        await asyncio.sleep(60.0)
        assert not h.view.has_unknown_names(None)
        assert not h.view.is_uncertain("default/made-x")


async def test_unsent_write_leaves_cached_reads() -> None:
    def refused() -> BaseException:
        return RequestTimeoutError("refused", method="PUT", path="/", sent=False)

    async with losing(carry_out=False, error=refused) as (h, _):
        with pytest.raises(RequestTimeoutError):
            await h.client.create(CM, cm("a"))
        assert not h.view.is_uncertain("default/a")


async def test_reads_can_require_freshness_and_uncached_kinds_are_read_live() -> None:
    async with held() as h:
        await h.w.put("a", x="before")
        await h.catch_up()
        await h.freeze()
        await h.w.client.patch(CM, "a", {"data": {"x": "y"}}, namespace="default")
        assert (await h.client.get(CM, "a"))["data"] == {"x": "before"}  # the event does not come
        await asyncio.sleep(20.0)
        assert h.view.is_fresh(60.0)
        assert not h.view.is_fresh(10.0)
        assert (await h.client.with_max_staleness(10.0).get(CM, "a"))["data"] == {"x": "y"}
        assert [one.name for one in await h.client.with_max_staleness(0.0).list(CM)] == ["a"]
        assert await h.client.with_max_staleness(0.0).by_index(CM, "team", "red") == []
        await h.client.create(kinds.SECRET, {"metadata": {"name": "s", "namespace": "default"}})
        assert (await h.client.get("v1/Secret", "s")).name == "s"
        assert [one.name for one in await h.client.list("v1/Secret", namespace="default")] == ["s"]
        with pytest.raises(InvalidArgumentError, check=having(argument="index")):
            await h.client.by_index("v1/Secret", "team", "red")


async def test_typed_kinds_are_returned_as_their_class() -> None:
    typed = ResourceType[dict[str, Any]](CM.group, CM.version, CM.kind, CM.plural, model=dict)
    async with held() as h:
        created = await h.client.create(typed, cm("a", team="red"))
        assert created["data"] == {"team": "red"}
        assert (await h.client.get(typed, "a"))["data"] == {"team": "red"}
        assert [type(one) for one in await h.client.list(typed)] == [dict]


async def test_create_or_update_sends_only_necessary_writes() -> None:
    async with held() as h:

        def wanted(fields: dict[str, Any]) -> None:
            fields.setdefault("data", {})["team"] = "red"

        what, stored = await h.client.create_or_update(CM, "a", wanted)
        assert (what, dict(stored["data"])) == (OperationResult.CREATED, {"team": "red"})
        assert (await h.client.create_or_update(CM, "a", wanted))[0] is OperationResult.UNCHANGED
        what, stored = await h.client.create_or_update(CM, "a", lambda fields: fields["data"].update(team="blue"))
        assert (what, dict(stored["data"])) == (OperationResult.UPDATED, {"team": "blue"})
        with pytest.raises(InvalidArgumentError, check=having(argument="change")):
            await h.client.create_or_update(CM, "a", lambda fields: fields["metadata"].update(name="b"))
        await h.w.client.patch(CM, "a", {"data": {"by": "another"}}, namespace="default")
        with pytest.raises(ConflictError):
            await h.client.create_or_update(CM, "a", wanted)
        await h.w.put("c")
        with pytest.raises(AlreadyExistsError):
            await h.client.create_or_update(CM, "c", wanted)


async def test_finalizers_are_changed_despite_concurrent_writes() -> None:
    async with held() as h:
        stale = await h.client.create(CM, cm("a"))
        await h.w.client.patch(CM, "a", {"data": {"by": "another"}}, namespace="default")
        with_it = await h.client.add_finalizer(CM, stale, "x.dev/y")
        assert with_it.finalizers == ("x.dev/y",)
        assert with_it["data"] == {"by": "another"}
        assert await h.client.add_finalizer(CM, with_it, "x.dev/y") == with_it
        without = await h.client.remove_finalizer(CM, stale, "x.dev/y")
        assert without is not None
        assert without.finalizers == ()
        await h.w.client.delete(CM, "a", namespace="default")
        assert await h.client.remove_finalizer(CM, with_it, "x.dev/y") is None
        successor = await h.w.put("a")
        with pytest.raises(NotFoundError):
            await h.client.add_finalizer(CM, stale, "x.dev/y")
        assert successor.uid != stale.uid


async def test_apply_and_patch_are_visible_immediately() -> None:
    async with held() as h:
        applied = await h.client.apply(CM, {"metadata": {"name": "a", "namespace": "default"}, "data": {"x": "1"}})
        assert await h.client.get(CM, "a") == applied
        patched = await h.client.patch(CM, "a", {"data": {"x": "2"}})
        assert (await h.client.get(CM, "a")).resource_version == patched.resource_version


def owner(name: str = "owner", uid: str = "1", namespace: str = "default") -> Resource:
    return Resource.from_dict({"metadata": {"name": name, "namespace": namespace, "uid": uid}}, CM)


def test_second_controller_reference_is_rejected() -> None:
    fields: dict[str, Any] = cm("a")
    set_controller_reference(fields, owner())
    set_controller_reference(fields, owner())
    assert [reference["uid"] for reference in fields["metadata"]["ownerReferences"]] == ["1"]
    set_owner_reference(fields, owner("second", "2"))
    assert [reference.get("controller", False) for reference in fields["metadata"]["ownerReferences"]] == [True, False]
    with pytest.raises(
        AlreadyOwnedError, match="object default/a is already owned by another ConfigMap controller owner"
    ) as caught:
        set_controller_reference(fields, owner("third", "3"))
    assert caught.value.owner.uid == "1"


def test_owner_in_other_namespace_or_without_uid_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="metadata.namespace")):
        set_controller_reference(cm("a"), owner(namespace="other"))
    with pytest.raises(InvalidArgumentError, check=having(argument="metadata.namespace")):
        set_owner_reference({"metadata": {"name": "cluster-wide"}}, owner())
    with pytest.raises(InvalidArgumentError, check=having(argument="owner")):
        set_owner_reference(cm("a"), owner(uid=""))
    with pytest.raises(InvalidArgumentError, check=having(argument="object")):
        set_owner_reference({"metadata": ()}, owner())


def test_kind_of_owner_can_be_name() -> None:
    fields: dict[str, Any] = cm("a")
    set_controller_reference(fields, owner(), "samples.deltaloop.dev/v1alpha1/Foo")
    [reference] = fields["metadata"]["ownerReferences"]
    assert (reference["apiVersion"], reference["kind"], reference["name"]) == (
        "samples.deltaloop.dev/v1alpha1",
        "Foo",
        "owner",
    )
    with pytest.raises(InvalidArgumentError, check=having(argument="resource_type")):
        set_owner_reference(fields, owner(), "Foo")
