"""Objects of a large conversion review: where they are, and which bounds they must keep."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop.webhooks.answer import finished
from deltaloop.webhooks.core.admission_review import InvalidReviewError
from deltaloop.webhooks.core.review_splitting import (
    MOST_CONTAINERS,
    MOST_OBJECT_BYTES,
    MOST_VALUES,
    ReviewTooLargeError,
    SplitReview,
    ValueCount,
    is_costly,
    split_review,
)
from tests.nightly import examples
from tests.webhooks.kinds import conversion

_JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def split(body: bytes, max_objects: int = 100, most_object_bytes: int = MOST_OBJECT_BYTES) -> SplitReview:
    return finished(split_review(body, max_objects=max_objects, most_object_bytes=most_object_bytes))


_OBJECTS: Any = st.lists(st.dictionaries(st.text(), _JSON, max_size=3), max_size=4)


@settings(max_examples=examples(30), deadline=None)
@given(objects=_OBJECTS, more=_JSON, indent=st.none() | st.just(1))
def test_objects_are_found_among_other_fields(objects: list[dict[str, Any]], more: Any, indent: int | None) -> None:
    plain = conversion("example.com/v1", *objects)
    request: dict[str, Any] = {"b": more, **plain["request"], "z": more}
    review: dict[str, Any] = {"a": more, "objects": [more], **plain, "request": request}
    body = json.dumps(review, indent=indent).encode()
    found = split(body)
    assert [json.loads(body[begin:end]) for begin, end in found.spans] == objects
    assert json.loads(found.envelope) == {**review, "request": {**request, "objects": []}}


def listed(*items: bytes) -> bytes:
    return json.dumps(conversion("example.com/v1")).encode().replace(b"[]", b"[" + b",".join(items) + b"]")


@pytest.mark.parametrize(
    "body",
    [
        listed(b"1"),
        listed(b"{}", b'"{}"'),
        listed(b"[]"),
        listed(b"{}", b""),
        listed(b"{} {}"),
        listed(b"{}")[:-2],
        listed(b'{"a":"'),
        b"}" + listed(b"{}"),
        listed(b"{}").replace(b'"uid"', b'"objects": [], "uid"'),
    ],
)
def test_body_without_review_is_rejected(body: bytes) -> None:
    with pytest.raises(InvalidReviewError):
        split(body)


def test_limits_are_checked_before_decoding() -> None:
    for body, bounds in (
        (listed(*[b"{}"] * 3), {"max_objects": 2}),
        (listed(b'{"a":"%s"}' % (b"x" * 200)), {"most_object_bytes": 100}),
        (listed(b'{"a":"%s"}' % (b'\\"' * 200)), {"most_object_bytes": 100}),
        (listed(b"{" * 200), {}),
        (listed(b'{"a":[%s]}' % b",".join([b"1"] * MOST_VALUES)), {}),
        (listed(b'{"a":[%s]}' % b",".join([b"[]"] * MOST_CONTAINERS)), {}),
        (listed(b"{}").replace(b'"uid"', b'"x": "%s", "uid"' % (b"x" * 70_000)), {}),
    ):
        with pytest.raises(ReviewTooLargeError):
            split(body, **bounds)


def test_each_step_scans_limited_bytes() -> None:
    body = listed(b'{"a":"%s"}' % (b'\\"' * 100_000), *[b"{}"] * 1000)
    steps = split_review(body, max_objects=2000)
    assert sum(1 for _ in steps) > 40


def test_values_and_costs() -> None:
    assert ValueCount().add(b'{"a":[1,2,{}]}', 0, 14) == ValueCount(values=5, containers=3)
    assert [is_costly(b" " * size) for size in (16_384, 16_385, 65_536, 65_537)] == [False, False, False, True]
    assert is_costly(b"," * 20_000)
