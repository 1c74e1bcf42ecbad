from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.json_values import is_mapping, items
from deltaloop.api.status import ApiError, UnsupportedMediaTypeError
from deltaloop.apiserver.core.json_patch import MAX_OPERATIONS
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.wire.bodies import APPLY_PATCH, JSON_PATCH
from deltaloop.apiserver.core.writes.patching import (
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    apply_patch,
    merge_patch,
    patch_types,
)
from tests.apiserver.core.built_in import built_in_registry
from tests.apiserver.core.custom_resources import served_foo

FOO = served_foo()


def _deployments() -> ServedResource:
    found = built_in_registry().find("apps", "v1", "deployments")
    assert found is not None
    return found


DEPLOYMENT = _deployments()
TYPED = {"kind": "Deployment", "apiVersion": "apps/v1"}


def _patch(content_type: str, current: dict[str, Any], patch: Any, served: ServedResource = DEPLOYMENT) -> Any:
    before = copy.deepcopy(current)
    try:
        return apply_patch(content_type, current, msgspec.json.encode(patch), served)
    finally:
        assert current == before


def _refused(content_type: str, body: bytes, served: ServedResource = DEPLOYMENT) -> tuple[int, str, str]:
    with pytest.raises(ApiError) as caught:
        apply_patch(content_type, {"a": 1}, body, served)
    status = caught.value.status
    return status.code, status.reason, status.message


# Examples of RFC 7386, appendix A, as far as they are about objects.
@pytest.mark.parametrize(
    ("current", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": 1}, {"a": {"b": [None]}}, {"a": {"b": [None]}}),
    ],
)
def test_merge_patch_examples(current: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    assert _patch(MERGE_PATCH, current, patch) == result
    assert _patch(MERGE_PATCH, current, patch, FOO) == result


_scalars = st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2)
_values = st.recursive(
    _scalars | st.lists(_scalars, max_size=2),
    lambda below: st.dictionaries(st.sampled_from("xyz"), below, max_size=3),
    max_leaves=12,
)
_objects = st.dictionaries(st.sampled_from("xyz"), _values, max_size=3)


def _diff(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if is_mapping(before) and is_mapping(value):
            patch[name] = _diff(before, value)
        elif name not in old or before != value or type(before) is not type(value):
            patch[name] = value
    return patch


@given(_objects, _objects)
def test_merge_patch_of_two_objects_transforms_one_into_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert merge_patch(old, _diff(old, new)) == new
    assert merge_patch(merge_patch(old, _diff(old, new)), _diff(old, new)) == new


@given(_objects, _objects)
def test_patch_result_shares_no_values_with_its_inputs(old: dict[str, Any], patch: dict[str, Any]) -> None:
    kept, sent = copy.deepcopy(old), copy.deepcopy(patch)
    _spoil(merge_patch(old, patch))
    assert (old, patch) == (kept, sent)


def _spoil(value: Any) -> None:
    if is_mapping(value):
        for item in list(value.values()):
            _spoil(item)
        value["spoiled"] = True
    elif items(value):
        items(value).append("spoiled")


def test_json_patch_applies_operations_in_order() -> None:
    operations = [
        {"op": "test", "path": "/spec/replicas", "value": 1},
        {"op": "replace", "path": "/spec/replicas", "value": 2},
        {"op": "add", "path": "/spec/list/-", "value": "b"},
        {"op": "remove", "path": "/metadata/labels/a~1b"},
        {"op": "copy", "from": "/spec/replicas", "path": "/spec/copied"},
    ]
    current = {"metadata": {"labels": {"a/b": "c"}}, "spec": {"replicas": 1, "list": ["a"]}}
    assert _patch(JSON_PATCH, current, operations, FOO) == {
        "metadata": {"labels": {}},
        "spec": {"replicas": 2, "list": ["a", "b"], "copied": 2},
    }


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "remove", "path": "/missing"},
        {"op": "replace", "path": "/missing/deeper", "value": 1},
        {"op": "add", "path": "/missing/deeper", "value": 1},
        {"op": "invent", "path": "/a"},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "value": 1},
        {"op": "add", "path": "/a/b", "value": 1},
        {"op": "replace", "path": "", "value": [1]},
        {},
    ],
)
def test_inapplicable_json_patch_gives_422(operation: dict[str, Any]) -> None:
    message = "the server rejected our request due to an error in our request"
    assert _refused(JSON_PATCH, msgspec.json.encode([operation])) == (422, "Invalid", message)


@pytest.mark.parametrize(
    "body", [b"{}", b"[1]", b'[{"op": 5}]', b'[{"path": 5}]', b"[", b"", b'[{"op": "test"}', b"\xff"]
)
def test_malformed_json_patch_gives_400(body: bytes) -> None:
    code, reason, message = _refused(JSON_PATCH, body)
    assert (code, reason) == (400, "BadRequest")
    assert message.startswith("error decoding patch: ")


