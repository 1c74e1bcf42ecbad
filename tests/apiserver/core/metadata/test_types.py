"""Metadata as Go reads it: which wrong value is told."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.status import BadRequestError
from deltaloop.apiserver.core.metadata.types import (
    check_metadata_types,
    drop_unreadable,
    reads_as_entries,
    unreadable_type,
)
from tests.apiserver.core.built_in import BUILT_IN_RESOURCES
from tests.apiserver.core.custom_resources import served_foo

FOO = served_foo()
CONFIG_MAP = next(each for each in BUILT_IN_RESOURCES if each.type == kinds.CONFIG_MAP)


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        (1, "number into Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
        ({"uid": 1}, "number into Go struct field ObjectMeta.metadata.uid of type types.UID"),
        ({"labels": {"a": 1}}, "number into Go struct field ObjectMeta.metadata.labels of type string"),
        ({"selfLink": True}, "bool into Go struct field ObjectMeta.metadata.selfLink of type string"),
        ({"generation": 2.0}, "number 2.0 into Go struct field ObjectMeta.metadata.generation of type int64"),
        (
            {"generation": 1 << 70},
            f"number {1 << 70} into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            {"managedFields": [{"manager": 1}]},
            "number into Go struct field ManagedFieldsEntry.metadata.managedFields.manager of type string",
        ),
    ],
)
def test_wrong_type_is_reported(metadata: Any, why: str) -> None:
    fields: dict[str, Any] = {"metadata": metadata}
    with pytest.raises(BadRequestError, match="cannot be handled as a ConfigMap") as raised:
        CONFIG_MAP.codec.read(fields, "whole")
    assert raised.value.status.message.endswith(f": json: cannot unmarshal {why}")


@pytest.mark.parametrize(
    "metadata",
    [
        {"deletionTimestamp": ""},
        {"creationTimestamp": "x", "labels": 1},
        {"managedFields": [{"time": "yesterday"}, {"manager": 1}]},
    ],
)
def test_first_invalid_value_is_reported(metadata: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError, match="parsing time as"):
        CONFIG_MAP.codec.read({"metadata": metadata}, "whole")


def test_whole_floats_are_integers_in_custom_resources() -> None:
    fields: dict[str, Any] = {"metadata": {"generation": 2.0}}
    check_metadata_types(FOO.type, fields)
    assert type(fields["metadata"]["generation"]) is int


def test_error_message_begins_with_the_sent_kind_and_version() -> None:
    fields: dict[str, Any] = {"kind": "Other", "apiVersion": "example.com/v7", "metadata": {"labels": 1}}
    with pytest.raises(BadRequestError, match=f'^Other in version "v7" cannot be handled as a {FOO.type.kind}: '):
        check_metadata_types(FOO.type, fields)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"kind": 1}, "number into Go struct field .kind"),
        ({"kind": "x", "apiVersion": []}, "array into Go struct field .apiVersion"),
        ({"kind": None, "apiVersion": "v1"}, ""),
        ({}, ""),
    ],
)
def test_kind_and_api_version_must_be_strings(fields: dict[str, Any], found: str) -> None:
    assert found in unreadable_type(fields)
    assert bool(unreadable_type(fields)) is bool(found)


def test_unreadable_metadata_is_dropped_from_applied_objects() -> None:
    metadata: dict[str, Any] = {
        "name": "a",
        "creationTimestamp": "x",
        "deletionTimestamp": "2026-01-02T03:04:05Z",
        "generation": 1.5,
        "deletionGracePeriodSeconds": 5,
    }
    drop_unreadable(metadata)
    assert metadata == {"name": "a", "deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 5}


def test_malformed_managed_fields_are_detected() -> None:
    empty: list[dict[str, Any]] = [{}]
    assert reads_as_entries(empty)
    assert reads_as_entries([])
    assert not reads_as_entries(None)
    assert not reads_as_entries([{"time": "x"}])
    assert not reads_as_entries([1])
