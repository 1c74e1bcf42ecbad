"""Where a definition in a file is not what classes say, place by place; what no class says does not count."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.crds.differences import differences


def crd(**spec: Any) -> dict[str, Any]:
    return {"kind": "CustomResourceDefinition", "metadata": {"name": "a.b"}, "spec": spec}


def version(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


@pytest.mark.parametrize(
    ("written", "made", "told"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["spec.a: 1 is there; it is 2"]),
        ({"a": 1}, {"a": True}, ["spec.a: 1 is there; it is True"]),
        ({"a": 1}, {}, ["spec.a: 1 is there; no class says it"]),
        ({}, {"a": {"b": 1}}, ["spec.a: missing; it is an object"]),
        ({"a": [1]}, {"a": [2]}, ["spec.a: [1] is there; it is [2]"]),
        ({"a": "x" * 99}, {"a": ""}, [f"spec.a: '{'x' * 59}... is there; it is ''"]),
        ({"versions": [version("v1")]}, {"versions": [version("v2")]}, [
            "spec.versions[v1]: is there; no class says it",
            "spec.versions[v2]: missing",
        ]),
        ({"versions": [version("v1", a=1)]}, {"versions": [version("v1")]}, [
            "spec.versions[v1].a: 1 is there; no class says it",
        ]),
        ({"versions": [version("a"), version("b")]}, {"versions": [version("b"), version("a")]}, [
            "spec.versions: the order is another one",
        ]),
        ({"conversion": {"strategy": "None"}, "preserveUnknownFields": False}, {}, []),
        ({"preserveUnknownFields": True}, {}, ["spec.preserveUnknownFields: True is there; no class says it"]),
    ],
)  # fmt: skip
def test_where_definitions_differ(written: dict[str, Any], made: dict[str, Any], told: list[str]) -> None:
    there = {**crd(**written), "status": {"storedVersions": ["v1"]}}
    assert differences(there, crd(**made)) == told


def test_of_annotations_those_count_that_a_class_says() -> None:
    made = {"metadata": {"name": "a.b", "annotations": {"a": "1", "b": "2"}}, "spec": {}}
    written = {"metadata": {"name": "a.b", "annotations": {"b": "3", "other": "4"}}, "spec": {}}
    assert differences(written, made) == [
        "metadata.annotations.b: '3' is there; it is '2'",
        "metadata.annotations.a: missing; it is '1'",
    ]
    assert differences({**made, "metadata": {"annotations": {"a": "1", "b": "2", "other": "4"}}}, made) == []
