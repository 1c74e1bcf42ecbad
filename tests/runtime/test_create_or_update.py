"""``create_or_update`` and finalizers: what they ask the server, how often, and what they give up at."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource import Resource
from deltaloop.api.status import ConflictError, NotFoundError
from deltaloop.client import OperationResult
from tests.client.fake_transport import FakeTransport, json_answer
from tests.having import having
from tests.runtime.test_writes import without_caches
from tests.runtime.worlds import CM

CONFLICT = json_answer({"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict"}, status=409)
MISSING = json_answer({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"}, status=404)


def stored(version: str = "1", *, uid: str = "u", namespace: str = "n", **metadata: Any) -> dict[str, Any]:
    metadata = {"name": "a", "uid": uid, "resourceVersion": version, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "namespace": namespace}}


def answer(*given: Any, **options: Any) -> Any:
    return json_answer(stored(*given, **options))


def obj(*given: Any, **options: Any) -> Resource:
    return Resource.from_dict(stored(*given, **options), CM)


def asked(transport: FakeTransport) -> list[str]:
    return [f"{request.method} {request.path.removeprefix('/api/v1/namespaces/')}" for request in transport.requests]


# -- create or update


async def test_missing_object_is_created_from_name_and_namespace() -> None:
    client, transport = without_caches(MISSING, answer())
    seen: list[dict[str, Any]] = []

    def change(fields: dict[str, Any]) -> None:
        seen.append(json.loads(json.dumps(fields)))
        fields["data"] = {"x": "y"}

    what, made = await client.create_or_update(CM, "a", change, namespace="n")
    assert (what, made.uid) == (OperationResult.CREATED, "u")
    assert seen == [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}}]
    assert asked(transport) == ["GET n/configmaps/a", "POST n/configmaps"]
    assert json.loads(transport.requests[1].body or b"")["data"] == {"x": "y"}


async def test_changed_object_is_updated_at_version_that_was_read() -> None:
    client, transport = without_caches(answer("7"), answer("8"), answer("8"))

    def change(fields: dict[str, Any]) -> None:
        fields["data"] = {"x": "y"}

    what, made = await client.create_or_update(CM, "a", change, namespace="n")
    assert (what, made.resource_version) == (OperationResult.UPDATED, "8")
    assert asked(transport) == ["GET n/configmaps/a", "PUT n/configmaps/a"]
    assert json.loads(transport.requests[1].body or b"")["metadata"]["resourceVersion"] == "7"
    what, again = await client.create_or_update("v1/ConfigMap", "a", lambda fields: None, namespace="n")
    assert (what, again.resource_version) == (OperationResult.UNCHANGED, "8")
    assert len(transport.requests) == 3


@pytest.mark.parametrize("rebuilt", [{"b": ("x",), "a": 1}, {"b": ["x"], "a": True}])
async def test_object_rebuilt_in_another_order_is_unchanged_unless_a_value_has_another_type(rebuilt: Any) -> None:
    there = json_answer({**stored(), "data": {"a": 1, "b": ["x"]}})
    client, transport = without_caches(there, there)
    what, _ = await client.create_or_update(CM, "a", lambda fields: fields.update(data=rebuilt), namespace="n")
    changes = rebuilt["a"] is True
    assert what is (OperationResult.UPDATED if changes else OperationResult.UNCHANGED)
    assert len(transport.requests) == 1 + changes


async def test_cluster_scoped_object_is_created_without_namespace() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "uid": "u"}}
    client, transport = without_caches(MISSING, json_answer(node))
    await client.create_or_update(kinds.NODE, "a", lambda fields: None)
    assert [request.path for request in transport.requests] == ["/api/v1/nodes/a", "/api/v1/nodes"]
    assert json.loads(transport.requests[1].body or b"")["metadata"] == {"name": "a"}


async def test_namespace_defaults_to_namespace_of_client() -> None:
    client, transport = without_caches(MISSING, answer(namespace="mine"))
    await client.create_or_update(CM, "a", lambda fields: None)
    assert asked(transport) == ["GET mine/configmaps/a", "POST mine/configmaps"]


@pytest.mark.parametrize("name", ["name", "namespace"])
async def test_change_of_name_is_rejected_before_write(name: str) -> None:
    for there in (answer(), MISSING):
        client, transport = without_caches(there)
        with pytest.raises(InvalidArgumentError, check=having(argument="change")):
            await client.create_or_update(CM, "a", lambda fields: fields["metadata"].update({name: "b"}), namespace="n")
        assert len(transport.requests) == 1


async def test_conflict_of_create_or_update_is_raised() -> None:
    client, transport = without_caches(answer(), CONFLICT)
    with pytest.raises(ConflictError):
        await client.create_or_update(CM, "a", lambda fields: fields.update(data={"x": "y"}), namespace="n")
    assert len(transport.requests) == 2


# -- finalizers


async def test_finalizer_patch_is_attempted_five_times_with_current_version() -> None:
    rounds: list[Any] = []
    for version in range(2, 6):
        rounds += [CONFLICT, answer(str(version))]
    client, transport = without_caches(*rounds, answer("9", finalizers=["x"]))
    made = await client.add_finalizer(CM, obj("1"), "x")
    assert (made.resource_version, made.finalizers) == ("9", ("x",))
    assert asked(transport) == ["PATCH n/configmaps/a", "GET n/configmaps/a"] * 4 + ["PATCH n/configmaps/a"]
    sent = [json.loads(request.body or b"")["metadata"] for request in transport.requests[::2]]
    assert [metadata["resourceVersion"] for metadata in sent] == ["1", "2", "3", "4", "5"]
    assert all(metadata["finalizers"] == ["x"] for metadata in sent)


@pytest.mark.parametrize("verb", ["add_finalizer", "remove_finalizer"])
async def test_fifth_conflict_is_raised(verb: str) -> None:
    metadata = {"finalizers": ["x"]} if verb == "remove_finalizer" else {}
    client, transport = without_caches(*[CONFLICT, answer(**metadata)] * 4, CONFLICT)
    with pytest.raises(ConflictError):
        await getattr(client, verb)(CM, obj(**metadata), "x")
    assert len(transport.requests) == 9


@pytest.mark.parametrize("verb", ["add_finalizer", "remove_finalizer"])
async def test_stale_object_without_change_is_read_again(verb: str) -> None:
    as_wanted, otherwise = ({"finalizers": ["x"]}, {}) if verb == "add_finalizer" else ({}, {"finalizers": ["x", "y"]})
    client, transport = without_caches(answer("2", **as_wanted))
    assert (await getattr(client, verb)(CM, obj("1", **as_wanted), "x")).resource_version == "2"
    assert asked(transport) == ["GET n/configmaps/a"]
    client, transport = without_caches(answer("2", **otherwise), answer("3", **as_wanted))
    assert (await getattr(client, verb)(CM, obj("1", **as_wanted), "x")).resource_version == "3"
    assert asked(transport) == ["GET n/configmaps/a", "PATCH n/configmaps/a"]
    sent = json.loads(transport.requests[1].body or b"")["metadata"]
    assert sent == {"uid": "u", "resourceVersion": "2", "finalizers": ["x"] if verb == "add_finalizer" else ["y"]}
    client, _ = without_caches(answer("2", uid="successor", **otherwise), MISSING)
    for _ in range(2):
        if verb == "add_finalizer":
            with pytest.raises(NotFoundError):
                await client.add_finalizer(CM, obj("1", **as_wanted), "x")
        else:
            assert await client.remove_finalizer(CM, obj("1", **as_wanted), "x") is None


async def test_finalizer_is_appended_and_only_specified_one_is_removed() -> None:
    """And nothing else is sent: the caller's object may come from a cache that dropped the rest."""
    client, transport = without_caches(answer(), answer())
    await client.add_finalizer(CM, obj(finalizers=["a", "b"]), "c")
    await client.remove_finalizer(CM, obj(finalizers=["a", "b", "c"]), "b")
    added, removed = [json.loads(request.body or b"") for request in transport.requests]
    whose = {"uid": "u", "resourceVersion": "1"}
    assert added == {"metadata": {**whose, "finalizers": ["a", "b", "c"]}}
    assert removed == {"metadata": {**whose, "finalizers": ["a", "c"]}}


