"""Which keys a change asks to reconcile, and why."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.runtime.core.changes import Change
from deltaloop.runtime.core.requests import (
    InvalidRequestsError,
    Request,
    Unmapped,
    keys_by_index,
    keys_of,
    own_key,
    owner_key,
    requests_for,
)
from tests.having import having

FOO: ResourceType[Resource] = ResourceType("samples.deltaloop.dev", "v1alpha1", "Foo", "foos")
NODE_POOL: ResourceType[Resource] = ResourceType("x.dev", "v1", "NodePool", "nodepools", namespaced=False)


def child(version: str = "1", *owners: dict[str, Any]) -> Resource:
    return Resource.from_dict(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "web",
                "namespace": "prod",
                "resourceVersion": version,
                "ownerReferences": list(owners),
            },
        }
    )


def owner(
    name: str, *, kind: str = "Foo", api_version: str = "samples.deltaloop.dev/v1", controller: bool = True
) -> Any:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": name, "controller": controller}


def keys(mapper: Any, old: Resource | None, new: Resource | None, verb: str = "update") -> list[str]:
    return [*requests_for(mapper, "s", verb, old=old, new=new, now=0.0)[0]]


def test_an_object_maps_to_its_own_key_once() -> None:
    assert keys(own_key, child("1"), child("2")) == ["prod/web"]


def test_owners_are_compared_by_group_and_kind_not_by_version() -> None:
    owners = (owner("a"), owner("b", kind="Bar"), owner("c", api_version="other.dev/v1alpha1"))
    assert keys(owner_key(FOO), None, child("1", *owners)) == ["prod/a"]


def test_only_controlling_owner_counts_by_default() -> None:
    owners = (owner("a", controller=False), owner("b"))
    assert keys(owner_key(FOO), None, child("1", *owners)) == ["prod/b"]
    assert keys(owner_key(FOO, controller_only=False), None, child("1", *owners)) == ["prod/a", "prod/b"]


def test_an_owner_without_namespace_has_a_bare_key() -> None:
    reference = owner("pool", kind="NodePool", api_version="x.dev/v1")
    assert keys(owner_key(NODE_POOL), None, child("1", reference)) == ["pool"]


def test_change_of_owner_maps_to_both_owners() -> None:
    assert keys(owner_key(FOO), child("1", owner("a")), child("2", owner("b"))) == ["prod/a", "prod/b"]


def test_trigger_contains_verb_object_versions_and_time() -> None:
    _, trigger = requests_for(own_key, "informer", "update", old=child("1"), new=child("2"), now=7.5)
    assert isinstance(trigger, Trigger)
    assert (trigger.source, trigger.verb, trigger.old_resource_version, trigger.new_resource_version, trigger.at) == (
        "informer",
        "update",
        "1",
        "2",
        7.5,
    )
    assert trigger.reference is not None
    assert (trigger.reference.kind, trigger.reference.key) == ("Deployment", "prod/web")
    assert str(trigger) == "informer update Deployment prod/web (1→2)"


def test_an_update_without_a_new_version_is_a_resync() -> None:
    _, trigger = requests_for(own_key, "informer", "update", old=child("3"), new=child("3"), now=0.0)
    assert trigger.verb == "resync"


def test_trigger_of_delete_has_last_version() -> None:
    [key], trigger = requests_for(own_key, "informer", "delete", old=child("9"), new=None, now=0.0)
    assert (key, trigger.verb, trigger.old_resource_version, trigger.new_resource_version) == (
        "prod/web",
        "delete",
        "9",
        "",
    )


def change(old: str, new: str) -> Change:
    return Change(verb=f"{old}>{new}", old=child(old) if old else None, new=child(new) if new else None)


def named(key: str) -> Resource:
    namespace, _, name = key.rpartition("/")
    return Resource.from_dict({"metadata": {"name": name, "namespace": namespace}})


# What is referred to, the values that objects are filed under, and which of those objects refer to it.
REFERENCES: list[tuple[str, dict[str, str], list[str]]] = [
    (
        "prod/cfg",
        {"prod/a": "cfg", "prod/b": "prod/cfg", "prod/c": "test/cfg", "prod/d": "other"},
        ["prod/b", "prod/a"],
    ),
    ("prod/cfg", {"test/a": "cfg", "test/b": "prod/cfg", "test/c": "test/cfg"}, ["test/b"]),
    ("prod/cfg", {"a": "cfg", "b": "prod/cfg", "c": "test/cfg"}, ["b", "a"]),
    ("cfg", {"prod/a": "cfg", "test/a": "cfg", "prod/b": "prod/cfg"}, ["prod/a", "test/a"]),
    ("cfg", {"a": "cfg", "b": "other"}, ["a"]),
]


@pytest.mark.parametrize(("referred", "filed", "concerned"), REFERENCES)
def test_index_values_can_be_names_or_namespaced_keys(
    referred: str, filed: dict[str, str], concerned: list[str]
) -> None:
    def lookup(value: str) -> list[Resource]:
        return [named(key) for key, under in filed.items() if under == value]

    assert keys_by_index(named(referred), lookup) == concerned


def test_mapper_can_return_keys_requests_and_objects() -> None:
    mapped = ["prod/a", Request("prod", "b"), named("prod/c"), Request("", "d")]
    assert [*keys_of(mapped)] == [*keys_of(iter(mapped))] == ["prod/a", "prod/b", "prod/c", "d"]


@pytest.mark.parametrize(
    ("mapped", "said"),
    [
        (None, "NoneType"),
        ("prod/a", "str"),
        (Request("prod", "a"), "Request"),
        (named("prod/a"), "Resource"),
        (7, "int"),
        (["prod/a", None], "list with a NoneType in it"),
        ([("prod", "a")], "list with a tuple in it"),
    ],
)
def test_other_results_of_mapper_are_rejected(mapped: object, said: str) -> None:
    with pytest.raises(InvalidRequestsError, check=having(returned=said)):
        list(keys_of(mapped))


def drained(unmapped: Unmapped, key: str) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    while (first := unmapped.first(key)) is not None:
        versions = [state.resource_version if state is not None else "" for state in (first.old, first.new)]
        found.append((first.verb, versions[0], versions[1]))
        unmapped.mapped(key)
    return found


def test_unmapped_changes_keep_order_and_are_bounded() -> None:
    unmapped = Unmapped(bound=2)
    assert unmapped.first("a") is None
    unmapped.add("a", change("", "1"))
    unmapped.add("b", change("7", "8"))
    unmapped.add("a", change("1", "2"))
    assert "a" in unmapped.changes
    unmapped.add("a", change("2", "3"))
    assert drained(unmapped, "a") == [("1>2", "1", "2"), ("2>3", "2", "3")]
    assert "a" not in unmapped.changes
    assert drained(unmapped, "b") == [("7>8", "7", "8")]
    unmapped = Unmapped(bound=1)
    unmapped.add("a", change("", "1"))
    unmapped.add("a", change("1", ""))
    assert drained(unmapped, "a") == [("1>", "1", "")], "what came and went is asked about all the same"
    unmapped.add("a", change("4", "5"))
    unmapped.add("a", change("5", "6"))
    assert drained(unmapped, "a") == [("5>6", "4", "6")], "its first and its last state"
