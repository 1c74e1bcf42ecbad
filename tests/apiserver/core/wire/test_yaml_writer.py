"""YAML as the real server writes it; the expected text is what a kube-apiserver answered."""

from __future__ import annotations

import math
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.json_values import is_mapping, items
from deltaloop.api.yaml_reader import read_yaml
from deltaloop.apiserver.core.wire.yaml_writer import json_to_yaml


def _yaml(value: Any) -> str:
    return json_to_yaml(msgspec.json.encode(value)).decode()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", "plain"),
        ("", '""'),
        ("1", '"1"'),
        ("1.5", '"1.5"'),
        ("1e3", '"1e3"'),
        ("0x1f", '"0x1f"'),
        ("0777", '"0777"'),
        ("1_000", '"1_000"'),
        ("+1", '"+1"'),
        (".inf", '".inf"'),
        ("true", '"true"'),
        ("off", '"off"'),
        ("N", '"N"'),
        ("null", '"null"'),
        ("~", '"~"'),
        ("12:30:45", '"12:30:45"'),
        ("2026-01-02", '"2026-01-02"'),
        ("2026-13-02", "2026-13-02"),
        ("2026-01-02T03:04:05Z", '"2026-01-02T03:04:05Z"'),
        ("x: y", "'x: y'"),
        ("a #b", "'a #b'"),
        ("a:", "'a:'"),
        ("- a", "'- a'"),
        ("*x", "'*x'"),
        (" lead", "' lead'"),
        ("'q'", "'''q'''"),
        ("tab\tx", '"tab\\tx"'),
        ("\x01", '"\\x01"'),
        ("a\rb", '"a\\rb"'),
        ("😀", '"\\U0001F600"'),
        ("é ü", "é ü"),
        ("=", "="),
        ("<<", "<<"),
        ("line1\nline2\n", "|\n  line1\n  line2"),
        ("line\nno end", "|-\n  line\n  no end"),
        ("a\n\nb\n\n", "|+\n  a\n\n  b\n"),
        (" a\nb", "|2-\n   a\n  b"),
        ("\n", "|2+\n"),
        ("  \nx", '"  \\nx"'),
    ],
)
def test_text(text: str, written: str) -> None:
    assert _yaml({"k": text}) == f"k: {written}\n"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "null"),
        (True, "true"),
        (2**53, "9007199254740992"),
        (1.5, "1.5"),
        (3.0, "3"),
        (-0.0, "0"),
        (1e30, "1e+30"),
        (1e-7, "1e-07"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        ({}, "{}"),
        ([], "[]"),
    ],
)
def test_other_values(value: Any, written: str) -> None:
    assert _yaml({"k": value}) == f"k: {written}\n"


def test_lists_are_not_indented() -> None:
    assert _yaml({"x": [[1, 2], {"a": [{"b": 1}]}]}) == "x:\n- - 1\n  - 2\n- a:\n  - b: 1\n"


def test_long_text_is_folded() -> None:
    assert _yaml({"w": "x" * 100 + " " + "y" * 60}) == f"w: {'x' * 100}\n  {'y' * 60}\n"


def test_order_of_keys() -> None:
    keys = ["b", "a", "f:b", ".", "a10", "a9", "a1", "B", "1", "k:2", "aa", "k:{", "a-1", "a100", "a20"]
    assert list(read_yaml(_yaml(dict.fromkeys(keys, "")))) == [
        ".", "1", "B", "a", "a-1", "a1", "a9", "a10", "a20", "a100", "aa", "b", "f:b", "k:{", "k:2",
    ]  # fmt: skip


# A real server writes the key "<<" plain, too, which readers take for the keys of another map.
_keys = st.text().filter(lambda text: text != "<<")
_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_keys, _values, max_size=5))
def test_written_yaml_round_trips(value: dict[str, Any]) -> None:
    read = read_yaml(_yaml(value))
    assert _same(read, value), (read, value)


def _same(read: object, value: object) -> bool:
    if is_mapping(value):
        return (
            is_mapping(read) and read.keys() == value.keys() and all(_same(read[name], value[name]) for name in value)
        )
    if isinstance(value, list):
        left, right = items(read), items(cast("object", value))
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(value, float):
        return isinstance(read, int | float) and math.isclose(read, value, rel_tol=1e-15)
    return type(read) is type(value) and read == value


def test_key_with_many_digits() -> None:
    assert list(read_yaml(_yaml({"a" + "2" * 5000: "", "a1": ""}))) == ["a1", "a" + "2" * 5000]


def test_large_document_equals_its_joined_parts() -> None:
    items = [{"a": {"b": [number, str(number), None, {"c": "d\n" * 3}]}, "z": 1.5} for number in range(3_000)]
    whole = _yaml({"kind": "List", "items": items})
    parts = "".join(f"- {_yaml(item).rstrip().replace(chr(10), chr(10) + '  ')}\n" for item in items)
    assert whole == f"items:\n{parts}kind: List\n"
