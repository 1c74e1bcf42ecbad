"""Tests of the Database operator: drift, crashes, failing writes, a killed leader and backups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prometheus_client import REGISTRY

import deltaloop as dl
from deltaloop.apiserver import Fault
from deltaloop.testing import CrashMoment, Harness, crash_at_every_write
from examples.database.controller import Database, DatabaseSpec, Settings, reconcile

CRD = Path(__file__).parent / "crd.yaml"
SET, SECRET, JOB = dl.kinds.STATEFUL_SET, dl.kinds.SECRET, dl.kinds.JOB
FOREGROUND = dl.DeleteOptions(propagation_policy="Foreground")


async def start(harness: Harness, *, backups_fail: bool = False, **spec: Any) -> None:
    await harness.environment("jobs", failing=lambda _: backups_fail)
    await harness.install(CRD)
    await harness.start(reconcile)
    await harness.client.create(Database, Database(metadata=dl.ObjectMeta(name="a"), spec=DatabaseSpec(**spec)))
    await harness.settled(timeout=600)


async def ready(harness: Harness) -> tuple[str, str]:
    status = (await harness.client.get(Database, "a")).status
    assert status is not None
    [condition] = status.conditions
    return condition.status, condition.reason


async def password(harness: Harness) -> str:
    return str((await harness.client.get(SECRET, "a"))["data"]["POSTGRES_PASSWORD"])


async def lifecycle(harness: Harness) -> None:
    """Create a database, scale it up, and delete it in the foreground."""

    @harness.invariant
    async def servers_exist_until_backup_is_complete(client: dl.Client) -> None:
        database, servers = await client.find(Database, "a"), await client.find(SET, "a")
        made = any(job.get("status", {}).get("succeeded") for job in await client.list_all(JOB))
        if database is not None and database.metadata.deletion_timestamp and not made:
            assert servers is not None
            assert servers.deletion_timestamp is None

    await start(harness, replicas=1)
    before = await password(harness)
    await harness.client.patch(Database, "a", {"spec": {"replicas": 2}})
    await harness.settled(timeout=600)
    assert await password(harness) == before
    await harness.client.delete(Database, "a", options=FOREGROUND)
    await harness.settled(timeout=600)
    assert not [*await harness.client.list_all(Database), *await harness.client.list_all(SET)]
    [backup] = await harness.client.list_all(JOB)
    assert backup["status"]["succeeded"] == 1
    assert len([write for write in harness.writes if write.resource == "jobs.batch" and write.carried_out]) == 1


def test_crd_file_equals_generated_crd() -> None:
    assert [*dl.read_yaml_documents(CRD.read_text())] == [dl.generate_crd(Database)]


def backups(result: str) -> float:
    return REGISTRY.get_sample_value("database_backups_total", {"result": result}) or 0.0


async def test_database_is_created_and_deleted(deltaloop_harness: Harness) -> None:
    made = backups("made")
    await lifecycle(deltaloop_harness)
    assert backups("made") == made + 1
    assert {event.reason for event in deltaloop_harness.events} == {"Applied", "BackingUp"}
    written = [write for write in deltaloop_harness.writes if write.subresource == "status"]
    assert len({write.version for write in written}) == len(written)  # each write changed the status


async def test_backup_is_counted_once_if_finalizer_removal_fails(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    await start(harness)
    made, refused = backups("made"), Fault(do="refuse", verbs=("patch",), count=3)
    harness.faults.add(refused)
    await harness.client.delete(Database, "a")
    await harness.settled(timeout=600)
    assert [write.carried_out for write in harness.writes if write.verb == "patch"][-4:] == [False] * 3 + [True]
    assert not await harness.client.list_all(Database)
    assert backups("made") == made + 1


async def test_data_is_deleted_only_after_successful_backup(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    failed = backups("failed")
    await start(harness, backups_fail=True)
    await harness.client.delete(Database, "a", options=FOREGROUND)
    for process in (1, 2):
        await harness.settled(timeout=7200)
        assert await harness.client.find(SET, "a")
        assert await ready(harness) == ("False", "TerminalError")
        assert backups("failed") == failed + process
        await harness.restart(crash=process == 1)
    await harness.environment(failing=lambda _: False)
    await harness.client.delete_collection(JOB, namespace=harness.client.namespace)
    await harness.settled(timeout=7200)
    assert not await harness.client.list_all(Database)


async def test_backup_of_an_earlier_database_does_not_count(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    for _ in range(2):
        await start(harness)
        await harness.client.delete(Database, "a")
        await harness.settled(timeout=600)
        await harness.replicas[-1].stop()
    assert len(await harness.client.list_all(JOB)) == 2


async def test_status_contains_ready_servers(deltaloop_harness: Harness) -> None:
    await deltaloop_harness.environment("statefulsets")
    await start(deltaloop_harness, replicas=2)
    status = (await deltaloop_harness.client.get(Database, "a")).status
    assert status is not None
    assert (status.ready_replicas, status.observed_generation) == (2, 1)
    assert await ready(deltaloop_harness) == ("True", "Running")


async def test_database_converges_after_crash_at_each_write() -> None:
    moments = [CrashMoment.AFTER]  # a crash before a write equals a crash after the previous write
    assert await crash_at_every_write(lifecycle, moments=moments) >= 12


async def test_database_converges_with_failing_writes(deltaloop_harness: Harness) -> None:
    with deltaloop_harness.fail_writes(0.3, seed=1):
        await lifecycle(deltaloop_harness)


async def test_drift_is_corrected_and_foreign_fields_stay(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    await start(harness, replicas=3)
    await harness.client.patch(SET, "a", {"spec": {"replicas": 9}, "metadata": {"annotations": {"of": "others"}}})
    await harness.client.delete(dl.kinds.SERVICE, "a")
    await harness.settled()
    corrected = await harness.client.get(SET, "a")
    assert (corrected["spec"]["replicas"], corrected.annotations["of"]) == (3, "others")
    assert (await harness.client.get(dl.kinds.SERVICE, "a"))["spec"]["clusterIP"] == "None"


async def test_settings_follow_config_map(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    await start(harness, config_ref=Settings("settings"))
    assert await ready(harness) == ("False", "ConfigMissing")
    for number in ("100", "200"):
        settings: dict[str, Any] = {"metadata": {"name": "settings"}, "data": {"max_connections": number}}
        await harness.client.apply(dl.kinds.CONFIG_MAP, settings)
        await harness.settled()
        [container] = (await harness.client.get(SET, "a"))["spec"]["template"]["spec"]["containers"]
        assert container["args"] == ["-c", f"max_connections={number}"]


async def test_standby_continues_after_leader_is_killed(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    await harness.install(CRD)
    first = await harness.start(reconcile, leader_election=True)
    second = await harness.start(reconcile, leader_election=True)
    await harness.client.create(Database, Database(metadata=dl.ObjectMeta(name="a"), spec=DatabaseSpec()))
    await harness.settled()
    before = await password(harness)
    await first.crash()
    await harness.client.patch(Database, "a", {"spec": {"replicas": 3}})
    await harness.settled()
    assert harness.leader is second
    assert (await harness.client.get(SET, "a"))["spec"]["replicas"] == 3
    assert await password(harness) == before
