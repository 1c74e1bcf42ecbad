"""What a merge makes of an object, read as its kind: numbers may be written as 2.0, and types are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.apiserver.core.metadata.types import converting_words
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.schemas.converting import convert_object
from tests.apiserver.core.built_in import built_in_registry


def served(group: str, plural: str) -> ServedResource:
    found = built_in_registry().find(group, "v1", plural)
    assert found is not None
    return found


def convert_merged(resource: ServedResource, fields: dict[str, Any]) -> str:
    fault = convert_object(resource.schema.tree, fields)
    return converting_words(fault) if fault is not None else ""


DEPLOYMENT, SECRET = served("apps", "deployments"), served("", "secrets")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"metadata": {"labels": {"a": 1}}}, "cannot convert int64 to string"),
        ({"metadata": {"labels": {"a": 1.5}}}, "unrecognized type: string"),
        ({"metadata": {"labels": {"a": True}}}, "unrecognized type: string"),
        ({"metadata": {"labels": ["a"]}}, "cannot restore map from slice"),
        ({"metadata": {"finalizers": "a"}}, "cannot restore slice from string"),
        ({"metadata": {"managedFields": [1]}}, "cannot restore struct from: int64"),
        ({"metadata": {"creationTimestamp": {}}}, "json: cannot unmarshal object into Go value of type string"),
        ({"metadata": True}, "cannot restore struct from: bool"),
        ({"kind": 1}, "cannot convert int64 to string"),
        ({"spec": {"replicas": 1.5}}, "cannot convert float64 to int32"),
        ({"spec": {"replicas": "1"}}, "unrecognized type: int32"),
        ({"spec": {"replicas": True}}, "unrecognized type: int32"),
        ({"spec": {"paused": 1}}, "unrecognized type: bool"),
        (
            {"spec": {"template": {"spec": {"securityContext": {"runAsUser": 1.5}}}}},
            "cannot convert float64 to int64",
        ),
        (
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}},
            "json: cannot unmarshal bool into Go value of type int32",
        ),
        (
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1.5}}}},
            "json: cannot unmarshal number 1.5 into Go value of type int32",
        ),
    ],
)
def test_wrong_type_is_reported(fields: dict[str, Any], words: str) -> None:
    assert convert_merged(DEPLOYMENT, fields) == words


def test_bytes_must_be_text() -> None:
    assert convert_merged(SECRET, {"data": {"k": 1}}) == "cannot restore slice from int64"
    assert convert_merged(SECRET, {"data": {"k": "?"}}) == ""  # what it says is looked at later


def test_whole_floats_become_integers() -> None:
    strategy = {"rollingUpdate": {"maxSurge": 2.0, "maxUnavailable": "25%"}}
    fields: dict[str, Any] = {"spec": {"replicas": 3.0, "strategy": strategy, "paused": None}, "unknown": 1.5}
    assert convert_merged(DEPLOYMENT, fields) == ""
    assert fields["spec"]["replicas"] == 3
    assert type(fields["spec"]["replicas"]) is int
    assert type(strategy["rollingUpdate"]["maxSurge"]) is int
    assert fields["unknown"] == 1.5
