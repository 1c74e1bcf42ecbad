"""The journal's protocol: what a journal has kept makes the same store again, window and all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from deltaloop.apiserver.core.storage.history import Record, StoredChange
from deltaloop.apiserver.core.storage.store import RevisionStore
from tests.nightly import examples


class Kept:
    """The simplest journal: a dict by revision."""

    def __init__(self) -> None:
        self.rows: dict[int, Record] = {}
        self.revision = self.compacted = 1

    def wrote(self, change: StoredChange) -> None:
        value = change.new.raw if change.new is not None else None
        self.rows[change.revision] = Record(change.revision, change.resource, change.key, value)
        self.revision = change.revision

    def dropped(self, change: StoredChange) -> None:
        self.compacted = change.revision
        if change.old is not None:
            del self.rows[int(change.old.resource_version)]
        if change.new is None:
            del self.rows[change.revision]

    def renumbered(self, records: Iterable[Record], *, revision: int) -> None:
        self.rows = {record.revision: record for record in records}
        self.revision = self.compacted = revision

    def restored(self, window: int) -> RevisionStore:
        store = RevisionStore(window=window)
        rows = [self.rows[revision] for revision in sorted(self.rows)]
        store.restore(rows, revision=self.revision, compacted=self.compacted)
        return store


WINDOW = 5
PLACES = st.tuples(st.sampled_from(("a", "b")), st.sampled_from(("x", "y", "z")))


class Machine(RuleBasedStateMachine):
    """A store with a journal, restored after every step; nothing may differ."""

    journal_type: type[Kept] = Kept

    def __init__(self) -> None:
        super().__init__()
        self.journal = self.journal_type()
        self.store = RevisionStore(window=WINDOW)
        self.store.attach(self.journal)

    @rule(place=PLACES, value=st.integers(0, 3))
    def write(self, place: tuple[str, str], value: int) -> None:
        resource, name = place
        fields: dict[str, Any] = {"metadata": {"name": name, "uid": name}, "value": value}
        if self.store.get(resource, name) is None:
            self.store.create(resource, name, fields)
        else:
            self.store.update(resource, name, fields)

    @precondition(lambda self: self.store.resources())
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        resource = data.draw(st.sampled_from(self.store.resources()))
        page = self.store.list(resource)
        self.store.delete(resource, data.draw(st.sampled_from([item.name for item in page.items])))

    @precondition(lambda self: self.store.revision > self.store.compacted)
    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        self.store.compact(data.draw(st.integers(self.store.compacted + 1, self.store.revision)))

    @precondition(lambda self: self.store.revision > 6)
    @rule()
    def renumber(self) -> None:
        self.store.renumber()

    @invariant()
    def the_restored_store_is_the_same(self) -> None:
        again = self.journal.restored(WINDOW)
        assert (again.revision, again.compacted) == (self.store.revision, self.store.compacted)
        assert again.changes_after(again.compacted) == self.store.changes_after(self.store.compacted)
        for resource in ("a", "b"):
            for revision in range(self.store.compacted, self.store.revision + 1):
                assert again.list(resource, at=revision) == self.store.list(resource, at=revision)

    @invariant()
    def nothing_is_kept_in_vain(self) -> None:
        objects = sum(self.store.count(resource) for resource in ("a", "b"))
        window = self.store.changes_after(self.store.compacted)
        older = sum(
            1 for change in {(item.resource, item.key): item for item in reversed(window)}.values() if change.old
        )
        gone = sum(1 for item in window if item.new is None)
        assert len(self.journal.rows) <= objects + len(window) + older + gone


def _run(journal: type[Kept]) -> None:
    machine = type("ThisMachine", (Machine,), {"journal_type": journal})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(60), stateful_step_count=20, phases=(Phase.generate,), derandomize=True
        ),
    )


def test_restored_store_equals_the_original() -> None:
    _run(Kept)


class ForgetsTheBase(Kept):
    """Seeded bug: a change that leaves the window takes the object it made with it."""

    def dropped(self, change: StoredChange) -> None:
        super().dropped(change)
        self.rows.pop(change.revision, None)


class KeepsDeletions(Kept):
    """Seeded bug: deletions are kept for ever."""

    def dropped(self, change: StoredChange) -> None:
        self.compacted = change.revision
        if change.old is not None and change.new is not None:
            self.rows.pop(int(change.old.resource_version), None)


@pytest.mark.nightly
@pytest.mark.parametrize("bug", [ForgetsTheBase, KeepsDeletions])
def test_state_machine_finds_seeded_bugs(bug: type[Kept]) -> None:
    with pytest.raises((AssertionError, ValueError, KeyError)):
        _run(bug)


def test_inconsistent_records_are_rejected() -> None:
    row = Record(3, "a", "x", b'{"metadata":{"name":"x","resourceVersion":"3"}}')
    with pytest.raises(ValueError, match="revision 2 is missing"):
        RevisionStore().restore([row], revision=3, compacted=1)
    with pytest.raises(ValueError, match="revision 4 is missing"):
        RevisionStore().restore([row], revision=4, compacted=2)
    store = RevisionStore()
    store.create("a", "x", {"metadata": {"name": "x"}})
    with pytest.raises(ValueError, match="must be empty"):
        store.restore([], revision=1, compacted=1)
