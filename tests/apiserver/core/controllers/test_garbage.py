"""The garbage collector against a naive model: repeat "drop what has only dead owners" until nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from deltaloop.api.resource import OwnerReference, Resource
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Chain, Plugin
from deltaloop.apiserver.core.controllers.first_objects import make_namespaces
from deltaloop.apiserver.core.controllers.garbage import Collected, GarbageCollector
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.write_context import Moments
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.delete import delete
from deltaloop.apiserver.core.writes.server_state import ServerState
from tests.apiserver.core.built_in import built_in_registry
from tests.nightly import examples

STAMP = Moment(now=0, uid="someone")


def moments() -> Moment:
    return STAMP


def operations(*, window: int = 10_000) -> tuple[ServerState, ServedResource]:
    made = ServerState(RevisionStore(window=window), built_in_registry())
    make_namespaces(made, moments)
    served = made.registry.find("", "v1", "configmaps")
    assert served is not None
    return made, served


def reference(uid: str, *, blocks: bool = False) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid, "blockOwnerDeletion": blocks}


class GarbageMachine(RuleBasedStateMachine):
    make: ClassVar[type[Any]] = GarbageCollector

    def __init__(self) -> None:
        super().__init__()
        self.state, self.served = operations(window=3)
        self.collector: Any = type(self).make(self.state, moments)
        self.owners: dict[str, set[str]] = {}  # by uid: the uids of its owners
        self.count = 0

    @rule(data=st.data(), dead=st.booleans())
    def create(self, data: st.DataObject, dead: bool) -> None:
        self.count += 1
        uid = f"u{self.count}"
        owners: set[str] = (
            set(data.draw(st.lists(st.sampled_from(sorted(self.owners)), max_size=2))) if self.owners else set[str]()
        )
        if dead and owners:
            owners.add("dead")
        fields = {"metadata": {"name": uid, "ownerReferences": [reference(owner) for owner in sorted(owners)]}}
        create(self.state.own_write(self.served, "default", "", Moment(now=0, uid=uid)), fields)
        self.owners[uid] = owners

    @precondition(lambda self: self.owners)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.owners)))
        delete(self.state.own_write(self.served, "default", uid, Moment(now=0)), DeleteOptions())
        del self.owners[uid]

    @rule()
    def run(self) -> None:
        self.collector.run()
        while garbage := [uid for uid, owners in self.owners.items() if owners and not owners & self.owners.keys()]:
            for uid in garbage:
                del self.owners[uid]
        for uid, owners in self.owners.items():
            self.owners[uid] = owners & self.owners.keys()
        left = self.state.store.list("configmaps").items
        assert {item.uid: {owner.uid for owner in item.owner_references} for item in left} == self.owners
        assert self.collector.run() == Collected(wrote=False)


SETTINGS = settings(
    max_examples=examples(30), stateful_step_count=30, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    print_blob=False,
)  # fmt: skip


def test_collector_agrees_with_the_model() -> None:
    run_state_machine_as_test(GarbageMachine, settings=SETTINGS)


class _LooksOnce:
    """A collector that sees only what was there at its first run."""

    def __init__(self, made: ServerState, moments: Moments) -> None:
        self.real = GarbageCollector(made, moments)
        self.runs = 0

    def run(self) -> Collected:
        self.runs += 1
        return self.real.run() if self.runs == 1 else Collected(wrote=False)


class _KeepsReferences:
    """A collector that does not tidy the references of what stays."""

    def __init__(self, made: ServerState, moments: Moments) -> None:
        def refuse(attributes: AdmissionAttributes) -> None:
            raise AssertionError(attributes.name)

        plugin = Plugin(operations=frozenset({"UPDATE"}), validate=refuse)
        self.real = GarbageCollector(ServerState(made.store, made.registry, Chain((plugin,))), moments)

    def run(self) -> Collected:
        return self.real.run()


@pytest.mark.nightly
@pytest.mark.parametrize("broken", [_LooksOnce, _KeepsReferences])
def test_state_machine_finds_seeded_bugs(broken: Any) -> None:
    class Machine(GarbageMachine):
        make = broken

    with pytest.raises(Exception):  # noqa: B017 - whatever the machine raises
        run_state_machine_as_test(Machine, settings=settings(SETTINGS, phases=[Phase.generate]))


def test_rejected_change_is_reported_and_collection_continues() -> None:
    made, served = operations()
    metadata = {"name": "a", "namespace": "default", "uid": "a", "labels": {"-": "-"}}
    fields = {"metadata": {**metadata, "ownerReferences": [reference("b"), reference("dead")]}}
    made.store.create("configmaps", "default/a", fields)  # past the checks, as from an older version
    create(made.own_write(served, "default", "", Moment(now=0, uid="b")), {"metadata": {"name": "b"}})
    orphan = {"metadata": {"name": "c", "ownerReferences": [reference("dead")]}}
    create(made.own_write(served, "default", "", Moment(now=0, uid="c")), orphan)
    collected = GarbageCollector(made, moments).run()
    assert [(place.key, reason) for place, reason in collected.refused] == [("default/a", "Invalid")]
    assert [item.name for item in made.store.list("configmaps").items] == ["a", "b"]


def test_foreground_deletion_removes_leaves_first() -> None:
    made, served = operations()
    for name, owner in (("a", ""), ("b", "a"), ("c", "b")):
        owners = [reference(owner, blocks=True)] if owner else []
        create(
            made.own_write(served, "default", "", Moment(now=0, uid=name)),
            {"metadata": {"name": name, "ownerReferences": owners}},
        )
    collector = GarbageCollector(made, moments)
    delete(made.own_write(served, "default", "a", STAMP), DeleteOptions(propagation_policy="Foreground"))
    start = made.store.revision
    collector.run()
    gone = [change.key for change in made.store.changes_after(start) if change.new is None]
    assert gone == ["default/c", "default/b", "default/a"]


def test_orphaned_dependents_per_run_are_bounded() -> None:
    made, served = operations()
    create(made.own_write(served, "default", "", Moment(now=0, uid="owner")), {"metadata": {"name": "owner"}})
    for number in range(50):
        fields = {"metadata": {"name": f"d{number}", "ownerReferences": [reference("owner")]}}
        create(made.own_write(served, "default", "", Moment(now=0, uid=f"d{number}")), fields)
    collector = GarbageCollector(made, moments)
    collector.run()
    delete(made.own_write(served, "default", "owner", Moment(now=0)), DeleteOptions(propagation_policy="Orphan"))
    owned: list[int] = []
    while not owned or collector.run(most=1).more:
        owned.append(sum(1 for item in made.store.list("configmaps").items if item.owner_references))
    assert max(before - after for before, after in pairwise(owned)) <= 16
    assert {item.name for item in made.store.list("configmaps").items} == {f"d{number}" for number in range(50)}
    assert not any(item.owner_references for item in made.store.list("configmaps").items)


def test_graph_is_read_in_parts_before_collection_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, served = operations()
    create(made.own_write(served, "default", "", Moment(now=0, uid="owner")), {"metadata": {"name": "owner"}})
    for number in range(100):
        fields = {"metadata": {"name": f"d{number}", "ownerReferences": [reference("gone"), reference("owner")]}}
        create(made.own_write(served, "default", "", Moment(now=0, uid=f"d{number}")), fields)
    read: list[int] = []

    def reads(obj: Resource) -> tuple[OwnerReference, ...]:
        read[-1] += 1
        return owner_references(obj)

    owner_references: Callable[[Resource], tuple[OwnerReference, ...]] = vars(Resource)["owner_references"].fget
    monkeypatch.setattr(Resource, "owner_references", property(reads))
    collector = GarbageCollector(made, moments)
    wrote: list[bool] = []
    goes_on = True
    while goes_on:
        read.append(0)
        collected = collector.run(most=1)
        wrote.append(collected.wrote)
        goes_on = collected.more
    assert not any(wrote[:8])
    assert max(read) < 24
    assert {len(owner_references(item)) for item in made.store.list("configmaps").items} == {0, 1}
