"""The splitter against decoding the whole: same list, whatever the slices; and its memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop.api import kinds
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.client.core.list_decoding import decode_list
from deltaloop.client.core.list_splitter import ListSplitter
from deltaloop.client.verbs.resource_list import ResourceList
from tests.nightly import examples


def split(body: bytes, sizes: list[int], *, step: int = 64) -> tuple[ResourceList[Resource], int]:
    """Feed a body in slices of the given sizes, over and over; also tell the most bytes that waited."""
    splitter = ListSplitter(kinds.POD, step=step)
    start = most = turn = 0
    while start < len(body):
        size = sizes[turn % len(sizes)]
        splitter.feed(body[start : start + size])
        most = max(most, splitter.pending)
        start += size
        turn += 1
    return splitter.finish(), most


def same(found: ResourceList[Resource], body: bytes) -> bool:
    whole = decode_list(kinds.POD, body)
    return (
        [item.raw for item in found] == [item.raw for item in whole]
        and found.resource_version == whole.resource_version
        and found.continue_ == whole.continue_
        and found.remaining_item_count == whole.remaining_item_count
    )


# Texts and keys that look like the places the splitter looks for.
TRAPS = st.sampled_from(["},{", '},{"metadata":{', '"items":[', "]}", '\\"', "\\", "é", "", "a"])
VALUES = st.recursive(
    st.one_of(TRAPS, st.integers(-5, 5), st.booleans(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(TRAPS, inner, max_size=3),
        st.lists(st.fixed_dictionaries({"metadata": st.dictionaries(TRAPS, inner, max_size=1)}), max_size=3),
        st.fixed_dictionaries({"items": st.lists(inner, max_size=2)}),
    ),
    max_leaves=8,
)


def body_of(specs: list[Any], *, custom: bool, metadata_last: bool, indent: int | None) -> bytes:
    items: list[dict[str, Any]] = []
    for number, spec in enumerate(specs):
        own = {"metadata": {"name": f"o{number}", "resourceVersion": "3"}, "spec": spec}
        items.append({"apiVersion": "example.com/v1", "kind": "Foo", **own} if custom else own)
    metadata = {"metadata": {"resourceVersion": "7", "continue": "t", "remainingItemCount": 4}}
    kind = {"kind": "List", "apiVersion": "v1"}
    fields = {**kind, "items": items, **metadata} if metadata_last else {**kind, **metadata, "items": items}
    separators = (",", ":") if indent is None else None
    return json.dumps(fields, indent=indent, separators=separators, ensure_ascii=False).encode()


@settings(max_examples=examples(150))
@given(
    st.lists(VALUES, max_size=12),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, None, None, 1]),
    st.lists(st.integers(1, 90), min_size=1, max_size=5),
)
def test_split_list_equals_list_decoded_in_one_step(
    specs: list[Any], custom: bool, metadata_last: bool, indent: int | None, sizes: list[int]
) -> None:
    body = body_of(specs, custom=custom, metadata_last=metadata_last, indent=indent)
    found, _ = split(body, sizes)
    assert same(found, body)


@settings(max_examples=examples(100))
@given(st.lists(VALUES, min_size=3, max_size=8), st.integers(0, 400), st.lists(st.integers(1, 90), min_size=1))
def test_truncated_list_is_rejected(specs: list[Any], missing: int, sizes: list[int]) -> None:
    body = body_of(specs, custom=False, metadata_last=False, indent=None)
    cut = body[: len(body) - 1 - missing % (len(body) - 1)]
    with pytest.raises(MalformedObjectError, match=f"{len(cut)} bytes"):
        split(cut, sizes)


DECOY = b'"items":[{"metadata":{"name":"no"}},{"metadata":{"name":"never"}},{"metadata":{"name":"this"}}]'


@pytest.mark.parametrize("around", [b'{"extra":{%s},', b'{"extra":[{%s}],', b'{"extra":[[{%s}]],"items2":[],'])
def test_nested_items_are_not_list_items(around: bytes) -> None:
    body = around % DECOY + b'"metadata":{"resourceVersion":"7"},"items":['
    body += b",".join(b'{"metadata":{"name":"yes%d"}}' % number for number in range(20)) + b"]}"
    found, most = split(body, [10], step=20)
    assert [item.name for item in found] == [f"yes{number}" for number in range(20)]
    assert most < len(body) - 100, "and the list's own are found behind them"


def test_items_are_decoded_while_they_arrive() -> None:
    body = body_of(["x" * 50] * 200, custom=False, metadata_last=False, indent=None)
    found, most = split(body, [100], step=500)
    assert len(found) == 200
    assert most < 900


@pytest.mark.parametrize("metadata_last", [False, True])
def test_items_of_custom_resources_are_decoded_while_they_arrive(metadata_last: bool) -> None:
    body = body_of(["x" * 50] * 200, custom=True, metadata_last=metadata_last, indent=None)
    found, most = split(body, [100], step=500)
    assert same(found, body)
    assert most < 900


def test_indented_json_is_collected() -> None:
    body = body_of(["x"] * 50, custom=False, metadata_last=False, indent=1)
    found, most = split(body, [100], step=500)
    assert same(found, body)
    assert most == len(body)


def test_item_that_is_not_object_is_named_in_error() -> None:
    body = b'{"items":[' + b'{"metadata":{"name":"a"}},' * 30 + b'{"metadata":"s3cret"},' + b'{"metadata":{}},' * 30
    with pytest.raises(MalformedObjectError, match=r"item 30 .*v1/Pod") as caught:
        split(body + b'{"metadata":{}}]}', [40])
    assert "s3cret" not in str(caught.value)
    late = b'{"items":[' + b'{"metadata":{"name":"a"}},' * 30 + b'{"kind":"s3cret"}]}'
    with pytest.raises(MalformedObjectError, match=r"item 30 .*v1/Pod"):
        split(late, [40])


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"kind":"Pod","metadata":{}}', b'{"items":[{}]' + b" " * 99])
def test_invalid_list_raises_error(body: bytes) -> None:
    with pytest.raises(MalformedObjectError):
        split(body or b" ", [7], step=3)


def _slices(count: int, item: bytes, size: int) -> Iterator[bytes]:
    """The body of a list that never exists as a whole."""
    waiting = bytearray(b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[')
    for number in range(count):
        waiting += item.replace(b"NUMBER", b"%06d" % number) + (b"," if number < count - 1 else b"]}")
        while len(waiting) >= size:
            yield bytes(waiting[:size])
            del waiting[:size]
    yield bytes(waiting)


def _peak(decode: Any, slices: Iterator[bytes]) -> tuple[int, int]:
    """Return the peak and what stays, in bytes."""
    tracemalloc.start()
    try:
        found = decode(slices)
        kept, peak = tracemalloc.get_traced_memory()
        assert len(found) > 0
    finally:
        tracemalloc.stop()
    return peak, kept


def _split_all(slices: Iterator[bytes]) -> ResourceList[Resource]:
    splitter = ListSplitter(kinds.POD)
    for piece in slices:
        splitter.feed(piece)
    return splitter.finish()


def _decode_at_once(slices: Iterator[bytes]) -> ResourceList[Resource]:
    return decode_list(kinds.POD, b"".join(slices))


ITEM = b'{"metadata":{"name":"p-NUMBER","namespace":"n"},"spec":{"containers":[{"name":"a"},{"name":"b"}],"x":"%s"}}'


@pytest.mark.nightly
@pytest.mark.slow
def test_large_list_needs_memory_of_objects_once() -> None:
    item = ITEM % (b"x" * 1000)
    peak, kept = _peak(_split_all, _slices(20_000, item, 256 * 1024))
    payload = 20_000 * len(item)
    assert kept > payload
    assert peak < 1.06 * kept  # the buffer, and the last slice as objects
    at_once, kept_at_once = _peak(_decode_at_once, _slices(20_000, item, 256 * 1024))
    assert at_once > 1.6 * kept_at_once  # what it was before


def test_list_of_few_megabytes_needs_memory_of_objects_once() -> None:
    item = ITEM % (b"x" * 3000)
    peak, kept = _peak(_split_all, _slices(4_000, item, 64 * 1024))
    assert kept > 4_000 * len(item)
    assert peak < kept + 5 * 1024 * 1024


@pytest.mark.parametrize("step", [16, 10_000])
def test_managed_fields_are_dropped_by_splitter_and_decoder(step: int) -> None:
    items = [{"metadata": {"name": name, "managedFields": [{"manager": "x"}]}} for name in ("a", "b", "c")]
    body = json.dumps({"kind": "PodList", "apiVersion": "v1", "items": items}, separators=(",", ":")).encode()
    splitter = ListSplitter(kinds.POD, step=step, drop_managed_fields=True)
    for start in range(0, len(body), 10):
        splitter.feed(body[start : start + 10])
    found = splitter.finish()
    assert [item.name for item in found] == ["a", "b", "c"]
    assert not any("managedFields" in item["metadata"] for item in found)
    assert not any(
        "managedFields" in item["metadata"] for item in decode_list(kinds.POD, body, drop_managed_fields=True)
    )
