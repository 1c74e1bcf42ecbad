from __future__ import annotations

import copy
import enum
import gc
import pickle
import threading
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api import kinds
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import OwnerReference, Resource, decode_object, key_in
from deltaloop.api.resource_type import ResourceType
from deltaloop.crds import custom_resource
from tests.having import having

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "u1",
        "resourceVersion": "7",
        "generation": 3,
        "labels": {"app": "web"},
        "annotations": {"a": "b"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u2", "controller": True}
        ],
        "finalizers": ["f"],
        "creationTimestamp": "2026-01-02T03:04:05Z",
    },
    "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
}


def pod(**metadata: Any) -> Resource:
    return Resource.from_dict({**POD, "metadata": {**POD["metadata"], **metadata}})


def test_resource_exposes_fields() -> None:
    obj = pod()
    assert (obj.name, obj.namespace, obj.key, obj.uid) == ("web", "shop", "shop/web", "u1")
    assert (obj.resource_version, obj.generation, obj.kind, obj.api_version) == ("7", 3, "Pod", "v1")
    assert obj.labels == {"app": "web"}
    assert obj.annotations == {"a": "b"}
    assert obj.finalizers == ("f",)
    assert obj.creation_timestamp == "2026-01-02T03:04:05Z"
    assert obj.deletion_timestamp is None
    assert obj.controller_owner == OwnerReference("apps/v1", "ReplicaSet", "rs", "u2", controller=True)
    assert obj["spec"]["containers"][0]["name"] == "c"
    assert obj.get("status") is None
    assert "spec" in obj
    assert set(obj) == set(POD)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_resource_round_trips(fields: dict[str, Any]) -> None:
    fields["metadata"] = {"name": "x"}
    obj = Resource.from_dict(fields)
    assert obj.to_dict() == fields
    assert obj == Resource.from_json(msgspec.json.encode(dict(reversed(fields.items()))))
    assert pickle.loads(pickle.dumps(obj)) == obj


def test_equality_is_by_content() -> None:
    raw = msgspec.json.encode(POD)
    again = msgspec.json.encode(POD, order="sorted")
    assert raw != again
    assert Resource.from_json(raw) == Resource.from_json(again)
    assert not Resource.from_json(raw) != Resource.from_json(again)  # noqa: SIM202  # msgspec brings a != of its own
    assert hash(Resource.from_json(raw)) == hash(Resource.from_json(again))
    assert pod() != pod(labels={"app": "api"})
    assert pod() != Resource.from_dict({**POD, "spec": {}})
    assert pod() != POD


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False), ("1", 1), (None, "")])
def test_values_equal_only_in_python_are_unequal(one: object, other: object) -> None:
    assert Resource.from_dict({**POD, "spec": one}) != Resource.from_dict({**POD, "spec": other})


def test_equality_is_transitive_with_omitted_kinds() -> None:
    bare = msgspec.json.encode({"metadata": {"name": "x"}})
    full = msgspec.json.encode({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}})
    typed, untyped, written = (
        Resource.from_json(bare, kinds.POD),
        Resource.from_json(bare),
        Resource.from_json(full),
    )
    assert typed == written
    assert untyped != written
    assert typed != untyped


def test_copy_of_immutable_resource_is_same_object() -> None:
    obj = pod()
    assert copy.copy(obj) is obj
    assert copy.deepcopy(obj) is obj
    assert copy.deepcopy({"pods": [obj]})["pods"][0] is obj


def test_pickling_keeps_the_type() -> None:
    obj = Resource.from_json(b'{"metadata":{"name":"x"}}', kinds.NODE)
    back = pickle.loads(pickle.dumps(obj))
    assert back == obj
    assert back.resource_type == kinds.NODE
    assert back.kind == "Node"


def test_omitted_kind_is_filled_in() -> None:
    obj = Resource.from_json(b'{"metadata":{"name":"x"},"kind":""}', kinds.DEPLOYMENT)
    assert (obj.kind, obj.api_version) == ("Deployment", "apps/v1")
    assert obj.to_dict() == {"metadata": {"name": "x"}, "kind": "Deployment", "apiVersion": "apps/v1"}
    assert obj["kind"] == "Deployment"


