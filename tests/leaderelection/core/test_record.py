from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from deltaloop.leaderelection.core.record import (
    LEADER_ANNOTATION,
    UNKNOWN_LEADER,
    LeaderElectionRecord,
    decode_record,
    encode_record,
    lease_with_record,
    object_with_record,
    record_from_annotations,
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


def test_record_round_trips_through_lease() -> None:
    assert record_from_lease(lease_with_record({}, RECORD)) == (RECORD, ())


def test_new_lease_fields() -> None:
    empty = {"kind": "Lease", "metadata": {"namespace": "default", "name": "example"}}
    assert lease_with_record(empty, RECORD, labels={"app": "x"}) == {
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


def test_update_keeps_fields_of_other_writers() -> None:
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
def test_missing_lease_fields_are_empty(lease: dict[str, Any]) -> None:
    assert record_from_lease(lease) == (LeaderElectionRecord(), ())


def test_labels_of_a_lease_may_be_null() -> None:
    assert lease_with_record({"metadata": {"labels": None}}, RECORD, labels={"a": "b"})["metadata"]["labels"] == {
        "a": "b"
    }


@pytest.mark.parametrize("spec", ["x", [], 5])
def test_invalid_spec_has_unknown_holder(spec: object) -> None:
    record, unreadable = record_from_lease({"spec": spec})
    assert (record.holder_identity, record.lease_duration_seconds, unreadable) == (UNKNOWN_LEADER, 0, ("spec",))
    assert lease_with_record({"spec": spec}, RECORD)["spec"]["holderIdentity"] == "me"


@pytest.mark.parametrize("value", [5, True, ["a"], {}])
def test_unreadable_holder_is_unknown(value: object) -> None:
    record, unreadable = record_from_lease({"spec": {"holderIdentity": value}})
    assert (record.holder_identity, unreadable) == (UNKNOWN_LEADER, ("holderIdentity",))


@pytest.mark.parametrize(
    ("value", "number", "readable"),
    [
        (None, 0, True),
        (15, 15, True),
        (15.0, 15, True),
        (15.2, 16, True),
        ("17", 17, True),
        (-1, 0, True),
        (2**31 - 1, 2**31 - 1, True),
        (2**31, 2**31 - 1, True),
        (10**400, 2**31 - 1, True),
        ("9" * 400, 2**31 - 1, True),
        (math.inf, 2**31 - 1, True),
        (-math.inf, 0, True),
        (math.nan, 0, False),
        (True, 0, False),
        ("1s", 0, False),
        ("\u0661", 0, False),
        ("", 0, False),
        ([15], 0, False),
    ],
)
@pytest.mark.parametrize("field", ["leaseDurationSeconds", "leaseTransitions"])
def test_numbers_of_other_writers_are_normalized(field: str, value: object, number: int, readable: bool) -> None:
    record, unreadable = record_from_lease({"spec": {"holderIdentity": "a", field: value}})
    found = {"leaseDurationSeconds": record.lease_duration_seconds, "leaseTransitions": record.leader_transitions}
    assert found.pop(field) == number
    assert ([*found.values()], unreadable) == ([0], () if readable else (field,))


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("", True),
        ("2026-01-02T03:05:00Z", True),
        ("2026-01-02T03:05:00.1Z", True),
        ("2026-01-02T03:05:00.123456789Z", True),
        ("2026-01-02T05:05:00.000001+02:00", True),
        ("0001-01-01T00:00:00Z", True),
        ("0001-01-01T00:00:00+14:00", False),
        ("9999-12-31T23:59:59-12:00", False),
        ("0000-01-01T00:00:00Z", False),
        ("2026-01-02T03:05:60Z", False),
        ("2026-11-20 23:59:00.176697", False),
        ("yesterday", False),
        (5, False),
    ],
)
def test_times_of_other_writers_do_not_block_candidates(text: object, readable: bool) -> None:
    record, unreadable = record_from_lease({"spec": {"acquireTime": text, "renewTime": text}})
    assert unreadable == (() if readable else ("acquireTime", "renewTime"))
    assert (record.renew_time is not None) is (readable and bool(text))


@pytest.mark.parametrize(("duration", "whole"), [(15.0, 15), (14.1, 15), (0.2, 1), (1.0, 1), (60.5, 61)])
def test_lease_durations_are_rounded_up(duration: float, whole: int) -> None:
    assert whole_seconds(duration) == whole


