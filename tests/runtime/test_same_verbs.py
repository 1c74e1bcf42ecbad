"""Verbs that reconciles have because every client has them: caches and own writes hold for these, too."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.api import kinds
from deltaloop.api.resource_type import ResourceType
from deltaloop.errors import InternalServerError, NotFoundError
from tests.client.fake_transport import json_answer
from tests.runtime.test_reads import asking
from tests.runtime.test_writes import scripted, stored
from tests.runtime.worlds import CM, cm, held

FAILED = json_answer({"kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError"}, status=500)


async def test_list_verbs_read_cache_or_server_as_needed() -> None:
    async with asking() as (h, asked):
        for name in ("a", "b", "c"):
            await h.w.put(name, team="red")
        await h.catch_up()
        everything = await h.client.list(CM)
        assert ([obj.name for obj in everything], everything[1].name) == (["a", "b", "c"], "b")
        assert everything.resource_version == h.informer.resource_version
        assert len(await h.client.list(CM, options=dl.ListOptions(limit=1))) == 3, "the cache gives all at once"
        assert len(await h.client.list_all(CM, page_size=1, selector="a!=b")) == 3
        async with aclosing(h.client.iter_list(CM, page_size=1)) as items:
            assert [obj.name async for obj in items] == ["a", "b", "c"]
        [first, *_] = await h.client.list(CM, metadata_only=True)
        assert "data" not in first
        assert (first["kind"], first.name) == ("PartialObjectMetadata", "a")
        assert asked == []
        for options in (
            dl.ListOptions(field_selector="metadata.name=a"),
            dl.ListOptions(resource_version="0"),
            dl.ListOptions(drop_managed_fields=True),
        ):
            await h.client.list(CM, options=options)
        assert len(asked) == 3
        assert (await h.client.get(CM, "a", namespace="default")).name == "a"
        assert len(asked) == 3
        with pytest.raises(NotFoundError):
            await h.client.get(CM, "a", namespace="default", subresource="status")
        assert asked[3:] == ["/namespaces/default/configmaps/a/status"]


async def test_max_staleness_applies_to_derived_client_only() -> None:
    async with asking() as (h, asked):
        await h.w.put("a")
        await h.catch_up()
        await h.freeze()
        await h.catch_up()
        strict = h.client.with_max_staleness(0.5)
        assert [(await client.get(CM, "a")).name for client in (h.client, strict)] == ["a", "a"]
        assert asked == ["/namespaces/default/configmaps/a"]
        assert (await strict.with_max_staleness(None).get(CM, "a")).name == "a"
        assert len(asked) == 1
        await strict.patch(CM, "a", {"data": {"x": "y"}})
        assert h.client.writes == strict.writes
        assert [write.key for write in h.client.writes] == ["default/a"]


async def test_delete_returns_response_of_server() -> None:
    async with held() as h:
        made = await h.client.create(CM, cm("a"))
        held_back = await h.client.add_finalizer(CM, await h.client.create(CM, cm("b")), "x.dev/y")
        gone = await h.client.delete(CM, "a")
        assert gone is None or gone.uid == made.uid
        still_there = await h.client.delete(CM, "b")
        assert still_there is not None
        assert (still_there.uid, still_there.deletion_timestamp is None) == (held_back.uid, False)


async def test_objects_of_delete_collection_are_hidden_immediately() -> None:
    async with asking() as (h, asked):
        for name in ("a", "b"):
            await h.w.put(name, team="red")
        await h.w.client.create(CM, {"metadata": {"name": "held", "namespace": "default", "finalizers": ["x.dev/y"]}})
        await h.w.client.create(CM, {"metadata": {"name": "other", "namespace": "default", "labels": {"no": "t"}}})
        await h.catch_up()
        await h.freeze()
        taken = await h.client.delete_collection(CM, namespace="default", selector="!no")
        assert taken is not None
        assert {obj.name for obj in taken} == {"a", "b", "held"}
        assert await h.client.find(CM, "a") is None
        assert [obj.name for obj in await h.client.list(CM)] == ["held", "other"]
        assert (await h.client.get(CM, "held")).deletion_timestamp is not None
        assert sorted(write.key for write in h.client.writes) == ["default/a", "default/b", "default/held"]
        before = len(asked)
        await h.client.get(CM, "other")
        assert len(asked) == before, "it was not asked for: nothing happened to it"


async def test_objects_are_uncertain_after_failed_delete_collection() -> None:
    async with scripted() as (h, transport):
        await h.w.put("a")
        await h.catch_up()
        transport.answers.append(FAILED)
        with pytest.raises(InternalServerError):
            await h.client.delete_collection(CM, namespace="default")
        assert h.view.is_uncertain("default/a")
        assert h.client.writes == ()


async def test_scaled_object_is_read_from_server_until_it_changes() -> None:
    async with scripted() as (h, transport):
        (seen,) = [await h.w.put("a")]
        await h.catch_up()
        scale: dict[str, Any] = {**stored(uid=seen.uid, version=seen.resource_version), "kind": "Scale"}
        transport.answers.append(json_answer(scale))
        await h.client.scale(CM, "a", 3)
        assert not h.view.is_uncertain("default/a"), "it has the same version: nothing was changed"
        scale["metadata"]["resourceVersion"] = "90000"
        transport.answers.append(json_answer(scale))
        assert (await h.client.scale(CM, "a", 3)).kind == "Scale"
        assert h.view.is_uncertain("default/a")
        transport.answers.append(json_answer(stored(uid=seen.uid, version="90000")))
        assert (await h.client.get(CM, "a")).resource_version == "90000"
        assert not h.view.is_uncertain("default/a")


async def test_evicted_pod_is_read_from_server() -> None:
    pod: dict[str, Any] = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    async with held(kind=kinds.POD) as h:
        await h.w.client.create(kinds.POD, pod)
        await h.catch_up()
        await h.freeze()
        await h.client.evict("p")
        assert await h.client.find(kinds.POD, "p") is None


async def test_finalizer_conflict_is_resolved_with_current_object() -> None:
    async with held() as h:
        await h.w.put("a")
        await h.catch_up()
        await h.freeze()
        await h.w.client.patch(CM, "a", {"data": {"by": "another"}}, namespace="default")
        marked = await h.client.add_finalizer(CM, await h.client.get(CM, "a"), "x.dev/y")
        assert (marked["data"], marked.finalizers) == ({"by": "another"}, ("x.dev/y",))


async def test_create_or_update_accepts_and_returns_model() -> None:
    typed = ResourceType[dict[str, Any]](CM.group, CM.version, CM.kind, CM.plural, model=dict)
    async with held() as h:
        for client in (h.client, h.w.client):
            what, made = await client.create_or_update(typed, "a", lambda fields: fields.update(data={"x": "y"}))
            assert made["data"] == {"x": "y"}
            marked = await client.add_finalizer(typed, made, "x.dev/y")
            assert marked["metadata"]["finalizers"] == ["x.dev/y"]
            assert await client.add_finalizer(typed, marked, "x.dev/y") == marked
            freed = await client.remove_finalizer(typed, marked, "x.dev/y")
            assert freed is not None
            assert "finalizers" not in freed["metadata"]
            await client.delete(typed, "a")
            assert await client.find(typed, "a") is None
            assert what is dl.OperationResult.CREATED
