"""Who may do what: refusals by RBAC and their words, what roles and bindings allow, and acting as somebody else.

Source: Kubernetes documentation, "Using RBAC Authorization" and "User impersonation".
"""

from __future__ import annotations

from typing import Any

from tests.conformance.policies import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    account,
    binding,
    grant,
    grant_everywhere,
    group,
    may,
    path_rule,
    role,
    role_bindings,
    roles,
    rule,
    user,
)
from tests.conformance.target import Api, config_map, conformance

ME = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
CORE = 'in API group ""'


@conformance(
    "RBAC: what no rule allows is 403, and says who cannot do what, where",
    (
        "list everywhere",
        "GET",
        "/api/v1/pods",
        f'pods is forbidden: {{}} list resource "pods" {CORE} at the cluster scope',
    ),
    ("list", "GET", "NS/pods", f'pods is forbidden: {{}} list resource "pods" {CORE} in the namespace "NAME"'),
    (
        "watch",
        "GET",
        "NS/pods?watch=1",
        f'pods is forbidden: {{}} watch resource "pods" {CORE} in the namespace "NAME"',
    ),
    ("get", "GET", "NS/pods/x", f'pods "x" is forbidden: {{}} get resource "pods" {CORE} in the namespace "NAME"'),
    ("create", "POST", "NS/pods", f'pods is forbidden: {{}} create resource "pods" {CORE} in the namespace "NAME"'),
    (
        "update",
        "PUT",
        "NS/pods/x",
        f'pods "x" is forbidden: {{}} update resource "pods" {CORE} in the namespace "NAME"',
    ),
    (
        "patch",
        "PATCH",
        "NS/pods/x",
        f'pods "x" is forbidden: {{}} patch resource "pods" {CORE} in the namespace "NAME"',
    ),
    (
        "delete",
        "DELETE",
        "NS/pods/x",
        f'pods "x" is forbidden: {{}} delete resource "pods" {CORE} in the namespace "NAME"',
    ),
    (
        "deletecollection",
        "DELETE",
        "NS/pods",
        f'pods is forbidden: {{}} deletecollection resource "pods" {CORE} in the namespace "NAME"',
    ),
    (
        "a subresource",
        "PUT",
        "NS/pods/x/status",
        f'pods "x" is forbidden: {{}} update resource "pods/status" {CORE} in the namespace "NAME"',
    ),
    (
        "an eviction",
        "POST",
        "NS/pods/x/eviction",
        f'pods "x" is forbidden: {{}} create resource "pods/eviction" {CORE} in the namespace "NAME"',
    ),
    (
        "a scale of a group",
        "PATCH",
        "/apis/apps/v1/namespaces/NAME/deployments/d/scale",
        (
            'deployments.apps "d" is forbidden: {} patch resource "deployments/scale" in API group "apps" in the '
            'namespace "NAME"'
        ),
    ),
    (
        "a namespace lies in itself",
        "GET",
        "NS",
        f'namespaces "NAME" is forbidden: {{}} get resource "namespaces" {CORE} in the namespace "NAME"',
    ),
    (
        "a resource that is not served",
        "GET",
        "/apis/nothing.example.com/v1/foos/z",
        (
            'foos.nothing.example.com "z" is forbidden: {} get resource "foos" in API group "nothing.example.com" at '
            "the cluster scope"
        ),
    ),
    ("a path", "GET", "/metrics", 'forbidden: {} get path "/metrics"'),
    ("a path, by its method", "POST", "/foo/bar", 'forbidden: {} post path "/foo/bar"'),
    secured=True,
)
async def test_refusals(api: Api, method: str, path: str, message: str) -> None:
    bob = api.impersonate("bob", "developers")
    place = path.replace("NS", f"/api/v1/namespaces/{api.namespace}").replace("NAME", api.namespace)
    answer = await bob.call(method, place, {} if method in ("POST", "PUT", "PATCH") else None)
    wanted = message.replace("NAME", api.namespace).format('User "bob" cannot')
    assert answer.refuses(403, "Forbidden") == wanted
    details = answer.json["details"]
    assert ("causes" in details, "retryAfterSeconds" in details) == (False, False)
    assert details.get("name", "") == ("" if '" is forbidden' not in message else wanted.split('"')[1])


@conformance(
    "RBAC: whoever has shown credentials sees discovery and health, whoever has not, health only",
    ("groups", "/apis", True),
    ("core versions", "/api", True),
    ("openapi", "/openapi/v3", True),
    ("version", "/version", False),
    ("health", "/healthz", False),
    ("readiness", "/readyz", False),
    secured=True,
)
async def test_open_paths(api: Api, path: str, needs_credentials: bool) -> None:
    assert (await api.impersonate("bob").get(path)).status == 200
    answer = await api.with_token("").get(path)
    if not needs_credentials:
        assert answer.status == 200
        return
    message = answer.refuses(403, "Forbidden")
    assert message == f'forbidden: User "system:anonymous" cannot get path "{path}"'


