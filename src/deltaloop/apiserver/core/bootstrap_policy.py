"""The roles and bindings that exist from the start where RBAC is on.

The names are the real server's. ``admin``, ``edit`` and ``view`` are written out from the built-in resources that are
served; the real ones are put together by a controller and differ in detail. The roles of Kubernetes' own components
(``system:node``, ``system:controller:...``) are not made: none of them run here.

Source: Kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from deltaloop.apiserver.core.served_resource import ServedResource

_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
_INFO: Final = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY: Final = ("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", *_INFO[2:])
_RBAC: Final = "rbac.authorization.k8s.io"
_LABELS: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
# Whoever may read these may become somebody else, or sees credentials.
_NOT_VIEWED: Final = frozenset({"secrets", f"roles.{_RBAC}", f"rolebindings.{_RBAC}"})
_NOT_EDITED: Final = frozenset({f"roles.{_RBAC}", f"rolebindings.{_RBAC}", "resourcequotas", "limitranges"})


def bootstrap_policy(resources: Iterable[ServedResource]) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return what to create where it is missing: plural and object.

    Args:
        resources: The built-in resources.
    """
    namespaced = {item.type.group_resource: item for item in resources if item.type.namespaced and not item.custom}
    viewed = [item for name, item in namespaced.items() if name not in _NOT_VIEWED]
    edited = [item for name, item in namespaced.items() if name not in _NOT_EDITED]
    view = [*_rules(viewed, _READ), _rule(("",), ("namespaces",), _READ)]
    edit = [*view, _rule(("",), ("secrets",), _READ), *_rules(edited, _WRITE), *_subresources()]
    admin = [*edit, _rule((_RBAC,), ("roles", "rolebindings"), (*_READ, *_WRITE))]
    roles = {
        "cluster-admin": [_rule(("*",), ("*",), ("*",)), _paths(("*",), ("*",))],
        "system:discovery": [_paths(_DISCOVERY, ("get",))],
        "system:public-info-viewer": [_paths(_INFO, ("get",))],
        "system:basic-user": [
            _rule(("authorization.k8s.io",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews"), ("create",)),
            _rule(("authentication.k8s.io",), ("selfsubjectreviews",), ("create",)),
        ],
        "admin": admin,
        "edit": edit,
        "view": view,
    }
    everybody = ("system:authenticated", "system:unauthenticated")
    bindings = {
        "cluster-admin": ("system:masters",),
        "system:discovery": everybody[:1],
        "system:public-info-viewer": everybody,
        "system:basic-user": everybody[:1],
    }
    made = [("clusterroles", {"metadata": _metadata(name), "rules": rules}) for name, rules in roles.items()]
    made += [("clusterrolebindings", _binding(name, groups)) for name, groups in bindings.items()]
    return tuple(made)


def _metadata(name: str) -> dict[str, Any]:
    return {"name": name, "labels": dict(_LABELS)}


def _binding(name: str, groups: tuple[str, ...]) -> dict[str, Any]:
    return {
        "metadata": _metadata(name),
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group} for group in groups],
    }


def _rule(groups: tuple[str, ...], resources: Iterable[str], verbs: tuple[str, ...]) -> dict[str, Any]:
    return {"apiGroups": list(groups), "resources": sorted(resources), "verbs": list(verbs)}


def _rules(resources: Iterable[ServedResource], verbs: tuple[str, ...]) -> list[dict[str, Any]]:
    by_group: dict[str, set[str]] = {}
    for item in resources:
        names = by_group.setdefault(item.type.group, set())
        names.add(item.type.plural)
        if item.scale:
            names.add(f"{item.type.plural}/scale")
        if item.status and verbs == _READ:
            names.add(f"{item.type.plural}/status")
        if item.type.group_resource == "pods" and verbs == _READ:
            names.add("pods/log")
    return [_rule((group,), names, verbs) for group, names in sorted(by_group.items())]


def _subresources() -> list[dict[str, Any]]:
    return [
        _rule(("",), ("pods/attach", "pods/exec", "pods/portforward", "pods/proxy"), ("get", *_WRITE)),
        _rule(("",), ("pods/eviction", "serviceaccounts/token"), ("create",)),
    ]


def _paths(paths: tuple[str, ...], verbs: tuple[str, ...]) -> dict[str, Any]:
    return {"nonResourceURLs": list(paths), "verbs": list(verbs)}
