"""Which writes count, which of them crash their program, and how many a share strikes."""

from __future__ import annotations

import random

import pytest

from deltaloop.apiserver.core.fault_rules import Fault
from deltaloop.apiserver.core.wire.request_info import RequestInfo, describe
from deltaloop.errors import InvalidArgumentError
from deltaloop.testing.injected_faults.core.program_writes import (
    CrashMoment,
    ProgramWrite,
    WritePlan,
    failing_share,
    is_object_write,
    key_of,
    made,
    verb_of,
)
from tests.having import having


def info_of(method: str, path: str) -> RequestInfo:
    return describe(method, path, tuple(path.strip("/").split("/")), {})


SECRETS = "/api/v1/namespaces/x/secrets"


@pytest.mark.parametrize(
    ("method", "path", "query", "counts"),
    [
        ("POST", SECRETS, {}, True),
        ("PUT", f"{SECRETS}/a", {}, True),
        ("PATCH", f"{SECRETS}/a", {}, True),
        ("PATCH", "/apis/example.com/v1/namespaces/x/databases/a/status", {}, True),
        ("DELETE", f"{SECRETS}/a", {}, True),
        ("DELETE", SECRETS, {}, True),
        ("POST", SECRETS, {"dryRun": "All"}, False),
        ("GET", f"{SECRETS}/a", {}, False),
        ("GET", SECRETS, {}, False),
        ("POST", "/api/v1/namespaces/x/events", {}, False),
        ("PATCH", "/apis/events.k8s.io/v1/namespaces/x/events/a", {}, False),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/x/leases/a", {}, False),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {}, False),
        ("POST", "/version", {}, False),
    ],
)
def test_writes_of_objects_are_recognized(method: str, path: str, query: dict[str, str], counts: bool) -> None:
    assert is_object_write(info_of(method, path), query) is counts


@pytest.mark.parametrize(
    ("path", "body", "key"),
    [
        (f"{SECRETS}/a", {"metadata": {"name": "b"}}, "x/a"),
        (SECRETS, {"metadata": {"name": "b", "generateName": "c-"}}, "x/b"),
        (SECRETS, {"metadata": {"generateName": "c-"}}, "x/c-"),
        ("/api/v1/nodes", {"metadata": {"name": "b"}}, "b"),
        (SECRETS, {}, "x/"),
    ],
)
def test_the_key_of_a_write(path: str, body: dict[str, object], key: str) -> None:
    assert key_of(info_of("POST", path), body) == key


def test_apply_is_distinguished_from_patch() -> None:
    patch = info_of("PATCH", f"{SECRETS}/a")
    assert verb_of(patch, "application/apply-patch+yaml") == "apply"
    assert verb_of(patch, "application/merge-patch+json") == "patch"


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.6, 1.0])
def test_failing_share_is_split_into_four_faults(share: float) -> None:
    plan = WritePlan(random.Random(1).random)
    for fault in failing_share(share):
        plan.faults.add(fault)
    write = info_of("POST", SECRETS)
    many = 8000
    struck = [plan.strike(write, is_write=True, replica="a").fault for _ in range(many)]
    ways = [(fault.do, fault.code) for fault in struck if fault is not None]
    assert len(ways) / many == pytest.approx(share, abs=0.02)
    for way in set(ways):
        assert ways.count(way) / many == pytest.approx(share / 4, abs=0.015)
    assert plan.strike(info_of("GET", SECRETS), is_write=False, replica="a").fault is None
    assert plan.strike(info_of("POST", "/api/v1/namespaces/x/events"), is_write=False, replica="a").fault is None


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_invalid_share_is_rejected(share: float) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="share")):
        failing_share(share)


def test_fault_for_one_replica_does_not_affect_others() -> None:
    plan = WritePlan(lambda: 0.5)
    plan.faults.add(Fault(do="drop", users=("a",)))
    write = info_of("POST", SECRETS)
    assert plan.strike(write, is_write=True, replica="a").fault is not None
    assert plan.strike(write, is_write=True, replica="b").fault is None


@pytest.mark.parametrize("moment", CrashMoment)
def test_planned_crash_happens_once_at_its_write(moment: CrashMoment) -> None:
    plan = WritePlan(lambda: 0.5)
    plan.crash = (2, moment)
    crashed = [
        (number, side)
        for number in [plan.next_numbers("create", "secrets", "")[0] for _ in range(4)]
        for side in CrashMoment
        if plan.crashes(number, side)
    ]
    assert crashed == [(2, moment)]
    assert not plan.crashes(2, moment)


@pytest.mark.parametrize(
    ("verb", "code", "stored", "is_it"),
    [
        ("update", 200, {"resourceVersion": "7"}, True),
        ("update", 200, {"resourceVersion": "6"}, False),
        ("update", 409, {"resourceVersion": "7"}, False),
        ("patch", 200, {"resourceVersion": "6", "deletionTimestamp": "2026-01-01T00:00:00Z"}, True),
        ("delete", 200, {"resourceVersion": "3"}, True),
        ("delete", 0, {}, False),
    ],
)
def test_own_creation_is_recognized(verb: str, code: int, stored: dict[str, str], *, is_it: bool) -> None:
    write = ProgramWrite(
        number=1,
        replica="a",
        task="",
        at=0.0,
        verb=verb,
        resource="pods",
        key="x/a",
        code=code,
        stored={"metadata": stored},
    )
    assert made(write, "pods", "x/a", 7) is is_it
    assert not made(write, "pods", "x/b", 7)
    assert not made(write, "secrets", "x/a", 7)


def test_repr_of_write_contains_no_data() -> None:
    write = ProgramWrite(
        number=1,
        replica="a",
        task="t",
        at=0.0,
        verb="create",
        resource="secrets",
        key="x/a",
        subresource="status",
        body={"data": "hidden"},
        stored={"data": "hidden"},
    )
    assert str(write) == "create secrets/status x/a"
    assert "hidden" not in repr(write)
    assert not write.carried_out