def test_repr_contains_name_but_no_data() -> None:
    obj = Resource.from_dict({**POD, "data": {"password": "hunter2"}})
    assert repr(obj) == "<Resource Pod shop/web resourceVersion=7>"
    assert repr(Resource.from_json(b'{"metadata":{"name":"x"}}', kinds.POD)) == "<Resource v1/Pod x resourceVersion=->"
    assert repr(Resource.from_json(b'{"kind":5,"metadata":{"name":"x"}}')) == "<Resource object x resourceVersion=->"


def test_null_is_unset_field() -> None:
    nulls = dict.fromkeys(
        ("name", "namespace", "uid", "resourceVersion", "generation", "labels", "annotations", "ownerReferences"),
    )
    obj = Resource.from_dict({"metadata": {**nulls, "finalizers": None, "creationTimestamp": None, "name": "x"}})
    assert (obj.name, obj.namespace, obj.key, obj.uid, obj.resource_version) == ("x", "", "x", "", "")
    assert obj.generation == 0
    assert obj.labels == {}
    assert obj.annotations == {}
    assert obj.owner_references == ()
    assert obj.finalizers == ()
    assert obj.creation_timestamp is None


def test_nulls_inside_labels_and_owners_are_zero_values() -> None:
    obj = pod(labels={"a": None, "b": "c"}, annotations={"d": None}, ownerReferences=[{"name": "o", "uid": None}])
    assert obj.labels == {"a": "", "b": "c"}
    assert obj.annotations == {"d": ""}
    assert obj.owner_references == (OwnerReference(name="o"),)
    assert pod(kind=None).kind == "Pod"
    assert Resource.from_dict({"kind": None, "metadata": {"name": "x"}}, kinds.POD).kind == "Pod"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "truncated"),
        (b"not json, password=hunter2", "malformed"),
        (b"[]", "Expected `object`, got `array`"),
        (b"17", "Expected `object`, got `int`"),
        (b"null", "Expected `object`, got `null`"),
        (b"{}", "it has no metadata"),
        (b'{"metadata":null}', "it has no metadata"),
        (b'{"metadata":"hunter2"}', "got `str` - at `$.metadata`"),
        (b'{"metadata":{"name":5}}', "Expected `str`, got `int` - at `$.metadata.name`"),
        (b'{"metadata":{"name":null,"uid":5}}', "Expected `str`, got `int` - at `$.metadata.uid`"),
        (b'{"metadata":{"labels":{"a":5}}}', "at `$.metadata.labels"),
        (b'{"metadata":{"name":"\xff"}}', "its text is not UTF-8"),
        (b'{"metadata":{},"a":' + b"[" * 20000 + b"]" * 20000 + b"}", "recursion depth"),
        (b'{"metadata":{}} trailing', "trailing characters"),
    ],
)
def test_malformed_object_is_rejected_without_showing_data(raw: bytes, reason: str) -> None:
    with pytest.raises(MalformedObjectError) as caught:
        Resource.from_json(raw, kinds.SECRET)
    assert reason in str(caught.value)
    assert str(caught.value).startswith(f"v1/Secret object of {len(raw)} bytes cannot be read")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("value", [b"1e999"])
def test_undecodable_field_raises_error_when_read(value: bytes) -> None:
    obj = Resource.from_json(b'{"metadata":{"name":"x","namespace":"n"},"spec":' + value + b"}", kinds.POD)
    assert obj.name == "x"
    for read in (obj.view, obj.to_dict, lambda: obj["spec"], lambda: obj.decode(dict[str, Any])):
        with pytest.raises(MalformedObjectError, match=r"v1/Pod.* n/x "):
            read()


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        (b'{"metadata":{"name":"x","namespace":"n"},"a":"\\ud800"}', "n/x"),
        (b'{"metadata":{"name":"x"},"a":' + b"[" * 100_000, "x"),
        (b' {"kind" : "A", "apiVersion":"v1" ,"metadata": {"name":"x","a":{"name":"y"}}, broken', "x"),
        (b'{"spec":{"metadata":{"name":"inner"}},"metadata":{"name":"x"},"a":"\\ud800"}', None),
        (b'{"spec":"\xff","metadata":{"name":"x"}}', "x"),
        (b'{"metadata":{"name":5},"a":"\\ud800"}', None),
        (b'{"metadata":{"name":"\xff"},"a":"\\ud800"}', None),
        (b'{"metadata":{"name":"x"', None),
        (b'{"metadata":{"a":' + b"[" * 100_000, None),
        (b"{}", None),
    ],
)
def test_name_of_malformed_object_is_found(raw: bytes, key: str | None) -> None:
    assert key_in(raw) == key
    with pytest.raises(MalformedObjectError, match=f"object {key} of" if key else "object of"):
        Resource.from_json(raw)


