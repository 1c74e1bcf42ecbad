"""An object without its managedFields is the same object otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.managed_fields import strip_managed_fields
from deltaloop.api.resource import Resource, with_stored


def test_only_managed_fields_are_stripped() -> None:
    fields: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {
            "name": "a",
            "managedFields": [{"manager": "x", "fieldsV1": {"f:metadata": {}}}],
            "labels": {"managedFields": "a label", "ü": "é"},
            "annotations": {"text": '"managedFields":[1]'},
        },
        "spec": {"managedFields": ["not of the metadata"], "big": 2**63, "small": 1.50},
    }
    obj = Resource.from_dict(fields)
    stripped = strip_managed_fields(obj)
    del fields["metadata"]["managedFields"]
    assert stripped.to_dict() == fields
    assert stripped.metadata == obj.metadata
    assert len(stripped.raw) < len(obj.raw)


@pytest.mark.parametrize("metadata", [{"name": "a"}, {"name": "a", "labels": {"managedFields": "no"}}])
def test_object_without_managed_fields_is_unchanged(metadata: dict[str, object]) -> None:
    obj = Resource.from_dict({"metadata": metadata})
    assert strip_managed_fields(obj) is obj


def test_malformed_object_raises_error() -> None:
    broken = with_stored(Resource.from_dict({"metadata": {"name": "a"}}), b'{"managedFields"')
    with pytest.raises(MalformedObjectError):
        strip_managed_fields(broken)
