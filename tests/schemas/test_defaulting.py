"""Defaults may not make a small object large."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltaloop.schemas.decoding import apply_defaults
from deltaloop.schemas.schema_compiler import schema_from_json
from deltaloop.schemas.work import MOST_GROWN, Account, GrowthError, limited, unbounded_growth
from tests.nightly import by_day


def _tree(default: Any, *, of_maps: bool = False) -> Any:
    item = {"type": "object", "properties": {"d": {"type": "object", "default": default}}}
    many = {"type": "object", "additionalProperties": item} if of_maps else {"type": "array", "items": item}
    return schema_from_json(json.dumps({"type": "object", "properties": {"l": many}}).encode()).tree


@pytest.mark.parametrize("of_maps", [False, True])
@pytest.mark.parametrize("size", by_day([0, 1000], [1000]))
def test_default_growth_is_checked_before_defaulting(size: int, of_maps: bool) -> None:
    tree = _tree({"x": "y" * size}, of_maps=of_maps)
    many = MOST_GROWN // (size + 29)
    for count, fits in ((many // 2, True), (many * 2, False)):
        empty: dict[str, Any] = {}
        items: Any = {f"{number}": dict(empty) for number in range(count)} if of_maps else [{} for _ in range(count)]
        if fits:
            assert apply_defaults(tree, {"l": items})
        else:
            with pytest.raises(GrowthError):
                apply_defaults(tree, {"l": items})


def test_account_limits_object_growth() -> None:
    tree = _tree({"x": "y" * 1000})
    with limited(Account(growth=1500)):
        assert apply_defaults(tree, json.loads('{"l": [{}]}'))
        with pytest.raises(GrowthError):
            apply_defaults(tree, json.loads('{"l": [{}, {}]}'))
        with unbounded_growth():
            assert apply_defaults(tree, json.loads('{"l": [{}, {}]}'))
        with pytest.raises(GrowthError):
            apply_defaults(tree, json.loads('{"l": [{}, {}]}'))
