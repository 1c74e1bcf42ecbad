"""A store as a version shows it: what is missing is asked for at once, and what was answered is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

import msgspec
import pytest

from deltaloop.api.resource import Resource
from deltaloop.api.selectors import LabelSelector
from deltaloop.apiserver.core.crds.conversion_webhook import ConversionWebhook
from deltaloop.apiserver.core.external_answers import QuestionError
from deltaloop.apiserver.core.storage.converted import ConversionQuestion, ConvertedObjects, ConvertedStore
from deltaloop.apiserver.core.storage.encoding import stored_version, whole_resource, with_resource_version
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.webhook_calls import endpoint_of

T = TypeVar("T")
FOOS, V1, V2 = "foos.example.com", "example.com/v1", "example.com/v2"


def webhook() -> ConversionWebhook:
    endpoint = endpoint_of({"url": "https://localhost/c"})
    return ConversionWebhook(
        kind="Foo", endpoint=endpoint, review_version="v1", schemas={}, stored=V1, oldest=V1, definition="1"
    )


class Shown:
    """A store, one version of it, and what it has asked for."""

    def __init__(self) -> None:
        self.store = RevisionStore()
        self.webhook = webhook()
        self.common = ConvertedObjects()
        self.shown = self.view()
        self.asked: list[list[str]] = []

    def view(self, *, compares: bool = True) -> ConvertedStore:
        return ConvertedStore(self.store, FOOS, self.webhook, V2, self.common, compares=compares)

    def put(self, name: str, value: int, *, version: str = V1) -> None:
        fields = {"apiVersion": version, "metadata": {"name": name}, "value": value}
        put = self.store.update if self.store.get(FOOS, name) else self.store.create
        put(FOOS, name, fields)

    def read(self, read: Callable[[], T]) -> T:
        """Read, and answer what is asked for."""
        while True:
            try:
                return read()
            except QuestionError as asked:
                objects = cast("ConversionQuestion", asked.question).objects
                self.asked.append([f"{obj.name}@{obj.resource_version}" for obj in objects])
                self.shown.hold({obj.raw: converted(obj) for obj in objects})


def converted(obj: Resource) -> Resource:
    fields: dict[str, Any] = {**msgspec.json.decode(obj.raw), "kind": "Foo", "apiVersion": V2, "by": "webhook"}
    fields["metadata"]["labels"] = {"in": "v2"}
    return whole_resource(fields, resource_version=obj.resource_version)


@pytest.fixture
def shown() -> Shown:
    return Shown()


def names(objects: tuple[Resource, ...]) -> list[tuple[str, str]]:
    return [(obj.name, obj.api_version) for obj in objects]


def test_list_converts_all_missing_objects_in_one_request(shown: Shown) -> None:
    shown.put("a", 1)
    shown.put("b", 2, version=V2)
    shown.put("c", 3)
    page = shown.read(lambda: shown.shown.list(FOOS))
    assert shown.asked == [["a@2", "c@4"]]
    assert names(page.items) == [("a", V2), ("b", V2), ("c", V2)]
    shown.shown.let_go()
    with pytest.raises(QuestionError):
        shown.shown.list(FOOS)


def test_page_converts_only_its_objects(shown: Shown) -> None:
    for name in "abcd":
        shown.put(name, 1)
    page = shown.read(lambda: shown.shown.list(FOOS, limit=2))
    assert shown.asked == [["a@2", "b@3"]]
    assert (names(page.items), page.remaining) == ([("a", V2), ("b", V2)], 2)


def test_selector_matches_the_converted_object(shown: Shown) -> None:
    for name in "abc":
        shown.put(name, 1)
    selector = LabelSelector.parse("in=v2")
    page = shown.read(lambda: shown.shown.list(FOOS, matches=lambda obj: selector.matches(obj.labels), limit=2))
    assert names(page.items) == [("a", V2), ("b", V2)]


def test_conversions_of_other_readers_are_reused(shown: Shown) -> None:
    shown.put("a", 1)
    obj = shown.store.get(FOOS, "a")
    assert obj is not None
    shown.common.keep(shown.webhook, V2, obj.raw, converted(obj))
    assert names(shown.view().list(FOOS).items) == [("a", V2)]
    other = ConvertedStore(shown.store, FOOS, replace(shown.webhook, definition="2"), V2, shown.common)
    with pytest.raises(QuestionError):
        other.list(FOOS)


def test_changes_convert_the_delivered_objects(shown: Shown) -> None:
    shown.put("a", 1)
    shown.put("a", 2)
    shown.store.create("configmaps", "x", {"metadata": {"name": "x"}})
    shown.store.delete(FOOS, "a")
    shown.shown = shown.view(compares=False)
    changes = shown.read(lambda: shown.shown.changes_after(1))
    assert shown.asked == [["a@2", "a@3"]]
    assert [change.resource for change in changes] == [FOOS, FOOS, "configmaps", FOOS]
    assert changes[3].old is not None
    assert changes[3].old.api_version == V2
    shown.shown = shown.view()
    changes = shown.read(lambda: shown.shown.changes_after(2))
    assert changes[0].old is not None
    assert changes[0].old.api_version == V2


def test_conversion_cache_is_bounded() -> None:
    common, asks = ConvertedObjects(size=1000), webhook()
    objects = [
        whole_resource({"kind": "Foo", "apiVersion": V2, "metadata": {"name": f"n{n}"}}, resource_version="1")
        for n in range(50)
    ]
    for obj in objects:
        common.keep(asks, V2, obj.raw, obj)
        common.keep(asks, V2, obj.raw, obj)
    found = [common.find(asks, V2, obj) is not None for obj in objects]
    assert not found[0]
    assert found[-1]
    assert sum(2 * len(obj.raw) for obj, there in zip(objects, found, strict=True) if there) <= 1000


def test_stored_version_is_read_from_the_object() -> None:
    store = RevisionStore()
    marked = store.create(FOOS, "a", {"apiVersion": V1, "metadata": {"name": "a"}, "Aa": 1, "api": 2})
    plain = store.create("configmaps", "b", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "b"}})
    assert (stored_version(marked), stored_version(plain)) == (V1, "")
    assert stored_version(with_resource_version(marked, 9)) == V1
    shown = converted(marked)
    assert with_resource_version(shown, 9).raw == shown.raw.replace(b'"resourceVersion":"2"', b'"resourceVersion":"9"')
    store.renumber(revision=100)
    again = store.get(FOOS, "a")
    assert again is not None
    assert stored_version(again) == V1
    assert store.update(FOOS, "a", {**again.to_dict(), "apiVersion": V2}) is not again
