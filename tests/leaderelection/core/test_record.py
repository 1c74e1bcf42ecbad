from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from deltaloop.api.errors import MalformedObjectError
from deltaloop.leaderelection.core.record import (
    LeaderElectionRecord,
    lease_with_record,
    new_lease,
    record_from_lease,
    whole_seconds,
)

ACQUIRED = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
RENEWED = datetime(2026, 1, 2, 3, 5, 0, 1, tzinfo=UTC)
RECORD = LeaderElectionRecord(
    holder_identity="me",
    lease_duration_seconds=15,
    acquire_time=ACQUIRED,
    renew_time=RENEWED,
    leader_transitions=3,
)


def test_a_record_survives_the_way_through_a_lease() -> None:
    assert record_from_lease(new_lease(RECORD, namespace="default", name="example")) == RECORD


def test_a_new_lease_as_it_goes_to_the_server() -> None:
    assert new_lease(RECORD, namespace="default", name="example", labels={"app": "x"}) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "default", "name": "example", "labels": {"app": "x"}},
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-02T03:04:05.678901Z",
            "renewTime": "2026-01-02T03:05:00.000001Z",
            "leaseTransitions": 3,
        },
    }


def test_what_belongs_to_others_is_kept_on_update() -> None:
    lease: dict[str, Any] = {
        "metadata": {"name": "example", "labels": {"theirs": "1", "app": "old"}, "annotations": {"note": "kept"}},
        "spec": {"strategy": "OldestEmulationVersion", "preferredHolder": "other", "holderIdentity": "other"},
        "extra": [1],
    }
    changed = lease_with_record(lease, RECORD, labels={"app": "x"})
    assert changed["metadata"]["labels"] == {"theirs": "1", "app": "x"}
    assert changed["metadata"]["annotations"] == {"note": "kept"}
    assert changed["spec"]["strategy"] == "OldestEmulationVersion"
    assert changed["spec"]["preferredHolder"] == "other"
    assert changed["extra"] == [1]
    assert lease["spec"]["holderIdentity"] == "other"


@pytest.mark.parametrize("lease", [{}, {"spec": None}, {"spec": {}}, {"spec": {"holderIdentity": None}}])
def test_what_a_lease_does_not_say_is_empty(lease: dict[str, Any]) -> None:
    assert record_from_lease(lease) == LeaderElectionRecord()


def test_labels_of_a_lease_may_be_null() -> None:
    assert lease_with_record({"metadata": {"labels": None}}, RECORD, labels={"a": "b"})["metadata"]["labels"] == {
        "a": "b"
    }


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"holderIdentity": 5}, "holderIdentity"),
        ({"leaseDurationSeconds": "15"}, "leaseDurationSeconds"),
        ({"leaseTransitions": True}, "leaseTransitions"),
        ({"renewTime": "yesterday"}, "renewTime"),
        ([], ""),
        ("x", "spec"),
    ],
)
def test_a_malformed_lease_is_refused_by_field(spec: object, field: str) -> None:
    if not field:
        assert record_from_lease({"spec": spec}) == LeaderElectionRecord()
        return
    with pytest.raises(MalformedObjectError, match=field):
        record_from_lease({"spec": spec})


@pytest.mark.parametrize(("duration", "whole"), [(15.0, 15), (14.1, 15), (0.2, 1), (1.0, 1), (60.5, 61)])
def test_lease_durations_are_rounded_up(duration: float, whole: int) -> None:
    assert whole_seconds(duration) == whole


def test_a_time_that_is_not_known_is_left_out() -> None:
    lease = lease_with_record({"spec": {"renewTime": "2026-01-02T03:05:00.000001Z"}}, LeaderElectionRecord())
    assert "renewTime" not in lease["spec"]
