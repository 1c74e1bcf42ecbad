"""Nobody grants what they do not hold: writing roles and bindings.

Source: Kubernetes documentation, "Using RBAC Authorization", Privilege escalation prevention and bootstrapping.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.policies import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    binding,
    grant,
    grant_everywhere,
    path_rule,
    role,
    role_bindings,
    roles,
    rule,
    user,
)
from tests.conformance.target import Api, conformance

WRITER = rule(GROUP, "roles rolebindings", "create update patch get")
PODS = rule("", "pods", "get list")


def missing(kind: str, name: str, who: str, *rules: str) -> str:
    subject = f'{kind}.{GROUP} "{name}"' if name else f"{kind}.{GROUP}"
    return (
        f'{subject} is forbidden: user "{who}" (groups=["team" "system:authenticated"]) is attempting to grant RBAC '
        "permissions not currently held:\n" + "\n".join(rules)
    )


@conformance(
    "Escalation: a role with rules that its writer does not hold is 403, and names them",
    ("all of it", [PODS], ['{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}']),
    (
        "only what is missing",
        [rule(GROUP, "roles", "get list"), rule("", "configmaps", "get")],
        [f'{{APIGroups:["{GROUP}"], Resources:["roles"], Verbs:["list"]}}'],
    ),
    (
        "by resource",
        [rule("", "pods secrets", "get")],
        [
            '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}',
            '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
        ],
    ),
    (
        "by name",
        [rule("apps", "deployments", "get", "x", "y")],
        [
            '{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["x"], Verbs:["get"]}',
            '{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["y"], Verbs:["get"]}',
        ],
    ),
    (
        "all names, where one is held",
        [rule("", "secrets", "get")],
        ['{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'],
    ),
    ("stars", [rule("*", "*", "*")], ['{APIGroups:["*"], Resources:["*"], Verbs:["*"]}']),
    (
        "a star, where all verbs of today are held",
        [rule("", "configmaps", "*")],
        ['{APIGroups:[""], Resources:["configmaps"], Verbs:["*"]}'],
    ),
    ("what is held", [rule("", "configmaps", "get"), rule("", "secrets", "get", "one")], []),
    ("a subresource of all that are held", [rule("", "pods/status", "get")], []),
    ("nothing", [], []),
    secured=True,
)
async def test_roles(api: Api, rules: list[dict[str, Any]], lacks: list[str]) -> None:
    held = (WRITER, rule("", "configmaps */status", "get"), rule("", "secrets", "get", "one"))
    await grant(api, user("bob"), *held)
    bob = api.impersonate("bob", "team")
    answer = await bob.post(roles(api), role("new", *rules))
    if not lacks:
        assert answer.status == 201, answer.text
        return
    assert answer.refuses(403, "Forbidden") == missing("roles", "new", "bob", *lacks)
    assert answer.json["details"] == {"name": "new", "group": GROUP, "kind": "roles"}


@conformance("Escalation: a generated name is not in the refusal", secured=True)
async def test_a_generated_name(api: Api) -> None:
    await grant(api, user("bob"), WRITER)
    answer = await api.impersonate("bob", "team").post(
        roles(api), {"metadata": {"generateName": "new-"}, "rules": [rule("", "pods", "get")]}
    )
    lacks = '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'
    assert answer.refuses(403, "Forbidden") == missing("roles", "", "bob", lacks)


@conformance(
    "Escalation: a ClusterRole needs what is held in the whole cluster",
    ("what is held in one namespace", [PODS], ['{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}']),
    ("paths", [path_rule("/metrics /api/*", "get")], ['{NonResourceURLs:["/metrics"], Verbs:["get"]}']),
    ("a path below those that are held", [path_rule("/apis/apps", "get")], []),
    secured=True,
)
async def test_cluster_roles(api: Api, rules: list[dict[str, Any]], lacks: list[str]) -> None:
    bob, new = api.name("bob"), api.name("new")
    await grant_everywhere(api, user(bob), rule(GROUP, "clusterroles", "create"))
    await grant(api, user(bob), PODS)
    answer = await api.impersonate(bob, "team").post(CLUSTER_ROLES, role(new, *rules))
    if lacks:
        assert answer.refuses(403, "Forbidden") == missing("clusterroles", new, bob, *lacks)
    else:
        assert answer.status == 201, answer.text


@conformance(
    "Escalation: so is changing a role",
    ("by an update", "update", PODS, False),
    ("by a patch", "patch", PODS, False),
    ("by an apply", "apply", PODS, False),
    ("to what is held", "update", rule("", "configmaps", "get"), True),
    secured=True,
)
async def test_changed_roles(api: Api, how: str, new: dict[str, Any], allowed: bool) -> None:
    await grant(api, user("bob"), WRITER, rule("", "configmaps", "get"))
    made = (await api.created(roles(api), role("r"))).json
    bob, path = api.impersonate("bob", "team"), f"{roles(api)}/r"
    if how == "update":
        answer = await bob.put(path, {**made, "rules": [new]})
    elif how == "patch":
        answer = await bob.patch(path, {"rules": [new]})
    else:
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Role", **role("r", new)}
        answer = await bob.call(
            "PATCH", f"{path}?fieldManager=m&force=true", body, **{"Content-Type": "application/apply-patch+yaml"}
        )
    if allowed:
        assert answer.status == 200, answer.text
        return
    lacks = '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'
    assert answer.refuses(403, "Forbidden") == missing("roles", "r", "bob", lacks)
    assert "rules" not in (await api.get(path)).json or (await api.get(path)).json["rules"] is None


@conformance(
    "Escalation: a role that holds more is refused even for a label, but not for owners and finalizers", secured=True
)
async def test_escalation_check_ignores_garbage_collector_fields(api: Api) -> None:
    await grant(api, user("bob"), WRITER)
    await api.created(roles(api), role("r", PODS))
    bob, path = api.impersonate("bob", "team"), f"{roles(api)}/r"
    (await bob.patch(path, {"metadata": {"labels": {"a": "b"}}})).refuses(403, "Forbidden")
    assert (await bob.patch(path, {"metadata": {"finalizers": ["example.com/f"]}})).status == 200
    assert (await bob.patch(path, {"metadata": {"finalizers": None}})).status == 200
    assert (await bob.patch(path, {})).status == 200


@conformance(
    "Escalation: the verb escalate allows it",
    ("of all roles", rule(GROUP, "roles", "escalate"), True, True),
    ("of one role, which a create does not name", rule(GROUP, "roles", "escalate", "r"), False, True),
    ("of another role", rule(GROUP, "roles", "escalate", "s"), False, False),
    ("of cluster roles", rule(GROUP, "clusterroles", "escalate"), False, False),
    secured=True,
)
async def test_escalate(api: Api, held: dict[str, Any], creates: bool, updates: bool) -> None:
    await grant(api, user("bob"), WRITER, held)
    bob = api.impersonate("bob", "team")
    assert ((await bob.post(roles(api), role("new", PODS))).status == 201) is creates
    await api.created(roles(api), role("r"))
    assert ((await bob.patch(f"{roles(api)}/r", {"rules": [PODS]})).status == 200) is updates


@conformance(
    "Escalation: a binding needs what its role grants, or the verb bind for that role",
    ("neither", [], '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'),
    ("some of it", [rule("", "pods", "get")], '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}'),
    ("all of it", [PODS], ""),
    ("bind", [rule(GROUP, "roles", "bind")], ""),
    ("bind that role", [rule(GROUP, "roles", "bind", "r")], ""),
    (
        "bind another role",
        [rule(GROUP, "roles", "bind", "s")],
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
    ),
    (
        "bind cluster roles",
        [rule(GROUP, "clusterroles", "bind")],
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
    ),
    secured=True,
)
async def test_bindings(api: Api, held: list[dict[str, Any]], lacks: str) -> None:
    await grant(api, user("bob"), WRITER, *held)
    await api.created(roles(api), role("r", PODS))
    answer = await api.impersonate("bob", "team").post(role_bindings(api), binding("b", "Role", "r", user("bob")))
    if lacks:
        assert answer.refuses(403, "Forbidden") == missing("rolebindings", "b", "bob", lacks)
        assert answer.json["details"] == {"name": "b", "group": GROUP, "kind": "rolebindings"}
    else:
        assert answer.status == 201, answer.text


@conformance("Escalation: an administrator's role is not for everybody to bind", secured=True)
async def test_binding_the_administrator(api: Api) -> None:
    bob, new = api.name("bob"), api.name("new")
    await grant_everywhere(api, user(bob), rule(GROUP, "clusterrolebindings", "create"))
    answer = await api.impersonate(bob, "team").post(
        CLUSTER_ROLE_BINDINGS, binding(new, "ClusterRole", "cluster-admin", user(bob))
    )
    lacks = ('{APIGroups:["*"], Resources:["*"], Verbs:["*"]}', '{NonResourceURLs:["*"], Verbs:["*"]}')
    assert answer.refuses(403, "Forbidden") == missing("clusterrolebindings", new, bob, *lacks)


@conformance("Escalation: a binding may be given other subjects by those who may bind its role", secured=True)
async def test_changed_bindings(api: Api) -> None:
    await grant(api, user("bob"), WRITER, rule(GROUP, "roles", "bind", "mine"))
    for name in ("mine", "theirs"):
        await api.created(roles(api), role(name, PODS))
        await api.created(role_bindings(api), binding(name, "Role", name))
    bob = api.impersonate("bob", "team")
    change = {"subjects": [user("carl")]}
    assert (await bob.patch(f"{role_bindings(api)}/mine", change)).status == 200
    lacks = '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'
    answer = await bob.patch(f"{role_bindings(api)}/theirs", change)
    assert answer.refuses(403, "Forbidden") == missing("rolebindings", "theirs", "bob", lacks)


@conformance(
    "Escalation: a binding of a role that is not there",
    ("a Role", "Role", "missing", 404, f'rolebindings.{GROUP} "missing" not found'),
    ("a ClusterRole", "ClusterRole", "missing", 404, f'rolebindings.{GROUP} "missing" not found'),
    secured=True,
)
async def test_a_missing_role(api: Api, kind: str, name: str, code: int, message: str) -> None:
    await grant(api, user("bob"), WRITER)
    answer = await api.impersonate("bob").post(role_bindings(api), binding("b", kind, name, user("bob")))
    assert answer.refuses(code, "NotFound") == message
    assert (await api.post(role_bindings(api), binding("b", kind, name, user("bob")))).status == 201


@conformance("Escalation: what no role is cannot be judged", secured=True)
async def test_binding_to_unsupported_role_kind(api: Api) -> None:
    await grant(api, user("bob"), WRITER)
    answer = await api.impersonate("bob").post(role_bindings(api), binding("b", "Deployment", "d", user("bob")))
    assert answer.refuses(500, "") == 'unsupported role reference kind: "Deployment"'


@conformance("Escalation: a ClusterRoleBinding has no namespace to look for a Role", secured=True)
async def test_a_role_for_the_cluster(api: Api) -> None:
    bob = api.name("bob")
    await grant_everywhere(api, user(bob), rule(GROUP, "clusterrolebindings", "create"))
    answer = await api.impersonate(bob).post(CLUSTER_ROLE_BINDINGS, binding(bob, "Role", "r", user(bob)))
    assert answer.refuses(400, "BadRequest") == "Namespace parameter required."


@conformance("Escalation: a right that comes by a missing role is named with the refusal", secured=True)
async def test_unresolved_roles(api: Api) -> None:
    await grant(api, user("bob"), WRITER)
    await api.created(role_bindings(api), binding("dangling", "Role", "gone", user("bob")))
    answer = await api.impersonate("bob", "team").post(roles(api), role("new", rule("", "pods", "get")))
    lacks = (
        f'{{APIGroups:[""], Resources:["pods"], Verbs:["get"]}}; resolution errors: [roles.{GROUP} "gone" not found]'
    )
    assert answer.refuses(403, "Forbidden") == missing("roles", "new", "bob", lacks)


@conformance("Escalation: a member of system:masters grants everything", secured=True)
async def test_masters(api: Api) -> None:
    root = api.impersonate("root", "system:masters")
    assert (await root.post(roles(api), role("all", rule("*", "*", "*")))).status == 201
    assert (await root.post(role_bindings(api), binding("b", "ClusterRole", "cluster-admin"))).status == 201
