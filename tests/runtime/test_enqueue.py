"""Handlers that queue keys with triggers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable

import pytest

from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.predicates import Where
from deltaloop.runtime import Context, Request, controller
from deltaloop.runtime.enqueue import Enqueue, enqueue, enqueue_owner
from deltaloop.sources import Watch
from deltaloop.workqueue.errors import TerminalError
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


async def test_changes_are_queued_with_verb_and_loop_time() -> None:
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


async def test_change_of_owned_object_queues_owner() -> None:
    keys = Keys()
    enqueue_owner(keys, FOO).on_delete(obj("2"), final_state_known=True)
    assert keys.added == [("prod/foo", "owner delete", 0.0)]


async def test_only_controlling_owner_is_queued_by_default() -> None:
    fields = obj("1").to_dict()
    fields["metadata"]["ownerReferences"][0]["controller"] = False
    changed = Resource.from_dict(fields)
    keys = Keys()
    enqueue_owner(keys, FOO).on_add(changed, is_in_initial_list=False)
    assert keys.added == []
    enqueue_owner(keys, FOO, controller_only=False).on_add(changed, is_in_initial_list=False)
    assert [key for key, _, _ in keys.added] == ["prod/foo"]


async def test_only_changes_allowed_by_all_predicates_are_queued(caplog: pytest.LogCaptureFixture) -> None:
    def fails(changed: Resource) -> bool:
        if changed.resource_version == "9":
            raise ValueError("cannot tell")
        return True

    fails_once = Where(fails)
    predicates = [Where(lambda changed: changed.resource_version != "2"), fails_once]
    for is_owner in (False, True):
        keys = Keys()
        handler = (
            enqueue_owner(keys, FOO, predicates=predicates)
            if is_owner
            else enqueue(keys, predicates=predicates, source="mine")
        )
        handler.on_add(obj("1"), is_in_initial_list=False)
        assert len(keys.added) == 1
        handler.on_add(obj("2"), is_in_initial_list=False)
        assert len(keys.added) == 1
        handler.on_add(obj("9"), is_in_initial_list=False)
        assert len(keys.added) == 2, "a reconcile too many is better than one too few"
    told = [vars(record) for record in caplog.records]
    assert [(each["levelno"], each["key"], each["source"]) for each in told] == [
        (logging.ERROR, "prod/web", "mine"),
        (logging.ERROR, "prod/web", "owner"),
    ]
    assert told[0]["predicate"] == repr(fails_once)
    assert "cannot tell" in told[0]["raised"]


def test_triggers_from_threads_have_monotonic_time() -> None:
    keys = Keys()
    before = time.monotonic()
    enqueue(keys).on_add(obj("1"), is_in_initial_list=False)
    assert before <= keys.added[0][2] <= time.monotonic()


async def test_handler_uses_specified_clock_and_name(caplog: pytest.LogCaptureFixture) -> None:
    keys = Keys()
    told: list[tuple[str, str]] = []
    handler = Enqueue(
        keys,
        Mapping(2),
        source="maps",
        name="the maps of all",
        clock=lambda: 7.0,
        on_trigger=lambda source, verb: told.append((source, verb)),
    )
    handler.on_add(obj("1"), is_in_initial_list=False)
    await asyncio.sleep(1.0)
    assert keys.added == [("web-1", "maps add", 7.0)]
    assert told == [("maps", "add")]
    assert vars(caplog.records[0])["queue"] == "failed mappings of the maps of all"
    assert repr(handler) == "<Enqueue source=maps>"
    handler.close()


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


def test_mapper_error_is_raised_in_thread_without_loop() -> None:
    keys = Keys()
    handler = enqueue(keys, mapper=Mapping(1))
    with pytest.raises(KeyError, match="team"):
        handler.on_add(obj("1"), is_in_initial_list=False)
    handler.on_update(obj("1"), obj("2"))
    assert [key for key, _, _ in keys.added] == ["web-1", "web-2"]


async def test_failed_mapping_is_retried_with_backoff(caplog: pytest.LogCaptureFixture) -> None:
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


async def test_waiting_changes_of_object_are_mapped_with_newer_changes() -> None:
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


async def test_abandoned_change_does_not_block_later_changes() -> None:
    keys = Keys()

    def given_up(obj: Resource) -> Iterable[str]:
        if obj.resource_version in ("1", "3"):
            raise TerminalError("never")
        return [f"{obj.name}-{obj.resource_version}"]

    handler = enqueue(keys, mapper=given_up)
    handler.on_add(obj("1"), is_in_initial_list=False)
    handler.on_update(obj("2"), obj("2"))
    handler.on_delete(obj("3"), final_state_known=True)
    await asyncio.sleep(1.0)
    handler.on_add(obj("4"), is_in_initial_list=False)
    assert [key for key, _, _ in keys.added] == ["web-2", "web-4"]
    handler.close()


async def test_closed_handler_does_not_retry() -> None:
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


async def test_retried_mapping_triggers_reconcile() -> None:
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
