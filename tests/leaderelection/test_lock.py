from __future__ import annotations

import pytest

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.references import ObjectReference
from deltaloop.api.resource import Resource
from deltaloop.api.status import AlreadyExistsError, ConflictError
from deltaloop.leaderelection import LeaderElectionRecord, LeaseLock
from tests.leaderelection.fake_server import FakeClient, FakeServer

RECORD = LeaderElectionRecord(holder_identity="a", lease_duration_seconds=15)


class Recorder:
    def __init__(self) -> None:
        self.events: list[tuple[ObjectReference, str, str, str]] = []

    def event(self, obj: ObjectReference, event_type: str, reason: str, message: str, /) -> None:
        self.events.append((obj, event_type, reason, message))


def make(server: FakeServer, **options: object) -> LeaseLock:
    return LeaseLock(FakeClient(server), namespace="default", name="example", identity="a", **options)  # type: ignore[arg-type]


async def test_create_get_and_update() -> None:
    lock = make(FakeServer())
    assert await lock.get(timeout=1) is None
    created = await lock.create(RECORD, timeout=1)
    assert created.record == RECORD
    assert await lock.get(timeout=1) == created
    updated = await lock.update(LeaderElectionRecord(holder_identity="b"), created.version, timeout=1)
    assert updated.record.holder_identity == "b"
    assert updated.version != created.version


async def test_update_without_a_read_is_a_bug_of_the_caller() -> None:
    with pytest.raises(RuntimeError, match="get or create comes first"):
        await make(FakeServer()).update(RECORD, "1", timeout=1)


async def test_a_lease_that_changed_meanwhile_is_a_conflict() -> None:
    server = FakeServer()
    lock = make(server)
    created = await lock.create(RECORD, timeout=1)
    server.edit(lambda lease: lease["metadata"].update(annotations={"x": "y"}))
    with pytest.raises(ConflictError):
        await lock.update(RECORD, created.version, timeout=1)
    with pytest.raises(AlreadyExistsError):
        await lock.create(RECORD, timeout=1)


async def test_an_object_without_a_version_is_no_lock() -> None:
    """Without one each update is unconditional, and two candidates could both win."""
    server = FakeServer()
    lock = make(server)
    await lock.create(RECORD, timeout=1)
    fields = server.leases["default/example"].edit()
    del fields["metadata"]["resourceVersion"]
    server.leases["default/example"] = Resource.from_dict(fields, server.kind)
    with pytest.raises(MalformedObjectError, match=r"without metadata\.resourceVersion"):
        await lock.get(timeout=1)


async def test_labels_are_merged_and_everything_else_is_kept() -> None:
    server = FakeServer()
    lock = make(server, labels={"app": "x"})
    await lock.create(RECORD, timeout=1)
    server.edit(lambda lease: (lease["metadata"].update(labels={"theirs": "1"}), lease["spec"].update(strategy="S")))
    state = await lock.get(timeout=1)
    assert state is not None
    await lock.update(RECORD, state.version, timeout=1)
    lease = server.leases["default/example"]
    assert lease.labels == {"theirs": "1", "app": "x"}
    assert lease["spec"]["strategy"] == "S"


async def test_events_name_the_lease_and_the_identity() -> None:
    recorder = Recorder()
    lock = make(FakeServer(), recorder=recorder)
    await lock.create(RECORD, timeout=1)
    lock.record_event("became leader")
    [(reference, event_type, reason, message)] = recorder.events
    assert reference == ObjectReference(
        api_version="coordination.k8s.io/v1",
        kind="Lease",
        namespace="default",
        name="example",
        uid="uid-1",
        resource_version="1",
    )
    assert (event_type, reason, message) == ("Normal", "LeaderElection", "a became leader")
    assert lock.describe() == "default/example"
    make(FakeServer()).record_event("without a recorder nothing happens")
