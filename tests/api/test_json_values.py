from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.json_values import copied, items, mapping

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=12,
)


def containers(value: Any) -> list[Any]:
    """Return all objects and lists of a value, itself included."""
    if not isinstance(value, dict | list):
        return []
    inner = mapping(cast("object", value)).values() if isinstance(value, dict) else items(cast("object", value))
    return [value, *(found for one in inner for found in containers(one))]


@given(VALUES)
def test_copy_is_equal_and_shares_no_mutable_values(value: Any) -> None:
    made = copied(value)
    assert repr(made) == repr(value)  # where true is not 1
    assert not {id(part) for part in containers(made)} & {id(part) for part in containers(value)}


def test_shared_value_is_copied_twice() -> None:
    part = [1]
    made = copied({"a": part, "b": part})
    assert made == {"a": [1], "b": [1]}
    assert made["a"] is not made["b"]
