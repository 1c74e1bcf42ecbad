from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from deltaloop.api import kinds
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.client.core.list_decoding import decode_list
from deltaloop.client.core.list_splitter import ListSplitter
from deltaloop.client.verbs.resource_list import UnreadableItemsError

PAGE = (
    b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42","continue":"next","remainingItemCount":7},'
    b'"items":[{"metadata":{"name":"a","namespace":"n","resourceVersion":"3"},"spec":{"x":1}},'
    b' {"metadata":{"name":"b"}}]}'
)


class Named(msgspec.Struct):
    name: str


class Small(msgspec.Struct):
    metadata: Named


def test_items_and_metadata() -> None:
    found = decode_list(kinds.POD, PAGE)
    assert [item.key for item in found] == ["n/a", "b"]
    assert (found.resource_version, found.continue_, found.remaining_item_count) == ("42", "next", 7)
    first = found.items[0]
    assert first.resource_type is kinds.POD
    assert first.view()["spec"]["x"] == 1


def test_list_item_does_not_keep_memory_of_page() -> None:
    found = decode_list(kinds.POD, PAGE)
    assert [type(item.raw) for item in found] == [bytes, bytes]
    assert found.items[1].raw == b'{"metadata":{"name":"b"}}'


def test_typed_items() -> None:
    typed = ResourceType[Small]("", "v1", "Pod", "pods", namespaced=True, model=Small)
    assert [item.metadata.name for item in decode_list(typed, PAGE)] == ["a", "b"]


@pytest.mark.parametrize("items", [b"[]", b"null"])
def test_empty_list_is_decoded(items: bytes) -> None:
    found = decode_list(kinds.POD, b'{"items":' + items + b',"metadata":{"resourceVersion":"5"}}')
    assert found.items == ()
    assert found.resource_version == "5"
    assert found.continue_ == ""
    assert found.remaining_item_count is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>log in</html>", "JSON"),
        (b"", "JSON"),
        (b'{"items":[{"metadata":{}}', "JSON"),
        (b'{"kind":"Pod","metadata":{"name":"s3cret"}}', "items"),
        (b"[]", "v1/Pod"),
        (b'{"items":{}}', "v1/Pod"),
        (b'{"items":[{"metadata":{"name":"a"}},{"kind":"s3cret"}]}', "item 1 .*v1/Pod: .*metadata"),
        (b'{"items":["s3cret"]}', "item 0"),
        (b'{"items":[],"metadata":{"continue":"\xff"}}', "UTF-8|utf-8"),
    ],
)
def test_error_for_a_body_without_list_has_no_data(body: bytes, message: str) -> None:
    with pytest.raises(MalformedObjectError, match=message) as caught:
        decode_list(kinds.POD, body)
    assert "s3cret" not in str(caught.value)


def test_decoding_builds_no_dicts() -> None:
    found = decode_list(kinds.POD, PAGE)
    assert all(isinstance(item, Resource) for item in found)
    assert Resource.from_json(found.items[0].raw, kinds.POD) == found.items[0]


MIXED = [{"metadata": {"name": "a"}}, {"kind": "s3cret"}, {"metadata": {"name": "b"}}, {"spec": "s3cret"}]


@pytest.mark.parametrize("slice_size", [7, 64, 10_000])
@pytest.mark.parametrize("repeat", [1, 50])
def test_error_of_unreadable_items_has_all_readable_items(slice_size: int, repeat: int) -> None:
    """At once or as it arrives: the error has everything that could be read, and names what could not."""
    body = msgspec.json.encode({"metadata": {"resourceVersion": "7"}, "items": MIXED * repeat})
    splitter = ListSplitter(kinds.POD, step=64)
    for start in range(0, len(body), slice_size):
        splitter.feed(body[start : start + slice_size])
    finishes: list[Callable[[], object]] = [lambda: decode_list(kinds.POD, body), splitter.finish]
    for finish in finishes:
        with pytest.raises(UnreadableItemsError, match=r"item 1 .*v1/Pod: .*metadata") as caught:
            finish()
        page = caught.value.page
        assert [item.name for item in page] == ["a", "b"] * repeat
        assert page.resource_version == "7"
        assert [str(error).split(" ")[1] for error in page.unreadable] == [
            str(index) for index in range(4 * repeat) if index % 2
        ]
        assert "s3cret" not in f"{caught.value} {page.unreadable}"
        assert str(caught.value).endswith(f"(and {2 * repeat - 1} more items)")


def test_unreadable_item_has_key_if_known() -> None:
    items = [
        b'{"metadata":{"name":"a","namespace":"here","labels":{"x":1}}}',
        b'{"metadata":{"name":"b","namespace":null,"generation":"s3cret"}}',
        b'{"metadata":{"name":7}}',
        b'{"metadata":{"name":"","labels":{"x":1}}}',
        b'{"metadata":"s3cret"}',
        b'{"metadata":{"name":"fine"}}',
    ]
    body = b'{"metadata":{},"items":[' + b",".join(items) + b"]}"
    with pytest.raises(UnreadableItemsError) as caught:
        decode_list(kinds.POD, body)
    page = caught.value.page
    assert [each.key for each in page.unreadable] == ["here/a", "b", None, None, None]
    assert [item.name for item in page] == ["fine"]
    assert "s3cret" not in f"{page.unreadable}"
