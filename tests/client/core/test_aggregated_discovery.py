"""Upstream's cases: client-go discovery/aggregated_discovery_test.go."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from deltaloop.api.errors import MalformedObjectError
from deltaloop.client.core.aggregated_discovery import decode_aggregated, is_aggregated


def decode(*groups: dict[str, Any]) -> list[tuple[str, list[str], bool]]:
    body = msgspec.json.encode({"kind": "APIGroupDiscoveryList", "items": groups})
    return [
        (found.group_version, [str(entry.resource_type) for entry in found.resources], found.stale)
        for found in decode_aggregated("/apis", body)
    ]


def resource(plural: str, kind: str | None, **more: Any) -> dict[str, Any]:
    return {"resource": plural, "responseKind": None if kind is None else {"kind": kind}, **more}


def test_discovery_keeps_order_of_server() -> None:
    apps = {
        "metadata": {"name": "apps", "creationTimestamp": None},
        "versions": [
            {"version": "v1", "resources": [resource("deployments", "Deployment", scope="Namespaced")]},
            {"version": "v1beta1", "resources": [resource("deployments", "Deployment")], "freshness": "Stale"},
        ],
    }
    core = {"metadata": {"creationTimestamp": None}, "versions": [{"version": "v1", "resources": None}]}
    assert decode(core, apps, {"metadata": {"name": "empty"}}) == [
        ("v1", [], False),
        ("apps/v1", ["apps/v1/Deployment"], False),
        ("apps/v1beta1", ["apps/v1beta1/Deployment"], True),
    ]


def test_fields_of_discovered_resource_are_read() -> None:
    entry = resource(
        "pods",
        "Pod",
        scope="Namespaced",
        singularResource="pod",
        verbs=["get"],
        shortNames=["po"],
        categories=["all"],
        subresources=[{"subresource": "log", "responseKind": {"kind": "Pod"}, "verbs": ["get"]}],
    )
    body = msgspec.json.encode({"items": [{"metadata": {}, "versions": [{"version": "v1", "resources": [entry]}]}]})
    ((found,),) = [version.resources for version in decode_aggregated("/api", body)]
    assert found.resource_type.namespaced
    assert (found.singular, found.short_names, found.verbs, found.categories, found.subresources) == (
        "pod",
        ("po",),
        ("get",),
        ("all",),
        ("log",),
    )


def test_discovery_entries_without_kind_are_skipped() -> None:
    entries = [resource("only-below", None), resource("odd", ""), resource("a/b", "B"), resource("nodes", "Node")]
    found = decode({"metadata": {"name": "g"}, "versions": [{"version": "v1", "resources": entries}]})
    assert found == [("g/v1", ["g/v1/Node"], False)]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"items":{}}', b'{"items":[{"versions":[{}]}]}', b"\xff"])
def test_invalid_discovery_document_raises_error(body: bytes) -> None:
    with pytest.raises(MalformedObjectError, match="/apis"):
        decode_aggregated("/apis", body)


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", True),
        ("Application/JSON; as=APIGroupDiscoveryList; v=v2beta1; g=apidiscovery.k8s.io", True),
        ("application/json", False),
        ("", False),
        ("application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList", False),
        ("application/json;g=apidiscovery.k8s.io;v=v2;as=Table", False),
        ("text/html;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", False),
    ],
)
def test_aggregated_discovery_is_recognized_by_content_type(content_type: str, expected: bool) -> None:
    assert is_aggregated(content_type) is expected
