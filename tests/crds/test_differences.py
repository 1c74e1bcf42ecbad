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
        ({"a": 1}, {"a": 2}, ["spec.a: 1 in the file, 2 in the class"]),
        ({"a": 1}, {"a": True}, ["spec.a: 1 in the file, True in the class"]),
        ({"a": 1}, {}, ["spec.a: 1 in the file, missing in the class"]),
        ({}, {"a": {"b": 1}}, ["spec.a: missing in the file, an object in the class"]),
        ({"a": [1]}, {"a": [2]}, ["spec.a: [1] in the file, [2] in the class"]),
        ({"a": "x" * 99}, {"a": ""}, [f"spec.a: '{'x' * 59}... in the file, '' in the class"]),
        ({"versions": [version("v1")]}, {"versions": [version("v2")]}, [
            "spec.versions[v1]: missing in the class",
            "spec.versions[v2]: missing in the file",
        ]),
        ({"versions": [version("v1", a=1)]}, {"versions": [version("v1")]}, [
            "spec.versions[v1].a: 1 in the file, missing in the class",
        ]),
        ({"versions": [version("a"), version("b")]}, {"versions": [version("b"), version("a")]}, [
            "spec.versions: different order",
        ]),
        ({"conversion": {"strategy": "None"}, "preserveUnknownFields": False}, {}, []),
        ({"preserveUnknownFields": True}, {}, ["spec.preserveUnknownFields: True in the file, missing in the class"]),
    ],
)  # fmt: skip
def test_differences_between_definitions(written: dict[str, Any], made: dict[str, Any], told: list[str]) -> None:
    there = {**crd(**written), "status": {"storedVersions": ["v1"]}}
    assert differences(there, crd(**made)) == told


def test_annotations_not_declared_by_class_are_ignored() -> None:
    made = {"metadata": {"name": "a.b", "annotations": {"a": "1", "b": "2"}}, "spec": {}}
    written = {"metadata": {"name": "a.b", "annotations": {"b": "3", "other": "4"}}, "spec": {}}
    assert differences(written, made) == [
        "metadata.annotations.b: '3' in the file, '2' in the class",
        "metadata.annotations.a: missing in the file, '1' in the class",
    ]
    assert differences({**made, "metadata": {"annotations": {"a": "1", "b": "2", "other": "4"}}}, made) == []
