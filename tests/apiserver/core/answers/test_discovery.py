from __future__ import annotations

from typing import Any

import pytest

from deltaloop.apiserver.core.answers.discovery import (
    LEGACY,
    DiscoveryForm,
    core_document,
    etag,
    group_document,
    groups_document,
    negotiate_discovery,
    resources_document,
)
from deltaloop.apiserver.core.crds.definition import default_crd
from deltaloop.apiserver.core.registry import Registry
from tests.apiserver.core.built_in import built_in_registry
from tests.apiserver.core.custom_resources import GROUP, foo_crd, version

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


@pytest.fixture
def registry() -> Registry:
    registry = built_in_registry()
    crd = foo_crd(
        version("v1", subresources={"status": {}, "scale": {}}),
        version("v1beta1", storage=False),
    )
    crd["spec"]["names"] |= {"shortNames": ["fo"], "categories": ["all"]}
    registry.apply_crd(default_crd(crd), now=0)
    return registry


def _named(document: dict[str, Any] | None) -> dict[str, Any]:
    assert document is not None
    return {entry["name"]: entry for entry in document["resources"]}


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", LEGACY),
        ("*/*", LEGACY),
        ("application/json", LEGACY),
        (f"{V2},{V2BETA1},application/json", DiscoveryForm("v2")),
        (f"{V2BETA1},application/json", DiscoveryForm("v2beta1")),
        (f"application/json,{V2}", LEGACY),
        ("application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList,application/json", LEGACY),
        ("application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList", None),
        ("application/vnd.kubernetes.protobuf", None),
        ("application/vnd.kubernetes.protobuf, */*", LEGACY),
    ],
)
def test_format_is_chosen_by_the_first_matching_accept_clause(accept: str, form: DiscoveryForm | None) -> None:
    assert negotiate_discovery(accept) == form


def test_content_type_of_aggregated_discovery() -> None:
    assert DiscoveryForm("v2").content_type == V2
    assert LEGACY.content_type == "application/json"


def test_core_document(registry: Registry) -> None:
    document = core_document(registry, address="127.0.0.1:6443")
    assert document["kind"] == "APIVersions"
    assert document["versions"] == ["v1"]
    assert document["serverAddressByClientCIDRs"][0]["serverAddress"] == "127.0.0.1:6443"


def test_groups_list_the_preferred_version_first(registry: Registry) -> None:
    groups = {group["name"]: group for group in groups_document(registry)["groups"]}
    assert "" not in groups
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert [item["version"] for item in groups[GROUP]["versions"]] == ["v1", "v1beta1"]
    assert group_document(registry, GROUP) == {"kind": "APIGroup", "apiVersion": "v1", **groups[GROUP]}
    assert group_document(registry, "none.example.com") is None
    assert group_document(registry, "") is None


def test_resources_with_short_names_categories_and_verbs(registry: Registry) -> None:
    document = resources_document(registry, "apps", "v1")
    found = _named(document)
    assert document is not None
    assert document["groupVersion"] == "apps/v1"
    deployments = found["deployments"]
    assert deployments["storageVersionHash"]
    assert {name: value for name, value in deployments.items() if name != "storageVersionHash"} == {
        "name": "deployments",
        "singularName": "deployment",
        "namespaced": True,
        "kind": "Deployment",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["deploy"],
        "categories": ["all"],
    }


def test_subresources_are_listed_with_their_kinds(registry: Registry) -> None:
    found = _named(resources_document(registry, "apps", "v1"))
    assert found["deployments/scale"] == {
        "name": "deployments/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
    }
    assert found["deployments/status"]["kind"] == "Deployment"
    core = _named(resources_document(registry, "", "v1"))
    assert core["namespaces/finalize"]["verbs"] == ["update"]
    assert "configmaps/status" not in core
    assert "storageVersionHash" not in core["bindings"]
    custom = _named(resources_document(registry, GROUP, "v1"))
    assert list(custom) == ["foos", "foos/status", "foos/scale"]
    assert list(_named(resources_document(registry, GROUP, "v1beta1"))) == ["foos"]


def test_unserved_group_has_no_document(registry: Registry) -> None:
    assert resources_document(registry, "apps", "v1beta1") is None
    assert resources_document(registry, "", "v2") is None


def test_aggregated_discovery_has_the_same_content(registry: Registry) -> None:
    form = DiscoveryForm("v2")
    core, rest = core_document(registry, form), groups_document(registry, form)
    assert core["apiVersion"] == "apidiscovery.k8s.io/v2"
    assert [item["metadata"].get("name", "") for item in core["items"]] == [""]
    listed = [group["name"] for group in groups_document(registry)["groups"]]
    assert [item["metadata"]["name"] for item in rest["items"]] == listed
    for item in [*core["items"], *rest["items"]]:
        group = item["metadata"].get("name", "")
        for served in item["versions"]:
            legacy = _named(resources_document(registry, group, served["version"]))
            assert _flat(served["resources"]) == {name: entry["verbs"] for name, entry in legacy.items()}


def _flat(resources: list[dict[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in resources:
        found[entry["resource"]] = entry["verbs"]
        for below in entry.get("subresources", []):
            found[f"{entry['resource']}/{below['subresource']}"] = below["verbs"]
    return found


def test_aggregated_resource(registry: Registry) -> None:
    items = groups_document(registry, DiscoveryForm("v2"))["items"]
    custom = next(item for item in items if item["metadata"]["name"] == GROUP)
    assert custom["versions"][0]["freshness"] == "Current"
    (foos,) = custom["versions"][0]["resources"]
    own = {"group": GROUP, "version": "v1", "kind": "Foo"}
    assert foos["responseKind"] == own
    assert (foos["scope"], foos["singularResource"]) == ("Namespaced", "foo")
    assert (foos["shortNames"], foos["categories"]) == (["fo"], ["all"])
    assert foos["subresources"][0]["responseKind"] == own
    assert foos["subresources"][1]["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def test_etag_changes_with_served_resources(registry: Registry) -> None:
    before = etag(groups_document(registry))
    assert before.startswith('"')
    assert before.endswith('"')
    assert before == etag(groups_document(registry))
    registry.remove_crd(f"foos.{GROUP}")
    assert etag(groups_document(registry)) != before