@pytest.mark.parametrize(
    "fields", [b'"spec":"\xff"', b'"spec":{"\xff":1}', b'"data":{"a":"\xc3"}', b'"a":"\xed\xa0\x80"']
)
def test_object_with_invalid_utf_8_is_rejected_with_name(fields: bytes) -> None:
    with pytest.raises(MalformedObjectError) as caught:
        Resource.from_json(b'{"metadata":{"name":"x","namespace":"n"},' + fields + b"}", kinds.SECRET)
    assert "v1/Secret object n/x of" in str(caught.value)
    assert str(caught.value).endswith("its text is not UTF-8")


@pytest.mark.parametrize(
    ("metadata", "read"),
    [
        ({"annotations": {"a": 5}}, "annotations"),
        ({"finalizers": "f"}, "finalizers"),
        ({"ownerReferences": [5]}, "owner_references"),
        ({"creationTimestamp": 5}, "creation_timestamp"),
    ],
)
def test_lazy_metadata_of_wrong_type_raises_error_when_read(metadata: dict[str, Any], read: str) -> None:
    obj = pod(**metadata)
    with pytest.raises(MalformedObjectError, match="metadata"):
        getattr(obj, read)
    assert repr(obj) == "<Resource Pod shop/web resourceVersion=7>"


def test_huge_numbers_and_unicode_survive() -> None:
    raw = '{"metadata":{"name":"x"},"a":123456789012345678901234567890,"b":0.1,"ü":"\\ud83d\\ude00"}'.encode()
    obj = Resource.from_json(raw)
    assert obj["a"] == 123456789012345678901234567890
    assert obj["b"] == 0.1
    assert obj["ü"] == "😀"
    assert Resource.from_dict(obj.to_dict()) == obj


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_infinite_numbers_are_rejected(number: float) -> None:
    with pytest.raises(MalformedObjectError, check=having(path="spec.a[1].b")):
        Resource.from_dict({"metadata": {"name": "x"}, "spec": {"a": [None, {"b": number}]}})


def test_values_without_json_form_are_rejected() -> None:
    loop: dict[str, Any] = {"metadata": {"name": "x"}}
    loop["loop"] = loop
    for fields in (loop, {"metadata": {"name": "x"}, "a": object()}, {"metadata": {}, "b": {(1, 2): 3}}):
        with pytest.raises(MalformedObjectError, match="cannot be written as JSON"):
            Resource.from_dict(fields)


def test_views_and_resources_can_be_converted_back() -> None:
    obj = pod()
    assert Resource.from_dict(obj.view()) == obj
    assert Resource.from_dict({**POD, "spec": obj["spec"]}).to_dict() == POD
    assert Resource.from_dict(Resource.from_json(b'{"metadata":{"name":"x"}}', kinds.POD)).kind == "Pod"


def test_all_values_of_resource_are_immutable() -> None:
    obj = pod()
    views: list[Any] = [obj["spec"], obj.labels, obj.metadata.labels, obj.annotations, pod(labels=None).labels]
    for view in views:
        with pytest.raises(TypeError, match="edit"):
            view.update(a="b")
        with pytest.raises(TypeError, match="edit"):
            view["a"] = "b"
    with pytest.raises(TypeError, match="edit"):
        obj["spec"]["containers"].append(1)
    for part, name in ((obj, "metadata"), (obj, "name"), (obj.metadata, "name"), (obj.owner_references[0], "uid")):
        message = rf"{type(part).__name__}\.{name} cannot be changed: .*obj\.edit\(\)"
        with pytest.raises(AttributeError, match=message):
            setattr(part, name, "other")
        with pytest.raises(AttributeError, match=message):
            delattr(part, name)
    with pytest.raises(TypeError, match="edit"):
        obj["spec"] = {}
    with pytest.raises(TypeError, match="edit"):
        del obj["spec"]
    assert obj == pod()


