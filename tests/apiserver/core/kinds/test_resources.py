from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools.builtin_tables import generate as builtin_tables

from deltaloop.api import kinds
from deltaloop.apiserver.core.served_resource import ALL_VERBS
from tests.apiserver.core.built_in import BUILT_IN_RESOURCES

BY_TYPE = {served.type: served for served in BUILT_IN_RESOURCES}


def test_every_built_in_kind_is_served_once() -> None:
    assert len(BUILT_IN_RESOURCES) == len(BY_TYPE)
    assert set(BY_TYPE) >= set(kinds.BUILT_IN)


def test_every_stored_kind_of_the_real_server_is_served() -> None:
    observed = json.loads((Path(builtin_tables.__file__).parent / "observed.json").read_text())["kinds"]
    reviews = ("authentication.k8s.io", "authorization.k8s.io")
    stored = {
        (kind["group"], kind["version"], kind["kind"], kind["namespaced"])
        for kind in observed
        if kind["group"] not in reviews
    }
    assert {(known.group, known.version, known.kind, known.namespaced) for known in BY_TYPE} == stored


def test_the_names_of_a_group_version_are_unique() -> None:
    seen: set[tuple[str, str]] = set()
    for served in BUILT_IN_RESOURCES:
        names = {served.type.plural, served.singular, *served.short_names}
        for name in names:
            assert (served.type.api_version, name) not in seen
            seen.add((served.type.api_version, name))


def test_kinds_with_partial_verbs() -> None:
    partial = {str(served.type): served.verbs for served in BUILT_IN_RESOURCES if served.verbs != ALL_VERBS}
    assert partial == {
        "v1/Binding": ("create",),
        "v1/ComponentStatus": ("get", "list"),
        "v1/Namespace": ("create", "delete", "get", "list", "patch", "update", "watch"),
    }


def test_kinds_with_a_scale_subresource() -> None:
    assert {served.type.kind for served in BUILT_IN_RESOURCES if served.scale_paths is not None} == {
        "Deployment",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
    }


@pytest.mark.parametrize(
    "kind", [kinds.CONFIG_MAP, kinds.SECRET, kinds.LEASE, kinds.SERVICE, kinds.NODE, kinds.EVENT, kinds.NAMESPACE]
)
def test_kinds_without_generation(kind: object) -> None:
    assert not next(served for served in BUILT_IN_RESOURCES if served.type == kind).flags.generation


def test_kinds_with_generation() -> None:
    for kind in (kinds.DEPLOYMENT, kinds.POD, kinds.JOB, kinds.INGRESS, kinds.CUSTOM_RESOURCE_DEFINITION):
        assert BY_TYPE[kind].flags.generation


def test_lease_and_crd_updates_need_a_resource_version() -> None:
    assert not BY_TYPE[kinds.LEASE].flags.unconditional_update
    assert not BY_TYPE[kinds.CUSTOM_RESOURCE_DEFINITION].flags.unconditional_update
    assert BY_TYPE[kinds.CONFIG_MAP].flags.unconditional_update


def test_short_names_and_categories() -> None:
    short = {name: served.type.plural for served in BUILT_IN_RESOURCES for name in served.short_names}
    assert short | {"deploy": "deployments", "po": "pods", "svc": "services", "cm": "configmaps"} == short
    everything = {served.type.plural for served in BUILT_IN_RESOURCES if "all" in served.categories}
    assert {"pods", "deployments", "services", "jobs"} <= everything
    assert "secrets" not in everything
