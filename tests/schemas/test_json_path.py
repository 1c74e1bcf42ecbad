from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.schemas.json_path import InvalidJsonPathError, JsonPath

OBJECT: dict[str, Any] = {
    "metadata": {"labels": {"app.kubernetes.io/name": "web", "tier": "front"}},
    "spec": {"replicas": 3, "hosts": ["a", "b", "c"], "empty": None},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "count": 1},
            {"type": "Synced", "status": "False", "count": True},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.replicas", [3]),
        ("$.spec.replicas", [3]),
        (".spec.hosts[]", ["a"]),
        (".spec.hosts[1:]", ["b", "c"]),
        (".spec.hosts[0:3:2]", ["a", "c"]),
        (".spec.hosts[2,0]", ["c", "a"]),
        ("..tier", ["front"]),
        (".status.conditions[?(@.count)].type", ["Ready", "Synced"]),
        (".spec.hosts", [["a", "b", "c"]]),
        (".spec.hosts[0]", ["a"]),
        (".spec.hosts[-1]", ["c"]),
        (".spec.hosts[3]", []),
        (".spec.hosts[-4]", []),
        (".spec.hosts[*]", ["a", "b", "c"]),
        (".metadata.labels.tier", ["front"]),
        (".metadata.labels['tier']", ["front"]),
        (r".metadata.labels['app\.kubernetes\.io/name']", ["web"]),
        (r".metadata.labels.app\.kubernetes\.io/name", ["web"]),
        (".metadata.labels.*", ["web", "front"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type == 'Synced')].status", ["False"]),
        ('.status.conditions[?(@.type!="Ready")].type', ["Synced"]),
        (".status.conditions[?(@.count==1)].type", []),  # the other one's count cannot be compared with a number
        ('.status.conditions[?(@.missing=="x")].type', []),
        (".spec.missing.deeper", []),
        (".spec.replicas.deeper", []),
        (".spec.empty", [None]),
    ],
)
def test_find_returns_values_at_path(path: str, found: list[Any]) -> None:
    assert JsonPath.parse(path).find(OBJECT) == found


@pytest.mark.parametrize(
    "path",
    [".spec[", ".spec[x]", '.spec["a"]', "{.spec}", "....a", ".a[?(@.b==1", ".a[?(@.b==']", ".a,.b", ".a{", ".a[-]"],
)
def test_invalid_path_error_contains_path(path: str) -> None:
    with pytest.raises(InvalidJsonPathError) as caught:
        JsonPath.parse(path)
    assert repr(path) in str(caught.value)


_names = st.text(st.characters(codec="utf-8", exclude_characters="'], \t\r\n.[${@}\\*"), min_size=1, max_size=6)


@given(st.lists(_names, min_size=1, max_size=4), st.integers())
def test_quoted_names_reach_any_field(names: list[str], value: int) -> None:
    nested: Any = value
    for name in reversed(names):
        nested = {name: nested, f"{name} too": None}
    path = "".join(f"['{name}']" for name in names)
    assert JsonPath.parse(path).find(nested) == [value]


@given(st.lists(st.from_regex(r"[A-Za-z0-9./-]{1,8}", fullmatch=True), min_size=1, max_size=4))
def test_dots_in_names_are_escaped(names: list[str]) -> None:
    nested: Any = "here"
    for name in reversed(names):
        nested = {name: nested}
    path = "".join("." + name.replace(".", "\\.") for name in names)
    assert JsonPath.parse(path).find(nested) == ["here"]
