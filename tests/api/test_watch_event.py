from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api import kinds
from deltaloop.api.status import ApiError, ExpiredError, InternalServerError, ServerTimeoutError
from deltaloop.api.watch_event import EventType, MalformedEventError, WatchEvent, decode_watch_event


@pytest.mark.parametrize("name", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
def test_event_contains_object(name: str) -> None:
    line = b'{"type":"%s","object":{"metadata":{"name":"x","resourceVersion":"5"},"spec":{"a":1}}}\r\n' % name.encode()
    event = decode_watch_event(line, kinds.POD)
    assert event.type is EventType(name)
    assert event.object.name == "x"
    assert event.object["spec"] == {"a": 1}
    assert event.object.raw == b'{"metadata":{"name":"x","resourceVersion":"5"},"spec":{"a":1}}'
    assert event.object.resource_type == kinds.POD
    assert not event.ends_initial_events


@pytest.mark.parametrize(
    ("name", "value", "ends"), [("BOOKMARK", "true", True), ("BOOKMARK", "false", False), ("ADDED", "true", False)]
)
def test_only_bookmark_ends_initial_events(name: str, value: str, ends: bool) -> None:
    line = (
        '{"type":"%s","object":{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"%s"}}}}'
    )
    assert decode_watch_event((line % (name, value)).encode()).ends_initial_events is ends


@pytest.mark.parametrize(
    ("status", "cls"),
    [
        (
            b'{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version: 1 (297)"}',
            ExpiredError,
        ),
        (b'{"kind":"Status","code":504,"reason":"Timeout"}', ServerTimeoutError),
        (b'{"kind":"Status","code":500}', InternalServerError),
        (b'{"kind":"Pod","metadata":{}}', InternalServerError),
        (b"null", InternalServerError),
        (b'"gone"', InternalServerError),
    ],
)
def test_error_event_raises_exception(status: bytes, cls: type[ApiError]) -> None:
    with pytest.raises(ApiError) as caught:
        decode_watch_event(b'{"type":"ERROR","object":' + status + b"}")
    assert type(caught.value) is cls


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "is not a watch event"),
        (b"<html>hunter2</html>", "is not a watch event"),
        (b'{"type":"ADDED"}', "missing required field `object`"),
        (b'{"object":{"metadata":{}}}', "missing required field `type`"),
        (b'{"type":null,"object":{}}', "is not a watch event"),
        (b'{"type":"added","object":{"metadata":{}}}', "'added'"),
        (b'{"type":"ADDED","object":{}}', "of type ADDED"),
        (b'{"type":"ADDED","object":null}', "of type ADDED"),
        (b'{"type":"ADDED","object":{"metadata":{"name":"a","uid":5},"data":"hunter2"}}', "of type ADDED"),
        (b'{"type":"ADDED","object":{"metadata":{"name":"x"}', "is not a watch event"),
        (b'{"type":"ADDED","object":' + b"[" * 20000 + b"]" * 20000 + b"}", "is not a watch event"),
        (b'{"type":"\xff","object":{}}', "is not a watch event"),
    ],
)
def test_malformed_event_is_rejected_without_showing_data(line: bytes, reason: str) -> None:
    with pytest.raises(MalformedEventError) as caught:
        decode_watch_event(line)
    assert reason in str(caught.value)
    assert "hunter2" not in str(caught.value)


@given(st.binary(max_size=40))
def test_any_line_is_event_or_malformed(line: bytes) -> None:
    with contextlib.suppress(MalformedEventError):
        assert isinstance(decode_watch_event(line), WatchEvent)


@given(st.integers(0, 70))
def test_truncated_line_is_malformed(length: int) -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"name":"x","labels":{"a":"b"}}}}'
    if length < len(line):
        with pytest.raises(MalformedEventError):
            decode_watch_event(line[:length])


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-10, 10)
    | st.text(max_size=4)
    | st.sampled_from(["}", '"', '","object":{']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "metadata", "object"]), inner),
    max_leaves=8,
)
OBJECTS = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({"name": st.text(max_size=3), "resourceVersion": st.sampled_from(["1", "7"])})},
    optional={"spec": JSON, "status": JSON, "metadata2": JSON},
)


def outcome(line: bytes) -> object:
    try:
        return decode_watch_event(line, kinds.POD)
    except MalformedEventError:
        return "malformed"


@given(
    name=st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERASED"]),
    obj=OBJECTS | JSON,
    tail=st.sampled_from(["", ',"x":1', ',"x":{}', '},"x":{', "}", ',"object":{"metadata":{"name":"other"}}', "]"]),
)
def test_usual_layout_equals_other_layouts(name: str, obj: object, tail: str) -> None:
    body = json.dumps(obj)
    usual = f'{{"type":"{name}","object":{body}{tail}}}'.encode()
    spaced = f'{{ "type":"{name}","object":{body}{tail}}}'.encode()  # a blank more: the beginning is not the usual one
    assert outcome(usual) == outcome(spaced)