@conformance("RBAC: a wrong token is 401, whatever else the request has", secured=True)
async def test_a_wrong_token(api: Api) -> None:
    answer = await api.with_token("wrong").get(api.config_maps)
    assert answer.refuses(401, "Unauthorized") == "Unauthorized"
    assert "details" not in answer.json


@conformance("RBAC: no token is the user system:anonymous", secured=True)
async def test_no_token(api: Api) -> None:
    message = (await api.with_token("").get(api.config_maps)).refuses(403, "Forbidden")
    assert message.startswith('configmaps is forbidden: User "system:anonymous" cannot list')


@conformance("RBAC: a Role allows what its rules say, in its namespace only", secured=True)
async def test_a_role(api: Api) -> None:
    bob = api.name("bob")
    await grant(api, user(bob), rule("", "configmaps", "get list create"))
    asks = api.impersonate(bob)
    assert (await asks.get(api.config_maps)).status == 200
    assert (await asks.post(api.config_maps, config_map("a"))).status == 201
    (await asks.delete(f"{api.config_maps}/a")).refuses(403, "Forbidden")
    (await asks.get("/api/v1/namespaces/default/configmaps")).refuses(403, "Forbidden")
    (await asks.get("/api/v1/configmaps")).refuses(403, "Forbidden")


@conformance("RBAC: a ClusterRole bound by a RoleBinding counts in that namespace only", secured=True)
async def test_a_cluster_role_in_a_namespace(api: Api) -> None:
    name = api.name("reader")
    await api.created(CLUSTER_ROLES, role(name, rule("", "configmaps", "list"), path_rule("/metrics", "get")))
    await api.created(role_bindings(api), binding("b", "ClusterRole", name, user(name)))
    asks = api.impersonate(name)
    assert (await asks.get(api.config_maps)).status == 200
    (await asks.get("/api/v1/configmaps")).refuses(403, "Forbidden")
    # A path lies in no namespace.
    (await asks.get("/metrics")).refuses(403, "Forbidden")


@conformance("RBAC: a ClusterRole bound by a ClusterRoleBinding counts everywhere, and for paths", secured=True)
async def test_a_cluster_role_everywhere(api: Api) -> None:
    bob = api.name("bob")
    await grant_everywhere(api, user(bob), rule("", "configmaps", "list"), path_rule("/logs/* /metrics", "get"))
    asks = api.impersonate(bob)
    for path in (api.config_maps, "/api/v1/configmaps", "/api/v1/namespaces/default/configmaps"):
        assert (await asks.get(path)).status == 200
    for path, allowed in (("/logs/", True), ("/logs/x", True), ("/logs", False), ("/metrics/x", False)):
        attributes = {"nonResourceAttributes": {"verb": "get", "path": path}}
        made = await asks.created("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": attributes})
        assert made.json["status"]["allowed"] is allowed, path


@conformance(
    "RBAC: subjects are users, groups and service accounts",
    ("a user", user("U"), "U", "", True),
    ("another user", user("U"), "V", "", False),
    ("a group", group("G"), "V", "G", True),
    ("a user called like the group", group("G"), "G", "", False),
    ("an account", account("N", "robot"), "system:serviceaccount:N:robot", "", True),
    ("another namespace's account", account("N", "robot"), "system:serviceaccount:other:robot", "", False),
    ("all accounts of a namespace", group("system:serviceaccounts:N"), "system:serviceaccount:N:any", "", True),
    ("everybody with credentials", group("system:authenticated"), "V", "", True),
    secured=True,
)
async def test_subjects(api: Api, subject: dict[str, str], who: str, in_group: str, allowed: bool) -> None:
    def local(text: str) -> str:
        return text.replace("N", api.namespace) if "N" in text else text

    await grant(api, {name: local(value) for name, value in subject.items()}, rule("", "configmaps", "list"))
    asks = api.impersonate(local(who), *([in_group] if in_group else []))
    assert ((await asks.get(api.config_maps)).status == 200) is allowed


@conformance(
    "RBAC: resourceNames limit a rule to objects, and to lists and watches of one",
    ("get that one", "GET", "/one", True),
    ("get another", "GET", "/two", False),
    ("list", "GET", "", False),
    ("list that one", "GET", "?fieldSelector=metadata.name%3Done", True),
    ("list another", "GET", "?fieldSelector=metadata.name%3Dtwo", False),
    ("watch that one", "GET", "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Done", True),
    ("watch another", "GET", "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dtwo", False),
    ("delete that one", "DELETE", "/one", True),
    ("create", "POST", "", False),
    secured=True,
)
async def test_resource_names(api: Api, method: str, path: str, allowed: bool) -> None:
    await api.config_map("one")
    await grant(api, user("bob"), rule("", "configmaps", "get list watch create delete", "one"))
    body = config_map("one") if method == "POST" else None
    answer = await api.impersonate("bob").call(method, api.config_maps + path, body)
    assert (answer.status == 403) is not allowed, answer.text


