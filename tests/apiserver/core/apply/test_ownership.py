"""Ownership: upstream's cases in our words, properties, and seeded bugs that the properties find.

Test ideas: structured-merge-diff merge/*_test.go; apimachinery pkg/util/managedfields.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from deltaloop.api.json_values import at, items, text
from deltaloop.apiserver.core.apply import field_set
from deltaloop.apiserver.core.apply.ownership import (
    ANCIENT,
    MAX_UPDATERS,
    UPDATE,
    ConflictsError,
    FieldManager,
    Owned,
    Owners,
    Target,
    cap_updaters,
    read_owners,
    stored_owners,
    write_owners,
)
from deltaloop.apiserver.core.apply.walking import compare, fields_of, merge
from tests.apiserver.core.apply.world import (
    API_VERSION,
    KIND,
    OBJECTS,
    TARGET,
    World,
    applier,
    obj,
    type_of,
    updater,
)
from tests.nightly import examples


def refused(world: World, name: str, applied: dict[str, Any]) -> list[str]:
    before = copy.deepcopy((world.live, world.owners))
    with pytest.raises(ConflictsError) as caught:
        world.apply(name, applied)
    assert (world.live, world.owners) == before
    return [f"{conflict.manager.name} {conflict.place}" for conflict in caught.value.conflicts]


def test_applier_owns_only_applied_fields() -> None:
    world = World()
    world.update("u", obj(text="x"))
    world.apply("a", obj(size=1, map={"k": "v"}, items=[{"name": "n", "value": "v"}]))
    assert world.live == obj(text="x", size=1, map={"k": "v"}, items=[{"name": "n", "value": "v"}])
    assert world.fields(applier("a")) == {
        "f:spec": {
            "f:size": {},
            "f:map": {"f:k": {}},
            "f:items": {'k:{"name":"n"}': {".": {}, "f:name": {}, "f:value": {}}},
        }
    }
    assert world.fields(updater("u")) == {"f:spec": {".": {}, "f:text": {}}}


def test_update_owns_the_containers_that_it_created() -> None:
    world = World()
    world.update("u", obj(map={"k": "v"}, set=["a"], whole={"a": "x"}, list=["x"]))
    assert world.fields(updater("u")) == {
        "f:spec": {
            ".": {},
            "f:map": {".": {}, "f:k": {}},
            "f:set": {".": {}, 'v:"a"': {}},
            "f:whole": {},
            "f:list": {},
        }
    }


def test_different_value_conflicts_and_equal_value_is_shared() -> None:
    world = World()
    world.apply("a", obj(size=1, map={"k": "v"}))
    assert refused(world, "b", obj(size=2, map={"k": "w", "l": "x"})) == ["a .spec.size", "a .spec.map.k"]
    assert world.apply("b", obj(size=1)) is False
    assert world.fields(applier("a")) == {"f:spec": {"f:size": {}, "f:map": {"f:k": {}}}}
    assert world.fields(applier("b")) == {"f:spec": {"f:size": {}}}
    assert refused(world, "c", obj(size=3)) == ["a .spec.size", "b .spec.size"]


def test_force_transfers_ownership() -> None:
    world = World()
    world.apply("a", obj(size=1, text="x"))
    world.apply("b", obj(size=2), force=True)
    assert world.live == obj(size=2, text="x")
    assert world.fields(applier("a")) == {"f:spec": {"f:text": {}}}
    assert refused(world, "a", obj(size=1, text="x")) == ["b .spec.size"]


def test_unapplied_field_is_removed_unless_another_manager_owns_it() -> None:
    world = World()
    world.apply("a", obj(size=1, text="x", map={"k": "v", "l": "w"}))
    world.apply("b", obj(map={"l": "w"}))
    world.apply("a", obj(text="x"))
    assert world.live == obj(text="x", map={"l": "w"})
    world.apply("b", {})
    assert world.live == obj(text="x")
    assert world.fields(applier("b")) is None


def test_fields_taken_over_by_an_update_are_not_removed() -> None:
    world = World()
    world.apply("a", obj(size=1, text="x"))
    world.update("u", obj(size=2, text="x"))
    assert world.fields(updater("u")) == {"f:spec": {"f:size": {}}}
    world.apply("a", obj(text="x"))
    assert world.live == obj(size=2, text="x")


def test_list_items_are_removed_individually() -> None:
    world = World()
    world.apply("a", obj(items=[{"name": "x", "value": "1"}, {"name": "y"}], set=["p", "q"]))
    world.apply("b", obj(items=[{"name": "y", "value": "2"}, {"name": "z"}], set=["q", "r"]))
    assert world.live == obj(
        items=[{"name": "x", "value": "1"}, {"name": "y", "value": "2"}, {"name": "z"}], set=["p", "q", "r"]
    )
    world.apply("a", obj(items=[], set=[]))
    assert world.live == obj(items=[{"name": "y", "value": "2"}, {"name": "z"}], set=["q", "r"])


def test_removed_item_removes_its_unowned_fields() -> None:
    world = World()
    world.apply("a", obj(items=[{"name": "x", "value": "1"}]))
    world.update("u", obj(items=[{"name": "x", "value": "1", "tags": ["t"]}]))
    world.apply("a", {})
    # Upstream's: the list itself is kept by what somebody had below it, and what is left of it is null.
    assert world.live == obj(items=None)
    assert world.owners == {}


def test_removed_parent_field_removes_its_unowned_fields() -> None:
    world = World()
    world.apply("a", obj(size=1))
    world.live = obj(size=1, text="filled in", map={"k": "filled in"})
    world.apply("a", {})
    assert world.live == {}
    world.apply("a", obj(size=1))
    world.live = obj(size=1, text="filled in")
    world.apply("a", obj())
    assert world.live == obj(text="filled in")  # the field itself is applied


def test_applied_field_that_loses_all_children_is_null() -> None:
    world = World()
    world.apply("a", obj(map={"k": "v"}))
    world.apply("a", obj(map={}))
    assert world.live == obj(map=None)
    assert world.fields(applier("a")) == {"f:spec": {"f:map": {}}}


def test_list_key_default_identifies_the_same_item() -> None:
    world = World()
    world.apply("a", obj(ports=[{"name": "p"}]))
    assert world.fields(applier("a")) == {"f:spec": {"f:ports": {'k:{"name":"p","port":80}': {".": {}, "f:name": {}}}}}
    world.apply("b", obj(ports=[{"name": "p", "port": 80, "value": "v"}, {"name": "p", "port": 81}]))
    assert world.live == obj(ports=[{"name": "p", "port": 80, "value": "v"}, {"name": "p", "port": 81}])


def test_atomic_values_are_one_field() -> None:
    world = World()
    world.apply("a", obj(whole={"a": "x"}, list=["x"]))
    assert refused(world, "b", obj(whole={"b": "y"}, list=["x", "y"])) == ["a .spec.list", "a .spec.whole"]
    world.apply("b", obj(whole={"b": "y"}), force=True)
    assert world.live == obj(whole={"b": "y"}, list=["x"])
    world.apply("b", {})
    assert world.live == obj(list=["x"])


def test_untyped_values_merge_field_by_field() -> None:
    world = World()
    world.apply("a", obj(free={"p": {"q": "1"}, "l": [1]}))
    world.apply("b", obj(free={"p": {"r": "2"}}))
    assert world.live == obj(free={"p": {"q": "1", "r": "2"}, "l": [1]})
    assert refused(world, "c", obj(free={"l": [2], "p": {"q": "1"}})) == ["a .spec.free.l"]


def test_applied_list_order_is_used() -> None:
    live = [{"name": name} for name in "abcd"]
    for applied, wanted in (("ba", "cbad"), ("db", "acdb"), ("xb", "axbcd"), ("dcba", "dcba"), ("", "abcd")):
        found = merge(KIND, obj(items=live), obj(items=[{"name": name} for name in applied]))
        names = "".join(text(at(item, "name")) for item in items(at(found, "spec", "items")))
        assert sorted(names) == sorted({*"abcd", *applied})
        assert [name for name in names if name in applied] == list(applied), (applied, wanted, names)


def test_unwritable_status_is_not_owned() -> None:
    main = Target(API_VERSION, type_of, ignored={"f:status": {}})
    world = World(main)
    world.apply("a", {"spec": {"size": 1}, "status": {"phase": "p"}})
    assert world.fields(applier("a")) == {"f:spec": {"f:size": {}}}
    status = Target(API_VERSION, type_of, only="f:status")
    other = World(status)
    other.apply("b", {"spec": {"size": 1}, "status": {"phase": "p"}})
    assert other.fields(applier("b")) == {"f:status": {"f:phase": {}}}


def test_manager_of_a_removed_version_is_dropped() -> None:
    world = World()
    world.owners = {
        updater("old", "example.com/v0"): Owned({"f:spec": {"f:size": {}}}, "example.com/v0"),
        updater("two", "example.com/v2"): Owned({"f:spec": {"f:text": {}}}, "example.com/v2"),
    }
    world.live = obj(size=1, text="x")
    world.apply("a", obj(size=2))
    assert set(world.owners) == {applier("a"), updater("two", "example.com/v2")}
    assert refused(world, "a", obj(text="y")) == ["two .spec.text"]


def test_identity_fields_have_no_owner() -> None:
    world = World()
    world.apply("a", {"apiVersion": "v", "kind": "k", "metadata": {"name": "n", "uid": "u", "labels": {"l": "v"}}})
    assert world.fields(applier("a")) == {"f:metadata": {"f:labels": {"f:l": {}}}}


def test_the_eleventh_update_merges_the_two_oldest() -> None:
    owners: Owners = {
        updater(f"m{number:02}"): Owned({"f:spec": {f"f:x{number}": {}}}, API_VERSION, f"{number:04}")
        for number in range(MAX_UPDATERS + 1)
    }
    capped = cap_updaters(owners)
    assert len(capped) == MAX_UPDATERS
    bucket = capped[FieldManager(ANCIENT, UPDATE, API_VERSION)]
    assert bucket == Owned({"f:spec": {"f:x0": {}, "f:x1": {}}}, API_VERSION, "0001")
    again = cap_updaters({**capped, updater("new"): Owned({"f:spec": {"f:y": {}}}, API_VERSION, "0099")})
    assert len(again) == MAX_UPDATERS
    assert set(again[FieldManager(ANCIENT, UPDATE, API_VERSION)].fields["f:spec"]) == {"f:x0", "f:x1", "f:x2"}
    assert cap_updaters(capped) == capped


def test_entries_round_trip() -> None:
    world = World()
    world.apply("a", obj(size=1))
    world.update("u", obj(size=1, text="x"))
    entries = write_owners(world.owners)
    assert [entry["operation"] for entry in entries] == ["Apply", "Update"]
    assert entries[1] == {
        "manager": "u",
        "operation": "Update",
        "apiVersion": API_VERSION,
        "time": "0002",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:text": {}}},
    }
    assert read_owners(entries) == stored_owners(entries) == world.owners


@pytest.mark.parametrize(
    "changes",
    [
        {"operation": "Other"},
        {"apiVersion": ""},
        {"fieldsType": ""},
        {"fieldsV1": {"size": {}}},
        {"fieldsV1": []},
    ],
)
def test_malformed_entries_are_rejected(changes: dict[str, Any]) -> None:
    entry: dict[str, Any] = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {},
    }
    assert read_owners([entry]) is not None
    assert read_owners([{**entry, **changes}]) is None
    assert read_owners(["text"]) is None


# --- properties ---


@settings(max_examples=examples(40))
@given(OBJECTS, OBJECTS)
def test_apply_is_idempotent(live: dict[str, Any], applied: dict[str, Any]) -> None:
    world = World()
    world.update("u", live)
    world.apply("a", applied, force=True)
    once = copy.deepcopy((world.live, world.owners))
    assert world.apply("a", applied) is False
    assert (world.live, world.owners) == once


@settings(max_examples=examples(40))
@given(OBJECTS, OBJECTS)
def test_forced_apply_sets_and_owns_all_applied_fields(live: dict[str, Any], applied: dict[str, Any]) -> None:
    world = World()
    world.update("u", live)
    world.apply("a", applied, force=True)
    found = compare(KIND, applied, world.live)
    assert found.removed == {}
    assert world.fields(applier("a")) == (fields_of(KIND, applied) or None)


@settings(max_examples=examples(40))
@given(OBJECTS, OBJECTS)
def test_managers_of_disjoint_fields_never_conflict(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    world = World()
    world.apply("a", mine)
    if field_set.intersection(fields_of(KIND, mine), fields_of(KIND, theirs)):
        return
    assert conflicts_of(world, theirs) <= {("f:spec", "f:free")}


def conflicts_of(world: World, applied: dict[str, Any]) -> set[tuple[str, ...]]:
    """Return where the conflicts are; in what is free, a value and an object may stand against each other."""
    try:
        world.apply("b", applied)
    except ConflictsError as error:
        return {conflict.path[:2] for conflict in error.conflicts}
    return set()


@settings(max_examples=examples(40))
@given(OBJECTS)
def test_empty_apply_removes_all_fields_of_the_manager(applied: dict[str, Any]) -> None:
    world = World()
    world.apply("a", applied)
    world.apply("a", {})
    assert fields_of(KIND, world.live) == {}
    assert world.owners == {}


class Sharing(RuleBasedStateMachine):
    """Appliers and updaters at one object, in any order."""

    world_class: type[World] = World

    def __init__(self) -> None:
        super().__init__()
        self.world = self.world_class()
        self.applied: dict[str, dict[str, Any]] = {}

    @rule(name=st.sampled_from("ab"), applied=OBJECTS, force=st.booleans())
    def apply(self, name: str, applied: dict[str, Any], force: bool) -> None:
        before = copy.deepcopy(self.world.live)
        try:
            self.world.apply(name, applied, force=force)
        except ConflictsError:
            assert not force
            assert self.world.live == before
            return
        self.applied[name] = applied
        assert compare(KIND, applied, self.world.live).removed == {}

    @rule(name=st.sampled_from("uv"), new=OBJECTS)
    def update(self, name: str, new: dict[str, Any]) -> None:
        self.world.update(name, new)

    @precondition(lambda self: self.applied)
    @rule(data=st.data())
    def apply_again(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.applied)))
        applied = self.applied[name]
        owned: Any = self.world.fields(applier(name)) or {}
        if owned == fields_of(KIND, applied) and not compare(KIND, applied, self.world.live).modified:
            before = copy.deepcopy((self.world.live, self.world.owners))
            self.world.apply(name, applied)
            assert (self.world.live, self.world.owners) == before

    @invariant()
    def every_owned_field_is_there(self) -> None:
        present = set(field_set.paths(everything_of(self.world.live)))
        for manager, owned in self.world.owners.items():
            for path in field_set.paths(owned.fields):
                assert path in present, (manager, path, self.world.live)

    @invariant()
    def no_owner_has_nothing(self) -> None:
        assert all(owned.fields for owned in self.world.owners.values())


def everything_of(live: dict[str, Any]) -> field_set.FieldSet:
    return compare(KIND, {}, live).added


def test_state_machine() -> None:
    run_state_machine_as_test(Sharing, settings=settings(max_examples=examples(30), stateful_step_count=6))


class KeepsLostFields(World):
    """A seeded bug: who loses a field by an update keeps it in the books."""

    def update(self, name: str, new: dict[str, Any]) -> None:
        before = dict(self.owners)
        super().update(name, new)
        self.owners = {**before, **self.owners}


class NeverRemoves(World):
    """A seeded bug: what is applied no more stays."""

    def apply(self, name: str, applied: dict[str, Any], *, force: bool = False) -> bool:
        if applier(name) in self.owners:
            del self.owners[applier(name)]
        return super().apply(name, applied, force=force)


SEEDED = settings(max_examples=200, database=None, phases=[Phase.generate], derandomize=True)


@pytest.mark.nightly
def test_state_machine_finds_a_stale_owned_field() -> None:
    class Seeded(Sharing):
        world_class = KeepsLostFields

    with pytest.raises(AssertionError):
        run_state_machine_as_test(Seeded, settings=SEEDED)


def test_state_machine_finds_missing_removal() -> None:
    world = NeverRemoves(TARGET)
    world.apply("a", obj(size=1))
    world.apply("a", {})
    assert world.live == obj(size=1)
