from __future__ import annotations

from typing import Any, ClassVar

import pytest

from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.references import ObjectReference
from deltaloop.api.resource import Resource
from deltaloop.api.status import AlreadyExistsError, ConflictError
from deltaloop.client import Client, ClientConfig, HttpRequest, HttpResponse
from deltaloop.client.errors import TransportError
from deltaloop.client.transport.protocol import Pool
from deltaloop.leaderelection import LeaderElectionRecord, LeaseLock
from tests.having import having
from tests.leaderelection.fake_server import FakeClient, FakeServer, OtherWrites

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


async def test_update_without_read_raises_error() -> None:
    with pytest.raises(RuntimeError):
        await make(FakeServer()).update(RECORD, "1", timeout=1)


async def test_concurrent_change_is_a_conflict() -> None:
    server = FakeServer()
    lock = make(server)
    created = await lock.create(RECORD, timeout=1)
    server.edit(lambda lease: lease["metadata"].update(annotations={"x": "y"}))
    with pytest.raises(ConflictError):
        await lock.update(RECORD, created.version, timeout=1)
    with pytest.raises(AlreadyExistsError):
        await lock.create(RECORD, timeout=1)


async def test_object_without_resource_version_is_rejected() -> None:
    """Without one each update is unconditional, and two candidates could both win."""
    server = FakeServer()
    lock = make(server)
    await lock.create(RECORD, timeout=1)
    fields = server.leases["default/example"].edit()
    del fields["metadata"]["resourceVersion"]
    server.leases["default/example"] = Resource.from_dict(fields, server.kind)
    with pytest.raises(MalformedObjectError):
        await lock.get(timeout=1)


async def test_labels_are_merged_and_other_fields_are_kept() -> None:
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


async def test_events_refer_to_lease_and_identity() -> None:
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


@pytest.mark.parametrize("empty", ["namespace", "name", "identity"])
def test_missing_lock_argument_is_rejected(empty: str) -> None:
    options: dict[str, Any] = {"namespace": "default", "name": "example", "identity": "a", empty: ""}
    with pytest.raises(InvalidArgumentError, check=having(argument=f"LeaseLock.{empty}")):
        LeaseLock(FakeClient(FakeServer()), **options)


async def test_requests_have_namespace_and_timeout() -> None:
    class Watched(FakeClient):
        seen: ClassVar[list[dict[str, object]]] = []

        async def create(self, *given: Any, **options: Any) -> Resource:
            self.seen.append(options)
            return await super().create(*given, **options)

        async def get(self, *given: Any, **options: Any) -> Resource:
            self.seen.append({"name": given[1], **options})
            return await super().get(*given, **options)

        async def update(self, *given: Any, **options: Any) -> Resource:
            self.seen.append(options)
            return await super().update(*given, **options)

    lock = LeaseLock(Watched(FakeServer()), namespace="team", name="example", identity="a", labels={"app": "x"})
    created = await lock.create(RECORD, timeout=1.5)
    state = await lock.get(timeout=2.5)
    assert state == created
    await lock.update(RECORD, created.version, timeout=3.5)
    assert Watched.seen == [
        {"namespace": "team", "timeout": 1.5},
        {"name": "example", "namespace": "team", "timeout": 2.5},
        {"timeout": 3.5},
    ]


async def test_new_lease_has_labels() -> None:
    server = FakeServer()
    await make(server, labels={"app": "x"}).create(RECORD, timeout=1)
    assert server.leases["default/example"].labels == {"app": "x"}


async def test_deleted_lease_is_forgotten() -> None:
    server, recorder = FakeServer(), Recorder()
    lock = make(server, recorder=recorder)
    created = await lock.create(RECORD, timeout=1)
    del server.leases["default/example"]
    assert await lock.get(timeout=1) is None
    with pytest.raises(RuntimeError):
        await lock.update(RECORD, created.version, timeout=1)
    lock.record_event("stopped leading")
    [(reference, *_)] = recorder.events
    assert (reference.uid, reference.resource_version) == ("", "")


async def test_lock_on_separate_connection() -> None:
    recorder = Recorder()
    options: dict[str, Any] = {"namespace": "team", "name": "example", "identity": "a"}
    client = Client(ClientConfig(server="http://127.0.0.1:1"))
    lock = LeaseLock(client, labels={"app": "x"}, recorder=recorder, **options)
    moving = lock.on_own_connection()
    assert moving is not None
    async with moving as moved:
        assert type(moved) is LeaseLock
        assert moved.client is not client
        assert (moved.namespace, moved.name, moved.identity) == ("team", "example", "a")
        assert moved._labels == {"app": "x"}
        moved.record_event("became leader")
    assert [(about.name, message) for about, _, _, message in recorder.events] == [("example", "a became leader")]
    assert repr(moved) == "<LeaseLock team/example for a>"
    with pytest.raises(TransportError, match="closed"):
        await moved.get(timeout=1)
    assert LeaseLock(FakeClient(FakeServer()), **options).on_own_connection() is None
    await client.close()


async def test_lock_uses_reserved_connection_pool() -> None:
    pools = list[str]()

    class Watched(OtherWrites):
        async def request(self, request: HttpRequest) -> HttpResponse:
            pools.append(str(request.pool))
            return HttpResponse(status=404, body=b'{"kind": "Status", "code": 404, "details": {"name": "example"}}')

    client = Client(ClientConfig(server="http://fake"), transport=Watched(FakeServer()))
    lock = LeaseLock(client, namespace="default", name="example", identity="a")
    assert lock.client is client
    assert await lock.get(timeout=1) is None
    assert pools == [str(Pool.LEADER_ELECTION)]
