"""Resources that are answered and not stored, and subresources that are more than a part of their object.

Reviews answer a question; an eviction is a delete with a condition; a token request makes a token; ``log``, ``exec``,
``attach``, ``portforward`` and ``proxy`` lead to a kubelet, which there is none of.

Source: Kubernetes, api/discovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.served_resource import ServedResource

AUTHENTICATION: Final = "authentication.k8s.io"
AUTHORIZATION: Final = "authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Subresource:
    """One subresource: the kind that it takes and gives, and what can be done with it."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


_CONNECT: Final = ("create", "get")
_PROXY: Final = ("create", "delete", "get", "patch", "update")

EXTRA_SUBRESOURCES: Final[Mapping[str, tuple[Subresource, ...]]] = {
    "pods": (
        Subresource("attach", "", "", "PodAttachOptions", _CONNECT),
        Subresource("binding", "", "", "Binding", ("create",)),
        Subresource("eviction", "policy", "v1", "Eviction", ("create",)),
        Subresource("exec", "", "", "PodExecOptions", _CONNECT),
        Subresource("log", "", "", "Pod", ("get",)),
        Subresource("portforward", "", "", "PodPortForwardOptions", _CONNECT),
        Subresource("proxy", "", "", "PodProxyOptions", _PROXY),
    ),
    "serviceaccounts": (Subresource("token", AUTHENTICATION, "v1", "TokenRequest", ("create",)),),
    "nodes": (Subresource("proxy", "", "", "NodeProxyOptions", _PROXY),),
    "services": (Subresource("proxy", "", "", "ServiceProxyOptions", _PROXY),),
}
TO_KUBELET: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})


def _review(group: str, kind: str, *, namespaced: bool = False) -> ServedResource:
    plural = f"{kind.lower()}s"
    return ServedResource(
        type=ResourceType[Resource](group, "v1", kind, plural, namespaced),
        singular=kind.lower(),
        list_kind=f"{kind}List",
        verbs=("create",),
    )


REVIEWS: Final = (
    _review(AUTHENTICATION, "SelfSubjectReview"),
    _review(AUTHENTICATION, "TokenReview"),
    _review(AUTHORIZATION, "LocalSubjectAccessReview", namespaced=True),
    _review(AUTHORIZATION, "SelfSubjectAccessReview"),
    _review(AUTHORIZATION, "SelfSubjectRulesReview"),
    _review(AUTHORIZATION, "SubjectAccessReview"),
)
_REVIEWED: Final = frozenset((item.type.group, item.type.plural) for item in REVIEWS)


def is_review(served: ServedResource) -> bool:
    """Tell whether a resource is a question to the server."""
    return (served.type.group, served.type.plural) in _REVIEWED


def is_binding(served: ServedResource) -> bool:
    """Tell whether a resource is the collection of bindings, which keeps none: each gives a pod its node."""
    return served.type.group_resource == kinds.BINDING.group_resource


def extra_subresource(served: ServedResource, name: str) -> Subresource | None:
    """Return a subresource of this page, or None."""
    if served.custom:
        return None
    found = EXTRA_SUBRESOURCES.get(served.type.group_resource, ())
    return next((item for item in found if item.name == name), None)
