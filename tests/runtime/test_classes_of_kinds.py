"""Classes of kinds from end to end: clients, caches and reconciles take the class and give its objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any, assert_type

import msgspec
import pytest
from msgspec import UNSET, Meta, Struct, UnsetType

import deltaloop as dl
from deltaloop.api import combined_status, controller_reference, object_status, reference_to
from deltaloop.cache import FilteringResourceEventHandler
from deltaloop.crds import Conditions, list_map_keys
from deltaloop.errors import AlreadyOwnedError, ConflictError, InvalidArgumentError, InvalidError
from deltaloop.events.core.event_object import reference_of
from deltaloop.testing import Harness
from deltaloop.workqueue import Work
from tests.having import having


class Port(Struct):
    name: str
    number: Annotated[int, Meta(ge=1)] = 80


class Spec(Struct, rename="camel"):
    replicas: int = 1
    ports: Annotated[list[Port], list_map_keys("name")] = []
    config_name: str | UnsetType = UNSET
    owner: str | None = None


class State(Struct, rename="camel"):
    ready_replicas: int = 0
    conditions: Conditions = []


@dl.custom_resource(group="example.com", version="v1", selectable_fields=[".spec.replicas"])
class Database(Struct, kw_only=True):
    metadata: dl.ObjectMeta
    spec: Spec
    status: State | None = None


@dl.custom_resource(group="example.com", version="v1")
@dataclass
class Backup:
    metadata: dl.ObjectMeta
    spec: dict[str, int]


class Below(Database):
    pass


def database(name: str, **spec: Any) -> Database:
    return Database(metadata=dl.ObjectMeta(name=name), spec=Spec(**spec))


async def begin(harness: Harness) -> dl.Client:
    """Install both kinds, and return the client."""
    await harness.install(Database, Backup)
    return harness.client


async def raw_spec(client: dl.Client, name: str) -> Any:
    found = await client.get("example.com/v1/Database", name)
    return found.to_dict()["spec"]


async def test_create_sends_only_set_fields(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    client = await begin(harness)
    made = await client.create(Database, database("a", ports=[Port("sql")]))
    assert_type(made, Database)
    assert made.spec == Spec(ports=[Port("sql")])
    assert await raw_spec(client, "a") == {"replicas": 1, "ports": [{"name": "sql", "number": 80}]}
    applied = await client.apply(Database, database("b", replicas=1))
    assert applied.spec.replicas == 1
    fields = (await client.get("example.com/v1/Database", "b")).to_dict()["metadata"]["managedFields"][0]["fieldsV1"]
    assert fields == {"f:spec": {}}  # nobody owns a default


async def test_verbs_accept_and_return_class(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    client = await begin(harness)
    await client.create(Database, database("a", replicas=2))
    found = await client.get(Database, "a")
    assert_type(found, Database)
    assert found.spec.replicas == 2
    assert await client.find(Database, "nobody") is None
    listed = await client.list(Database)
    assert_type(listed.items[0], Database)
    assert [each.metadata.name for each in listed] == ["a"]
    assert [each.metadata.name for each in await client.list_all(Database)] == ["a"]
    backup = await client.create(Backup, Backup(dl.ObjectMeta(name="b"), {"a": 1}))
    assert_type(backup, Backup)
    assert (backup.metadata.name, backup.spec) == ("b", {"a": 1})
    patched = await client.patch(Database, "a", {"spec": {"replicas": 3}})
    assert patched.spec.replicas == 3
    await client.delete(Database, "a")
    assert await client.find(Database, "a") is None
    with pytest.raises(InvalidError, match=r"spec\.ports\[0\]\.number"):
        await client.create(Database, database("c", ports=[Port("a", 0)]))


async def test_edit_sends_changed_fields_only(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    client = await begin(harness)
    port = {"name": "sql", "number": 5}
    await client.create(Database, {"metadata": {"name": "a"}, "spec": {"owner": "me", "ports": [port]}})
    before = len(harness.writes)
    unchanged = await client.edit(Database, "a", lambda found: None)
    assert (unchanged.spec.owner, len(harness.writes)) == ("me", before)

    def change(found: Database) -> None:
        found.spec.ports.append(Port("http"))
        found.spec.owner = None

    edited = await client.edit(Database, "a", change)
    assert_type(edited, Database)
    assert [each.name for each in edited.spec.ports] == ["sql", "http"]
    assert await raw_spec(client, "a") == {"replicas": 1, "ports": [port, {"name": "http", "number": 80}]}
    other = await client.edit(Database, "a", lambda found: msgspec.structs.replace(found, spec=Spec(replicas=4)))
    assert other.spec == Spec(replicas=4)


async def test_concurrent_edit_raises_conflict(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    client = await begin(harness)
    await client.create(Database, database("a"))
    # Both have a connection, so both read before one of them writes.
    await asyncio.gather(*[client.get(Database, "a") for _ in range(2)])
    grown = [client.edit(Database, "a", lambda found: setattr(found.spec, "replicas", 7)) for _ in range(2)]
    first, second = await asyncio.gather(*grown, return_exceptions=True)
    assert {type(first), type(second)} == {Database, ConflictError}


async def test_edit_of_immutable_fields_is_rejected(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    client = await begin(harness)
    await client.create(Database, database("a"))

    def rename(found: Database) -> Database:
        return msgspec.structs.replace(found, metadata=dl.ObjectMeta(name="b"))

    with pytest.raises(InvalidArgumentError, check=having(argument="metadata.name")):
        await client.edit(Database, "a", rename)
    with pytest.raises(InvalidArgumentError, check=having(argument="status")):
        await client.edit(Database, "a", lambda found: setattr(found, "status", State(3)))
    with pytest.raises(InvalidArgumentError, check=having(argument="kind")):
        await client.edit(dl.kinds.POD, "a", lambda found: None)
    for cls in (Below, int):
        with pytest.raises(InvalidArgumentError, match="@custom_resource"):
            await client.get(cls, "a")


async def test_controllers_caches_and_informers_accept_class(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    await begin(harness)
    seen: list[tuple[str, int, str]] = []

    @dl.controller(Database, owns=[Backup], writes=[Backup], watches=[dl.Watch(Backup)], tracks=[Backup])
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        found = await ctx.client.find(Database, request.name, namespace=request.namespace)
        if found is None:
            return
        assert_type(found, Database)
        backup = await ctx.track(Backup, "b")
        async with ctx.status(found) as status:
            status["readyReplicas"] = found.spec.replicas
            status.set_condition("Ready", True, reason="Made")
        seen.append((found.metadata.name, found.spec.replicas, "" if backup is None else backup.metadata.name))

    assert (reconcile.name, str(reconcile.resource)) == ("database", "example.com/v1/Database")
    await harness.start(reconcile)
    await harness.client.create(Database, database("a", replicas=2))
    await harness.settled()
    await harness.client.create(Backup, Backup(dl.ObjectMeta(name="b"), {}))
    await harness.settled()
    assert seen[-1] == ("a", 2, "b")
    stored = await harness.client.get(Database, "a")
    assert stored.status is not None
    assert stored.status.ready_replicas == 2
    assert [(each.type, each.status, each.reason) for each in stored.status.conditions] == [("Ready", "True", "Made")]
    async with dl.InformerFactory(harness.client) as factory:
        informer = factory.informer(Database)
        assert_type(informer, dl.Informer[Database])
        await factory.wait_for_sync(timeout=10)
        [listed] = informer.lister().list()
        assert_type(listed, Database)
        assert listed == stored


def test_owner_and_event_subject_can_be_of_class() -> None:
    metadata = dl.ObjectMeta(name="a", namespace="team", uid="u1", resource_version="7")
    own = Database(metadata=metadata, spec=Spec())
    expected = {"apiVersion": "example.com/v1", "kind": "Database", "name": "a", "uid": "u1"}
    job: dict[str, Any] = {"metadata": {"name": "b", "namespace": "team"}}
    dl.set_controller_reference(job, own)
    assert job["metadata"]["ownerReferences"] == [{**expected, "controller": True, "blockOwnerDeletion": True}]
    dl.set_owner_reference(job, Backup(metadata, {}), Database)
    assert job["metadata"]["ownerReferences"] == [expected]
    about = reference_of(own)
    assert (about.api_version, about.kind, about.uid) == ("example.com/v1", "Database", "u1")
    assert (about.key, about.resource_version) == ("team/a", "7")
    with pytest.raises(InvalidArgumentError, check=having(argument="object")):
        reference_of(own.spec)
    with pytest.raises(InvalidArgumentError, check=having(argument="the owner")):
        dl.set_controller_reference(job, own.spec)


async def test_metadata_can_be_read_and_set(deltaloop_harness: Harness) -> None:
    client = await begin(deltaloop_harness)
    metadata = dl.ObjectMeta(generate_name="a-", labels={"team": "x"}, annotations={"a/b": "c"}, finalizers=["a.b/c"])
    made = await client.create(Database, Database(metadata=metadata, spec=Spec()))
    stored = await client.get("example.com/v1/Database", made.metadata.name)
    assert stored.name.startswith("a-")
    assert (stored.labels, stored.annotations, stored.finalizers) == ({"team": "x"}, {"a/b": "c"}, ("a.b/c",))
    assert made.metadata == dl.ObjectMeta(
        name=stored.name,
        generate_name="a-",
        namespace=stored.namespace,
        labels={"team": "x"},
        annotations={"a/b": "c"},
        finalizers=["a.b/c"],
        uid=stored.uid,
        resource_version=stored.resource_version,
        generation=1,
        creation_timestamp=stored.creation_timestamp,
    )
    assert made.metadata.key == stored.key

    def relabel(found: Database) -> None:
        found.metadata.labels["team"] = "y"
        del found.metadata.annotations["a/b"]
        found.metadata.finalizers.append("d.e/f")

    edited = await client.edit(Database, stored.name, relabel)
    assert (edited.metadata.labels, edited.metadata.annotations) == ({"team": "y"}, {})
    assert edited.metadata.finalizers == ["a.b/c", "d.e/f"]
    edited.spec.replicas = 2  # what replaces the whole object keeps its metadata, too
    updated = await client.update(Database, edited)
    assert (updated.metadata.labels, updated.metadata.finalizers) == ({"team": "y"}, ["a.b/c", "d.e/f"])
    await client.delete(Database, stored.name)
    going = await client.get(Database, stored.name)
    assert going.metadata.deletion_timestamp is not None
    assert going.metadata.deletion_grace_period_seconds == 0


async def test_objects_of_class_can_own_and_be_owned(deltaloop_harness: Harness) -> None:
    client = await begin(deltaloop_harness)
    owner = await client.create(Database, database("a"))
    namespace = owner.metadata.namespace
    config_map: dict[str, Any] = {"metadata": {"name": "a", "namespace": namespace}}
    for kind in (None, Database, "example.com/v1/Database", dl.ResourceType.of(Database)):
        dl.set_controller_reference(config_map, owner, kind)
    [reference] = config_map["metadata"]["ownerReferences"]
    assert reference == {
        "apiVersion": "example.com/v1",
        "kind": "Database",
        "name": "a",
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    backup = Backup(dl.ObjectMeta(name="b", namespace=namespace), {})
    dl.set_owner_reference(backup, owner)
    dl.set_controller_reference(backup, owner)
    dl.set_controller_reference(backup, owner)
    made = await client.create(Backup, backup)
    assert [each.controller for each in made.metadata.owner_references] == [True]
    with pytest.raises(AlreadyOwnedError, match=r"/b is already owned by another Database controller a"):
        dl.set_controller_reference(made, await client.create(Database, database("c")))
    with pytest.raises(InvalidArgumentError, check=having(argument="owner")):
        dl.set_controller_reference({"metadata": {}}, database("new"))
    with pytest.raises(InvalidArgumentError, check=having(argument="the owner")):
        dl.set_controller_reference({"metadata": {}}, "a")
    with pytest.raises(InvalidArgumentError, check=having(argument="object")):
        dl.set_controller_reference(await client.get("example.com/v1/Database", "a"), owner)


async def test_functions_on_objects_accept_objects_of_class(deltaloop_harness: Harness) -> None:
    client = await begin(deltaloop_harness)
    made = await client.create(Database, database("a"))
    namespace = made.metadata.namespace
    assert str(reference_to(made)) == f"Database {namespace}/a"
    assert controller_reference(made, Database).uid == made.metadata.uid
    assert object_status(made).is_current
    made.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    assert object_status(made).status == "Terminating"
    assert "Database" in combined_status([made]).message
    async with dl.EventRecorder(client, component="test") as recorder:
        recorder.event(made, "Normal", "Made", "it is there", related=made)
        recorder.for_component("other").event(made, "Normal", "Made", "it is there")
        assert await recorder.flush(5)
    events = await client.list("v1/Event", namespace=namespace)
    assert {each["involvedObject"]["kind"] for each in events} == {"Database"}
    assert {each["involvedObject"]["uid"] for each in events} == {made.metadata.uid}


async def test_mappers_accept_objects_of_class(deltaloop_harness: Harness) -> None:
    client = await begin(deltaloop_harness)
    owner = await client.create(Database, database("a"))
    namespace = owner.metadata.namespace
    backup = Backup(dl.ObjectMeta(name="b", namespace=namespace), {})
    dl.set_controller_reference(backup, owner)
    await client.create(Backup, backup)
    queues = [dl.RateLimitingQueue[str](name=str(number)) for number in range(4)]
    given: list[type] = []

    def others(obj: dl.Resource) -> list[Database]:
        given.append(type(obj))
        return databases.lister().list()

    passed = dl.predicates.When(lambda change: change.new is not None and change.new["spec"]["replicas"] == 1)
    async with dl.InformerFactory(client) as factory:
        databases, backups = factory.informer(Database), factory.informer(Backup)
        databases.add_event_handler(dl.enqueue(queues[0], predicates=[passed]))
        backups.add_event_handler(dl.enqueue_owner(queues[1], Database))
        backups.add_event_handler(dl.enqueue(queues[2], mapper=others))
        # A filter is given what the informer gives, and passes that on.
        wanted = FilteringResourceEventHandler[Database](lambda found: found.spec.replicas == 1, dl.enqueue(queues[3]))
        databases.add_event_handler(wanted)
        await factory.wait_for_sync(timeout=10)
        await asyncio.sleep(1)
    assert [[work.key async for work in drained(queue)] for queue in queues] == [[f"{namespace}/a"]] * 4
    assert given == [dl.Resource]


async def drained(queue: dl.RateLimitingQueue[str]) -> AsyncIterator[Work[str]]:
    """Yield what is in a queue."""
    queue.shut_down()
    async for work in queue:
        with work:
            yield work
