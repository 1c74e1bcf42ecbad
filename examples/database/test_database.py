"""The Database operator: drift, crashes, failing writes, a killed leader, and a backup in the middle of all that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prometheus_client import REGISTRY

import deltaloop as dl
from deltaloop.testing import CrashMoment, Harness, crash_at_every_write
from examples.database.controller import Database, DatabaseSpec, Settings, reconcile

CRD = Path(__file__).parent / "crd.yaml"
SET, SECRET, JOB = dl.kinds.STATEFUL_SET, dl.kinds.SECRET, dl.kinds.JOB


async def begin(harness: Harness, **spec: Any) -> None:
    await harness.install(CRD)
    await harness.start(reconcile)
    await harness.client.create(Database, Database(metadata=dl.ObjectMeta(name="a"), spec=DatabaseSpec(**spec)))
    await harness.settled(timeout=600)


async def run_servers(harness: Harness) -> None:
    """Say what the controller of StatefulSets says once all servers are up."""
    found = await harness.client.get(SET, "a")
    number = found["spec"]["replicas"]
    counts = {f"{name}eplicas": number for name in ("r", "readyR", "availableR", "currentR", "updatedR")}
    status = {"status": {**counts, "observedGeneration": found.generation}}
    await harness.client.patch(SET, "a", status, subresource="status")
    await harness.settled(timeout=600)


async def end_backup(harness: Harness, how: str = "Complete") -> None:
    """Say what the controller of Jobs says once the Pod has ended."""
    found = await harness.client.get(JOB, "a-last-backup")
    at, first = "2026-11-23T00:00:00Z", {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[how]
    status: dict[str, Any] = {"startTime": at, "conditions": [{"type": t, "status": "True"} for t in (first, how)]}
    if how == "Complete":
        status["completionTime"] = at
    await harness.client.patch(JOB, found.name, {"status": status}, subresource="status")
    await harness.settled(timeout=600)


async def ready(harness: Harness) -> tuple[str, str]:
    status = (await harness.client.get(Database, "a")).status
    assert status is not None
    [condition] = status.conditions
    return condition.status, condition.reason


async def password(harness: Harness) -> str:
    return str((await harness.client.get(SECRET, "a"))["data"]["POSTGRES_PASSWORD"])


async def whole_life(harness: Harness) -> None:
    """Make a database, have it run, grow and go; whatever happens on the way, it comes to this."""
    await begin(harness, replicas=1)
    before = await password(harness)
    assert await ready(harness) == ("False", "Starting")
    await run_servers(harness)
    assert await ready(harness) == ("True", "Running")
    await harness.client.patch(Database, "a", {"spec": {"replicas": 2}})
    await harness.settled(timeout=600)
    await run_servers(harness)
    status = (await harness.client.get(Database, "a")).status
    assert status is not None
    assert (status.ready_replicas, status.observed_generation) == (2, 2)
    assert await password(harness) == before
    await harness.client.delete(Database, "a")
    await harness.settled(timeout=600)
    assert (await harness.client.get(Database, "a")).metadata.deletion_timestamp  # until its backup is made
    await end_backup(harness)
    assert not await harness.client.list_all(Database)
    backups = [write for write in harness.writes if write.resource == "jobs.batch" and write.carried_out]
    assert len(backups) <= 1


def test_the_definition_is_the_classes() -> None:
    assert [*dl.read_yaml_documents(CRD.read_text())] == [dl.crd_of(Database)]


def backups_made() -> float:
    return REGISTRY.get_sample_value("database_backups_total", {"result": "made"}) or 0.0


async def test_it_lives_and_dies(deltaloop_harness: Harness) -> None:
    made = backups_made()
    await whole_life(deltaloop_harness)
    assert backups_made() == made + 1
    assert {event.reason for event in deltaloop_harness.events} == {"Applied", "BackingUp"}
    written = [write for write in deltaloop_harness.writes if write.subresource == "status"]
    assert len({write.version for write in written}) == len(written) == 4  # none that changed nothing


async def test_it_may_crash_at_every_write() -> None:
    moments = [CrashMoment.AFTER]  # before a write is after the one before it
    assert await crash_at_every_write(whole_life, moments=moments) >= 12


async def test_a_third_of_the_writes_fails(deltaloop_harness: Harness) -> None:
    with deltaloop_harness.fail_writes(0.3, seed=1):
        await whole_life(deltaloop_harness)


async def test_drift_is_mended_and_what_others_set_stays(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    await begin(harness, replicas=3)
    await harness.client.patch(SET, "a", {"spec": {"replicas": 9}, "metadata": {"annotations": {"of": "others"}}})
    await harness.client.delete(dl.kinds.SERVICE, "a")
    await harness.settled()
    mended = await harness.client.get(SET, "a")
    assert (mended["spec"]["replicas"], mended.annotations["of"]) == (3, "others")
    assert (await harness.client.get(dl.kinds.SERVICE, "a"))["spec"]["clusterIP"] == "None"


async def test_settings_come_from_a_config_map_and_follow_it(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    await begin(harness, config_ref=Settings("settings"))
    assert await ready(harness) == ("False", "ConfigMissing")
    for number in ("100", "200"):
        settings: dict[str, Any] = {"metadata": {"name": "settings"}, "data": {"max_connections": number}}
        await harness.client.apply(dl.kinds.CONFIG_MAP, settings)
        await harness.settled()
        [container] = (await harness.client.get(SET, "a"))["spec"]["template"]["spec"]["containers"]
        assert container["args"] == ["-c", f"max_connections={number}"]


async def test_the_leader_is_killed(deltaloop_harness: Harness) -> None:
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


async def test_a_restart_during_the_backup_makes_no_second_one(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    await begin(harness)
    await harness.client.delete(Database, "a")
    await harness.settled()
    for crash in (True, False):
        await harness.restart(crash=crash)
        await harness.settled()
    [backup] = await harness.client.list_all(JOB)
    assert backup.owner_references[0].name == "a"
    await end_backup(harness, "Failed")
    assert not await harness.client.list_all(Database)
