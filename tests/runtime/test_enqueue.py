"""Handlers that queue keys with triggers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import pytest

from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.runtime import Context, Request, Watch, controller
from deltaloop.runtime.enqueue import enqueue, enqueue_owner
from tests.runtime.worlds import until, world

FOO: ResourceType[Resource] = ResourceType("samples.deltaloop.dev", "v1alpha1", "Foo", "foos")


class Keys:
    """Takes keys as a queue does, and keeps them."""

    def __init__(self) -> None:
        self.added: list[tuple[str, str, float]] = []

    def add(self, item: str, *, trigger: object | None = None) -> None:
        assert isinstance(trigger, Trigger)
        self.added.append((item, f"{trigger.source} {trigger.verb}", trigger.at))


def obj(version: str) -> Resource:
    owner = {"apiVersion": FOO.api_version, "kind": "Foo", "name": "foo", "uid": "u", "controller": True}
    metadata = {"name": "web", "namespace": "prod", "resourceVersion": version, "ownerReferences": [owner]}
    return Resource.from_dict({"metadata": metadata})


async def test_every_kind_of_change_is_queued_with_its_verb_and_the_loops_time() -> None:
    keys = Keys()
    handler = enqueue(keys)
    handler.on_add(obj("1"), is_in_initial_list=True)
    handler.on_add(obj("1"), is_in_initial_list=False)
    handler.on_update(obj("1"), obj("2"))
    handler.on_delete(obj("2"), final_state_known=True)
    handler.on_delete(obj("2"), final_state_known=False)
    assert keys.added == [
        ("prod/web", "informer initial", 0.0),
        ("prod/web", "informer add", 0.0),
        ("prod/web", "informer update", 0.0),
        ("prod/web", "informer delete", 0.0),
        ("prod/web", "informer delete-missed", 0.0),
    ]


async def test_an_owner_is_queued_for_what_happens_to_what_it_owns() -> None:
    keys = Keys()
    enqueue_owner(keys, FOO).on_delete(obj("2"), final_state_known=True)
    assert keys.added == [("prod/foo", "owner delete", 0.0)]


class Mapping:
    """A mapper that raises so many times, and then names the object and its version."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.asked: list[str] = []

    def __call__(self, obj: Resource) -> Iterable[str]:
        self.asked.append(obj.resource_version)
        if self.failures:
            self.failures -= 1
            raise KeyError("team")
        return [f"{obj.name}-{obj.resource_version}"]


def test_a_mapper_that_raises_in_a_thread_without_a_loop_raises_there() -> None:
    keys = Keys()
    handler = enqueue(keys, mapper=Mapping(1))
    with pytest.raises(KeyError, match="team"):
        handler.on_add(obj("1"), is_in_initial_list=False)
    handler.on_update(obj("1"), obj("2"))
    assert [key for key, _, _ in keys.added] == ["web-1", "web-2"]


async def test_a_change_whose_mapper_raises_is_tried_again_as_a_key_is(caplog: pytest.LogCaptureFixture) -> None:
    keys = Keys()
    handler = enqueue(keys, mapper=Mapping(4), source="maps")
    handler.on_update(obj("1"), obj("2"))
    await asyncio.sleep(60.0)
    assert [(key, what) for key, what, _ in keys.added] == [("web-1", "maps update"), ("web-2", "maps update")]
    tried = [(record.__dict__["key"], record.__dict__["queue"], record.__dict__["delay"]) for record in caplog.records]
    assert tried == [("prod/web", "failed mappings of maps", delay) for delay in (0.005, 0.01, 0.02)]
    assert all(record.levelno == logging.WARNING for record in caplog.records)
    assert caplog.records[0].__dict__["raised"].startswith("KeyError")
    handler.close()


async def test_newer_changes_of_an_object_are_mapped_with_those_that_wait() -> None:
    keys = Keys()
    mapping = Mapping(15)
    handler = enqueue(keys, mapper=mapping)
    handler.on_add(obj("1"), is_in_initial_list=False)
    await asyncio.sleep(0.1)
    asked = len(mapping.asked)
    handler.on_update(obj("1"), obj("2"))
    assert len(mapping.asked) == asked, "in order: the queue asks it, and at once"
    await asyncio.sleep(0.0)
    await asyncio.sleep(0.0)
    assert len(mapping.asked) == asked + 1
    handler.on_delete(obj("3"), final_state_known=True)
    mapping.failures = 0
    await asyncio.sleep(0.001)
    assert [(key, what.split()[1]) for key, what, _ in keys.added] == [
        ("web-1", "add"),
        ("web-1", "update"),
        ("web-2", "update"),
        ("web-3", "delete"),
    ]
    keys.added.clear()
    await asyncio.sleep(2_000.0)
    assert keys.added == [], "nothing is mapped twice"
    handler.close()


async def test_closed_it_tries_nothing_again() -> None:
    keys = Keys()
    mapping = Mapping(100)
    handler = enqueue(keys, mapper=mapping)
    handler.on_add(obj("1"), is_in_initial_list=False)
    await asyncio.sleep(1.0)
    handler.close()
    asked = len(mapping.asked)
    await asyncio.sleep(2_000.0)
    assert len(mapping.asked) == asked
    with pytest.raises(KeyError):
        handler.on_add(obj("1"), is_in_initial_list=False)
    assert [task for task in asyncio.all_tasks() if "failed mappings" in task.get_name()] == []


async def test_a_controller_reconciles_what_its_mapper_could_not_name_at_first() -> None:
    reconciled: list[str] = []
    known: set[str] = set()

    def by_team(obj: Resource) -> Iterable[str]:
        if obj["data"]["team"] not in known:
            raise LookupError(obj["data"]["team"])
        return [f"default/{obj['data']['team']}"]

    @controller("v1/Secret", watches=[Watch("v1/ConfigMap", to=by_team)])
    async def reconcile(request: Request, ctx: Context) -> None:
        reconciled.append(request.name)

    async with world() as w, w.running(reconcile):
        await w.put("a", team="blue")
        await asyncio.sleep(5.0)
        assert reconciled == []
        known.add("blue")
        await until(lambda: reconciled == ["blue"])