def test_unknown_time_is_omitted() -> None:
    lease = lease_with_record({"spec": {"renewTime": "2026-01-02T03:05:00.000001Z"}}, LeaderElectionRecord())
    assert "renewTime" not in lease["spec"]


AT = datetime(2026, 1, 2, 3, 4, 5, 999000, tzinfo=timezone(timedelta(hours=1)))

# What Go's encoder makes of the same records.
GO = [
    (
        LeaderElectionRecord(),
        '{"holderIdentity":"","leaseDurationSeconds":0,"acquireTime":null,"renewTime":null,"leaderTransitions":0}',
    ),
    (
        LeaderElectionRecord(
            holder_identity="node-1_<a&b>",
            lease_duration_seconds=15,
            acquire_time=AT,
            renew_time=AT,
            leader_transitions=3,
        ),
        (
            '{"holderIdentity":"node-1_\\u003ca\\u0026b\\u003e","leaseDurationSeconds":15,'
            '"acquireTime":"2026-01-02T02:04:05Z","renewTime":"2026-01-02T02:04:05Z","leaderTransitions":3}'
        ),
    ),
    (
        LeaderElectionRecord(
            holder_identity='ä\u2028\u2029"\\/\t\b\f\x01\x7f\U0001f600', lease_duration_seconds=1, acquire_time=AT
        ),
        (
            '{"holderIdentity":"ä\\u2028\\u2029\\"\\\\/\\t\\b\\f\\u0001\x7f\U0001f600","leaseDurationSeconds":1,'
            '"acquireTime":"2026-01-02T02:04:05Z","renewTime":null,"leaderTransitions":0}'
        ),
    ),
]


@pytest.mark.parametrize(("record", "text"), GO)
def test_record_encoding_matches_go_and_round_trips(record: LeaderElectionRecord, text: str) -> None:
    assert encode_record(record) == text
    assert encode_record(decode_record(text)[0]) == text
    assert decode_record(text)[0].holder_identity == record.holder_identity


def test_fields_of_newer_writers_are_ignored() -> None:
    text = '{"holderIdentity":"a","strategy":"","preferredHolder":"b","renewTime":"2026-01-02T02:04:05Z"}'
    record = LeaderElectionRecord(holder_identity="a", renew_time=datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC))
    assert decode_record(text) == (record, ())


UNKNOWN = LeaderElectionRecord(holder_identity=UNKNOWN_LEADER)


@pytest.mark.parametrize(
    ("text", "record", "unreadable"),
    [
        ("null", LeaderElectionRecord(), ()),
        ("{}", LeaderElectionRecord(), ()),
        ("nonsense", UNKNOWN, (LEADER_ANNOTATION,)),
        ("", UNKNOWN, (LEADER_ANNOTATION,)),
        ("[]", UNKNOWN, (LEADER_ANNOTATION,)),
        ("[" * 100_000, UNKNOWN, (LEADER_ANNOTATION,)),
        (f'{{"leaderTransitions":{"9" * 5000}}}', UNKNOWN, (LEADER_ANNOTATION,)),
        ('{"leaderTransitions":7}', LeaderElectionRecord(leader_transitions=7), ()),
        ('{"leaseTransitions":7}', LeaderElectionRecord(), ()),
        ('{"holderIdentity":"\\ud800"}', LeaderElectionRecord(holder_identity="?"), ()),
    ],
)
def test_no_annotation_value_blocks_all_candidates(
    text: str, record: LeaderElectionRecord, unreadable: tuple[str, ...]
) -> None:
    assert record_from_annotations({LEADER_ANNOTATION: text}) == (record, unreadable)


def test_missing_annotation_is_empty_record() -> None:
    assert record_from_annotations({"other": "x"}) == (LeaderElectionRecord(), ())


def test_other_fields_of_object_are_kept() -> None:
    fields: dict[str, Any] = {
        "metadata": {"annotations": {"note": "kept"}, "labels": {"theirs": "1"}},
        "data": {"a": "b"},
    }
    changed = object_with_record(fields, GO[1][0], labels={"ours": "2"})
    assert changed == {
        "metadata": {
            "annotations": {"note": "kept", LEADER_ANNOTATION: GO[1][1]},
            "labels": {"theirs": "1", "ours": "2"},
        },
        "data": {"a": "b"},
    }
    assert fields["metadata"]["annotations"] == {"note": "kept"}


def test_new_object_contains_only_the_record() -> None:
    empty = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "x"}}
    assert object_with_record(empty, GO[0][0]) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "default", "name": "x", "annotations": {LEADER_ANNOTATION: GO[0][1]}},
    }
