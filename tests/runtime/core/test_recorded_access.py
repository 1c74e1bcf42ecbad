"""Requests as rules."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.runtime.core.access import roles
from deltaloop.runtime.core.recorded_access import RecordedAccess, rules_of_request

APPLY = "application/apply-patch+yaml"


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("GET /api/v1/namespaces/a/pods/p", ["get pods in namespace a"]),
        ("GET /api/v1/pods", ["list pods"]),
        ("HEAD /api/v1/pods", ["list pods"]),
        ("HEAD /api/v1/namespaces/a/pods/p", ["get pods in namespace a"]),
        ("GET /api/v1/namespaces/a/pods?watch", ["list pods in namespace a", "watch pods in namespace a"]),
        ("GET /api/v1/namespaces", ["list namespaces"]),
        ("GET /api/v1/namespaces/a", ["get namespaces"]),
        ("PUT /api/v1/namespaces/a/finalize", ["update namespaces/finalize"]),
        ("POST /apis/apps/v1/namespaces/a/deployments", ["create deployments.apps in namespace a"]),
        ("PUT /apis/apps/v1/namespaces/a/deployments/d/scale", ["update deployments.apps/scale in namespace a"]),
        ("PATCH /apis/x.io/v1/foos/f", ["patch foos.x.io"]),
        ("DELETE /apis/x.io/v1/foos/f", ["delete foos.x.io"]),
        ("PUT /apis/x.io/v1/foos/f/scale", ["update foos.x.io/scale"]),
        ("GET /apis/x.io/v1/foos/f/status", ["get foos.x.io/status"]),
        ("GET /api/v1/nodes/n/proxy/a/b", ["get nodes/proxy/a/b"]),
        ("DELETE /apis/x.io/v1/foos", ["deletecollection foos.x.io"]),
        ("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", []),
        ("POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews", []),
        ("POST /apis/authentication.k8s.io/v1/selfsubjectreviews", []),
        (
            "POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
            ["create subjectaccessreviews.authorization.k8s.io"],
        ),
        ("GET /version", []),
        ("GET /apis", []),
        ("GET /healthz/some/deeper/check", []),
        ("GET /apis/apps/v1", []),
        ("GET /api/v1", []),
    ],
)
def test_request_maps_to_verb_and_resource(request_: str, expected: list[str]) -> None:
    method, _, rest = request_.partition(" ")
    path, watch, _ = rest.partition("?watch")
    found = rules_of_request(method, path, {"watch": "1"} if watch else {})
    assert [str(rule) for rule in found] == expected


@pytest.mark.parametrize(("watch", "verbs"), [("1", ["list", "watch"]), ("true", ["list", "watch"]), ("0", ["list"])])
def test_watch_parameter_has_two_true_values(watch: str, verbs: list[str]) -> None:
    assert [rule.verb for rule in rules_of_request("GET", "/api/v1/pods", {"watch": watch})] == verbs


def test_recorded_request_is_stored_once_with_rules_of_body() -> None:
    recorded = RecordedAccess(namespace="a")
    for _ in range(2):
        recorded.sent("PATCH", "/api/v1/namespaces/a/pods/p", {}, APPLY)
    assert [str(rule) for rule in recorded.rules()] == ["create pods in namespace a", "patch pods in namespace a"]


def test_subresources_are_widened_with_scope_of_kind() -> None:
    recorded = RecordedAccess()
    for method, path in (
        ("GET", "/api/v1/nodes"),
        ("PUT", "/api/v1/nodes/n/status"),
        ("GET", "/api/v1/pods"),
        ("PUT", "/api/v1/namespaces/a/pods/p/status"),
    ):
        recorded.sent(method, path, {}, "")
    assert {(rule.resource, rule.namespace, rule.namespaced) for rule in recorded.rules()} == {
        ("nodes", "", False),
        ("nodes/status", "", False),
        ("pods", "", True),
        ("pods/status", "", True),
    }
    assert recorded.to_dict()["format"] == 1


def test_apply_needs_create_permission() -> None:
    found = rules_of_request("PATCH", "/api/v1/namespaces/a/pods/p", {}, content_type=APPLY)
    assert [rule.verb for rule in found] == ["patch", "create"]


def test_namespaced_rules_are_widened_if_all_namespaces_were_watched() -> None:
    recorded = RecordedAccess()
    for method, path in (
        ("GET", "/api/v1/configmaps"),
        ("POST", "/api/v1/namespaces/a/configmaps"),
        ("POST", "/api/v1/namespaces/b/configmaps"),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l"),
    ):
        recorded.sent(method, path, {}, "")
    again = RecordedAccess.from_dict(recorded.to_dict(), source="f")
    everywhere, lease = roles(again.rules(), name="x")
    assert everywhere["kind"] == "ClusterRole"
    assert everywhere["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "create"]}]
    assert lease["metadata"] == {"name": "x", "namespace": "a"}
    narrow = RecordedAccess(namespace="a")
    narrow.sent("POST", "/api/v1/namespaces/a/configmaps", {}, "")
    [role] = roles(RecordedAccess.from_dict(narrow.to_dict(), source="f").rules(), name="x")
    assert role["metadata"] == {"name": "x", "namespace": "a"}


NO_RECORDS: list[Any] = [
    None,
    [],
    {},
    {"format": 2, "rules": []},
    {"format": 1, "rules": [{}]},
    {"format": 1, "rules": [1]},
    {"format": 1, "rules": [{"group": "", "resource": "pods", "verb": 1, "namespace": ""}]},
    {"format": 1, "rules": [], "namespace": 1},
    {"format": 1, "rules": {}},
]


@pytest.mark.parametrize("wrong", NO_RECORDS)
def test_file_of_other_format_is_rejected(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"f\.json"):
        RecordedAccess.from_dict(wrong, source="f.json")