def test_too_many_operations_give_413() -> None:
    operation = {"op": "test", "path": "/a", "value": 1}
    assert _patch(JSON_PATCH, {"a": 1}, [operation] * MAX_OPERATIONS) == {"a": 1}
    code, reason, message = _refused(JSON_PATCH, msgspec.json.encode([operation] * (MAX_OPERATIONS + 1)))
    assert (code, reason) == (413, "RequestEntityTooLarge")
    assert "is 10000, got 10001" in message


@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC_MERGE_PATCH])
@pytest.mark.parametrize("body", [b"[]", b"5", b"{", b"", b'{"a": }'])
def test_merge_patch_that_is_not_an_object_gives_400(content_type: str, body: bytes) -> None:
    code, reason, message = _refused(content_type, body)
    assert (code, reason) == (400, "BadRequest")
    assert message.startswith("error decoding patch: ")


def test_null_patch_changes_nothing_but_is_an_invalid_merge_patch() -> None:
    assert apply_patch(JSON_PATCH, {"a": 1}, b"null", FOO) == {"a": 1}
    assert apply_patch(STRATEGIC_MERGE_PATCH, {**TYPED, "a": 1}, b"null", DEPLOYMENT) == {**TYPED, "a": 1}
    assert _refused(MERGE_PATCH, b"null") == (400, "BadRequest", "Invalid JSON Patch")


def test_strategic_patch_cannot_change_kind_or_version() -> None:
    assert _patch(STRATEGIC_MERGE_PATCH, TYPED, {"kind": "Pod", "apiVersion": "v1"}) == TYPED
    assert _patch(STRATEGIC_MERGE_PATCH, TYPED, {"kind": None, "apiVersion": None}) == TYPED
    scale: dict[str, object] = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
    assert apply_patch(STRATEGIC_MERGE_PATCH, scale, b"{}", DEPLOYMENT, of_kind=False) == scale


def test_nulls_inside_a_list_of_a_merge_patch() -> None:
    patch: dict[str, Any] = {"a": [{"x": None}, None]}
    assert merge_patch({}, patch) == {"a": [{}, None]}
    assert merge_patch({"a": 1}, patch) == {"a": [{}, None]}
    assert merge_patch({"a": {"b": 1}}, patch) == patch


@pytest.mark.parametrize("content_type", [JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH])
def test_excessive_nesting_gives_400(content_type: str) -> None:
    for opening, closing in ((b'{"a":', b"}"), (b"[", b"]")):
        body = opening * 100_000 + b"1" + closing * 100_000
        assert _refused(content_type, body)[0] == 400
    depth = 600
    body = b'{"a":' * depth + b"1" + b"}" * depth
    if content_type != JSON_PATCH:
        result = apply_patch(content_type, {}, b'{"a":1}', DEPLOYMENT)
        assert result["a"] == 1
        assert _code_or_result(content_type, body) in (200, 400)


def _code_or_result(content_type: str, body: bytes) -> int:
    try:
        apply_patch(content_type, {}, body, DEPLOYMENT)
    except ApiError as error:
        return error.status.code
    return 200


@pytest.mark.parametrize(
    "content_type", ["", "application/json", "application/apply-patch+yaml", "application/yaml", "text/plain"]
)
def test_unsupported_content_types_give_415(content_type: str) -> None:
    assert _refused(content_type, b"{}") == (415, "UnsupportedMediaType", "415: Unsupported Media Type")
    with pytest.raises(UnsupportedMediaTypeError) as caught:
        apply_patch(content_type, {}, b"{}", FOO)
    assert caught.value.status.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


def test_custom_resources_reject_strategic_merge_patch() -> None:
    assert patch_types(FOO) == (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
    with pytest.raises(UnsupportedMediaTypeError, match="application/merge-patch") as caught:
        apply_patch(STRATEGIC_MERGE_PATCH, {}, b"{}", FOO)
    assert "strategic" not in str(caught.value)


def test_content_type_parameters_and_case_are_ignored() -> None:
    assert apply_patch("Application/Merge-Patch+JSON; charset=utf-8", {}, b'{"a":1}', FOO) == {"a": 1}


def test_strategic_patch_uses_merge_keys_of_the_kind() -> None:
    current = {"spec": {"template": {"spec": {"containers": [{"name": "the-container", "image": "1"}]}}}}
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "the-container", "image": "2"}]}}}}
    assert _patch(STRATEGIC_MERGE_PATCH, current, patch) == {**TYPED, **patch}
    bad: dict[str, Any] = {"spec": {"template": {"spec": {"containers": [{"image": "2"}]}}}}
    with pytest.raises(ApiError) as caught:
        _patch(STRATEGIC_MERGE_PATCH, current, bad)
    assert caught.value.status.code == 500
    assert "does not contain the declared merge key: name" in caught.value.status.message


def test_error_messages_do_not_contain_patch_data() -> None:
    secret = "hunter2"
    for content_type, body in (
        (JSON_PATCH, msgspec.json.encode([{"op": "test", "path": "/a", "value": secret}])),
        (MERGE_PATCH, msgspec.json.encode([secret])),
        (MERGE_PATCH, f'{{"a": "{secret}" "b"}}'.encode()),
        (STRATEGIC_MERGE_PATCH, msgspec.json.encode({"$retainKeys": secret})),
    ):
        assert secret not in str(_refused(content_type, body))