@conformance(
    "RBAC: subresources are resources of their own",
    ("the object does not bring them", "pods", "pods", "log", False),
    ("by name", "pods/log", "pods", "log", True),
    ("they do not bring the object", "pods/log", "pods", "", False),
    ("of every resource", "*/scale", "replicationcontrollers", "scale", True),
    ("of every resource, another one", "*/scale", "replicationcontrollers", "status", False),
    ("everything", "*", "pods", "log", True),
    secured=True,
)
async def test_subresources(api: Api, resources: str, resource: str, subresource: str, allowed: bool) -> None:
    await grant(api, user("bob"), rule("", resources, "get"))
    assert (await may(api, "bob", verb="get", resource=resource, subresource=subresource))[0] is allowed


@conformance("RBAC: a change counts for the next requests", secured=True)
async def test_changed_role_takes_effect(api: Api) -> None:
    await grant(api, user("bob"), rule("", "configmaps", "list"))
    asks = api.impersonate("bob")

    async def sees(status: int) -> None:
        async def seen() -> bool:
            return (await asks.get(api.config_maps)).status == status

        await api.eventually(seen)

    await sees(200)
    await api.delete(f"{role_bindings(api)}/granted")
    await sees(403)


@conformance(
    "RBAC: a binding whose role is missing allows nothing, and refusals say so", secured=True, min_version="1.37"
)
async def test_a_missing_role(api: Api) -> None:
    bob, gone = api.name("bob"), api.name("gone")
    await api.created(CLUSTER_ROLE_BINDINGS, binding(gone, "ClusterRole", gone, user(bob)))
    missing = f'clusterrole.rbac.authorization.k8s.io "{gone}" not found'
    message = (await api.impersonate(bob).get("/metrics")).refuses(403, "Forbidden")
    assert message == f'forbidden: User "{bob}" cannot get path "/metrics": rbac: RBAC: {missing}'
    await api.created(role_bindings(api), binding("b", "Role", "none", user(bob)))
    message = (await api.impersonate(bob).get(api.pods)).refuses(403, "Forbidden")
    assert message.endswith(
        f'"{api.namespace}": rbac: RBAC: [{missing}, role.rbac.authorization.k8s.io "none" not found]'
    )
    assert await may(api, bob, verb="get", resource="pods", namespace="default") == (False, f"rbac: RBAC: {missing}")


@conformance("RBAC: a review names the binding that allows", secured=True)
async def test_reasons(api: Api) -> None:
    where = api.namespace
    await grant(api, user("bob"), rule("", "pods", "get"))
    await grant(api, account(where, "robot"), rule("", "pods", "list"), name="robots")
    bob = f'RBAC: allowed by RoleBinding "granted/{where}" of Role "granted" to User "bob"'
    robot = f'RBAC: allowed by RoleBinding "robots/{where}" of Role "robots" to ServiceAccount "robot/{where}"'
    assert await may(api, "bob", verb="get", resource="pods") == (True, bob)
    assert await may(api, f"system:serviceaccount:{where}:robot", verb="list", resource="pods") == (True, robot)
    assert await may(api, "root", "system:masters", verb="get", resource="pods") == (True, "")
    assert await may(api, "eve", verb="get", resource="pods") == (False, "")


@conformance("RBAC: the rules of an aggregated role are its writer's to set only with all rights", secured=True)
async def test_aggregation_is_for_administrators(api: Api) -> None:
    bob = api.name("bob")
    await grant_everywhere(api, user(bob), rule("rbac.authorization.k8s.io", "clusterroles", "create update get"))
    chosen = {"clusterRoleSelectors": [{"matchLabels": {"to": api.name("all")}}]}
    mine = role(api.name("mine"), aggregationRule=chosen)
    answer = await api.impersonate(bob).post(CLUSTER_ROLES, mine)
    assert answer.refuses(403, "Forbidden") == (
        f'clusterroles.rbac.authorization.k8s.io "{api.name("mine")}" is forbidden: must have cluster-admin privileges '
        "to use the aggregationRule"
    )
    made = await api.created(CLUSTER_ROLES, mine)
    assert made.json["aggregationRule"] == chosen


IMPERSONATOR = (
    rule("", "users", "impersonate", "carl"),
    rule("", "groups", "impersonate", "team"),
    rule("", "serviceaccounts", "impersonate", "robot"),
    rule("authentication.k8s.io", "uids", "impersonate", "u1"),
    rule("authentication.k8s.io", "userextras/scopes", "impersonate", "view"),
)


