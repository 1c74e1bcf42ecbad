from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from deltaloop.leaderelection.core.record import (
    LEADER_ANNOTATION,
    UNKNOWN_LEADER,
    LeaderElectionRecord,
    decode_record,
    encode_record,
    object_with_record,
    record_from_annotations,
)

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
