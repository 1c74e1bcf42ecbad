"""Stores that know the keys of their objects."""

from __future__ import annotations

import threading

import pytest

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.path import path
from deltaloop.api.resource import Resource
from deltaloop.cache.core.store import StoreWrite
from deltaloop.cache.errors import TransactionError
from deltaloop.cache.store import NAMESPACE_INDEX, Indexer, Store, namespace_index_func
from tests.cache.objects import nameless, pod


@pytest.mark.parametrize("make", [Store[Resource], Indexer[Resource]])
def test_the_contract_of_stores(make: type[Store[Resource]]) -> None:
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


def test_an_object_without_a_name_is_refused_and_changes_nothing() -> None:
    store = Store[Resource]()
    store.add(pod("a"))
    for write in (store.add, store.update, store.delete, store.get):
        with pytest.raises(MalformedObjectError):
            write(nameless())
    with pytest.raises(MalformedObjectError):
        store.replace([pod("b"), nameless()])
    assert store.list_keys() == ["default/a"]


def test_an_indexer_with_paths() -> None:
    indexer = Indexer[Resource](indexers={NAMESPACE_INDEX: namespace_index_func}, name="pods")
    indexer.replace([pod("a", node="n1"), pod("b", node="n2", namespace="x"), pod("c")])
    indexer.add_indexers({"node": path("spec.nodeName")})
    assert [obj.name for obj in indexer.by_index("node", "n1")] == ["a"]
    assert indexer.index_keys(NAMESPACE_INDEX, "default") == ["default/a", "default/c"]
    assert indexer.list_index_func_values("node") == ["n1", "n2"]
    assert [obj.name for obj in indexer.index("node", pod("new", node="n2"))] == ["b"]
    assert sorted(indexer.get_indexers()) == ["namespace", "node"]
    indexer.update(pod("a", 2, node="n2"))
    assert indexer.index_keys("node", "n2") == ["default/a", "x/b"]
    assert repr(indexer) == "<Indexer pods: 3 objects>"


def test_a_transaction_is_one_step_and_names_what_has_no_key() -> None:
    store = Indexer[Resource](indexers={"node": path("spec.nodeName")})
    store.add(pod("gone"))
    nameless = Resource.from_dict({"metadata": {}})
    writes = [
        StoreWrite(pod("a", node="n1")),
        StoreWrite(nameless),
        StoreWrite(pod("gone"), delete=True),
        StoreWrite(pod("never there"), delete=True),
        StoreWrite(pod("a", 2, node="n2")),
    ]
    with pytest.raises(TransactionError, match="1 of 5 writes failed: their objects have no key") as caught:
        store.transaction(writes)
    assert caught.value.total == 5
    assert list(caught.value.failures) == [1]
    assert [obj.resource_version for obj in store.list()] == ["2"]
    assert store.list_index_func_values("node") == ["n2"]
    assert store.index_keys("node", "n2") == ["default/a"]
    store.transaction([])


def test_readers_on_other_threads_never_see_half_of_a_transaction() -> None:
    store = Indexer[Resource](indexers={"node": path("spec.nodeName")})
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


def test_a_store_knows_how_far_it_has_come() -> None:
    store = Store[Resource]()
    assert store.last_sync_resource_version == ""
    store.replace([pod("a")], "10")
    assert store.last_sync_resource_version == "10"
    store.replace([pod("a")])
    store.update_resource_version("")
    assert store.last_sync_resource_version == "10"
    store.update_resource_version("11")
    assert store.last_sync_resource_version == "11"


def test_an_object_goes_by_its_key() -> None:
    store = Store[Resource]()
    store.add(pod("a"))
    store.delete_by_key("default/unknown")
    store.delete_by_key(pod("a").key)
    assert store.list() == []
