from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from deltaloop.apiserver.core.crds.definition import default_crd, version_order
from deltaloop.apiserver.core.registry import Registry
from tests.apiserver.core.built_in import built_in_registry
from tests.apiserver.core.custom_resources import GROUP, defined, foo_crd, version
from tests.nightly import examples


def test_versions_sort_as_kubernetes_sorts_them() -> None:
    wanted = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10", "v0"]
    shuffled = sorted(wanted)
    assert sorted(shuffled, key=version_order) == wanted


def test_resource_is_found_by_plural_and_by_kind() -> None:
    registry = built_in_registry()
    found = registry.find("apps", "v1", "deployments")
    assert found is not None
    assert found.type.kind == "Deployment"
    assert registry.find_kind("apps", "v1", "Deployment") is found
    assert registry.find("apps", "v1beta1", "deployments") is None
    assert registry.find("", "v1", "Pod") is None
    assert registry.find_kind("", "v1", "pods") is None


def test_groups_are_sorted_core_then_built_in_then_crds() -> None:
    registry = built_in_registry()
    registry.apply_crd(default_crd(foo_crd(group="b.example.com")), now=0)
    registry.apply_crd(default_crd(foo_crd(group="a.example.com")), now=0)
    groups = registry.groups()
    assert groups[:3] == ("", "apiregistration.k8s.io", "apps")
    assert groups[-2:] == ("a.example.com", "b.example.com")


def test_served_versions_of_a_crd_begin_with_the_preferred_version() -> None:
    registry = built_in_registry()
    crd = foo_crd(version("v1alpha1", storage=False), version("v1"), version("v1beta1", served=False, storage=False))
    status = registry.apply_crd(default_crd(crd), now=0)
    assert status["storedVersions"] == ["v1"]
    assert registry.versions(GROUP) == ("v1", "v1alpha1")
    assert registry.find(GROUP, "v1beta1", "foos") is None
    assert [served.type.version for served in registry.in_version(GROUP, "v1alpha1")] == ["v1alpha1"]


def test_versions_that_share_storage_are_known_after_a_change() -> None:
    # Seeded: an index that is kept when a CRD changes has the versions from before.
    registry = built_in_registry()
    autoscalers = registry.sharing("horizontalpodautoscalers.autoscaling")
    assert [served.type.version for served in autoscalers] == ["v2", "v1"]
    two = default_crd(foo_crd(version("v1"), version("v2", storage=False)))
    registry.apply_crd(two, now=0)
    assert [served.type.version for served in registry.sharing(f"foos.{GROUP}")] == ["v2", "v1"]
    branch = registry.branch()
    branch.apply_crd(default_crd(foo_crd(version("v1"))), now=1)
    assert [served.type.version for served in branch.sharing(f"foos.{GROUP}")] == ["v1"]
    assert [served.type.version for served in registry.sharing(f"foos.{GROUP}")] == ["v2", "v1"]
    registry.remove_crd(two["metadata"]["name"])
    assert registry.sharing(f"foos.{GROUP}") == ()


def test_changed_crd_replaces_its_resources() -> None:
    registry = built_in_registry()
    crd = default_crd(foo_crd())
    crd["status"] = registry.apply_crd(crd, now=0)
    crd["spec"]["versions"][0]["subresources"] = {"status": {}}
    assert registry.apply_crd(crd, now=5) == crd["status"]
    found = registry.find(GROUP, "v1", "foos")
    assert found is not None
    assert found.status


def test_crd_without_served_versions_has_no_resources() -> None:
    registry = built_in_registry()
    crd = default_crd(foo_crd())
    crd["status"] = registry.apply_crd(crd, now=0)
    crd["spec"]["versions"][0]["served"] = False
    assert registry.apply_crd(crd, now=0) == crd["status"]
    assert registry.find(GROUP, "v1", "foos") is None
    assert registry.versions(GROUP) == ()


def test_crd_with_a_conflicting_name_is_served_once_the_name_is_free() -> None:
    registry = built_in_registry()
    registry.apply_crd(default_crd(foo_crd()), now=0)
    rival = default_crd(foo_crd(kind="Foo", plural="oofs"))
    assert registry.apply_crd(rival, now=0)["conditions"][0]["status"] == "False"
    assert registry.find(GROUP, "v1", "oofs") is None
    assert defined(registry) == (f"foos.{GROUP}",)
    (removed,) = registry.remove_crd(f"foos.{GROUP}")
    assert removed.type.plural == "foos"
    assert registry.apply_crd(rival, now=0)["conditions"][0]["status"] == "True"
    assert registry.find(GROUP, "v1", "oofs") is not None


def test_removing_an_unknown_crd_changes_nothing() -> None:
    registry = built_in_registry()
    before = registry.resources()
    assert registry.remove_crd("none.example.com") == ()
    assert registry.resources() == before


class RegistryMachine(RuleBasedStateMachine):
    """CRDs with few plurals and kinds come and go; the model keeps who holds which name."""

    registry_class: type[Any] = Registry

    def __init__(self) -> None:
        super().__init__()
        self.registry = self.registry_class(())
        self.served: dict[str, str] = {}
        self.status: dict[str, dict[str, Any]] = {}

    @rule(plural=st.sampled_from("abcd"), kind=st.sampled_from("XYZ"))
    def apply(self, plural: str, kind: str) -> None:
        crd = default_crd(foo_crd(kind=f"Kind{kind}", plural=f"{plural}s"))
        crd["spec"]["names"]["singular"] = plural
        name = crd["metadata"]["name"]
        if self.served.get(name, kind) != kind:
            return  # the kind of an established CRD cannot change
        crd["status"] = self.status.get(name, {})
        free = all(other == name or holder != kind for other, holder in self.served.items())
        status = self.registry.apply_crd(crd, now=0)
        assert (status["conditions"][0]["status"] == "True") is free
        if free:
            self.served[name] = kind
            self.status[name] = status

    @rule(plural=st.sampled_from("abcd"))
    def remove(self, plural: str) -> None:
        name = f"{plural}s.{GROUP}"
        removed = self.registry.remove_crd(name)
        assert bool(removed) is (name in self.served)
        self.served.pop(name, None)
        self.status.pop(name, None)

    @invariant()
    def serves_what_the_model_holds(self) -> None:
        found = {f"{served.type.plural}.{GROUP}": served.type.kind[-1] for served in self.registry.resources()}
        assert found == self.served

    @invariant()
    def no_two_resources_share_a_kind(self) -> None:
        held = [served.type.kind for served in self.registry.resources()]
        assert len(held) == len(set(held))


TestRegistryMachine = RegistryMachine.TestCase
TestRegistryMachine.settings = settings(max_examples=examples(40), stateful_step_count=20, deadline=None)


def test_state_machine_finds_a_resource_served_after_removal() -> None:
    class Forgetful:
        def __init__(self, built_in: Any) -> None:
            self._registry = Registry(built_in)
            self.resources = self._registry.resources
            self.apply_crd = self._registry.apply_crd

        def remove_crd(self, name: str) -> tuple[Any, ...]:
            return tuple(item for item in self.resources() if name.startswith(item.type.plural))

    class Seeded(RegistryMachine):
        registry_class = Forgetful

    chosen = settings(max_examples=40, database=None, deadline=None, derandomize=True)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Seeded, settings=chosen)
