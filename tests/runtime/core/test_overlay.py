"""Read-your-writes, against a model of a server with a history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from deltaloop.api.resource import Resource
from deltaloop.api.resource_version import is_newer
from deltaloop.runtime.core.overlay import Gone, Overlay, WriteKind
from tests.cache.machines import run_machine, show_the_bug, step

KEYS: tuple[str, ...] = ("default/a", "default/b")


def obj(key: str, version: int | str, uid: str = "u", **labels: str) -> Resource:
    namespace, _, name = key.partition("/")
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": uid,
        "resourceVersion": str(version),
        "labels": labels,
    }
    return Resource.from_dict({"metadata": metadata})


def version_of(shown: Resource | None) -> str | None:
    return None if shown is None else shown.resource_version


def test_own_write_is_visible_until_cache_catches_up() -> None:
    overlay = Overlay()
    overlay.wrote(obj("default/a", 7), reached="5", now=0.0)
    assert version_of(overlay.show("default/a", obj("default/a", 5), reached="5", now=1.0)) == "7"
    assert version_of(overlay.show("default/a", None, reached="6", now=1.0)) == "7"
    assert version_of(overlay.show("default/a", obj("default/a", 9), reached="9", now=1.0)) == "9"
    assert len(overlay) == 0


def test_foreign_change_after_own_write_is_visible() -> None:
    overlay = Overlay()
    overlay.wrote(obj("default/a", 7), reached="5", now=0.0)
    assert overlay.show("default/a", None, reached="8", now=1.0) is None  # somebody deleted it at 8


def test_response_older_than_stream_is_not_kept() -> None:
    overlay = Overlay()
    overlay.wrote(obj("default/a", 7), reached="7", now=0.0)
    assert len(overlay) == 0


def test_own_delete_hides_object_but_not_successor() -> None:
    overlay = Overlay()
    overlay.deleted("default/a", uid="old", version="5", reached="5", now=0.0)
    assert overlay.show("default/a", obj("default/a", 5, "old"), reached="5", now=1.0) is None
    assert overlay.show("default/a", obj("default/a", 6, "old"), reached="6", now=1.0) is None
    assert version_of(overlay.show("default/a", obj("default/a", 8, "new"), reached="8", now=1.0)) == "8"
    assert len(overlay) == 0


def test_own_delete_hides_cached_predecessor() -> None:
    overlay = Overlay()
    overlay.deleted("default/a", uid="second", version="8", reached="5", now=0.0)
    assert overlay.show("default/a", obj("default/a", 5, "first"), reached="5", now=1.0) is None


def test_tombstone_is_dropped_after_cache_passes_deletion() -> None:
    overlay = Overlay()
    overlay.deleted("default/a", uid="u", version="7", reached="5", now=0.0)
    assert overlay.show("default/a", None, reached="5", now=1.0) is None
    assert len(overlay) == 1  # the cache has not seen the beginning yet
    assert overlay.show("default/a", None, reached="8", now=1.0) is None
    assert len(overlay) == 0


def test_lists_and_indexes_contain_own_writes_without_own_deletes() -> None:
    overlay = Overlay()
    cached = {key: obj(key, 3, uid=key, app="web") for key in ("default/a", "default/b", "default/c")}
    overlay.wrote(obj("default/c", 2, uid="default/c", app="api"), reached="1", now=0.0)  # the cache has come as far
    overlay.wrote(obj("default/a", 7, uid="default/a", app="api"), reached="5", now=0.0)
    overlay.deleted("default/b", uid="default/b", version="3", reached="2", now=0.0)
    overlay.wrote(obj("default/d", 8, uid="d", app="web"), reached="5", now=0.0)

    def web(shown: Resource) -> bool:
        return shown.labels["app"] == "web"

    seen = overlay.merge(cached.values(), cached.get, matches=web, reached="5", now=1.0)
    assert [shown.key for shown in seen] == ["default/c", "default/d"]


def test_uncertain_keys_expire_after_a_minute() -> None:
    overlay = Overlay()
    overlay.lost_sight("default/a", "patch", now=0.0)
    overlay.lost_sight("default/b", "patch", now=30.0)
    assert overlay.uncertain(now=59.9) == ("default/a", "default/b")
    assert overlay.uncertain(now=60.0) == ("default/b",)


def test_deletion_timestamp_settles_uncertain_delete() -> None:
    overlay = Overlay()
    overlay.lost_sight("default/a", "delete", uid="u", now=0.0)
    fields = obj("default/a", 7).to_dict()
    fields["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    overlay.settle("default/a", obj("default/a", 6), reached="5", now=1.0)
    assert overlay.is_uncertain("default/a", now=1.0)
    overlay.settle("default/a", Resource.from_dict(fields), reached="5", now=1.0)
    assert not overlay.is_uncertain("default/a", now=1.0)


def test_version_is_newer_only_if_both_are_numbers() -> None:
    assert is_newer("7", "5")
    for left, right in (("5", "7"), ("5", "5"), ("7", "x5"), ("x7", "5"), ("", "5"), ("5", "")):
        assert not is_newer(left, right)


def test_tombstone_has_newest_known_version() -> None:
    overlay = Overlay()
    overlay.wrote(obj("default/a", 7), reached="5", now=0.0)
    overlay.deleted("default/a", uid="u", version="9", reached="5", now=0.0)
    assert overlay.show("default/a", obj("default/a", 8), reached="8", now=1.0) is None
    assert len(overlay) == 1
    overlay = Overlay()
    overlay.wrote(obj("default/a", 9), reached="5", now=0.0)
    overlay.deleted("default/a", uid="u", version="7", reached="5", now=0.0)
    assert overlay.show("default/a", obj("default/a", 8), reached="8", now=1.0) is None


@pytest.mark.parametrize(
    ("uid", "kind", "over"),
    [
        ("u", "update", True),
        ("u", "delete", True),
        ("u", "patch", False),
        ("another", "update", False),
        ("another", "delete", False),
    ],
)
def test_own_delete_settles_conditional_writes_to_same_object(uid: str, kind: WriteKind, over: bool) -> None:
    overlay = Overlay()
    overlay.lost_sight("default/a", kind, uid=uid, version="5", now=0.0)
    overlay.deleted("default/a", uid="u", version="7", reached="5", now=1.0)
    assert overlay.is_uncertain("default/a", now=1.0) is not over


def test_read_of_certain_object_is_visible() -> None:
    overlay = Overlay()
    overlay.settle("default/a", obj("default/a", 7), reached="5", now=0.0)
    assert version_of(overlay.show("default/a", None, reached="5", now=1.0)) == "7"
    overlay.settle("default/b", None, reached="5", now=0.0)
    assert overlay.show("default/b", None, reached="5", now=1.0) is None


def test_incomparable_versions_match_only_if_equal() -> None:
    overlay = Overlay()
    overlay.wrote(obj("default/a", "x7"), reached="x5", now=0.0)
    assert version_of(overlay.show("default/a", obj("default/a", "x9"), reached="x9", now=9.9)) == "x7"
    assert version_of(overlay.show("default/a", obj("default/a", "x9"), reached="x9", now=10.0)) == "x9"
    overlay.wrote(obj("default/a", "x7"), reached="x5", now=0.0)
    assert version_of(overlay.show("default/a", obj("default/a", "x7"), reached="x6", now=1.0)) == "x7"
    assert len(overlay) == 0


def test_restored_server_discards_own_writes() -> None:
    overlay = Overlay()
    overlay.wrote(obj("default/a", 107), reached="105", now=0.0)
    assert version_of(overlay.show("default/a", obj("default/a", 12), reached="12", now=1.0)) == "12"


def test_own_write_expires_after_300_seconds() -> None:
    overlay = Overlay()
    overlay.wrote(obj("default/a", 7), reached="5", now=0.0)
    assert version_of(overlay.show("default/a", None, reached="5", now=299.0)) == "7"
    assert overlay.show("default/a", None, reached="5", now=300.0) is None


def test_unread_entries_are_pruned() -> None:
    overlay = Overlay()
    for number in range(100):
        overlay.wrote(obj(f"default/{number}", 10 + number), reached="5", now=0.0)
    overlay.prune(lambda _: None, reached="59", now=1.0)
    assert len(overlay) == 50


@pytest.mark.parametrize(
    ("kind", "live", "over"),
    [
        ("create", None, False),
        ("create", obj("default/a", 9), True),
        ("update", obj("default/a", 5), False),
        ("update", obj("default/a", 6), True),
        ("update", None, True),
        ("delete", obj("default/a", 5), False),
        ("delete", obj("default/a", 9, "other"), True),
        ("delete", None, True),
        ("patch", obj("default/a", 9), False),
        ("patch", None, False),
    ],
)
def test_uncertain_write_is_settled_by_proof(kind: WriteKind, live: Resource | None, over: bool) -> None:
    overlay = Overlay()
    overlay.lost_sight("default/a", kind, uid="u", version="5", now=0.0)
    assert overlay.is_uncertain("default/a", now=1.0)
    overlay.settle("default/a", live, reached="5", now=1.0)
    assert overlay.is_uncertain("default/a", now=1.0) is not over
    assert not overlay.is_uncertain("default/a", now=60.0)


@pytest.mark.parametrize("kind", ["update", "patch", "delete"])
def test_foreign_successor_is_visible_after_cache_delivers_it(kind: WriteKind) -> None:
    """A program that still sees why it deleted the old one would delete the new one, too, if it saw that."""
    overlay, old, new = Overlay(), obj("default/a", 5), obj("default/a", 9, "other")
    overlay.lost_sight("default/a", kind, uid="u", version="5", now=0.0)
    assert overlay.settle("default/a", new, reached="5", now=1.0)
    assert overlay.show("default/a", old, reached="5", now=30.0) is None
    assert overlay.merge([old], lambda _: old, matches=lambda _: True, reached="5", now=30.0) == []
    assert overlay.show("default/a", new, reached="9", now=31.0) is new
    assert len(overlay) == 0


def test_own_successor_is_visible_immediately() -> None:
    overlay, new = Overlay(), obj("default/a", 9, "other")
    overlay.lost_sight("default/a", "delete", uid="u", version="5", now=0.0)
    overlay.wrote(new, reached="5", now=1.0)
    assert not overlay.settle("default/a", new, reached="5", now=2.0)
    assert overlay.show("default/a", obj("default/a", 5), reached="5", now=2.0) is new


def test_stale_cache_does_not_restore_object_after_delete_without_response() -> None:
    overlay, old = Overlay(), obj("default/a", 5)
    overlay.lost_sight("default/a", "delete", uid="u", version="5", now=0.0)
    assert not overlay.settle("default/a", None, reached="5", now=1.0)
    assert overlay.show("default/a", old, reached="5", now=30.0) is None


def test_read_that_finds_nothing_hides_cached_successor() -> None:
    overlay, successor = Overlay(), obj("default/a", 9, "other")
    overlay.lost_sight("default/a", "update", uid="u", version="5", now=0.0)
    overlay.settle("default/a", None, reached="9", now=1.0, cached=successor)
    assert overlay.show("default/a", successor, reached="9", now=2.0) is None


@pytest.mark.parametrize(
    ("uid", "version", "news"), [("u", "5", True), ("", "5", False), ("u", "", False), ("other", "5", False)]
)
def test_successor_is_news_only_after_write_to_known_object(uid: str, version: str, news: bool) -> None:
    overlay, live = Overlay(), obj("default/a", 9, "other")
    overlay.lost_sight("default/a", "update", uid=uid, version=version, now=0.0)
    assert overlay.settle("default/a", live, reached="5", now=1.0) is news
    assert overlay.show("default/a", None, reached="6", now=2.0) is (None if news else live)


@pytest.mark.parametrize("entry", ["written", "gone"])
def test_tombstone_has_newest_version_of_all_sources(entry: str) -> None:
    overlay = Overlay()
    if entry == "written":
        overlay.wrote(obj("default/a", 9), reached="4", now=0.0)
    else:
        overlay.deleted("default/a", uid="u", version="9", reached="4", now=0.0)
    overlay.lost_sight("default/a", "update", uid="u2", version="7", now=0.0)
    overlay.settle("default/a", None, reached="4", now=1.0, cached=obj("default/a", 4, "u0"))
    assert overlay.show("default/a", None, reached="8", now=2.0) is None
    assert overlay.show("default/a", obj("default/a", 9), reached="9", now=2.0) is None


def test_two_uncertain_writes_settle_only_by_time() -> None:
    overlay = Overlay()
    overlay.lost_sight("default/a", "update", uid="u", version="5", now=0.0)
    overlay.lost_sight("default/a", "delete", uid="u", version="5", now=1.0)
    overlay.settle("default/a", None, reached="5", now=2.0)
    assert overlay.uncertain(now=2.0) == ("default/a",)


def test_own_delete_settles_writes_to_same_object_but_not_create() -> None:
    overlay = Overlay()
    overlay.lost_sight("default/a", "create", now=0.0)
    overlay.deleted("default/a", uid="u", version="5", reached="5", now=1.0)
    assert overlay.is_uncertain("default/a", now=1.0)
    overlay.lost_sight("default/b", "update", uid="u", version="5", now=0.0)
    overlay.deleted("default/b", uid="u", version="5", reached="5", now=1.0)
    assert not overlay.is_uncertain("default/b", now=1.0)


def test_missing_object_without_known_version_leaves_no_tombstone() -> None:
    overlay = Overlay()
    overlay.lost_sight("default/a", "update", uid="u", version="5", now=0.0)
    overlay.lost_sight("default/a", "update", uid="u", version="5", now=0.0)
    overlay.settle("default/a", None, reached="9", now=1.0)
    assert len(overlay) == 0


def test_a_tombstone_has_the_version_of_our_newer_write() -> None:
    overlay = Overlay()
    overlay.wrote(obj("default/a", 7), reached="4", now=0.0)
    overlay.deleted("default/a", uid="u", version="5", reached="4", now=0.0)
    assert overlay.show("default/a", None, reached="6", now=1.0) is None
    assert overlay.show("default/a", obj("default/a", 7), reached="7", now=1.0) is None


def test_a_tombstone_keeps_its_version_if_our_write_is_older() -> None:
    overlay = Overlay()
    overlay.wrote(obj("default/a", 7), reached="4", now=0.0)
    overlay.deleted("default/a", uid="u", version="9", reached="4", now=0.0)
    assert overlay.show("default/a", None, reached="8", now=1.0) is None
    assert overlay.show("default/a", obj("default/a", 9), reached="9", now=1.0) is None


def test_a_deletion_replaces_an_older_write_to_a_predecessor() -> None:
    overlay = Overlay()
    overlay.wrote(obj("default/a", 5, "u1"), reached="4", now=0.0)
    overlay.deleted("default/a", uid="u2", version="9", reached="4", now=0.0)
    assert overlay.show("default/a", None, reached="4", now=1.0) is None
    assert overlay.uid_of_gone("default/a") == "u2"


def test_a_second_write_replaces_the_first() -> None:
    overlay = Overlay()
    overlay.wrote(obj("default/a", 7), reached="4", now=0.0)
    overlay.wrote(obj("default/a", 9), reached="4", now=0.0)
    assert version_of(overlay.show("default/a", None, reached="4", now=1.0)) == "9"
    assert ("default/a" in overlay.entries, overlay.uid_of_gone("default/a")) == (True, "")


def test_expired_uncertain_write_does_not_count() -> None:
    overlay = Overlay()
    overlay.lost_sight("default/a", "update", uid="u", version="5", now=0.0)
    overlay.lost_sight("default/a", "create", now=60.0)
    overlay.settle("default/a", obj("default/a", 7), reached="5", now=61.0)
    assert not overlay.is_uncertain("default/a", now=61.0)


def test_uncertainty_ends_after_a_minute() -> None:
    overlay = Overlay()
    overlay.lost_sight("default/a", "patch", now=0.0)
    assert overlay.has_unknown
    assert not overlay.is_uncertain("default/a", now=60.0)
    assert not overlay.has_unknown


def _prune(overlay: Overlay, lookup: Callable[[str], Resource | None], *, reached: str) -> None:
    """Prune as a view does after each write."""
    if len(overlay) >= overlay.prune_from:
        overlay.prune(lookup, reached=reached, now=1.0)


def test_pruning_starts_at_64_entries() -> None:
    overlay = Overlay()
    for number in range(63):
        overlay.wrote(obj(f"default/{number}", 10 + number), reached="5", now=0.0)
    _prune(overlay, lambda _: None, reached="99")
    assert len(overlay) == 63
    overlay.wrote(obj("default/last", 99), reached="5", now=0.0)
    _prune(overlay, lambda _: None, reached="99")
    assert len(overlay) == 0


def test_remaining_entries_are_rechecked_only_after_doubling() -> None:
    overlay, looked_up = Overlay(), list[str]()

    def lookup(key: str) -> None:
        looked_up.append(key)

    for number, looks in ((64, 64), (64, 0), (127, 0), (128, 128), (255, 0)):
        for written in range(number):
            overlay.wrote(obj(f"default/{written}", 10 + written), reached="5", now=0.0)
        looked_up.clear()
        _prune(overlay, lookup, reached="5")
        assert len(looked_up) == looks


def test_age_of_entry_starts_at_write() -> None:
    overlay = Overlay()
    overlay.wrote(obj("default/a", 7), reached="5", now=1000.0)
    assert version_of(overlay.show("default/a", None, reached="5", now=1299.0)) == "7"
    assert overlay.show("default/a", None, reached="5", now=1300.0) is None


def test_late_response_for_predecessor_keeps_tombstone() -> None:
    overlay = Overlay()
    overlay.deleted("default/a", uid="u2", version="9", reached="4", now=0.0)
    overlay.wrote(obj("default/a", 5, "u1"), reached="4", now=0.0)
    assert overlay.show("default/a", None, reached="4", now=0.0) is None
    assert overlay.show("default/a", obj("default/a", 9, "u2"), reached="9", now=1.0) is None


def test_delete_without_uid_stays_uncertain_while_object_exists() -> None:
    overlay = Overlay()
    overlay.lost_sight("default/a", "delete", now=0.0)
    overlay.settle("default/a", obj("default/a", 5), reached="5", now=1.0)
    assert overlay.is_uncertain("default/a", now=1.0)
    overlay.settle("default/a", None, reached="5", now=2.0)
    assert not overlay.is_uncertain("default/a", now=2.0)


# -- the machine


@dataclass
class Lost:
    """A write that got no answer and may still be carried out."""

    kind: WriteKind
    key: str
    uid: str
    version: str


class Server:
    """Every state that each key ever had, and a cache that follows the stream at some distance."""

    def __init__(self) -> None:
        self.revision = 10
        self.reached = 10
        self.uids = 0
        self.history: dict[str, list[tuple[int, Resource | None]]] = {key: [(0, None)] for key in KEYS}

    def at(self, key: str, revision: int) -> Resource | None:
        return next(state for version, state in reversed(self.history[key]) if version <= revision)

    def head(self, key: str) -> Resource | None:
        return self.at(key, self.revision)

    def gone_after(self, key: str, revision: int) -> int:
        """Return the revision at which the object of another one was gone."""
        return min(at for at, state in self.history[key] if state is None and at >= revision)

    def write(self, key: str) -> Resource:
        """Create the object, or change it."""
        present = self.head(key)
        self.revision += 1
        if present is None:
            self.uids += 1
        stored = obj(key, self.revision, f"u{self.uids}" if present is None else present.uid)
        self.history[key].append((self.revision, stored))
        return stored

    def delete(self, key: str) -> Resource | None:
        gone = self.head(key)
        if gone is not None:
            self.revision += 1
            self.history[key].append((self.revision, None))
        return gone


class OverlayMachine(RuleBasedStateMachine):
    overlay_class: Any = Overlay

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.overlay: Overlay = self.overlay_class()
        self.floor = dict.fromkeys(KEYS, 0)
        self.answers: list[tuple[str, int, Resource | None, tuple[str, str]]] = []
        self.lost: list[Lost] = []

    @property
    def reached(self) -> str:
        return str(self.server.reached)

    def view(self, key: str) -> Resource | None:
        cached = self.server.at(key, self.server.reached)
        return self.overlay.show(key, cached, reached=self.reached, now=0.0)

    @rule(key=st.sampled_from(KEYS), delete=st.booleans())
    def somebody_writes(self, key: str, delete: bool) -> None:
        if delete:
            self.server.delete(key)
        else:
            self.server.write(key)

    @rule(key=st.sampled_from(KEYS))
    def we_write(self, key: str) -> None:
        stored = self.server.write(key)
        self.answers.append((key, self.server.revision, stored, ("", "")))

    @rule(key=st.sampled_from(KEYS))
    def we_delete(self, key: str) -> None:
        seen, present = self.view(key), self.server.head(key)
        if seen is None or present is None or present.uid != seen.uid:
            return  # the precondition does not hold
        self.server.delete(key)
        self.answers.append((key, self.server.revision, None, (seen.uid, seen.resource_version)))

    @rule(which=st.integers(0, 3))
    def an_answer_comes(self, which: int) -> None:
        if not self.answers:
            return
        key, revision, stored, (uid, version) = self.answers.pop(which % len(self.answers))
        if stored is not None:
            self.overlay.wrote(stored, reached=self.reached, now=0.0)
        else:
            self.overlay.deleted(key, uid=uid, version=version, reached=self.reached, now=0.0)
        self.floor[key] = max(self.floor[key], revision)

    @rule(key=st.sampled_from(KEYS), delete=st.booleans(), carried_out=st.booleans())
    def an_answer_is_lost(self, key: str, delete: bool, carried_out: bool) -> None:
        seen = self.view(key)
        kind: WriteKind = "create" if seen is None else "delete" if delete else "update"
        uid, version = ("", "") if seen is None else (seen.uid, seen.resource_version)
        self.overlay.lost_sight(key, kind, uid=uid, version=version, now=0.0)
        self.lost.append(Lost(kind, key, uid, version))
        if carried_out:
            self.it_is_carried_out(len(self.lost) - 1)

    @rule(which=st.integers(0, 3))
    def it_is_carried_out(self, which: int) -> None:
        if not self.lost:
            return
        write = self.lost.pop(which % len(self.lost))
        present = self.server.head(write.key)
        creates = write.kind == "create" and present is None
        same = present is not None and present.resource_version == write.version
        if creates or (write.kind == "update" and same):
            self.server.write(write.key)
        elif write.kind == "delete" and present is not None and present.uid == write.uid:
            self.server.delete(write.key)
        else:
            return
        self.floor[write.key] = self.server.revision

    @rule(by=st.integers(1, 4))
    def the_stream_goes_on(self, by: int) -> None:
        self.server.reached = min(self.server.reached + by, self.server.revision)

    @rule(key=st.sampled_from(KEYS))
    def we_read(self, key: str) -> None:
        """That there is none has no version: what others made and deleted before may be seen later."""
        if self.overlay.is_uncertain(key, now=0.0):
            live, cached, before = self.server.head(key), self.server.at(key, self.server.reached), self.view(key)
            is_news = self.overlay.settle(key, live, reached=self.reached, now=0.0, cached=cached)
            if live is not None:  # a create that finds an object has been answered with a refusal by then
                self.lost = [one for one in self.lost if one.key != key or one.kind != "create"]
            known = max((int(seen.resource_version) for seen in (cached, before) if seen is not None), default=0)
            seen = self.server.gone_after(key, known) if live is None or is_news else self.server.revision
            self.floor[key] = max(self.floor[key], seen)

    @invariant()
    def reads_are_never_older_than_own_writes_and_never_made_up(self) -> None:
        for key in KEYS:
            if self.overlay.is_uncertain(key, now=0.0):
                continue  # is read from the server
            floor = max(self.floor[key], self.server.reached)
            allowed = {version_of(self.server.at(key, floor))}
            allowed |= {version_of(state) for version, state in self.server.history[key] if version > floor}
            assert version_of(self.view(key)) in allowed

    @invariant()
    def nothing_is_left_over_once_the_cache_has_caught_up(self) -> None:
        if self.server.reached == self.server.revision and not self.answers:
            for key in KEYS:
                self.view(key)
            assert len(self.overlay) == 0


def machine_of(overlay_class: Any) -> type[RuleBasedStateMachine]:
    return type("Machine", (OverlayMachine,), {"overlay_class": overlay_class, **_invariants()})


def _invariants() -> dict[str, Any]:
    # `replay` looks for them in the class itself.
    return {name: value for name, value in vars(OverlayMachine).items() if "never" in name or "left_over" in name}


def test_overlay_matches_model_of_server() -> None:
    run_machine(machine_of(Overlay))


def _keeps_for_ever(self: Any, entry: Any, cached: Any, *, reached: str, now: float) -> bool:
    """Forgets to look at what the cache has reached."""
    return False


KeepsForEver = type("KeepsForEver", (Overlay,), {"_is_caught_up": _keeps_for_ever})


def _takes_any_answer(self: Any, stored: Resource, *, reached: str, now: float) -> None:
    """Lets an answer that was overtaken replace a newer one."""
    self._entries.pop(stored.key, None)
    Overlay.wrote(self, stored, reached=reached, now=now)


TakesAnyAnswer = type("TakesAnyAnswer", (Overlay,), {"wrote": _takes_any_answer})


def _deletes_by_name(self: Any, entry: Any, cached: Resource | None, *, reached: str, now: float) -> bool:
    """A tombstone that goes as soon as the cache has anything else, older or not."""
    if isinstance(entry, Gone):
        return cached is None or cached.uid != entry.uid
    return bool(Overlay._is_caught_up(self, entry, cached, reached=reached, now=now))


DeletesByName = type("DeletesByName", (Overlay,), {"_is_caught_up": _deletes_by_name})


def _is_never_uncertain(self: Any, key: str, kind: WriteKind, *, uid: str = "", version: str = "", now: float) -> None:
    """Takes a lost answer for a write that was not carried out."""
    return


IsNeverUncertain = type("IsNeverUncertain", (Overlay,), {"lost_sight": _is_never_uncertain})


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mutant", "history"),
    [
        (
            KeepsForEver,
            [
                step("we_write", key="default/a"),
                step("an_answer_comes", which=0),
                step("somebody_writes", key="default/a", delete=False),
                step("the_stream_goes_on", by=4),
            ],
        ),
        (
            TakesAnyAnswer,
            [
                step("we_write", key="default/a"),
                step("we_write", key="default/a"),
                step("an_answer_comes", which=1),
                step("an_answer_comes", which=0),
            ],
        ),
        (
            DeletesByName,
            [
                step("we_write", key="default/a"),
                step("an_answer_comes", which=0),
                step("we_delete", key="default/a"),
                step("an_answer_comes", which=0),
                step("the_stream_goes_on", by=1),
                step("somebody_writes", key="default/a", delete=False),
            ],
        ),
        (
            IsNeverUncertain,
            [step("an_answer_is_lost", key="default/a", delete=False, carried_out=True)],
        ),
    ],
)
def test_machine_detects_seeded_bugs(mutant: Any, history: list[Any]) -> None:
    show_the_bug(machine_of(Overlay), machine_of(mutant), history)


def test_later_cached_version_precedes_own_write_at_any_stream_version() -> None:
    overlay = Overlay()
    overlay.wrote(obj(KEYS[0], 5), reached="3", now=0.0)
    assert version_of(overlay.show(KEYS[0], obj(KEYS[0], 4), reached="4", now=1.0)) == "5"
    assert version_of(overlay.show(KEYS[0], obj(KEYS[0], 7), reached="4", now=1.0)) == "7"


def test_response_older_than_delete_does_not_restore_object() -> None:
    overlay = Overlay()
    overlay.deleted(KEYS[0], uid="u", version="", reached="1", now=0.0)
    overlay.wrote(obj(KEYS[0], 5, "u"), reached="1", now=0.0)
    assert overlay.show(KEYS[0], None, reached="1", now=0.0) is None
    overlay.wrote(obj(KEYS[0], 9, "successor"), reached="1", now=0.0)
    assert version_of(overlay.show(KEYS[0], None, reached="1", now=0.0)) == "9"


def test_delete_at_older_version_hides_object() -> None:
    overlay = Overlay()
    overlay.wrote(obj(KEYS[0], 9, "u"), reached="1", now=0.0)
    overlay.deleted(KEYS[0], uid="u", version="5", reached="1", now=0.0)
    assert overlay.show(KEYS[0], obj(KEYS[0], 8, "u"), reached="8", now=0.0) is None


def test_unknown_generated_names_are_uncertain_for_a_minute() -> None:
    overlay = Overlay()
    overlay.lost_sight_of_generated("default/made-", now=0.0)
    overlay.lost_sight_of_generated("other/too-", now=30.0)
    assert [overlay.is_uncertain(key, now=59.9) for key in ("default/made-x", "default/a", "other/too-y")] == [
        True,
        False,
        True,
    ]
    assert [overlay.has_unknown_names(name, now=59.9) for name in ("default", "other", "third", None)] == [
        True,
        True,
        False,
        True,
    ]
    assert not overlay.is_uncertain("default/made-x", now=60.0)
    assert [overlay.has_unknown_names(name, now=60.0) for name in ("default", "other", None)] == [False, True, True]
    assert not overlay.has_unknown_names(None, now=90.0)


@pytest.mark.parametrize(("version", "reached"), [("abc", "5"), ("5", "abc")])
def test_own_write_with_incomparable_version_expires_after_ten_seconds(version: str, reached: str) -> None:
    overlay = Overlay()
    overlay.wrote(obj(KEYS[0], version), reached=reached, now=0.0)
    assert version_of(overlay.show(KEYS[0], None, reached=reached, now=9.9)) == version
    assert overlay.show(KEYS[0], None, reached=reached, now=10.0) is None
