"""The store with its lock: snapshots, reports, threads."""

from __future__ import annotations

import logging
import operator
import sys
import threading
from collections.abc import Callable
from functools import partial

import pytest

from deltaloop._internal.fork_safety import ForkedError
from deltaloop.cache.errors import IndexerConflictError, UnknownIndexError
from deltaloop.cache.thread_safe_store import ThreadSafeStore
from tests.having import having


def words(text: str) -> list[str]:
    return text.split()


def fails_on_x(text: str) -> list[str]:
    if "x" in text:
        raise ValueError("token=abcdef is not wanted")
    return [text[:1]]


def test_thread_safe_store_adds_updates_and_deletes() -> None:
    store = ThreadSafeStore[str]()
    store.add("k1", "a")
    store.update("k1", "b")
    store.add("k2", "c")
    assert (store.get("k1"), store.get("k3"), len(store), "k2" in store) == ("b", None, 2, True)
    store.delete("k1")
    store.delete("k1")
    assert (store.list(), store.list_keys()) == (["c"], ["k2"])
    store.replace({"k4": "d"})
    assert store.list_keys() == ["k4"]


def test_reads_are_snapshots() -> None:
    store = ThreadSafeStore[str]({"words": words})
    store.add("k1", "a")
    objects, keys, indexers = store.list(), store.list_keys(), store.get_indexers()
    store.add("k2", "a")
    store.add_indexers({"more": words})
    assert (objects, keys, [*indexers]) == (["a"], ["k1"], ["words"])


def test_indexes_are_read_by_object_and_by_value() -> None:
    store = ThreadSafeStore[str]({"words": words})
    for key, text in {"k3": "a b", "k1": "a", "k2": "b c"}.items():
        store.add(key, text)
    assert store.index("words", "a c") == ["a", "b c", "a b"]
    assert store.by_index("words", "a") == ["a", "a b"]
    assert store.by_index("words", "z") == []
    assert store.index_keys("words", "b") == ["k2", "k3"]
    assert store.list_index_func_values("words") == ["a", "b", "c"]
    with pytest.raises(UnknownIndexError):
        store.by_index("nodes", "a")
    with pytest.raises(IndexerConflictError):
        store.add_indexers({"words": fails_on_x})
    assert repr(store) == "<ThreadSafeStore store: 3 objects, indexes ['words']>"


def test_an_index_function_that_raises_is_logged_once_with_index_and_key(caplog: pytest.LogCaptureFixture) -> None:
    store = ThreadSafeStore[str]({"first": fails_on_x}, name="pods")
    with caplog.at_level(logging.ERROR, logger="deltaloop.cache"):
        store.replace({"k1": "x", "k2": "x", "k3": "c"})
    (record,) = caplog.records
    assert record.getMessage() == "index function failed: the object is stored, but absent from this index"
    fields = {name: getattr(record, name) for name in ("store", "index", "key", "failures")}
    assert fields == {"store": "pods", "index": "first", "key": "k1", "failures": 2}
    assert "abcdef" not in record.__dict__["error"]
    assert store.get("k1") == "x"
    assert store.by_index("first", "c") == ["c"]


def test_index_function_can_read_store() -> None:
    store = ThreadSafeStore[str]()
    store.add_indexers({"neighbours": lambda _: store.list_keys()})
    store.add("k1", "a")
    store.add("k2", "b")
    assert store.index_keys("neighbours", "k1") == ["k2"]


@pytest.mark.real_time
def test_threads_can_read_and_write_concurrently() -> None:
    store = ThreadSafeStore[str]({"words": words})
    errors: list[BaseException] = []

    def write(mine: int) -> None:
        try:
            for round_ in range(150):
                store.add(f"{mine}", f"even w{round_}" if round_ % 2 == 0 else f"odd w{round_}")
                if round_ % 5 == 0:
                    store.delete(f"{mine}")
                store.by_index("words", "even")
                store.list()
                store.list_index_func_values("words")
        except Exception as error:  # noqa: BLE001 - handed to the test
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # lets threads meet in the middle of an operation
    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert errors == []
    assert store.list() == ["odd w149"] * 6
    assert store.list_index_func_values("words") == ["odd", "w149"]


def test_reads_and_writes_wait_for_a_running_write() -> None:
    inside, go_on = threading.Event(), threading.Event()
    seen: list[list[str]] = []

    def waits(text: str) -> list[str]:
        if text == "slow":
            inside.set()
            assert go_on.wait(5)
        return [text]

    store = ThreadSafeStore[str]({"waits": waits})
    writer = threading.Thread(target=store.add, args=("k1", "slow"))
    reader = threading.Thread(target=lambda: seen.append(store.list()))
    writer.start()
    assert inside.wait(5)
    reader.start()
    reader.join(0.05)
    assert reader.is_alive()
    go_on.set()
    writer.join()
    reader.join()
    assert seen == [["slow"]]


@pytest.mark.real_time
def test_every_method_waits_for_its_turn() -> None:
    store = ThreadSafeStore[str]({"words": words})
    store.add("k", "a")
    replacement = store.begin_replacement()
    calls: list[Callable[[], object]] = [
        partial(store.add, "k1", "a"),
        partial(store.delete, "k1"),
        partial(store.replace, {"k1": "a"}),
        partial(store.transaction, [("k1", "a")]),
        store.begin_replacement,
        partial(store.commit_replacement, replacement),
        partial(store.get, "k"),
        store.list,
        store.list_keys,
        partial(len, store),
        partial(operator.contains, store, "k"),
        partial(store.index, "words", "a"),
        partial(store.by_index, "words", "a"),
        partial(store.index_keys, "words", "a"),
        partial(store.list_index_func_values, "words"),
        store.get_indexers,
        partial(store.add_indexers, {"more": words}),
    ]
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    with store._lock:
        store.is_writing = True  # as several writes do, which are one step to each reader
        for thread in threads:
            thread.start()
        threads[-1].join(0.1)
        store.is_writing = False
        assert [place for place, thread in enumerate(threads) if not thread.is_alive()] == []
    for thread in threads:
        thread.join(5.0)
        assert not thread.is_alive()


def test_forked_store_rejects_use_only_if_it_was_being_written() -> None:
    store = ThreadSafeStore[str]({"words": words}, name="pods")
    store.add("k", "a")
    store._in_child(held=False)
    assert store.list() == ["a"]
    store._in_child(held=True)
    for use in (store.list, store.list_keys, partial(store.add, "k", "b"), partial(store.get, "k")):
        with pytest.raises(ForkedError, check=having(what="the store 'pods'")):
            use()
