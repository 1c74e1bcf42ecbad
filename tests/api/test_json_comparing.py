"""Two values are the same JSON if, and only if, they are written the same."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api import kinds
from deltaloop.api.json_comparing import is_same_json
from deltaloop.api.resource import Resource

SCALARS = st.sampled_from([None, True, False, -1, 0, 1, 2, 0.0, 1.0, -1.0, 1.5, "a", "b"])
VALUES = st.recursive(SCALARS, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from("xyz"), part))


def written(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


@given(VALUES, VALUES)
def test_comparison_matches_comparison_of_written_json(value: Any, other: Any) -> None:
    assert is_same_json(value, other) == (written(value) == written(other))
    assert is_same_json(value, msgspec.json.decode(written(value))) is True


@pytest.mark.parametrize("other", [1.0, True, "1", None, [1], {"a": 1}])
def test_values_equal_in_python_can_differ_in_json(other: Any) -> None:
    assert is_same_json({"a": [1]}, {"a": [other]}) is False
    assert is_same_json({"a": 1, "b": 2}, {"b": 2, "a": 1}) is True


def test_unknown_types_are_undecided_unless_other_fields_differ() -> None:
    view = Resource.from_dict({"metadata": {"name": "a"}, "data": {"x": "y"}}, kinds.CONFIG_MAP)["data"]
    for odd in (view, ("y",), {1: "y"}, b"y"):
        assert is_same_json({"data": odd}, {"data": {"x": "y"}}) is None
        assert is_same_json({"data": odd, "kind": "A"}, {"data": odd, "kind": "B"}) is False
