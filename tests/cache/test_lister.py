"""Reading a cache."""

from __future__ import annotations

import pytest

from deltaloop.api.errors import InvalidSelectorError
from deltaloop.api.kinds import DEPLOYMENT, POD
from deltaloop.api.resource import Resource
from deltaloop.api.selectors import LabelSelector
from deltaloop.api.status import NotFoundError
from deltaloop.cache.errors import UnknownIndexError
from deltaloop.cache.lister import Lister
from deltaloop.cache.store import NAMESPACE_INDEX, Indexer, namespace_index_func
from tests.cache.objects import pod


def lister() -> Lister[Resource]:
    indexer = Indexer[Resource](indexers={NAMESPACE_INDEX: namespace_index_func})
    indexer.replace(
        [
            pod("a", labels={"app": "web"}),
            pod("b", labels={"app": "db"}),
            pod("c", namespace="other", labels={"app": "web"}),
            pod("d", namespace="other"),
        ]
    )
    return Lister(indexer, POD)


def names(objects: list[Resource]) -> list[str]:
    return [obj.name for obj in objects]


def test_get_raises_and_find_returns_none() -> None:
    pods = lister()
    assert pods.get("default/a").name == "a"
    assert pods.find("default/c") is None
    with pytest.raises(NotFoundError, match='pods "default/c" not found in the cache') as caught:
        pods.get("default/c")
    details = caught.value.status.details
    assert details is not None
    assert (details.name, details.kind, details.group) == ("c", "pods", "")
    assert (caught.value.status.code, caught.value.status.reason) == (404, "NotFound")
    with pytest.raises(NotFoundError, match=r'deployments\.apps "x"') as caught:
        Lister(Indexer[Resource](), DEPLOYMENT).get("x")
    details = caught.value.status.details
    assert details is not None
    assert (details.name, details.kind, details.group) == ("x", "deployments", "apps")


@pytest.mark.parametrize(
    ("selector", "namespace", "expected"),
    [
        (None, None, ["a", "b", "c", "d"]),
        ("", "", ["a", "b", "c", "d"]),
        ("app=web", None, ["a", "c"]),
        ("app=web", "other", ["c"]),
        ("!app", None, ["d"]),
        (LabelSelector.parse("app in (db)"), None, ["b"]),
        ("app=none", None, []),
        (None, "other", ["c", "d"]),
        (None, "nowhere", []),
    ],
)
def test_list(selector: str | LabelSelector | None, namespace: str | None, expected: list[str]) -> None:
    assert names(lister().list(selector, namespace=namespace)) == expected


def test_invalid_selector_raises_error() -> None:
    with pytest.raises(InvalidSelectorError):
        lister().list("app in web")


def test_lister_of_namespace_reads_only_its_objects() -> None:
    other = lister().namespace("other")
    assert names(other.list("app")) == ["c"]
    assert other.get("d").name == "d"
    found = other.find("d")
    assert found is not None
    assert (found.name, other.find("a")) == ("d", None)
    with pytest.raises(NotFoundError):
        other.get("a")


def test_by_index() -> None:
    pods = lister()
    assert names(pods.by_index(NAMESPACE_INDEX, "other")) == ["c", "d"]
    with pytest.raises(UnknownIndexError):
        pods.by_index("node", "n1")
    assert repr(pods) == "<Lister v1/Pod: 4 objects>"
