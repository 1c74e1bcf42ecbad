"""Roles and bindings for the cases about who may do what."""

from __future__ import annotations

from typing import Any

from tests.conformance.target import Api

GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"


def rule(group: str, resources: str, verbs: str, *names: str) -> dict[str, Any]:
    made = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
    return {**made, "resourceNames": list(names)} if names else made


def path_rule(paths: str, verbs: str) -> dict[str, Any]:
    return {"nonResourceURLs": paths.split(), "verbs": verbs.split()}


def role(name: str, *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def user(name: str) -> dict[str, str]:
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def group(name: str) -> dict[str, str]:
    return {"kind": "Group", "apiGroup": GROUP, "name": name}


def account(namespace: str, name: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "namespace": namespace, "name": name}


def binding(name: str, kind: str, role_name: str, *subjects: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role_name},
        "subjects": list(subjects),
    }


def roles(api: Api) -> str:
    return f"{RBAC}/namespaces/{api.namespace}/roles"


def role_bindings(api: Api) -> str:
    return f"{RBAC}/namespaces/{api.namespace}/rolebindings"


CLUSTER_ROLES = f"{RBAC}/clusterroles"
CLUSTER_ROLE_BINDINGS = f"{RBAC}/clusterrolebindings"


async def grant(api: Api, subject: dict[str, str], *rules: dict[str, Any], name: str = "granted") -> None:
    """Let a subject do something in the namespace of the case."""
    await api.created(roles(api), role(name, *rules))
    await api.created(role_bindings(api), binding(name, "Role", name, subject))


async def grant_everywhere(api: Api, subject: dict[str, str], *rules: dict[str, Any], word: str = "granted") -> None:
    """Let a subject do something in the whole cluster."""
    name = api.name(word)
    await api.created(CLUSTER_ROLES, role(name, *rules))
    await api.created(CLUSTER_ROLE_BINDINGS, binding(name, "ClusterRole", name, subject))


async def may(api: Api, who: str, *groups: str, **attributes: str) -> tuple[bool, str]:
    """Ask whether somebody may do something; return the answer and its reason."""
    spec = {"user": who, "groups": list(groups), "resourceAttributes": {"namespace": api.namespace, **attributes}}
    made = await api.created("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    status = made.json["status"]
    return status["allowed"], status.get("reason", "")
