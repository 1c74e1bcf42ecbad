"""Drafts: what a write works out beside the store is the store's own answer, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.storage.draft import NO_DRAFT, Commit, Draft, ask_at_once
from deltaloop.apiserver.core.storage.store import (
    KeyExistsError,
    KeyMissingError,
    Objects,
    RevisionStore,
    StoreError,
)
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.delete import delete
from deltaloop.apiserver.core.writes.server_state import ServerState
from tests.apiserver.core.built_in import built_in_registry
from tests.apiserver.core.custom_resources import defined
from tests.nightly import examples

T = TypeVar("T")


def fields(name: str, *, value: int = 0) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid of {name}"}, "data": {"v": str(value)}}


def draft_of(store: RevisionStore) -> Draft:
    return Draft(store, ask=ask_at_once)


def test_draft_writes_are_not_stored_before_the_commit() -> None:
    store = RevisionStore()
    store.create("a", "x", fields("x"))
    draft = draft_of(store)
    draft.create("a", "y", fields("y"))
    draft.update("a", "x", fields("x", value=1))
    assert store.revision == 2
    assert [item.name for item in store.list("a").items] == ["x"]
    assert [item.name for item in draft.list("a").items] == ["x", "y"]
    assert draft.count("a") == 2
    draft.delete("a", "x")
    assert draft.get("a", "x") is None
    assert [item.name for item in draft.list("a").items] == ["y"]
    assert draft.count("a") == 1
    draft.commit()
    assert [item.name for item in store.list("a").items] == ["y"]


def test_commit_gives_objects_the_revisions_of_the_store() -> None:
    store = RevisionStore()
    old = store.create("a", "old", fields("old"))
    draft = draft_of(store)
    read = draft.get("a", "old")
    made = draft.create("a", "x", fields("x"))
    changed = draft.update("a", "x", fields("x", value=1))
    draft.delete("a", "old")
    gone = Resource.from_dict({**fields("old"), "metadata": {"name": "old", "resourceVersion": str(draft.revision)}})
    store.create("b", "z", fields("z"))  # somebody else's
    commit = draft.commit()
    assert store.revision == 6
    assert commit.final(made).resource_version == "4"
    assert commit.final(changed) is store.get("a", "x")
    assert commit.final(changed).resource_version == "5"
    assert commit.final(gone).resource_version == "6"
    assert read is not None
    assert commit.final(read) is old
    unversioned = Resource.from_dict(fields("dry"))
    assert commit.final(unversioned) is unversioned
    assert NO_DRAFT.final(old) is old


def test_commit_distinguishes_removed_object_from_the_last_write() -> None:
    """A removal that changes something else after it, as the last object of a CRD does."""
    store = RevisionStore()
    store.create("a", "x", fields("x"))
    store.create("crds", "c", fields("c"))
    draft = draft_of(store)
    draft.delete("a", "x")
    draft.update("crds", "c", fields("c", value=1))
    gone = Resource.from_dict({"metadata": {"name": "x", "uid": "uid of x", "resourceVersion": str(draft.revision)}})
    final = draft.commit().final(gone)
    assert (final.name, final.resource_version) == ("x", "5")


def delete_and_compact(store: RevisionStore) -> None:
    store.delete("a", "x")
    store.compact(99)


_CASES: list[tuple[Callable[[Objects], object], Callable[[RevisionStore], object], bool]] = [
    (lambda store: store.get("a", "x"), lambda store: store.update("a", "x", fields("x", value=1)), False),
    (lambda store: store.get("a", "x"), lambda store: store.delete("a", "x"), False),
    (lambda store: store.get("a", "y"), lambda store: store.create("a", "y", fields("y")), False),
    (lambda store: store.get("a", "x"), lambda store: store.create("a", "y", fields("y")), True),
    (lambda store: store.get("a", "x"), lambda store: store.renumber(revision=50), False),
    (lambda store: store.list("a"), lambda store: store.create("a", "y", fields("y")), False),
    (lambda store: store.list("a"), lambda store: store.create("b", "y", fields("y")), True),
    (lambda store: store.list("b"), lambda store: store.renumber(revision=50), False),
    (lambda store: store.count("a"), lambda store: store.delete("a", "x"), False),
    (lambda store: store.list("a"), delete_and_compact, False),
    (lambda store: store.create("a", "y", fields("y")), lambda store: store.create("a", "y", fields("y")), False),
]


@pytest.mark.parametrize(("reads", "others", "current"), _CASES)
def test_draft_is_current_only_if_its_reads_are_unchanged(
    reads: Callable[[Objects], object], others: Callable[[RevisionStore], object], current: bool
) -> None:
    store = RevisionStore()
    store.create("a", "x", fields("x"))
    draft = draft_of(store)
    reads(draft)
    assert draft.is_current()
    others(store)
    assert draft.is_current() is current


def test_repeated_reads_return_the_same_object() -> None:
    store = RevisionStore()
    first = store.create("a", "x", fields("x"))
    draft = draft_of(store)
    assert draft.get("a", "x") is first
    store.update("a", "x", fields("x", value=1))
    assert draft.get("a", "x") is first
    with pytest.raises(KeyExistsError):
        draft.create("a", "x", fields("x"))


def test_draft_raises_the_errors_of_the_store() -> None:
    store = RevisionStore()
    store.create("a", "x", fields("x"))
    draft = draft_of(store)
    with pytest.raises(KeyMissingError):
        draft.update("a", "y", fields("y"))
    with pytest.raises(KeyMissingError):
        draft.delete("a", "y")
    assert draft.update("a", "x", fields("x")) is store.get("a", "x"), "nothing differs"
    assert draft.commit().stored == ()


def test_draft_reads_go_through_the_ask_function() -> None:
    asked: list[str] = []
    store = RevisionStore()
    store.create("a", "x", fields("x"))

    def ask(question: Callable[[], T], /) -> T:
        asked.append("")
        return question()

    draft = Draft(store, ask=ask)
    draft.get("a", "x")
    draft.get("a", "x", at=1)
    draft.list("a")
    draft.count("b")
    assert draft.revision == 2
    questions = len(asked)
    assert questions >= 5
    draft.update("a", "x", fields("x", value=1))
    draft.delete("a", "x")
    assert len(asked) == questions


_KEYS = st.sampled_from(["x", "y"])


class AsTheStore(RuleBasedStateMachine):
    """The same writes, on a store and on a draft of its twin: the same answers, and in the end the same objects."""

    def __init__(self) -> None:
        super().__init__()
        self.store, self.twin = RevisionStore(), RevisionStore()
        for store in (self.store, self.twin):
            store.create("a", "x", fields("x"))
        self.draft = draft_of(self.twin)
        self.given: list[tuple[Resource, Resource]] = []

    def _both(self, write: Callable[[Objects], Any]) -> None:
        answers: list[Any] = []
        both: tuple[Objects, ...] = (self.store, self.draft)
        for target in both:
            try:
                answers.append(write(target))
            except StoreError as error:
                answers.append(type(error))
        direct, drafted = answers
        if isinstance(direct, Resource):
            assert isinstance(drafted, Resource)
            self.given.append((direct, drafted))
        else:
            assert direct == drafted

    @rule(key=_KEYS, value=st.integers(0, 2))
    def create(self, key: str, value: int) -> None:
        self._both(lambda store: store.create("a", key, fields(key, value=value)))

    @rule(key=_KEYS, value=st.integers(0, 2))
    def update(self, key: str, value: int) -> None:
        self._both(lambda store: store.update("a", key, fields(key, value=value)))

    @rule(key=_KEYS)
    def delete(self, key: str) -> None:
        def delete(store: Objects) -> None:
            store.delete("a", key)

        self._both(delete)

    @rule()
    def end(self) -> None:
        commit = self.draft.commit()
        for direct, drafted in self.given:
            assert commit.final(drafted).raw == direct.raw or self._was_written_over(direct, commit.final(drafted))
        self.given = []
        self.draft = draft_of(self.twin)
        assert [item.raw for item in self.twin.list("a").items] == [item.raw for item in self.store.list("a").items]
        assert self.twin.revision == self.store.revision

    @staticmethod
    def _was_written_over(direct: Resource, final: Resource) -> bool:
        return direct.to_dict() == final.to_dict()

    @invariant()
    def shows_the_same(self) -> None:
        def shown(store: Objects) -> list[tuple[str, Any]]:
            return [(item.key, item["data"]["v"]) for item in store.list("a").items]

        assert shown(self.draft) == shown(self.store)
        assert self.draft.count("a") == self.store.count("a")


AsTheStore.TestCase.settings = settings(max_examples=examples(30), stateful_step_count=20)
TestAsTheStore = AsTheStore.TestCase


def moment(uid: str) -> Moment:
    return Moment(now=1_000_000_000.0, uid=uid, random=0.5)


def crd(plural: str) -> dict[str, Any]:
    names = {"plural": plural, "kind": plural.capitalize()}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.x.dev"},
        "spec": {"group": "x.dev", "scope": "Cluster", "names": names, "versions": versions},
    }


def test_crd_is_served_from_its_commit_despite_concurrent_crds() -> None:
    state = ServerState(RevisionStore(), built_in_registry())
    crds = state.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    assert crds is not None
    drafts = {plural: state.draft(ask_at_once) for plural in ("foos", "bars")}
    for plural, drafted in drafts.items():
        create(drafted.own_write(crds, "", "", moment(plural)), crd(plural))
        assert drafted.registry.find("x.dev", "v1", plural) is not None
        assert state.registry.find("x.dev", "v1", plural) is None
    for plural, drafted in drafts.items():
        assert state.is_current(drafted)
        state.commit(drafted)
        assert state.registry.find("x.dev", "v1", plural) is not None
    unchanged = state.draft(ask_at_once)
    create(state.own_write(crds, "", "", moment("b")), crd("quxes"))
    assert state.is_current(unchanged), "it has changed nothing of what is served"
    state.commit(unchanged)
    assert defined(state.registry) == ("bars.x.dev", "foos.x.dev", "quxes.x.dev")


def test_commit_creates_the_api_service_of_a_crd_group() -> None:
    state = ServerState(RevisionStore(), built_in_registry())
    crds = state.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    assert crds is not None
    services = kinds.API_SERVICE.group_resource

    def drafted(write: Callable[[ServerState], object]) -> ServerState:
        found = state.draft(ask_at_once)
        write(found)
        return found

    made = drafted(lambda draft: create(draft.own_write(crds, "", "", moment("foos")), crd("foos")))
    assert state.store.count(services) == 0
    state.commit(made)
    (service,) = state.store.list(services).items
    assert (service.name, bool(service.uid)) == ("v1.x.dev", True)
    for item in ("", "bars"):
        if item:
            create(state.own_write(crds, "", "", moment(item)), crd(item))
        dry = drafted(
            lambda draft: delete(draft.own_write(crds, "", "foos.x.dev", moment("a"), dry_run=True), DeleteOptions())
        )
        state.commit(dry)
        assert state.store.list(services).items == (service,)
    state.commit(
        drafted(lambda draft: delete(draft.own_write(crds, "", "foos.x.dev", Moment(now=1.0)), DeleteOptions()))
    )
    assert state.store.list(services).items == (service,), "another definition serves the version"
    state.commit(
        drafted(lambda draft: delete(draft.own_write(crds, "", "bars.x.dev", Moment(now=1.0)), DeleteOptions()))
    )
    assert state.store.count(services) == 0


def test_crd_with_names_taken_concurrently_is_recomputed() -> None:
    state = ServerState(RevisionStore(), built_in_registry())
    crds = state.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    assert crds is not None
    drafted = state.draft(ask_at_once)
    second = crd("bars")
    second["spec"]["names"]["kind"] = "Foos"
    create(drafted.own_write(crds, "", "", moment("bars")), second)
    create(state.own_write(crds, "", "", moment("foos")), crd("foos"))
    assert not state.is_current(drafted)


def test_crd_removed_concurrently_is_not_restored() -> None:
    state = ServerState(RevisionStore(), built_in_registry())
    crds = state.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    assert crds is not None
    create(state.own_write(crds, "", "", moment("foos")), crd("foos"))
    drafted = state.draft(ask_at_once)
    create(drafted.own_write(crds, "", "", moment("bars")), crd("bars"))
    delete(state.own_write(crds, "", "foos.x.dev", Moment(now=1.0)), DeleteOptions())
    assert state.is_current(drafted)
    state.commit(drafted)
    assert defined(state.registry) == ("bars.x.dev",)


def test_commit_without_writes_keeps_objects() -> None:
    assert Commit(7).final(Resource.from_dict(fields("x"))).name == "x"