@conformance(
    "Impersonation: a right for each thing that is claimed",
    ("a user", {"User": "carl"}, ""),
    ("another user", {"User": "bob"}, 'users "bob"|"users" in API group ""'),
    ("nobody", {"User": "system:anonymous"}, 'users "system:anonymous"|"users" in API group ""'),
    ("a group", {"User": "carl", "Group": "team"}, ""),
    ("another group", {"User": "carl", "Group": "others"}, 'groups "others"|"groups" in API group ""'),
    ("a uid", {"User": "carl", "Uid": "u1"}, ""),
    (
        "another uid",
        {"User": "carl", "Uid": "u2"},
        'uids.authentication.k8s.io "u2"|"uids" in API group "authentication.k8s.io"',
    ),
    ("an extra", {"User": "carl", "Extra-Scopes": "view"}, ""),
    (
        "another value",
        {"User": "carl", "Extra-Scopes": "edit"},
        'userextras.authentication.k8s.io "edit"|"userextras/scopes" in API group "authentication.k8s.io"',
    ),
    (
        "another extra",
        {"User": "carl", "Extra-Other": "view"},
        'userextras.authentication.k8s.io "view"|"userextras/other" in API group "authentication.k8s.io"',
    ),
    ("an account", {"User": "system:serviceaccount:NS:robot"}, ""),
    (
        "another account",
        {"User": "system:serviceaccount:NS:other"},
        'serviceaccounts "other"|"serviceaccounts" in API group ""|NS',
    ),
    secured=True,
)
async def test_impersonation(api: Api, headers: dict[str, str], refused: str) -> None:
    accounts = f"{api.core}/serviceaccounts"
    await api.created(accounts, {"metadata": {"name": "actor"}})
    await grant_everywhere(api, account(api.namespace, "actor"), *IMPERSONATOR)
    token = (await api.created(f"{accounts}/actor/token", {})).json["status"]["token"]
    # The words of a refusal are those of the way to impersonate that has worked before, where there are several.
    await api.with_token(token, **{"Impersonate-User": "carl"}).created(ME, {})
    sent = {f"Impersonate-{name}": value.replace("NS", api.namespace) for name, value in headers.items()}
    answer = await api.with_token(token).post(ME, {}, **sent)
    if not refused:
        assert answer.status == 201, answer.text
        assert answer.json["status"]["userInfo"]["username"] == sent["Impersonate-User"]
        return
    subject, resource, *where = refused.split("|")
    place = f'in the namespace "{api.namespace}"' if where else "at the cluster scope"
    actor = f'User "system:serviceaccount:{api.namespace}:actor"'
    wanted = f"{subject} is forbidden: {actor} cannot impersonate resource {resource} {place}"
    assert answer.refuses(403, "Forbidden") == wanted


@conformance(
    "Impersonation: who one is then",
    ("a user", {"User": "carl"}, {"username": "carl", "groups": ["system:authenticated"]}),
    (
        "with a group, a uid and an extra",
        {"User": "carl", "Group": "team", "Uid": "u1", "Extra-Scopes": "view"},
        {
            "username": "carl",
            "uid": "u1",
            "groups": ["team", "system:authenticated"],
            "extra": {"scopes": ["view"]},
        },
    ),
    (
        "an account",
        {"User": "system:serviceaccount:a:b"},
        {
            "username": "system:serviceaccount:a:b",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"],
        },
    ),
    secured=True,
)
async def test_self_subject_review_with_impersonation(
    api: Api, headers: dict[str, str], wanted: dict[str, Any]
) -> None:
    answer = await api.post(ME, {}, **{f"Impersonate-{name}": value for name, value in headers.items()})
    assert answer.status == 201, answer.text
    assert answer.json["status"] == {"userInfo": wanted}
    assert set(answer.json["metadata"]) == {"creationTimestamp"}


@conformance("Impersonation: of a group alone is 400", secured=True)
async def test_impersonation_without_user(api: Api) -> None:
    answer = await api.get(api.config_maps, **{"Impersonate-Group": "team"})
    assert answer.refuses(400, "BadRequest").endswith("without impersonating a user name")


@conformance("RBAC: everybody's roles are there from the start", secured=True)
async def test_first_roles(api: Api) -> None:
    listed = (await api.get(f"{CLUSTER_ROLES}?labelSelector=kubernetes.io%2Fbootstrapping%3Drbac-defaults")).names
    first = {"admin", "cluster-admin", "edit", "system:basic-user", "system:discovery", "system:public-info-viewer"}
    assert first | {"view"} <= set(listed)
    for name in ("cluster-admin", "system:basic-user", "system:discovery", "system:public-info-viewer"):
        bound = (await api.get(f"{CLUSTER_ROLE_BINDINGS}/{name}")).json
        assert bound["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    assert (await api.get(roles(api))).names == []
