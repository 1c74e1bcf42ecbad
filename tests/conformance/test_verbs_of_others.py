"""Each way by which one verb does the work of another, and which right it needs on a real server.

Source: apiserver pkg/endpoints/handlers/create.go (``withAuthorization``), patch.go.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tests.apiserver.serving import Answer
from tests.conformance.policies import grant, rule, user
from tests.conformance.target import Api, conformance, deployment, pod

RBAC = "rbac.authorization.k8s.io"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
MAP: dict[str, Any] = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}
ROLE: dict[str, Any] = {"kind": "Role", "apiVersion": f"{RBAC}/v1", "metadata": {"name": "a"}}
SERVICE: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
BINDING: dict[str, Any] = {"metadata": {"name": "p"}, "target": {"name": "n"}}
SCALE: dict[str, Any] = {"spec": {"replicas": 2}}


def cannot(what: str, *, verb: str = "create", name: str = "a", group: str = "", subresource: str = "") -> str:
    named = f'{what}.{group} "{name}"' if group else f'{what} "{name}"'
    full = f"{what}/{subresource}" if subresource else what
    return (
        f'{named} is forbidden: User "bob" cannot {verb} resource "{full}" in API group "{group}" in the namespace "NS"'
    )


async def send(api: Api, method: str, path: str, body: Any, content_type: str) -> Answer:
    path = path.replace("CORE", api.core).replace("NS", api.namespace)
    bob = api.impersonate("bob")
    return await bob.call(method, path, body, **({"Content-Type": content_type} if content_type else {}))


async def allowed(api: Api, group: str, resources: str, verbs: str, *names: str) -> None:
    """Let bob do this, and wait until the server knows."""
    await grant(api, user("bob"), rule(group, resources, verbs, *names), rule("", "pods", "list"))

    async def known() -> bool:
        return (await api.impersonate("bob").get(api.pods)).status == 200

    await api.eventually(known)


@conformance(
    "RBAC: a PUT that creates asks for the right to create",
    ("Lease", "coordination.k8s.io", "leases", {"metadata": {"name": "a"}}),
    ("Role", RBAC, "roles", ROLE),
    ("Service", "", "services", SERVICE),
    ("Endpoints", "", "endpoints", {"metadata": {"name": "a"}}),
    ("LimitRange", "", "limitranges", {"metadata": {"name": "a"}, "spec": {"limits": []}}),
    secured=True,
)
async def test_put(api: Api, group: str, plural: str, body: dict[str, Any]) -> None:
    await allowed(api, group, plural, "update")
    root = f"/apis/{group}/v1" if group else "/api/v1"
    path = f"{root}/namespaces/NS/{plural}/a"
    answer = await send(api, "PUT", path, body, "application/json")
    assert answer.refuses(403, "Forbidden") == cannot(plural, group=group).replace("NS", api.namespace)
    assert (await api.get(path.replace("NS", api.namespace))).status == 404


@conformance(
    "RBAC: an apply that creates asks for the right to create",
    ("ConfigMap", "", "configmaps", "", MAP, 403),
    ("dry run", "", "configmaps", "&dryRun=All", MAP, 403),
    ("Role", RBAC, "roles", "", {**ROLE, "rules": []}, 403),
    ("what is invalid is told before", "", "configmaps", "", {**MAP, "metadata": {"name": "A_"}}, 422),
    ("no namespace is told before", "", "configmaps", "", {**MAP, "metadata": {"name": "a", "namespace": "x"}}, 400),
    secured=True,
)
async def test_apply(api: Api, group: str, plural: str, query: str, body: dict[str, Any], code: int) -> None:
    await allowed(api, group, plural, "patch")
    root = f"/apis/{group}/v1" if group else "/api/v1"
    name = body["metadata"]["name"]
    path = f"{root}/namespaces/NS/{plural}/{name}"
    answer = await send(api, "PATCH", f"{path}?fieldManager=x{query}", body, APPLY)
    assert answer.status == code, answer.text
    if code == 403:
        assert answer.json["message"] == cannot(plural, group=group).replace("NS", api.namespace)
    assert (await api.get(path.replace("NS", api.namespace))).status == 404


@conformance(
    "RBAC: the right to create objects of one name is enough for an apply of it, not for a POST",
    secured=True,
)
async def test_a_right_to_create_one_name(api: Api) -> None:
    await grant(api, user("bob"), rule("", "configmaps", "patch"), rule("", "configmaps", "create", "a"))
    path = f"{api.config_maps}/a?fieldManager=x"

    async def applied() -> bool:
        return (await send(api, "PATCH", path, MAP, APPLY)).status == 201

    await api.eventually(applied)
    other = {**MAP, "metadata": {"name": "b"}}
    answer = await send(api, "PATCH", f"{api.config_maps}/b?fieldManager=x", other, APPLY)
    assert answer.status == 403
    assert (await send(api, "POST", api.config_maps, other, "application/json")).status == 403
    # What is there already is changed without it.
    changed = await send(api, "PATCH", path, {**MAP, "data": {"k": "v"}}, APPLY)
    assert (changed.status, changed.json["data"]) == (200, {"k": "v"})


@conformance(
    "RBAC: subresources, collections and evictions have rights of their own",
    ("delete is not deletecollection", "", "configmaps", "delete list", "DELETE", "CORE/configmaps", None, "", 403),
    ("deletecollection", "", "configmaps", "deletecollection", "DELETE", "CORE/configmaps", None, "", 200),
    (
        "deletecollection is not delete",
        "",
        "configmaps",
        "deletecollection",
        "DELETE",
        "CORE/configmaps/k",
        None,
        "",
        403,
    ),
    (
        "eviction without delete",
        "",
        "pods/eviction",
        "create",
        "POST",
        "CORE/pods/p/eviction",
        {"metadata": {"name": "p"}},
        "",
        201,
    ),
    (
        "delete is not eviction",
        "",
        "pods",
        "delete create",
        "POST",
        "CORE/pods/p/eviction",
        {"metadata": {"name": "p"}},
        "",
        403,
    ),
    ("binding", "", "pods/binding", "create", "POST", "CORE/pods/p/binding", BINDING, "", 201),
    (
        "pods are not bound by who makes them",
        "",
        "pods",
        "create update",
        "POST",
        "CORE/pods/p/binding",
        BINDING,
        "",
        403,
    ),
    (
        "scale",
        "apps",
        "deployments/scale",
        "patch",
        "PATCH",
        "/apis/apps/v1/namespaces/NS/deployments/d/scale",
        SCALE,
        MERGE,
        200,
    ),
    (
        "deployments are not their scale",
        "apps",
        "deployments",
        "patch",
        "PATCH",
        "/apis/apps/v1/namespaces/NS/deployments/d/scale",
        SCALE,
        MERGE,
        403,
    ),
    (
        "scale is not the deployment",
        "apps",
        "deployments/scale",
        "patch",
        "PATCH",
        "/apis/apps/v1/namespaces/NS/deployments/d",
        SCALE,
        MERGE,
        403,
    ),
    (
        "status",
        "apps",
        "deployments/status",
        "patch",
        "PATCH",
        "/apis/apps/v1/namespaces/NS/deployments/d/status",
        {"status": {}},
        MERGE,
        200,
    ),
    (
        "deployments are not their status",
        "apps",
        "deployments",
        "patch",
        "PATCH",
        "/apis/apps/v1/namespaces/NS/deployments/d/status",
        {"status": {}},
        MERGE,
        403,
    ),
    (
        "status of what is not there",
        "",
        "pods/status",
        "patch",
        "PATCH",
        "CORE/pods/nope/status?fieldManager=x",
        pod("nope"),
        APPLY,
        404,
    ),
    (
        "a name is made",
        "",
        "configmaps",
        "create",
        "POST",
        "CORE/configmaps",
        {"metadata": {"generateName": "x-"}},
        "",
        201,
    ),
    ("watch is not list", "", "configmaps", "watch", "GET", "CORE/configmaps", None, "", 403),
    ("list is not get", "", "configmaps", "list", "GET", "CORE/configmaps/k", None, "", 403),
    ("a patch of what is not there", "", "configmaps", "patch", "PATCH", "CORE/configmaps/nope", {}, MERGE, 404),
    (
        "a PUT of a kind that is not created by it",
        "",
        "configmaps",
        "update",
        "PUT",
        "CORE/configmaps/nope",
        {"metadata": {"name": "nope"}},
        "",
        404,
    ),
    ("a token", "", "serviceaccounts/token", "create", "POST", "CORE/serviceaccounts/robot/token", {}, "", 201),
    (
        "an account is not its tokens",
        "",
        "serviceaccounts",
        "create get update",
        "POST",
        "CORE/serviceaccounts/robot/token",
        {},
        "",
        403,
    ),
    secured=True,
)
async def test_verbs_with_separate_permissions(
    api: Api, group: str, resources: str, verbs: str, method: str, path: str, body: Any, content_type: str, code: int
) -> None:
    await asyncio.gather(
        api.config_map("k"),
        api.created(api.pods, pod("p")),
        api.created(f"/apis/apps/v1/namespaces/{api.namespace}/deployments", deployment("d")),
        api.created(f"{api.core}/serviceaccounts", {"metadata": {"name": "robot"}}),
    )
    await allowed(api, group, resources, verbs)
    answer = await send(api, method, path, body, content_type)
    assert answer.status == code, answer.text
