"""Owner references and finalizers, as pure functions of an object's fields."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource import Resource
from deltaloop.errors import AlreadyOwnedError, OwnerGoneError
from deltaloop.runtime import set_controller_reference, set_owner_reference
from tests.having import having


def owner(name: str = "web", uid: str = "u1", namespace: str = "default") -> Resource:
    metadata = {"name": name, "uid": uid, **({"namespace": namespace} if namespace else {})}
    return Resource.from_dict({"metadata": metadata}, kinds.DEPLOYMENT)


def owned(*references: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "a", **({"namespace": namespace} if namespace else {})}
    return {"metadata": {**metadata, **({"ownerReferences": [*references]} if references else {})}}


def reference(**changes: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u1", **changes}


CONTROLS = {"controller": True, "blockOwnerDeletion": True}


def references(obj: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = obj["metadata"]["ownerReferences"]
    return found


def test_only_controller_reference_blocks_owner_deletion() -> None:
    obj = owned()
    set_controller_reference(obj, owner())
    assert references(obj) == [reference(**CONTROLS)]
    obj = owned()
    set_owner_reference(obj, owner())
    assert references(obj) == [reference()]


def test_reference_to_same_owner_is_replaced_in_place() -> None:
    others = reference(name="first", uid="u0"), reference(name="last", uid="u2")
    for known in (reference(), reference(apiVersion="apps/v1beta1"), reference(**CONTROLS)):
        obj = owned(others[0], known, others[1])
        set_controller_reference(obj, owner())
        assert references(obj) == [others[0], reference(**CONTROLS), others[1]]
        set_owner_reference(obj, owner())
        assert references(obj) == [others[0], reference(), others[1]]


@pytest.mark.parametrize(
    "other",
    [
        reference(uid="u2"),
        reference(name="other"),
        reference(kind="ReplicaSet"),
        reference(apiVersion="extensions/v1"),
        reference(apiVersion="v1"),
    ],
)
def test_other_owner_is_kept_and_other_controller_is_error(other: dict[str, Any]) -> None:
    obj = owned(other)
    set_controller_reference(obj, owner())
    assert references(obj) == [other, reference(**CONTROLS)]
    obj = owned({**other, "controller": True})
    set_owner_reference(obj, owner())
    assert references(obj) == [{**other, "controller": True}, reference()]
    obj = owned({**other, "controller": True})
    with pytest.raises(AlreadyOwnedError) as caught:
        set_controller_reference(obj, owner())
    assert caught.value.object == "default/a"
    assert (caught.value.owner.kind, caught.value.owner.name, caught.value.owner.uid) == (
        other["kind"],
        other["name"],
        other["uid"],
    )
    assert references(obj) == [{**other, "controller": True}], "nothing was changed"


def test_error_for_unnamed_object_has_empty_name() -> None:
    obj: dict[str, Any] = {
        "metadata": {"generateName": "a-", "ownerReferences": [reference(uid="u2", controller=True)]}
    }
    with pytest.raises(AlreadyOwnedError) as caught:
        set_controller_reference(obj, owner(namespace=""))
    assert caught.value.object == ""


def test_namespaced_owner_needs_same_namespace() -> None:
    for obj in (owned(namespace="other"), owned(namespace=""), {}):
        with pytest.raises(InvalidArgumentError, check=having(argument="metadata.namespace")):
            set_owner_reference(obj, owner())
        set_owner_reference(obj, owner(namespace=""))
        assert references(obj) == [reference()]


@pytest.mark.parametrize(
    ("name", "version", "kind"),
    [("v1/Pod", "v1", "Pod"), ("apps/v1/Deployment", "apps/v1", "Deployment"), ("x.io/v1/Foo", "x.io/v1", "Foo")],
)
def test_reference_has_specified_kind(name: str, version: str, kind: str) -> None:
    obj = owned()
    set_controller_reference(obj, owner(), name)
    assert references(obj) == [reference(apiVersion=version, kind=kind, **CONTROLS)]
    obj = owned()
    set_owner_reference(obj, owner(), kinds.POD)
    assert references(obj) == [reference(apiVersion="v1", kind="Pod")]


@pytest.mark.parametrize("name", ["Foo", "/Foo", "apps/v1/", "", "/"])
def test_unknown_owner_kind_is_rejected(name: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="resource_type")):
        set_controller_reference(owned(), owner(), name)


def test_object_with_invalid_metadata_is_rejected() -> None:
    frozen: Any = {"metadata": "text"}
    with pytest.raises(InvalidArgumentError, check=having(argument="object")):
        set_owner_reference(frozen, owner(namespace=""))


@pytest.mark.parametrize("refer", [set_controller_reference, set_owner_reference])
def test_owner_in_foreground_deletion_takes_no_more_objects(refer: Any) -> None:
    metadata = {"name": "web", "uid": "u1", "namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    for finalizers in (["foregroundDeletion"], ["example.com/hold", "foregroundDeletion"]):
        going = Resource.from_dict({"metadata": {**metadata, "finalizers": finalizers}}, kinds.DEPLOYMENT)
        with pytest.raises(OwnerGoneError, check=having(owner="Deployment default/web")):
            refer(owned(), going)
    refer(owned(), Resource.from_dict({"metadata": {**metadata, "finalizers": ["example.com/hold"]}}, kinds.DEPLOYMENT))