async def test_object_without_version_is_read_before_finalizer_patch() -> None:
    client, transport = without_caches(answer("4", finalizers=["a"]), answer("5"))
    fields = stored()
    del fields["metadata"]["resourceVersion"], fields["metadata"]["uid"]
    await client.add_finalizer(CM, Resource.from_dict(fields, CM), "b")
    assert asked(transport) == ["GET n/configmaps/a", "PATCH n/configmaps/a"]
    assert json.loads(transport.requests[1].body or b"")["metadata"] == {
        "uid": "u",
        "resourceVersion": "4",
        "finalizers": ["a", "b"],
    }


async def test_successor_gets_no_finalizer() -> None:
    client, _ = without_caches(CONFLICT, answer(uid="successor"), CONFLICT, answer(uid="successor", finalizers=["x"]))
    with pytest.raises(NotFoundError, match='configmaps "a" not found'):
        await client.add_finalizer(CM, obj(), "x")
    assert await client.remove_finalizer(CM, obj(finalizers=["x"]), "x") is None


async def test_gone_object_gets_no_finalizer() -> None:
    client, _ = without_caches(MISSING, MISSING, CONFLICT, MISSING)
    with pytest.raises(NotFoundError):
        await client.add_finalizer(CM, obj(), "x")
    assert await client.remove_finalizer(CM, obj(finalizers=["x"]), "x") is None
    assert await client.remove_finalizer(CM, obj(finalizers=["x"]), "x") is None


async def test_finalizers_of_cluster_scoped_kind() -> None:
    fields = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}}
    client, transport = without_caches(CONFLICT, json_answer(fields), json_answer(fields))
    await client.add_finalizer(kinds.NODE, Resource.from_dict(fields, kinds.NODE), "x")
    assert {request.path for request in transport.requests} == {"/api/v1/nodes/a"}
