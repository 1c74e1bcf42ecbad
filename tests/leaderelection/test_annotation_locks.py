from __future__ import annotations

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.references import ObjectReference
from deltaloop.api.status import ConflictError
from deltaloop.leaderelection import (
    LEADER_ANNOTATION,
    UNKNOWN_LEADER,
    ConfigMapLock,
    EndpointsLock,
    LeaderElectionRecord,
)
from tests.having import having
from tests.leaderelection.fake_server import FakeClient, FakeServer
from tests.leaderelection.test_lock import Recorder

RECORD = LeaderElectionRecord(holder_identity="a", lease_duration_seconds=15)
WRITTEN = '{"holderIdentity":"a","leaseDurationSeconds":15,"acquireTime":null,"renewTime":null,"leaderTransitions":0}'

LOCKS = [ConfigMapLock, EndpointsLock]


def make(
    lock: type[ConfigMapLock | EndpointsLock], **options: object
) -> tuple[ConfigMapLock | EndpointsLock, FakeServer]:
    server = FakeServer(kind=lock.kind)
    return lock(FakeClient(server), namespace="default", name="example", identity="a", **options), server  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", LOCKS)
async def test_create_get_and_update(kind: type[ConfigMapLock | EndpointsLock]) -> None:
    lock, server = make(kind)
    assert await lock.get(timeout=1) is None
    created = await lock.create(RECORD, timeout=1)
    assert server.leases["default/example"].annotations == {LEADER_ANNOTATION: WRITTEN}
    assert server.leases["default/example"].kind == kind.kind.kind
    assert await lock.get(timeout=1) == created
    updated = await lock.update(LeaderElectionRecord(holder_identity="b"), created.version, timeout=1)
    assert updated.record.holder_identity == "b"
    with pytest.raises(RuntimeError):
        await lock.update(RECORD, created.version, timeout=1)


async def test_existing_object_is_used_and_its_fields_are_kept() -> None:
    lock, server = make(ConfigMapLock, labels={"ours": "1"})
    theirs = {"metadata": {"namespace": "default", "name": "example", "annotations": {"note": "kept"}}}
    server.create({**theirs, "apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "value"}})
    state = await lock.get(timeout=1)
    assert state is not None
    assert state.record == LeaderElectionRecord()
    await lock.update(RECORD, state.version, timeout=1)
    stored = server.leases["default/example"]
    assert stored.annotations == {"note": "kept", LEADER_ANNOTATION: WRITTEN}
    assert stored["data"]["key"] == "value"
    assert stored.labels == {"ours": "1"}


async def test_new_object_has_labels() -> None:
    lock, server = make(ConfigMapLock, labels={"ours": "1"})
    await lock.create(RECORD, timeout=1)
    assert server.leases["default/example"].labels == {"ours": "1"}


async def test_concurrent_change_is_a_conflict() -> None:
    lock, server = make(EndpointsLock)
    created = await lock.create(RECORD, timeout=1)
    server.edit(lambda fields: fields["metadata"].update(labels={"x": "y"}))
    with pytest.raises(ConflictError):
        await lock.update(RECORD, created.version, timeout=1)


async def test_a_broken_annotation_is_logged_once_and_replaced(caplog: pytest.LogCaptureFixture) -> None:
    lock, server = make(ConfigMapLock)
    await lock.create(RECORD, timeout=1)
    server.edit(lambda fields: fields["metadata"]["annotations"].update({LEADER_ANNOTATION: "{"}))
    state = await lock.get(timeout=1)
    assert state is not None
    assert state.record.holder_identity == UNKNOWN_LEADER
    await lock.get(timeout=1)
    logged = [vars(record) for record in caplog.records if record.name == "deltaloop.leaderelection"]
    assert [(each["lock"], each["fields"]) for each in logged] == [("default/example", [LEADER_ANNOTATION])]
    assert (await lock.update(RECORD, state.version, timeout=1)).record == RECORD


async def test_events_refer_to_the_object() -> None:
    recorder = Recorder()
    lock, _ = make(ConfigMapLock, recorder=recorder)
    await lock.create(RECORD, timeout=1)
    lock.record_event("became leader")
    assert recorder.events[0][0] == ObjectReference(
        api_version="v1", kind="ConfigMap", namespace="default", name="example", uid="uid-1", resource_version="1"
    )


def test_empty_name_error_contains_lock_class() -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="EndpointsLock.name")):
        EndpointsLock(FakeClient(FakeServer()), namespace="default", name="", identity="a")
