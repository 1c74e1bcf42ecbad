from __future__ import annotations

import copy
import pickle
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidPathError, MalformedObjectError
from deltaloop.api.path import Path, field_path
from deltaloop.api.resource import Resource

FIELDS: dict[str, Any] = {
    "metadata": {"name": "x", "labels": {"app.kubernetes.io/name": "web", "ü": "y", 'q"\\': "z"}},
    "spec": {
        "nodeName": "n1",
        "replicas": 3,
        "ratio": 0.5,
        "paused": False,
        "nothing": None,
        "args": ["a", None, 1, True, {"k": 1}],
        "empty": [],
        "template": {"inner": {"$ref": "r"}},
    },
}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("spec.nodeName", ["n1"]),
        ("spec.replicas", ["3"]),
        ("spec.ratio", ["0.5"]),
        ("spec.paused", ["false"]),
        ("spec.nothing", []),
        ("spec.nothing.deeper", []),
        ("spec.missing", []),
        ("missing.deeper.still", []),
        ("spec.args", ["a", "1", "true", '{"k":1}']),
        ("spec.empty", []),
        ("spec.template.inner.$ref", ["r"]),
        ("spec['template']['inner']", ['{"$ref":"r"}']),
        ("metadata.labels['app.kubernetes.io/name']", ["web"]),
        ('metadata.labels["app.kubernetes.io/name"]', ["web"]),
        ("metadata.labels['ü']", ["y"]),
        ("metadata.labels['q\"\\']", ["z"]),
    ],
)
def test_index_values_of_resources_views_and_dicts(text: str, values: list[str]) -> None:
    field = field_path(text)
    obj = Resource.from_dict(FIELDS)
    assert field(obj) == values
    assert field(FIELDS) == values
    assert field(obj.view()) == values


@pytest.mark.parametrize("text", ["spec.nodeName.deeper", "spec.args.deeper", "spec.replicas.a", "spec.paused.b"])
def test_path_through_value_without_fields_raises_error(text: str) -> None:
    obj = Resource.from_dict(FIELDS)
    for subject in (obj, obj.view(), FIELDS):
        with pytest.raises(MalformedObjectError):
            field_path(text).get(subject)


def test_undecodable_field_raises_malformed_object_error() -> None:
    obj = Resource.from_json(b'{"metadata":{"name":"x"},"spec":{"a":1e999}}')
    with pytest.raises(MalformedObjectError):
        field_path("spec.a").get(obj)
    assert field_path("metadata.name")(obj) == ["x"]


def test_path_of_list_raises_error() -> None:
    with pytest.raises(MalformedObjectError):
        field_path("a").get([])


def test_omitted_kind_is_available() -> None:
    obj = Resource.from_json(b'{"metadata":{"name":"x"}}', kinds.DEPLOYMENT)
    assert field_path("kind")(obj) == ["Deployment"]
    assert field_path("apiVersion")(obj) == ["apps/v1"]


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (".spec", 0),
        ("spec.", 4),
        ("spec..a", 4),
        ("a b", 1),
        ("a[0]", 1),
        ("a['b'", 1),
        ("a['b']c", 6),
        ("a.['b']", 1),
        ("a[]", 1),
        ("a['']", 1),
        ("1a", 0),
    ],
)
def test_invalid_path_is_rejected_with_position(text: str, position: int) -> None:
    with pytest.raises(InvalidPathError, match=rf"position {position}\b"):
        field_path(text)


def test_empty_path_is_rejected() -> None:
    with pytest.raises(InvalidPathError):
        field_path("")


def test_equality_copies_and_pickling() -> None:
    assert field_path("a.b") == field_path("a['b']") == Path("a.b")
    assert hash(field_path("a.b")) == hash(field_path('a["b"]'))
    assert field_path("a.b") != field_path("a['.b']")
    assert field_path("a") != "a"
    assert repr(field_path("a.b")) == "field_path('a.b')"
    for again in (pickle.loads(pickle.dumps(field_path("spec.nodeName"))), copy.deepcopy(field_path("spec.nodeName"))):
        assert again == field_path("spec.nodeName")
        assert again(FIELDS) == ["n1"]


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="'"), min_size=1, max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=5,
)


@given(st.lists(NAMES, min_size=1, max_size=3), VALUES)
def test_path_gives_equal_values_for_bytes_and_dicts(names: list[str], value: object) -> None:
    for name in reversed(names):
        value = {name: value, "other": 1} if name != "other" else {name: value}
    fields: dict[str, Any] = {"spec": value, "metadata": {"name": "x"}}
    field = field_path("spec" + "".join(f"['{name}']" for name in names))
    assert field.get(Resource.from_dict(fields)) == field.get(fields)


def measure(pods: int = 200) -> tuple[float, float]:
    """Return the best time of a path and of a full decode for one pod of about 5 KB, in microseconds."""
    container = {
        "name": "c",
        "image": "registry.example/app:1",
        "env": [{"name": f"E{n}", "value": "v" * 20} for n in range(60)],
    }
    obj = Resource.from_dict(
        {**FIELDS, "spec": {"containers": [container], "nodeName": "n1"}, "status": {"phase": "R"}}
    )
    field = field_path("spec.nodeName")

    def seconds(run: Any) -> float:
        began = time.process_time()
        for _ in range(pods):
            run(obj)
        return time.process_time() - began

    # In turns: on a shared machine a moment is half as fast as the next.
    by_path, whole = zip(*[(seconds(field), seconds(Resource.to_dict)) for _ in range(7)], strict=True)
    return min(by_path) / pods * 1e6, min(whole) / pods * 1e6


def test_path_is_faster_than_decoding_object() -> None:
    by_path, whole = measure()
    assert by_path < whole * 0.7, f"{by_path:.1f} µs by path, {whole:.1f} µs for the whole object"