def test_edit_returns_independent_copy() -> None:
    obj = pod()
    first = obj.edit()
    first["spec"]["nodeName"] = "n2"
    assert obj["spec"]["nodeName"] == "n1"
    assert obj.edit()["spec"]["nodeName"] == "n1"


def name_of(obj: Resource) -> object:
    """Return the name in the data: the same text, and not an equal one, while they are decoded once."""
    return obj["metadata"]["name"]


def remembered(objects: list[Resource]) -> int:
    """Return how many of them are not decoded again when all were read, the last ones first."""
    names = [name_of(obj) for obj in objects]
    return sum(name_of(obj) is name for obj, name in zip(reversed(objects), reversed(names), strict=True))


def test_view_is_decoded_once_while_cached() -> None:
    obj = pod()
    assert name_of(obj) is name_of(obj)
    assert name_of(obj) is not name_of(pod())


def test_only_latest_decoded_objects_are_cached() -> None:
    objects = [pod(name=f"p{number}") for number in range(512)]
    assert remembered(objects) == 64
    assert [name_of(obj) for obj in objects] == [obj.name for obj in objects]


def test_comparison_does_not_evict_decoded_objects() -> None:
    obj = pod()
    decoded = name_of(obj)
    for number in range(300):
        assert pod(uid=str(number)) == Resource.from_json(
            msgspec.json.encode(pod(uid=str(number)).to_dict(), order="sorted")
        )
    assert name_of(obj) is decoded


def test_threads_read_correct_objects() -> None:
    objects = [pod(name=f"p{number}") for number in range(600)]
    wrong: list[str] = []

    def read(offset: int) -> None:
        for step in range(1200):
            obj = objects[(step * 7 + offset) % len(objects)]
            if obj["metadata"]["name"] != obj.name:
                wrong.append(obj.name)

    threads = [threading.Thread(target=read, args=(offset,)) for offset in range(0, 80, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert remembered(objects) == 64


def test_garbage_collector_does_not_track_resources() -> None:
    obj = pod()
    assert not gc.is_tracked(obj)
    assert not gc.is_tracked(obj.metadata)
    # gc=False is sound because what a resource holds cannot point back: bytes, text, numbers, and a dict of text.
    assert all(type(part) is str for pair in (obj.metadata.label_map or {}).items() for part in pair)


class Size(enum.Enum):
    SMALL = "small"


class Spec(msgspec.Struct):
    size: Size


@custom_resource(group="example.dev", version="v1")
class Box(msgspec.Struct):
    spec: Spec


def test_typed_decoding() -> None:
    raw = b'{"metadata":{"name":"x"},"spec":{"size":"small"}}'
    box = decode_object(ResourceType.of(Box), raw)
    assert box == Box(Spec(Size.SMALL))
    assert decode_object(kinds.POD, raw).name == "x"


@pytest.mark.parametrize("value", ["hunter2", "it's hunter2", 'a "hunter2"', "hunter2\n'- at"])
def test_typed_decoding_error_has_field_without_value(value: str) -> None:
    obj = Resource.from_dict({"metadata": {"name": "x"}, "spec": {"size": value}})
    with pytest.raises(MalformedObjectError) as caught:
        obj.decode(Box)
    assert "does not fit Box" in str(caught.value)
    assert "$.spec.size" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_objects_from_memoryview_and_bytearray() -> None:
    raw = msgspec.json.encode(POD)
    assert Resource.from_json(memoryview(raw)) == Resource.from_json(bytearray(raw)) == Resource.from_json(raw)
    kept = bytearray(raw)
    obj = Resource.from_json(kept)
    kept[:] = b" " * len(kept)
    assert obj.to_dict() == POD
