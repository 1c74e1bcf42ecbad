"""The store, by examples and against a naive model: a list of whole snapshots."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from deltaloop.apiserver.core.storage.history import StoredChange
from deltaloop.apiserver.core.storage.store import (
    CompactedError,
    KeyExistsError,
    KeyMissingError,
    Page,
    RevisionStore,
    StoreState,
    encode_object,
)
from tests.nightly import examples


def fields(name: str, value: int = 0, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-{name}", **({"namespace": namespace} if namespace else {})}
    return {"kind": "K", "apiVersion": "v1", "metadata": metadata, "value": value}


def names(page: Page) -> list[str]:
    return [item.name for item in page.items]


def test_every_write_gets_the_next_revision() -> None:
    store = RevisionStore()
    assert store.revision == store.compacted == 1
    a = store.create("x", "a", fields("a"))
    b = store.create("y", "b", fields("b"))
    assert (a.resource_version, b.resource_version) == ("2", "3")
    assert store.delete("x", "a").revision == 4
    assert store.revision == 4


def test_has_changed_after_a_revision() -> None:
    store = RevisionStore(window=3)
    store.create("x", "a", fields("a"))  # 2
    store.create("y", "b", fields("b"))  # 3
    assert store.has_changed("x", after=1)
    assert not store.has_changed("x", after=2)
    assert store.has_changed("y", after=2)
    store.delete("x", "a")  # 4
    assert store.has_changed("x", after=3)
    assert not store.has_changed("z", after=1)
    store.create("y", "c", fields("c"))  # 5: the first one leaves the window
    assert store.has_changed("z", after=1), "nobody knows any more"
    assert not store.has_changed("z", after=2)


@pytest.mark.parametrize("changed", [None, "ab/x", "b/new"])
def test_pages_of_some_namespaces(changed: str | None) -> None:
    store = RevisionStore()
    keys = ["a-b/x", "a/x", "a/y", "ab/x", "b/x"]
    for key in keys:
        store.create("r", key, fields(key.partition("/")[2], 0, key.partition("/")[0]))
    revision = store.revision
    if changed in keys:
        store.update("r", changed, fields("x", 1, "ab"))
    elif changed is not None:
        store.create("r", changed, fields("new", 1, "b"))
    for some in chain.from_iterable(combinations(["a-b", "a", "ab", "b"], size) for size in range(5)):
        found, start = list[str](), ""
        for _ in keys:
            page = store.list(
                "r", limit=1, start=start, at=revision,
                matches=lambda obj: obj.namespace in some,  # noqa: B023 - called in this turn
                in_namespace=some.__contains__,
            )  # fmt: skip
            found += [obj.key for obj in page.items if obj["value"] == 0]
            start = page.next_start
            if not start:
                break
        assert found == [key for key in keys if key.partition("/")[0] in some]


def test_objects_are_stored_sorted_and_without_kind() -> None:
    store = RevisionStore()
    obj = store.create(
        "x", "a", {"z": 1, "metadata": {"uid": "u", "name": "a"}, "kind": "K", "apiVersion": "v1", "b": {}}
    )
    assert obj.raw == b'{"b":{},"metadata":{"name":"a","resourceVersion":"2","uid":"u"},"z":1}'
    assert encode_object({"metadata": {"name": "a"}}, resource_version="") == b'{"metadata":{"name":"a"}}'


def test_equal_object_is_not_written() -> None:
    store = RevisionStore()
    first = store.create("x", "a", fields("a", 1))
    assert store.update("x", "a", dict(reversed(fields("a", 1).items()))) is first
    assert store.revision == 2
    assert store.update("x", "a", {**fields("a"), "value": True}).resource_version == "3"  # True is not 1


def test_update_changes_only_the_version_of_the_metadata() -> None:
    store = RevisionStore()
    store.create("x", "a", fields("a"))
    changed = store.update("x", "a", {**fields("a"), "spec": {"resourceVersion": "2"}})
    assert (changed.resource_version, changed["spec"]["resourceVersion"]) == ("3", "2")


def test_missing_and_existing_keys_are_errors() -> None:
    store = RevisionStore()
    store.create("x", "a", fields("a"))
    with pytest.raises(KeyExistsError):
        store.create("x", "a", fields("a"))
    with pytest.raises(KeyMissingError):
        store.update("x", "b", fields("b"))
    with pytest.raises(KeyMissingError):
        store.delete("x", "b")
    assert store.revision == 2


def test_keys_are_sorted_as_text_and_namespaces_are_separate() -> None:
    store = RevisionStore()
    for key in ("a/x", "a-b/x", "a/y", "b/x"):
        namespace, name = key.split("/")
        store.create("r", key, fields(name, namespace=namespace))
    assert [item.key for item in store.list("r").items] == ["a-b/x", "a/x", "a/y", "b/x"]
    assert [item.key for item in store.list("r", prefix="a/").items] == ["a/x", "a/y"]


def test_pages_skip_objects_that_do_not_match() -> None:
    store = RevisionStore()
    for number in range(6):
        store.create("r", f"k{number}", fields(f"k{number}", number))
    odd = store.list("r", matches=lambda item: bool(item["value"] % 2), limit=2)
    assert names(odd) == ["k1", "k3"]
    assert (odd.next_start, odd.remaining) == ("k3\0", 2)
    rest = store.list("r", matches=lambda item: bool(item["value"] % 2), limit=2, start=odd.next_start)
    assert (names(rest), rest.next_start) == (["k5"], "")


def test_window_is_bounded_by_count_and_bytes() -> None:
    store = RevisionStore(window=3)
    for number in range(6):
        store.create("r", f"k{number}", fields(f"k{number}"))
    assert (store.revision, store.compacted) == (7, 4)
    assert [change.revision for change in store.changes_after(4)] == [5, 6, 7]
    with pytest.raises(CompactedError) as caught:
        store.changes_after(3)
    assert (caught.value.revision, caught.value.compacted) == (3, 4)
    small = RevisionStore(window_bytes=1)
    small.create("r", "a", fields("a"))
    small.create("r", "b", fields("b"))
    assert small.compacted == 2  # the newest change is always kept


def test_changes_are_read_in_portions() -> None:
    store = RevisionStore()
    for number in range(5):
        store.create("r", f"k{number}", fields(f"k{number}"))
    assert [change.revision for change in store.changes_after(2, limit=2)] == [3, 4]
    assert store.changes_after(store.revision) == store.changes_after(99) == ()


def test_compaction_is_limited_to_the_current_revision() -> None:
    store = RevisionStore()
    store.create("r", "a", fields("a"))
    store.compact(99)
    assert (store.compacted, store.revision) == (2, 2)
    assert store.changes_after(2) == ()
    assert names(store.list("r", at=2)) == ["a"]
    assert "1 objects at 2, 0 changes" in repr(store)


# The model: every snapshot there ever was.

RESOURCES = st.sampled_from(["pods", "pods", "nodes"])
KEYS = st.sampled_from(["a/x", "a/y", "a-b/x", "b/x", "b/z"])
PREFIXES = st.sampled_from(["", "", "a/", "b/"])
ENTRIES = st.lists(st.tuples(RESOURCES, KEYS, st.integers(0, 2)), min_size=1, max_size=5)
Snapshot = dict[tuple[str, str], int]
BEING_DELETED = 2


class StoreMachine(RuleBasedStateMachine):
    make: ClassVar[type[Any]] = RevisionStore

    def __init__(self) -> None:
        super().__init__()
        self.store: Any = type(self).make()
        self.snapshots: list[Snapshot] = [{}, {}]  # by revision; there is no revision 0
        self.compacted = 1

    @property
    def now(self) -> Snapshot:
        return self.snapshots[-1]

    def _fields(self, key: str, value: int) -> dict[str, Any]:
        namespace, name = key.split("/")
        made = fields(name, value, namespace)
        if value == BEING_DELETED:
            made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return made

    @rule(entries=ENTRIES)
    def put(self, entries: list[tuple[str, str, int]]) -> None:
        for resource, key, value in entries:
            if (resource, key) not in self.now:
                self.store.create(resource, key, self._fields(key, value))
            else:
                self.store.update(resource, key, self._fields(key, value))
                if self.now[resource, key] == value:
                    continue
            self.snapshots.append({**self.now, (resource, key): value})

    @precondition(lambda self: self.now)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        resource, key = data.draw(st.sampled_from(sorted(self.now)))
        self.store.delete(resource, key)
        self.snapshots.append({place: value for place, value in self.now.items() if place != (resource, key)})

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        revision = data.draw(st.integers(1, len(self.snapshots)))
        self.store.compact(revision)
        self.compacted = max(self.compacted, min(revision, len(self.snapshots) - 1))

    @rule(data=st.data(), resource=RESOURCES, prefix=PREFIXES)
    def list_at(self, data: st.DataObject, resource: str, prefix: str) -> None:
        revision = self._revision(data, oldest=1)
        if revision < self.compacted:
            with pytest.raises(CompactedError):
                self.store.list(resource, prefix=prefix, at=revision)
            return
        page = self.store.list(resource, prefix=prefix, at=revision)
        assert page.revision == revision
        assert self._content(page.items) == self._expected(revision, resource, prefix)

    @rule(data=st.data(), resource=RESOURCES, prefix=PREFIXES, limit=st.integers(1, 3))
    def page_through(self, data: st.DataObject, resource: str, prefix: str, limit: int) -> None:
        revision = self._revision(data, oldest=self.compacted)
        expected, got, start = self._expected(revision, resource, prefix), list[tuple[str, int]](), ""
        for _ in range(len(expected) + 1):
            page = self.store.list(resource, prefix=prefix, limit=limit, start=start, at=revision)
            assert len(page.items) <= limit
            got += self._content(page.items)
            assert page.remaining == len(expected) - len(got)
            start = page.next_start
            if not start:
                break
        assert got == expected

    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        revision = self._revision(data, oldest=1)
        if revision < self.compacted:
            with pytest.raises(CompactedError):
                self.store.changes_after(revision)
            return
        state = dict(self.snapshots[revision])
        changes: tuple[StoredChange, ...] = self.store.changes_after(revision)
        for change in changes:
            revision += 1
            place = (change.resource, change.key)
            assert change.revision == revision
            assert (change.old["value"] if change.old is not None else None) == state.pop(place, None)
            if change.new is not None:
                assert change.new.resource_version == str(revision)
                state[place] = change.new["value"]
            assert state == self.snapshots[revision]
        assert revision == len(self.snapshots) - 1

    @invariant()
    def revisions_agree(self) -> None:
        assert self.store.revision == len(self.snapshots) - 1
        assert self.store.compacted == self.compacted

    @invariant()
    def what_is_being_deleted_is_known(self) -> None:
        for resource in ("pods", "nodes"):
            expected = [
                each for each in self._expected(len(self.snapshots) - 1, resource, "") if each[1] == BEING_DELETED
            ]
            assert self._content(self.store.being_deleted(resource)) == expected

    @rule()
    def go_on_elsewhere(self) -> None:
        state, self.store = self.store.state(), type(self).make()
        self.store.begin_with(state)

    def _revision(self, data: st.DataObject, *, oldest: int) -> int:
        # Drawn as an age, because small numbers are drawn most, and the present has most to show.
        newest = len(self.snapshots) - 1
        return newest - data.draw(st.integers(0, newest - oldest))

    def _expected(self, revision: int, resource: str, prefix: str) -> list[tuple[str, int]]:
        snapshot = self.snapshots[revision]
        return sorted(
            (key, value) for (kind, key), value in snapshot.items() if kind == resource and key.startswith(prefix)
        )

    def _content(self, items: Any) -> list[tuple[str, int]]:
        return [(item.key, item["value"]) for item in items]


SETTINGS = settings(
    max_examples=examples(30),
    stateful_step_count=25,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    print_blob=False,
)


def test_store_agrees_with_a_list_of_snapshots() -> None:
    run_state_machine_as_test(StoreMachine, settings=SETTINGS)


class _Broken:
    """A store with one fault, to show that the machine finds it."""

    def __init__(self) -> None:
        self.store = RevisionStore()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


class _ForgetsHistory(_Broken):
    def list(self, resource: str, *, at: int | None = None, **options: Any) -> Page:
        page = self.store.list(resource, **options)
        if at is not None:
            self.store.changes_after(at)
        return Page(page.items, at or page.revision, page.next_start, page.remaining)


class _SkipsAChange(_Broken):
    def changes_after(self, revision: int) -> tuple[StoredChange, ...]:
        return self.store.changes_after(revision)[1:]


class _RepeatsAnItem(_Broken):
    def list(self, resource: str, **options: Any) -> Page:
        page = self.store.list(resource, **options)
        return Page(page.items, page.revision, page.next_start.removesuffix("\0"), page.remaining)


class _WritesWhatIsEqual(_Broken):
    def update(self, resource: str, key: str, new: dict[str, Any]) -> None:
        self.store.delete(resource, key)
        self.store.create(resource, key, new)


class _ForgetsWhatIsBeingDeleted(_Broken):
    def begin_with(self, state: StoreState) -> None:
        self.store.begin_with(state)
        self.being_deleted = RevisionStore().being_deleted


class _MixesNamespaces(_Broken):
    def list(self, resource: str, *, prefix: str = "", **options: Any) -> Page:
        page = self.store.list(resource, prefix=prefix.removesuffix("/"), **options)
        return Page(page.items, page.revision, page.next_start.removeprefix("/"), page.remaining)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "broken",
    [
        _ForgetsHistory,
        _SkipsAChange,
        _RepeatsAnItem,
        _WritesWhatIsEqual,
        _ForgetsWhatIsBeingDeleted,
        _MixesNamespaces,
    ],
)
def test_state_machine_finds_seeded_bugs(broken: type[_Broken]) -> None:
    class Machine(StoreMachine):
        make = broken

    with pytest.raises(Exception):  # noqa: B017 - whatever the machine raises
        run_state_machine_as_test(Machine, settings=settings(SETTINGS, phases=[Phase.generate]))


def test_store_restored_from_another_is_independent() -> None:
    store = RevisionStore(window=2)
    for name in ("a", "b", "c"):
        store.create("x", name, fields(name))
    store.delete("x", "a")
    state = store.state()
    store.create("x", "later", fields("later"))

    other = RevisionStore(window=2)
    other.begin_with(state)
    assert (other.revision, other.compacted) == (5, 3)
    assert names(other.list("x")) == ["b", "c"]
    assert names(other.list("x", at=3)) == ["a", "b"]
    assert other.has_dropped("x", after=2)
    assert not other.has_dropped("x", after=3)
    assert [change.revision for change in other.changes_after(3)] == [4, 5]
    other.create("x", "d", fields("d"))
    assert names(other.list("x")) == ["b", "c", "d"]
    assert other.compacted == 4, "its window moves on"

    third = RevisionStore(window=2)
    third.begin_with(state)
    assert names(third.list("x")) == ["b", "c"], "what the second one wrote is its own"
    with pytest.raises(ValueError, match="must be empty"):
        third.begin_with(state)


def test_backup_restores_objects_and_expires_earlier_revisions() -> None:
    store = RevisionStore()
    a = store.create("x", "a", fields("a"))
    store.create("x", "b", fields("b"))
    at = store.revision
    store.update("x", "a", fields("a", 2))
    store.delete("x", "b")
    store.create("y", "c", fields("c"))
    store.restore_backup(at)
    assert names(store.list("x")) == ["a", "b"]
    assert not names(store.list("y"))
    assert store.get("x", "a") == a, "with the resource version that it had"
    assert store.revision == store.compacted > 1_000_000
    with pytest.raises(CompactedError):
        store.changes_after(at)
    assert store.create("x", "d", fields("d")).resource_version == str(store.revision)
    assert names(store.list("x")) == ["a", "b", "d"]
    with pytest.raises(CompactedError):
        store.restore_backup(at)
