"""A scenario from manifests."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.simulation.core.made_scenarios import MOST_EDITS, made_from
from tests.having import having

KIND = {"apiVersion": "example.com/v1", "kind": "Broker"}


def definition(spec: dict[str, Any], *required: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "required": [*required], "properties": spec}}}
    versions = [
        {"name": "v1alpha1", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}},
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
        {"name": "v0", "served": False, "storage": False},
    ]
    names = {"kind": "Broker", "plural": "brokers"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "brokers.example.com"},
        "spec": {"group": "example.com", "names": names, "versions": versions},
    }


LABEL = {"metadata.labels.edited": "yes"}


def edits(spec: dict[str, Any], **given: object) -> dict[str, object]:
    (sample,) = made_from([definition(spec), {**KIND, "spec": given}]).samples
    return {".".join(edit.way): edit.value for edit in sample.edits}


def test_other_objects_precede_samples_and_samples_have_names() -> None:
    config: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    sample: dict[str, Any] = {**KIND, "metadata": {"name": "mine", "namespace": "here"}}
    crd = definition({})
    made = made_from([sample, config, crd, {**KIND}])
    assert made.installed == (crd, config)
    assert [(each.kind, each.namespace, each.name) for each in made.samples] == [
        ("example.com/v1/Broker", "here", "mine"),
        ("example.com/v1/Broker", None, "sample"),
    ]


def test_numbers_booleans_and_enums_are_edited_within_bounds() -> None:
    assert edits({"size": {"type": "integer"}}, size=3) == {"spec.size": 4}
    assert edits({"size": {"type": "integer", "maximum": 3}}, size=3) == {"spec.size": 2}
    assert edits({"size": {"type": "integer", "maximum": 4, "exclusiveMaximum": True}}, size=3) == {"spec.size": 2}
    assert edits({"size": {"type": "integer", "maximum": 3, "minimum": 3}}, size=3) == LABEL
    assert edits({"size": {"type": "integer", "multipleOf": 2}}, size=4) == LABEL
    assert edits({"size": {"type": "integer", "default": 1}}) == {"spec.size": 2}
    assert edits({"on": {"type": "boolean"}}, on=True) == {"spec.on": False}
    assert edits({"mode": {"type": "string", "enum": ["a", "b"]}}, mode="a") == {"spec.mode": "b"}
    assert edits({"mode": {"type": "string", "enum": ["a"]}}, mode="a") == LABEL
    assert edits({"image": {"type": "string"}}, image="postgres") == LABEL


def test_optional_fields_are_edited_after_set_fields() -> None:
    optional = {
        "deep": {"type": "object", "properties": {"on": {"type": "boolean"}}},
        "whole": {"type": "object", "required": ["to"], "properties": {"on": {"type": "boolean"}}},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "size": {"type": "integer", "minimum": 3},
        "count": {"type": "integer"},
        "name": {"type": "string"},
    }
    assert edits(optional) == {"spec.mode": "a", "spec.size": 3, "spec.count": 1, "spec.deep.on": True}
    assert [*edits(optional, count=7)] == ["spec.count", "spec.mode", "spec.size", "spec.deep.on"]


def test_nested_fields_are_edited() -> None:
    below = {"storage": {"type": "object", "properties": {"size": {"type": "integer"}}}}
    (sample,) = made_from([definition(below), {**KIND, "spec": {"storage": {"size": 1}}}]).samples
    assert [edit.patch for edit in sample.edits] == [{"spec": {"storage": {"size": 2}}}]
    many = {f"n{number}": {"type": "integer", "default": 1} for number in range(9)}
    assert len(edits(many)) == MOST_EDITS


def test_kind_without_sample_gets_minimal_object() -> None:
    spec = {
        "replicas": {"type": "integer", "minimum": 2},
        "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        "name": {"type": "string", "minLength": 3},
        "mode": {"type": "string", "enum": ["fast", "safe"]},
        "on": {"type": "boolean"},
        "port": {"x-kubernetes-int-or-string": True},
        "image": {"type": "string", "default": "postgres"},
        "rules": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}}},
        },
        "free": {"type": "string"},
    }
    (sample,) = made_from([definition(spec, *(name for name in spec if name != "free"))]).samples
    assert sample.fields["spec"] == {
        "replicas": 2,
        "ratio": 1,
        "name": "aaa",
        "mode": "fast",
        "on": False,
        "port": 1,
        "image": "postgres",
        "rules": [{"to": "a"}],
    }
    assert (sample.kind, sample.name) == ("example.com/v1/Broker", "sample")


@pytest.mark.parametrize(
    ("rules", "made"),
    [
        ({"format": "date-time"}, "2026-01-01T00:00:00Z"),
        ({"pattern": "^([0-9]+(ms|s|m|h))+$"}, "1m"),
        ({"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "minLength": 2}, "aa"),
        ({"pattern": "^https?://.*$", "minLength": 8, "maxLength": 200}, "https://example.com"),
        ({"minLength": 300}, "a" * 300),
        ({"format": "cidr"}, "10.0.0.0/16"),
    ],
)
def test_required_string_is_plain(rules: dict[str, Any], made: str) -> None:
    (sample,) = made_from([definition({"at": {"type": "string", **rules}}, "at")]).samples
    assert sample.fields["spec"] == {"at": made}
    assert sample.made


def test_required_properties_are_generated() -> None:
    below: dict[str, Any] = {
        "odd": {"type": "string", "pattern": "^q{99}$"},
        "a": {"type": "boolean"},
        "b": {"type": "boolean"},
    }
    spec = {"some": {"type": "object", "minProperties": 1, "properties": below}}
    (sample,) = made_from([definition(spec, "some")]).samples
    assert sample.fields["spec"] == {"some": {"a": False}}


def test_ungeneratable_field_raises_error() -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="example.com/v1/Broker: spec.at")):
        made_from([definition({"at": {"type": "string", "pattern": "^q{99}$"}}, "at")])
    with pytest.raises(InvalidArgumentError, check=having(argument="manifests")):
        made_from([{**KIND}])
