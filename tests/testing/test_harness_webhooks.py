"""Webhooks of programs under test: registered and called over the wire with no set-up; away, slow and wrong.

All of it in virtual time: the page ``docs/how-to/webhooks.md`` says what becomes of requests while nobody answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.errors import InternalServerError, InvalidArgumentError, InvalidError
from deltaloop.testing import Harness
from tests.having import having
from tests.webhooks.kinds import Database, OldDatabase, OldSpec, Spec, check, set_defaults, to_new, to_old

CRD = dl.generate_crd(Database, OldDatabase)
MAPS = dl.kinds.CONFIG_MAP


def named(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


@dl.validate(MAPS, timeout=2)
def not_empty(obj: dl.Resource) -> dl.FieldError | None:
    return None if obj.get("data") else dl.FieldError("data", "something is needed", "FieldValueRequired")


@dl.validate(dl.kinds.SECRET, failure_policy="Ignore", timeout=2)
def no_secrets(_: dl.Resource) -> dl.FieldError:
    return dl.FieldError("", "no secrets here")


async def test_webhooks_are_called_over_http(deltaloop_harness: Harness) -> None:
    harness, client = deltaloop_harness, deltaloop_harness.client
    await harness.install(CRD)
    await harness.start(webhooks=[check, set_defaults, to_new, to_old])
    with pytest.raises(InvalidError, match=r"check\.databases\.example\.com.*an odd number is needed"):
        await client.create(Database, Database(Spec(replicas=2), dl.ObjectMeta(name="a")))
    made = await client.create(Database, Database(Spec(replicas=3), dl.ObjectMeta(name="a")))
    assert made.spec.owner == "nobody"
    old = await client.get(OldDatabase, "a")
    assert old.spec == OldSpec(size=3, version="18")
    await client.create(OldDatabase, OldDatabase(OldSpec(size=5, version="17"), dl.ObjectMeta(name="b")))
    # What was made of it in v1 went through v1beta1, which has no owner: these conversions lose something.
    assert (await client.get(Database, "b")).spec == Spec(replicas=5, image="postgres:17")
    assert [each.spec.size for each in await client.list_all(OldDatabase)] == [3, 5]


async def test_dry_runs_warnings_and_deletions(deltaloop_harness: Harness) -> None:
    seen: list[tuple[str, bool]] = []

    @dl.validate(MAPS, operations=["CREATE", "DELETE"])
    def note(obj: dl.Resource, request: dl.AdmissionRequest[dl.Resource]) -> dl.FieldError | None:
        seen.append((request.operation, request.dry_run))
        return dl.FieldError("", "it stays") if request.operation == "DELETE" and obj["data"]["keep"] == "yes" else None

    client = deltaloop_harness.client
    await deltaloop_harness.start(webhooks=[note])
    await client.create(MAPS, named("a", keep="yes"), options=dl.WriteOptions(dry_run=True))
    await client.create(MAPS, named("a", keep="yes"))
    with pytest.raises(dl.ForbiddenError, match="it stays"):
        await client.delete(MAPS, "a")
    assert seen == [("CREATE", True), ("CREATE", False), ("DELETE", False)]


async def test_webhook_reads_declared_caches_only(deltaloop_harness: Harness) -> None:
    @dl.validate(MAPS, reads=[dl.kinds.SECRET])
    def has_a_secret(obj: dl.Resource, request: dl.AdmissionRequest[dl.Resource]) -> Iterator[dl.FieldError]:
        if request.lister(dl.kinds.SECRET).find(f"{request.namespace}/{obj.name}") is None:
            yield dl.FieldError("metadata.name", "there is no Secret of this name")

    @dl.validate(MAPS)
    def reads_in_secret(_: dl.Resource, request: dl.AdmissionRequest[dl.Resource]) -> None:
        request.lister(dl.kinds.SECRET)

    harness, client = deltaloop_harness, deltaloop_harness.client
    replica = await harness.start(webhooks=[has_a_secret])
    assert {check.name for check in replica.manager.readiness()} >= {"webhooks"}
    with pytest.raises(InvalidError, match="no Secret of this name"):
        await client.create(MAPS, named("a"))
    await client.create(dl.kinds.SECRET, {"metadata": {"name": "a"}})
    await harness.settled()
    await client.create(MAPS, named("a"))
    await replica.stop()
    await harness.start(webhooks=[has_a_secret, reads_in_secret])
    await client.delete(MAPS, "a")
    with pytest.raises(
        InternalServerError, match=r"webhook reads-in-secret.* failed: its reads do not include v1/Secret"
    ):
        await client.create(MAPS, named("a"))


async def test_failure_policy_applies_without_replicas(deltaloop_harness: Harness) -> None:
    harness, client = deltaloop_harness, deltaloop_harness.client
    first = await harness.start(webhooks=[not_empty, no_secrets])
    second = await harness.start(webhooks=[not_empty, no_secrets])
    with pytest.raises(InvalidError):
        await client.create(MAPS, named("a"))
    await first.crash()
    with pytest.raises(InvalidError):  # the other one answers
        await client.create(MAPS, named("a"))
    with pytest.raises(dl.ForbiddenError):
        await client.create(dl.kinds.SECRET, {"metadata": {"name": "s"}})
    await second.stop()
    with pytest.raises(InternalServerError, match="no endpoints available"):  # failurePolicy Fail
        await client.create(MAPS, named("b", of="b"))
    await client.create(dl.kinds.SECRET, {"metadata": {"name": "s"}})  # Ignore
    await client.create(dl.kinds.NAMESPACE, {"metadata": {"name": "other"}})  # nobody is asked about
    await second.start()
    await client.create(MAPS, named("b", of="b"))
    with second.partition(), pytest.raises(InternalServerError, match="no endpoints"):
        await client.create(MAPS, named("c", of="c"))


async def test_paused_webhook_times_out(deltaloop_harness: Harness) -> None:
    harness, client = deltaloop_harness, deltaloop_harness.client
    replica = await harness.start(webhooks=[not_empty, no_secrets])
    replica.pause()
    with pytest.raises(InternalServerError, match="context deadline exceeded"):
        await client.create(MAPS, named("a", of="a"))
    await client.create(dl.kinds.SECRET, {"metadata": {"name": "s"}})
    replica.resume()
    await client.create(MAPS, named("a", of="a"))


async def test_webhook_error_contains_name_but_no_object(deltaloop_harness: Harness) -> None:
    @dl.validate(MAPS)
    def wrong(obj: dl.Resource) -> None:
        raise ValueError(obj["data"]["secret"])

    await deltaloop_harness.start(webhooks=[wrong])
    with pytest.raises(InternalServerError) as caught:
        await deltaloop_harness.client.create(MAPS, named("a", secret="hidden"))
    assert "webhook wrong.configmaps.core failed: ValueError" in str(caught.value)
    assert "hidden" not in str(caught.value)


async def test_conversion_webhook_needs_installed_crd(deltaloop_harness: Harness) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="webhooks")):
        await deltaloop_harness.start(webhooks=[to_new, to_old])
    with pytest.raises(InvalidArgumentError, check=having(argument="controllers")):
        await deltaloop_harness.start()
