"""Stores that know the keys of their objects."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.path import field_path
from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import Unread
from deltaloop.cache.core.store import StoreWrite
from deltaloop.cache.errors import TransactionError
from deltaloop.cache.store import NAMESPACE_INDEX, Indexer, Store, namespace_index_func
from tests.cache.objects import nameless, pod
from tests.having import having


@pytest.mark.parametrize("make", [Store[Resource], Indexer[Resource]])
def test_stores_fulfill_common_contract(make: type[Store[Resource]]) -> None:
    store = make()
    store.add(pod("a", 1))
    store.update(pod("a", 2))
    store.add(pod("b", 1, namespace="other"))
    assert store.list_keys() == ["default/a", "other/b"]
    assert store.get(pod("a")) == pod("a", 2)
    assert store.get_by_key("other/b") == pod("b", 1, namespace="other")
    assert store.get_by_key("default/b") is None
    store.delete(pod("a"))
    store.delete(pod("a"))
    store.delete_by_key("default/c")
    assert len(store) == 1
    store.replace([pod("c"), pod("d")], "7")
    store.resync()
    assert [obj.name for obj in store.list()] == ["c", "d"]
    assert store.key_of(pod("c")) == "default/c"


def test_object_without_a_name_is_rejected() -> None:
    store = Store[Resource]()
    store.add(pod("a"))
    for write in (store.add, store.update, store.delete, store.get):
        with pytest.raises(MalformedObjectError):
            write(nameless())
    with pytest.raises(MalformedObjectError):
        store.replace([pod("b"), nameless()])
    assert store.list_keys() == ["default/a"]


def test_indexer_with_field_paths() -> None:
    indexer = Indexer[Resource](indexers={NAMESPACE_INDEX: namespace_index_func}, name="pods")
    indexer.replace([pod("a", node="n1"), pod("b", node="n2", namespace="x"), pod("c")])
    indexer.add_indexers({"node": field_path("spec.nodeName")})
    assert [obj.name for obj in indexer.by_index("node", "n1")] == ["a"]
    assert indexer.index_keys(NAMESPACE_INDEX, "default") == ["default/a", "default/c"]
    assert indexer.list_index_func_values("node") == ["n1", "n2"]
    assert [obj.name for obj in indexer.index("node", pod("new", node="n2"))] == ["b"]
    assert sorted(indexer.get_indexers()) == ["namespace", "node"]
    indexer.update(pod("a", 2, node="n2"))
    assert indexer.index_keys("node", "n2") == ["default/a", "x/b"]
    assert repr(indexer) == "<Indexer pods: 3 objects>"


def test_transaction_is_atomic_and_returns_objects_without_key() -> None:
    store = Indexer[Resource](indexers={"node": field_path("spec.nodeName")})
    store.add(pod("gone"))
    nameless = Resource.from_dict({"metadata": {}})
    writes = [
        StoreWrite(pod("a", node="n1")),
        StoreWrite(nameless),
        StoreWrite(pod("gone"), delete=True),
        StoreWrite(pod("never there"), delete=True),
        StoreWrite(pod("a", 2, node="n2")),
    ]
    with pytest.raises(TransactionError, check=having(total=5)) as caught:
        store.transaction(writes)
    assert caught.value.total == 5
    assert list(caught.value.failures) == [1]
    assert [obj.resource_version for obj in store.list()] == ["2"]
    assert store.list_index_func_values("node") == ["n2"]
    assert store.index_keys("node", "n2") == ["default/a"]
    store.transaction([])


def test_reader_threads_never_see_partial_transaction() -> None:
    store = Indexer[Resource](indexers={"node": field_path("spec.nodeName")})
    stop = threading.Event()
    seen: set[int] = set()

    def read() -> None:
        while not stop.is_set():
            seen.add(len(store.by_index("node", "n1")))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(200):
        store.transaction([StoreWrite(pod(f"p{number}", node="n1")) for number in range(10)])
        store.transaction([StoreWrite(pod(f"p{number}"), delete=True) for number in range(10)])
    stop.set()
    reader.join()
    assert seen <= {0, 10}


def test_store_has_last_sync_resource_version() -> None:
    store = Store[Resource]()
    assert store.last_sync_resource_version == ""
    store.replace([pod("a")], "10")
    assert store.last_sync_resource_version == "10"
    store.replace([pod("a")])
    store.update_resource_version("")
    assert store.last_sync_resource_version == "10"
    store.update_resource_version("11")
    assert store.last_sync_resource_version == "11"


def test_object_is_deleted_by_its_key() -> None:
    store = Store[Resource]()
    store.add(pod("a"))
    store.delete_by_key("default/unknown")
    store.delete_by_key(pod("a").key)
    assert store.list() == []


def test_unreadable_objects_are_kept_by_a_replacement() -> None:
    store = Store[Resource]()
    for name in ("kept", "changed", "gone"):
        store.add(pod(name))
    unread = Unread(keys=frozenset({"default/kept", "default/changed", "default/never there"}))
    store.replace([pod("changed", 2), pod("new")], "9", unread)
    assert {obj.name: obj.resource_version for obj in store.list()} == {"kept": "1", "changed": "2", "new": "1"}
    assert store.last_sync_resource_version == "9"


def test_transaction_returns_the_previous_objects() -> None:
    store = Indexer[Resource](indexers={"node": field_path("spec.nodeName")})
    store.add(pod("a", 1))
    before = store.transaction_by_key(
        [("default/a", pod("a", 2, node="n1")), ("default/a", None), ("default/a", None), ("default/b", pod("b"))]
    )
    assert [None if obj is None else obj.resource_version for obj in before] == ["1", "2", None, None]
    assert (store.list_keys(), store.list_index_func_values("node")) == (["default/b"], [])


def test_replacement_uses_indexes_added_meanwhile(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def picky(obj: Resource) -> list[str]:
        if obj.name == "a":
            raise ValueError("not this one")
        return [obj.name]

    store = Indexer[Resource](indexers={"node": field_path("spec.nodeName")}, name="pods")
    store.add(pod("old"))
    replacement = store.begin_replacement()
    replacement.put_all({f"default/{name}": pod(name, node="n1") for name in "ab"})
    store.add_indexers({"picky": picky})
    assert store.list_keys() == ["default/old"]
    assert [*store.commit_replacement(replacement)] == ["default/old"]
    assert store.index_keys("node", "n1") == ["default/a", "default/b"]
    assert store.list_index_func_values("picky") == ["b"]
    (record,) = caplog.records
    assert [vars(record)[name] for name in ("store", "index", "key", "failures")] == ["pods", "picky", "default/a", 1]


def test_stores_have_a_name_for_the_log() -> None:
    stores: list[Store[Resource]] = [Store(), Indexer(), Store(name="a"), Indexer(name="b")]
    assert [repr(store) for store in stores] == [
        "<Store store: 0 objects>",
        "<Indexer indexer: 0 objects>",
        "<Store a: 0 objects>",
        "<Indexer b: 0 objects>",
    ]


def test_stores_accept_custom_key_function() -> None:
    for store in (Store[Resource](lambda obj: obj.uid), Indexer[Resource](lambda obj: obj.uid)):
        store.add(pod("a", uid="u"))
        assert (store.list_keys(), store.get(pod("b", uid="u"))) == (["u"], pod("a", uid="u"))


def test_object_deleted_by_another_thread_is_not_kept() -> None:
    store = Store[Resource]()
    store.add(pod("a"))

    class Meanwhile:
        """Cannot read anything, and while it is asked the object goes."""

        def may_be(self, key: str) -> bool:
            store.delete_by_key(key)
            return True

    unread: Any = Meanwhile()
    store.replace([pod("b")], "9", unread)
    assert [obj.name for obj in store.list()] == ["b"]
