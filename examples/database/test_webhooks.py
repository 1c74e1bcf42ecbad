"""Webhooks of the Database operator: defaults, validation, conversion, and failing webhooks."""

from __future__ import annotations

import pytest

import deltaloop as dl
from deltaloop.errors import InternalServerError, InvalidError
from deltaloop.simulation import Simulation, parse_schedule
from deltaloop.testing import Harness, assert_conversion_round_trips
from examples.database.controller import Database, DatabaseSpec, Settings, reconcile
from examples.database.webhooks import WEBHOOKS, OldDatabase, OldDatabaseSpec, check, complete, to_new, to_old
from examples.simulation.ordinary import manage_databases_with_webhooks

DEFINITION = dl.generate_crd(Database, OldDatabase)
SET = dl.kinds.STATEFUL_SET
SIMULATION = Simulation(manage_databases_with_webhooks)


def named(name: str, **spec: object) -> Database:
    return Database(metadata=dl.ObjectMeta(name=name), spec=DatabaseSpec(**spec))  # type: ignore[arg-type]


def test_conversion_is_lossless() -> None:
    assert_conversion_round_trips(to_new, to_old, count=30)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("postgres", "postgres:18"),
        ("registry:5000/postgres", "registry:5000/postgres:18"),
        ("postgres:17", "postgres:17"),
        ("postgres@sha256:00", "postgres@sha256:00"),
    ],
)
def test_default_version_is_added_to_image(image: str, expected: str) -> None:
    database = named("a", image=image)
    complete(database)
    assert database.spec.image == expected


def test_missing_reference_is_accepted() -> None:
    request: dl.AdmissionRequest[Database] = dl.webhooks.admission_request(reads={dl.kinds.CONFIG_MAP: []})
    assert [*check(named("a", config_ref=Settings("fast")), request)] == []
    assert request.warnings == ("ConfigMap fast does not exist. The Database waits for it.",)


async def start(harness: Harness) -> None:
    await harness.install(DEFINITION)
    await harness.start(reconcile, webhooks=WEBHOOKS)


async def test_objects_are_defaulted_validated_and_converted(deltaloop_harness: Harness) -> None:
    client = deltaloop_harness.client
    await start(deltaloop_harness)
    made = await client.create(Database, named("a", image="postgres", replicas=3))
    assert made.spec.image == "postgres:18"
    await deltaloop_harness.settled()
    assert (await client.get(SET, "a"))["spec"]["replicas"] == 3
    with pytest.raises(InvalidError, match=r"spec\.storage: must not change") as caught:
        await client.patch(Database, "a", {"spec": {"storage": "2Gi"}})
    assert caught.value.status.details is not None
    assert [cause.field for cause in caught.value.status.details.causes] == ["spec.storage"]
    with pytest.raises(InvalidError, match="must have a version"):
        await client.create(Database, named("b", image="postgres:latest"))


async def test_old_clients_can_continue(deltaloop_harness: Harness) -> None:
    client = deltaloop_harness.client
    await start(deltaloop_harness)
    old = OldDatabase(metadata=dl.ObjectMeta(name="a"), spec=OldDatabaseSpec(servers=2, config_map="fast"))
    await client.create(OldDatabase, old)
    await deltaloop_harness.settled()
    new = await client.get(Database, "a")
    assert (new.spec.replicas, new.spec.config_ref) == (2, Settings("fast"))
    assert new.status is not None
    assert [each.reason for each in new.status.conditions] == ["ConfigMissing"]
    again = await client.get(OldDatabase, "a")
    assert (again.spec, again.status) == (old.spec, new.status)
    [edited] = [await client.patch(OldDatabase, "a", {"spec": {"servers": 1}})]
    assert edited.spec == OldDatabaseSpec(servers=1, config_map="fast")
    assert (await client.get(Database, "a")).spec.replicas == 1


async def test_webhooks_can_be_unavailable_or_slow(deltaloop_harness: Harness) -> None:
    harness, client = deltaloop_harness, deltaloop_harness.client
    await harness.install(DEFINITION)
    replica = await harness.start(reconcile, webhooks=WEBHOOKS)
    await client.create(Database, named("a"))
    await harness.settled()
    with replica.partition(), pytest.raises(InternalServerError, match="no endpoints available"):
        await client.patch(Database, "a", {"spec": {"replicas": 2}})
    replica.pause()
    with pytest.raises(InternalServerError, match="context deadline exceeded"):
        await client.patch(Database, "a", {"spec": {"replicas": 2}})
    replica.resume()
    await client.patch(Database, "a", {"spec": {"replicas": 2}})
    await harness.settled()
    assert (await client.get(SET, "a"))["spec"]["replicas"] == 2


async def test_webhook_errors_reject_requests(deltaloop_harness: Harness) -> None:
    @dl.validate(Database, name=check.name)
    def failing(_: Database) -> None:
        raise LookupError

    harness = deltaloop_harness
    await harness.install(DEFINITION)
    await harness.start(reconcile, webhooks=[complete, failing, to_new, to_old])
    with pytest.raises(InternalServerError, match="failed: LookupError"):
        await harness.client.create(Database, named("a"))
    await harness.restart()
    assert not await harness.client.list_all(Database)


@pytest.mark.parametrize(
    ("schedule", "code"),
    [
        ("crash-after:apply:secrets:1", 200),
        ("webhook-unavailable:patch:databases.example.com:1", 500),
        (
            "webhook-timeout:patch:databases.example.com:1",
            0,
        ),  # the timeout of a conversion, 30 s, equals the timeout of the request
        ("webhook-rejects:patch:databases.example.com:1", 403),
    ],
)
def test_database_converges_despite_crashes_and_failing_webhooks(schedule: str, code: int) -> None:
    run = SIMULATION.run(parse_schedule(schedule))
    assert (run.unused_faults, run.writes[0].code) == ((), code)
    assert SIMULATION.judge(parse_schedule(schedule), run) is None
