"""Readiness, access and attribution."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError, UnknownResourceError
from deltaloop.api.references import ObjectReference, Trigger
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.runtime.core.access import (
    AccessRule,
    Permission,
    PreflightError,
    implied_rules,
    is_allowed,
    review,
    roles,
    rules_for,
    rules_of_access,
)
from deltaloop.runtime.core.attribution import LIMIT, Attribution
from deltaloop.runtime.core.readiness import CacheState, Check, Leadership, answer, readiness, shard_check
from deltaloop.sharding import RangeState, ShardState
from tests.having import having
from tests.runtime.worlds import writer


def ready(*caches: CacheState, leadership: Leadership = Leadership.NONE, **changes: bool) -> dict[str, Check]:
    facts = {"started": True, "stopping": False, **changes}
    checks = readiness(caches, leadership, now=1000.0, max_staleness=60.0, **facts)
    return {check.name: check for check in checks}


def test_a_program_is_ready_when_its_caches_are_full_and_fresh() -> None:
    checks = ready(CacheState(name="v1/Pod", synced=True, last_confirmed_at=940.0))
    assert all(check.ok for check in checks.values())


def test_checks_contain_reasons_for_not_ready() -> None:
    checks = ready(
        CacheState(name="v1/Pod", synced=False, last_confirmed_at=None),
        CacheState(name="v1/Secret", synced=True, last_confirmed_at=900.0),
        stopping=True,
    )
    assert checks["caches-synced"] == Check(name="caches-synced", ok=False, message="not synced: v1/Pod")
    assert checks["caches-fresh"].message == "v1/Secret (last confirmed 100 s ago)"
    assert not checks["running"].ok
    assert ready(started=False)["caches-synced"].message == "the caches are not started"
    assert not ready(started=False)["caches-synced"].ok
    never = ready(CacheState(name="v1/Pod", synced=True, last_confirmed_at=None))["caches-fresh"]
    assert (never.ok, never.message) == (False, "v1/Pod (last confirmed never)")


def test_check_of_shards_names_at_most_five_ranges() -> None:
    own = [RangeState(at, at + 1, 0, "a", "", is_own=True, is_working=True, unowned_for=None) for at in range(2)]
    lost = [RangeState(at, at + 1, 0, "", "", is_own=False, is_working=False, unowned_for=9.0) for at in range(2, 9)]
    well = shard_check(ShardState("maps", "a", ("a",), tuple(own), ()))
    assert (well.ok, well.message) == (True, "2 of 2 ranges: 0000000000000000, 0000000000000001")
    ill = shard_check(ShardState("maps", "a", ("a",), (*own, *lost), tuple(lost)))
    assert not ill.ok
    named = [each for each in (*own, *lost) if each.name in ill.message]
    assert named == lost[:5]
    assert ill.message.endswith(" and 2 more")


def test_a_standby_is_ready_unless_leadership_is_required() -> None:
    assert ready(leadership=Leadership.STANDBY)["leader"].ok
    assert not ready(leadership=Leadership.STANDBY, require_leadership=True)["leader"].ok
    assert ready(leadership=Leadership.LEADING, require_leadership=True)["leader"].ok


def test_health_responses_have_format_of_kubernetes() -> None:
    checks = [Check(name="a", ok=True), Check(name="b", ok=False, message="why")]
    assert answer(checks[:1], verbose=False) == (True, "ok")
    assert answer(checks, verbose=False) == (False, "[+]a ok\n[-]b failed: why\ncheck failed\n")
    assert answer(checks, verbose=True, exclude=frozenset({"b"})) == (
        True,
        "[+]a ok\n[+]b excluded: ok\ncheck passed\n",
    )


def test_permission_has_write_verbs_by_default() -> None:
    access = Permission("v1/Secret")
    assert access.verbs == ("get", "create", "update", "patch", "delete")
    assert (access.subresource, access.namespace) == ("", "")


def test_role_of_namespace_contains_namespaced_kinds_only() -> None:
    rules = [*rules_for(kinds.SECRET, ("get",), namespace=None), *rules_for(kinds.NODE, ("get",), namespace=None)]
    rules += rules_for(kinds.POD, ("get",), namespace="other")
    made = {
        (role["kind"], role["metadata"].get("namespace", "")): role["rules"]
        for role in roles(rules, name="r", namespace="n")
    }
    assert {place: [rule["resources"] for rule in found] for place, found in made.items()} == {
        ("ClusterRole", ""): [["nodes"]],
        ("Role", "n"): [["secrets"]],
        ("Role", "other"): [["pods"]],
    }
    assert [role["kind"] for role in roles(rules[:1], name="r")] == ["ClusterRole"]


def test_rule_for_all_namespaces_has_empty_namespace() -> None:
    everywhere = AccessRule(group="", resource="secrets", verb="get", namespace="", namespaced=True)
    assert rules_for(kinds.SECRET, ("get",), namespace=None) == [everywhere]
    there = AccessRule(group="", resource="secrets/status", verb="get", namespace="n", namespaced=True)
    assert rules_for(kinds.SECRET, ("get",), namespace="n", subresource="status") == [there]


def test_preflight_error_contains_verbs_resources_and_namespaces() -> None:
    missing = [
        *rules_for(kinds.DEPLOYMENT, ("watch", "list"), namespace=None),
        *rules_for(kinds.SECRET, ("list",), namespace="prod"),
        *rules_for(kinds.NODE, ("list",), namespace="prod"),
    ]
    assert str(PreflightError(missing)) == (
        "this account is not allowed to list, watch deployments.apps in all namespaces; to list secrets in namespace "
        "prod; to list nodes. Grant the role of `deltaloop generate rbac MODULE`."
    )


def test_access_review_contains_one_rule() -> None:
    asked = review(AccessRule("apps", "deployments/status", "update", "prod"))["spec"]["resourceAttributes"]
    assert asked == {
        "group": "apps",
        "resource": "deployments",
        "subresource": "status",
        "verb": "update",
        "namespace": "prod",
    }
    assert is_allowed({"status": {"allowed": True}})
    assert not is_allowed({"status": {"allowed": False}})
    assert not is_allowed({})


def test_roles_group_resources_with_equal_verbs() -> None:
    rules = [
        *rules_for(kinds.SECRET, ("list", "watch"), namespace=None),
        *rules_for(kinds.CONFIG_MAP, ("watch", "list"), namespace=None),
        *rules_for(kinds.LEASE, ("get",), namespace="kube-system"),
    ]
    everywhere, there = roles(rules, name="r")
    assert (everywhere["apiVersion"], everywhere["kind"]) == ("rbac.authorization.k8s.io/v1", "ClusterRole")
    assert everywhere["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["list", "watch"]}
    ]
    assert there["metadata"] == {"name": "r", "namespace": "kube-system"}
    assert there["kind"] == "Role"


def test_permission_on_named_objects_becomes_resource_names() -> None:
    access = Permission("v1/Secret", verbs=("get", "update"), namespace="n", names=("b", "a"))
    rules = [*rules_of_access(access), *rules_for(kinds.SECRET, ("get",), namespace="m", names=("c",))]
    rules += rules_for(kinds.SECRET, ("get", "list"), namespace="m")
    all_of_m, some_of_n = roles(rules, name="r")
    assert all_of_m["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}]
    assert some_of_n["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", "b"], "verbs": ["get", "update"]}
    ]
    assert review(rules[0])["spec"]["resourceAttributes"]["name"] == "b"
    assert "to get, update secrets a in namespace n" in str(PreflightError(sorted(rules)))
    assert str(rules[0]) == "get secrets b in namespace n"
    with pytest.raises(InvalidArgumentError, check=having(argument="verbs of Permission('v1/Secret')")):
        Permission("v1/Secret", verbs=("get", "create"), names=("a",))


def test_access_review_is_self_subject_access_review() -> None:
    asked = review(AccessRule("apps", "deployments", "get"))
    assert asked == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": {"group": "apps", "resource": "deployments", "verb": "get"}},
    }


def test_status_and_finalizers_permissions_are_implied() -> None:
    own = ResourceType[Resource]("x.io", "v1", "Foo", "foos")

    def implied(kind: ResourceType[Any], *writes: ResourceType[Any], **access: Any) -> list[str]:
        declared = [(each, Permission(each, **access)) for each in writes]
        return [str(rule) for rule in implied_rules(kind, owned=[kinds.SECRET], writes=declared, namespace="n")]

    status = ["update foos.x.io/status in namespace n", "patch foos.x.io/status in namespace n"]
    assert implied(own, own) == status
    assert implied(own, kinds.SECRET) == [*status, "update foos.x.io/finalizers in namespace n"]
    assert implied(own, own, kinds.SECRET) == [*status, "update foos.x.io/finalizers in namespace n"]
    assert implied(own, kinds.CONFIG_MAP) == status
    assert implied(own, kinds.SECRET, subresource="scale") == status
    assert implied(own, kinds.SECRET, verbs=("delete",)) == status
    for verb in ("create", "update", "patch"):
        assert implied(own, kinds.SECRET, verbs=(verb,))[2:] == ["update foos.x.io/finalizers in namespace n"]
    assert implied(kinds.CONFIG_MAP, kinds.CONFIG_MAP) == [], "the status of built-in kinds belongs to others"


def trigger(uid: str, version: str) -> Trigger:
    return Trigger("informer", "update", ObjectReference(kind="Foo", name="a", uid=uid), "1", version)


def test_triggers_of_own_writes_are_labeled() -> None:
    attribution = Attribution()
    attribution.wrote("u", "7", controller="foos", number=41)
    attribution.deleted("v", controller="foos", number=42)
    triggers = (trigger("u", "7"), trigger("v", ""), trigger("u", "8"), Trigger("timer", "tick"))
    labelled = attribution.labelled((*triggers, "a text"), controller="foos")
    assert [each.origin for each in labelled] == ["self, reconcile 41", "self, reconcile 42", "", ""]
    assert labelled[2:] == triggers[2:]
    assert attribution.labelled(triggers[:1], controller="bars")[0].origin == "foos, reconcile 41"
    assert str(labelled[0]).endswith("(1→7) by self, reconcile 41")


def test_oldest_writes_are_dropped_first() -> None:
    attribution = Attribution()
    for number in range(LIMIT + 1):
        attribution.wrote("u", str(number), controller="foos", number=number)
    assert writer(attribution, "u", str(LIMIT // 10 - 1)) is None
    assert writer(attribution, "u", str(LIMIT // 10)) == ("foos", LIMIT // 10)
    assert writer(attribution, "u", str(LIMIT)) == ("foos", LIMIT)
    assert len(attribution) == LIMIT + 1 - LIMIT // 10


@pytest.mark.parametrize("uid", [""])
def test_an_object_without_a_uid_has_no_writer(uid: str) -> None:
    attribution = Attribution()
    attribution.wrote(uid, "1", controller="foos", number=1)
    assert len(attribution) == 0


def test_permission_accepts_namespace_and_kind_name() -> None:
    access = Permission("v1/Pod", verbs=("create",), subresource="eviction", namespace="ops")
    assert rules_of_access(access, namespace="prod") == [AccessRule("", "pods/eviction", "create", "ops")]
    everywhere = Permission(kinds.NODE, verbs=("get",))
    assert rules_of_access(everywhere, namespace="prod") == [AccessRule("", "nodes", "get", namespaced=False)]
    with pytest.raises(UnknownResourceError):
        rules_of_access(Permission("example.com/v1/Widget"))
