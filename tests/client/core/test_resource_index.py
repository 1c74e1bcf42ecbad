from __future__ import annotations

import msgspec
import pytest

from deltaloop.api.errors import MalformedObjectError
from deltaloop.client.core.resource_index import (
    DiscoveredResource,
    ResourceIndex,
    decode_core_versions,
    decode_groups,
    decode_resources,
)


def resources(group_version: str, *entries: dict[str, object]) -> list[DiscoveredResource]:
    return decode_resources(group_version, msgspec.json.encode({"kind": "APIResourceList", "resources": entries}))


CORE = resources(
    "v1",
    {"name": "pods", "kind": "Pod", "singularName": "pod", "namespaced": True, "shortNames": ["po"]},
    {"name": "pods/log", "kind": "Pod", "namespaced": True},
    {"name": "nodes", "kind": "Node", "singularName": "node", "namespaced": False, "shortNames": ["no"]},
    {"name": "events", "kind": "Event", "singularName": "event", "namespaced": True, "shortNames": ["ev"]},
)
APPS = resources(
    "apps/v1",
    {"name": "deployments", "kind": "Deployment", "namespaced": True, "shortNames": ["deploy"]},
    {"name": "deployments/status", "kind": "Deployment", "namespaced": True},
)
EVENTS = resources("events.k8s.io/v1", {"name": "events", "kind": "Event", "namespaced": True, "shortNames": ["ev"]})
INDEX = ResourceIndex([*CORE, *APPS, *EVENTS])


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("pods", "v1/Pod"),
        ("pod", "v1/Pod"),
        ("Pod", "v1/Pod"),
        ("PO", "v1/Pod"),
        (" pods ", "v1/Pod"),
        ("v1/Pod", "v1/Pod"),
        ("deploy", "apps/v1/Deployment"),
        ("Deployment", "apps/v1/Deployment"),
        ("deployments.apps", "apps/v1/Deployment"),
        ("deployment.apps", "apps/v1/Deployment"),
        ("deployments.v1.apps", "apps/v1/Deployment"),
        ("pods.v1.", "v1/Pod"),
        ("pods.v1", "v1/Pod"),
        ("apps/v1/Deployment", "apps/v1/Deployment"),
        ("no", "v1/Node"),
        ("ev", "v1/Event"),
        ("events", "v1/Event"),
        ("events.events.k8s.io", "events.k8s.io/v1/Event"),
        ("Event.v1.events.k8s.io", "events.k8s.io/v1/Event"),
        ("events.k8s.io/v1/Event", "events.k8s.io/v1/Event"),
    ],
)
def test_every_name(name: str, found: str) -> None:
    resource_type = INDEX.find(name)
    assert resource_type is not None
    assert str(resource_type) == found


def test_scope_and_order() -> None:
    assert [(str(known), known.namespaced) for known in INDEX.resource_types] == [
        ("v1/Pod", True),
        ("v1/Node", False),
        ("v1/Event", True),
        ("apps/v1/Deployment", True),
        ("events.k8s.io/v1/Event", True),
    ]
    assert len(INDEX) == 5


def test_a_short_name_does_not_hide_a_plural() -> None:
    first = resources("a.example/v1", {"name": "oddities", "kind": "Oddity", "shortNames": ["things"]})
    second = resources("b.example/v1", {"name": "things", "kind": "Thing"})
    found = ResourceIndex([*first, *second]).find("things")
    assert found is not None
    assert found.kind == "Thing"


def test_an_unknown_name_lists_near_ones() -> None:
    assert INDEX.find("deploymnet") is None
    assert "near matches: apps/v1/Deployment" in str(INDEX.unknown("deploymnet"))
    assert "is its CustomResourceDefinition installed?" in str(INDEX.unknown("xyzzy"))
    broken = ResourceIndex(CORE, failed_groups=["metrics.k8s.io/v1beta1"])
    assert "discovery failed for metrics.k8s.io/v1beta1" in str(broken.unknown("xyzzy"))


def test_groups_have_their_preferred_version_first() -> None:
    body = msgspec.json.encode(
        {
            "groups": [
                {
                    "name": "batch",
                    "versions": [{"groupVersion": "batch/v1beta1"}, {"groupVersion": "batch/v1"}],
                    "preferredVersion": {"groupVersion": "batch/v1"},
                },
                {
                    "name": "odd",
                    "versions": [{"groupVersion": "odd/v1"}],
                    "preferredVersion": {"groupVersion": "odd/v9"},
                },
                {"name": "empty"},
            ]
        }
    )
    assert decode_groups(body) == ["batch/v1", "batch/v1beta1", "odd/v1"]
    assert decode_core_versions(b'{"versions":["v1"]}') == ["v1"]
    assert decode_core_versions(b'{"versions":null}') == []


def test_unusable_entries_are_passed_over() -> None:
    assert resources("v1", {"name": "pods"}) == []
    assert decode_resources("v1", b'{"resources":null}') == []


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"resources":[{}]}'])
def test_invalid_discovery_response_raises_error(body: bytes) -> None:
    with pytest.raises(MalformedObjectError, match="apps/v1"):
        decode_resources("apps/v1", body)


def test_kind_of_another_group_is_a_near_match() -> None:
    assert "near matches: apps/v1/Deployment" in str(INDEX.unknown("extensions/v1beta1/Deployment"))
