"""The patch between two objects makes one of the other, on the embedded server, and says no more than has changed."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop.apiserver.core.json_patch import apply_operations
from deltaloop.webhooks.core.object_patch import patch_between
from tests.nightly import examples

SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-1, 1) | st.sampled_from(["", "a", "b", "~/1"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "~/", ""]), inner),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "c/d", "~1"]), VALUES, max_size=4)


def alike(one: object, two: object) -> bool:
    """Tell whether two values are the same JSON: 1 is not 1.0, nor True."""
    return json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)


@settings(max_examples=examples(40))
@given(OBJECTS, OBJECTS)
def test_patch_transforms_old_object_into_new(before: dict[str, Any], after: dict[str, Any]) -> None:
    patch = patch_between(before, after)
    assert alike(apply_operations(copy.deepcopy(before), patch), after)
    assert bool(patch) is not alike(before, after)


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [{"op": "replace", "path": "/a/c", "value": 3}]),
        ({"a": [1, 2, 3]}, {"a": [1, 3]}, [{"op": "remove", "path": "/a/1"}]),
        ({"a": [1, 3]}, {"a": [1, 2, 3]}, [{"op": "add", "path": "/a/1", "value": 2}]),
        ({"a": [{"n": 1}]}, {"a": [{"n": 1, "m": 2}]}, [{"op": "add", "path": "/a/0/m", "value": 2}]),
        ({"l": {}}, {"l": {"x/y~z": "v"}}, [{"op": "add", "path": "/l/x~1y~0z", "value": "v"}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a": 1}, {}, [{"op": "remove", "path": "/a"}]),
    ],
)
def test_patch_contains_only_changes(before: Any, after: Any, patch: Any) -> None:
    assert patch_between(before, after) == patch
