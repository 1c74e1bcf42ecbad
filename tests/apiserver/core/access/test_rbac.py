"""Roles and bindings: every decision about a small world is that of a model that knows nothing of the store."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from deltaloop.apiserver.core.access import rbac
from deltaloop.apiserver.core.access.rbac import AlwaysAllow, RbacAuthorizer
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.user import Attributes, User
from deltaloop.apiserver.core.wire.request_info import MASTERS

USERS = (
    User(name="bob", groups=("system:authenticated",)),
    User(name="eve", groups=("system:authenticated", "team")),
    User(name="system:serviceaccount:a:bob", groups=("system:serviceaccounts",)),
    User(name="root", groups=(MASTERS,)),
)
VERBS = ("get", "delete")
RESOURCES = (("", "pods", ""), ("", "pods", "log"), ("", "secrets", ""), ("apps", "pods", ""))
NAMESPACES = ("", "a", "b")
NAMES = ("", "one", "two")


def rule(verbs: str, resources: str, groups: tuple[str, ...] = ("",), names: str = "") -> dict[str, Any]:
    return {
        "verbs": verbs.split(),
        "apiGroups": list(groups),
        "resources": resources.split(),
        "resourceNames": names.split(),
    }


def role(name: str, *rules: dict[str, Any], namespace: str = "", **more: Any) -> tuple[str, str, dict[str, Any]]:
    plural = "roles" if namespace else "clusterroles"
    metadata: dict[str, Any] = {"name": name, "labels": more.pop("labels", {})}
    if namespace:
        metadata["namespace"] = namespace
    return plural, f"{namespace}/{name}".lstrip("/"), {"metadata": metadata, "rules": list(rules), **more}


def binding(kind: str, name: str, subject: dict[str, str], *, namespace: str = "") -> tuple[str, str, dict[str, Any]]:
    plural = "rolebindings" if namespace else "clusterrolebindings"
    own = f"{kind}-{name}-{subject['name']}".lower()
    metadata = {"name": own, **({"namespace": namespace} if namespace else {})}
    fields = {"metadata": metadata, "roleRef": {"kind": kind, "name": name}, "subjects": [subject]}
    return plural, f"{namespace}/{own}".lstrip("/"), fields


BOB, TEAM = {"kind": "User", "name": "bob"}, {"kind": "Group", "name": "team"}
ACCOUNT = {"kind": "ServiceAccount", "name": "bob"}
PICKED = {"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]}

# Each line: the objects, and who may do what by them: (user, verb, group, resource, subresource, namespace, name).
WORLDS: dict[str, tuple[list[tuple[str, str, dict[str, Any]]], Callable[[Attributes], bool]]] = {
    "nothing": ([], lambda _: False),
    "everywhere": (
        [role("r", rule("get", "pods")), binding("ClusterRole", "r", BOB)],
        lambda at: at.user.name == "bob" and at.verb == "get" and path(at) == "pods" and at.group == "",
    ),
    "a cluster role in one namespace": (
        [role("r", rule("*", "*")), binding("ClusterRole", "r", TEAM, namespace="a")],
        lambda at: at.user.name == "eve" and at.namespace == "a" and at.group == "",
    ),
    "a role is its namespace's": (
        [role("r", rule("*", "pods"), namespace="b"), binding("Role", "r", BOB, namespace="a")],
        lambda _: False,
    ),
    "an account of the binding's namespace": (
        [role("r", rule("delete", "pods"), namespace="a"), binding("Role", "r", ACCOUNT, namespace="a")],
        lambda at: (
            "serviceaccount" in at.user.name
            and (at.verb, path(at), at.namespace) == ("delete", "pods", "a")
            and at.group == ""
        ),
    ),
    "one name": (
        [role("r", rule("get delete", "pods secrets", names="one")), binding("ClusterRole", "r", BOB)],
        lambda at: at.user.name == "bob" and at.name == "one" and path(at) in ("pods", "secrets") and at.group == "",
    ),
    "a subresource": (
        [role("r", rule("get", "*/log", ("", "apps"))), binding("ClusterRole", "r", BOB)],
        lambda at: at.user.name == "bob" and at.verb == "get" and path(at) == "pods/log",
    ),
    "another group": (
        [role("r", rule("get", "pods", ("apps",))), binding("ClusterRole", "r", BOB)],
        lambda at: at.user.name == "bob" and at.verb == "get" and at.group == "apps" and path(at) == "pods",
    ),
    "aggregated, in a circle": (
        [
            role("all", labels={"to": "all"}, aggregationRule=PICKED),
            role("part", rule("get", "secrets"), labels={"to": "all"}, aggregationRule=PICKED),
            role("none", rule("delete", "secrets"), labels={"to": "none"}),
            binding("ClusterRole", "all", BOB),
        ],
        lambda at: at.user.name == "bob" and at.verb == "get" and path(at) == "secrets",
    ),
}


def path(at: Attributes) -> str:
    return f"{at.resource}/{at.subresource}".rstrip("/")


def check_every_decision() -> None:
    for objects, model in WORLDS.values():
        store = RevisionStore()
        for plural, key, fields in objects:
            store.create(f"{plural}.rbac.authorization.k8s.io", key, fields)
        authorizer = RbacAuthorizer(store)
        for user, verb, (group, resource, subresource), namespace, name in itertools.product(
            USERS, VERBS, RESOURCES, NAMESPACES, NAMES
        ):
            wanted = Attributes(
                user=user,
                verb=verb,
                group=group,
                resource=resource,
                subresource=subresource,
                namespace=namespace,
                name=name,
            )
            assert authorizer.allows(wanted) is (MASTERS in user.groups or model(wanted)), wanted


def test_decisions_match_the_model() -> None:
    check_every_decision()


def has_no_wildcards(allowed: tuple[str, ...], wanted: str) -> bool:
    return wanted in allowed


def always(*_: object) -> bool:
    return True


def never(*_: object) -> bool:
    return False


def knows_no_kinds(subject: dict[str, Any], user: User, _: str) -> bool:
    return bool(subject["name"] == user.name)


def knows_no_namespaces(subject: dict[str, Any], user: User, _: str) -> bool:
    return user.name.endswith(subject["name"])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("part", "broken"),
    [
        ("_has", has_no_wildcards),
        ("_has", always),
        ("_is_subject", knows_no_kinds),
        ("_is_subject", knows_no_namespaces),
        ("selects", always),
        ("selects", never),
        ("_DEEPEST", 0),
        ("MASTERS", "nobody"),
    ],
)
def test_seeded_bugs_are_detected(part: str, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rbac, part, broken)
    with pytest.raises(AssertionError):
        check_every_decision()


def test_role_change_applies_to_the_next_request() -> None:
    store = RevisionStore()
    plural, key, fields = role("r", rule("get", "pods"))
    store.create(f"{plural}.rbac.authorization.k8s.io", key, fields)
    bound = binding("ClusterRole", "r", BOB)
    store.create(f"{bound[0]}.rbac.authorization.k8s.io", bound[1], bound[2])
    authorizer = RbacAuthorizer(store)
    wanted = Attributes(user=USERS[0], verb="get", resource="pods", namespace="a")
    assert authorizer.allows(wanted)
    store.update(f"{plural}.rbac.authorization.k8s.io", key, {**fields, "rules": []})
    assert not authorizer.allows(wanted)


@pytest.mark.parametrize(("asked", "allowed"), [("/healthz", True), ("/version/x", True), ("/metrics", False)])
def test_anonymous_user_can_read_only_health_and_version(asked: str, allowed: bool) -> None:
    nobody = User(name="system:anonymous", groups=("system:unauthenticated",))
    assert AlwaysAllow().allows(Attributes(user=nobody, verb="get", path=asked)) is allowed
    assert AlwaysAllow().allows(Attributes(user=USERS[0], verb="get", path=asked))
    assert not AlwaysAllow().allows(Attributes(user=nobody, verb="get", resource="pods"))


@pytest.mark.parametrize("changed", ["clusterroles", "clusterrolebindings"])
def test_parsed_rules_are_cached_by_object_not_by_version(changed: str) -> None:
    """A counter that goes back gives the version that an object had to another content of it."""
    objects = [role("reader", rule("get", "pods")), binding("ClusterRole", "reader", BOB)]
    objects.sort(key=lambda entry: entry[0] == changed)
    store, (plural, key, fields) = RevisionStore(), objects[-1]
    for each, at, content in objects:
        store.create(f"{each}.rbac.authorization.k8s.io", at, content)
    before = store.get(f"{plural}.rbac.authorization.k8s.io", key)
    assert before is not None
    authorizer, wanted = RbacAuthorizer(store), Attributes(user=USERS[0], verb="get", resource="pods")
    assert authorizer.allows(wanted)
    store.renumber(revision=0)
    emptied: dict[str, Any] = {**fields, "rules": [], "subjects": []}
    after = store.update(f"{plural}.rbac.authorization.k8s.io", key, emptied)
    assert after.resource_version == before.resource_version
    assert not authorizer.allows(wanted)
