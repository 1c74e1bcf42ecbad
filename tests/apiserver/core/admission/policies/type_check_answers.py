"""What ours answers to a policy whose types are checked, in the form of the recording; and what kinds there are."""

from __future__ import annotations

import re
from typing import Any

from deltaloop.apiserver.core.admission.policies.type_checking import expression_warnings
from deltaloop.apiserver.core.controllers.policy_status import ServedKinds
from tests.apiserver.core.built_in import built_in_registry

_SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "port": {"x-kubernetes-int-or-string": True},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "when": {"type": "string", "format": "date-time"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "in": {"type": "string"},
        "of-kinds": {"type": "array", "items": {"type": "string"}},
    },
}
_TEXT = {"type": "string"}
_METADATA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "generateName": _TEXT,
        "labels": {"type": "object", "additionalProperties": _TEXT},
        "creationTimestamp": {"type": "string", "format": "date-time"},
    },
}
_IDENTITY = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}
# As a real server publishes the schema of the CRD below, with as much of the metadata as is asked about.
PUBLISHED = {
    "group": "example.com",
    "version": "v1",
    "kind": "Widget",
    "schema": {"type": "object", "properties": {"spec": _SPEC, **_IDENTITY}},
}
_NAMES = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
_VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC}}},
}
_CRD: dict[str, Any] = {
    "metadata": {"name": "widgets.example.com", "uid": "u"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": _NAMES, "versions": [_VERSION]},
}
_NAMED_BY_TIME = re.compile(r"\b([A-Z][A-Za-z]+)\d+\b")


def answer(policy: dict[str, Any]) -> list[dict[str, str]]:
    """Return the warnings of ours."""
    registry = built_in_registry()
    registry.apply_crd(_CRD, now=0)
    kinds = ServedKinds(registry)
    return shown(expression_warnings(policy, kinds.find, kinds.declare))


def shown(warnings: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return warnings without the digits in the names of types, which a real server takes from the clock."""
    return [{**each, "warning": _NAMED_BY_TIME.sub(r"\1#", each["warning"])} for each in warnings]
