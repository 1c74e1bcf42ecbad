"""Handlers that queue keys with triggers."""

from __future__ import annotations

from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.runtime.enqueue import enqueue, enqueue_owner

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
