"""Subresources that lead to a kubelet, and there is none: ``log``, ``exec``, ``attach``, ``portforward``, ``proxy``."""

from __future__ import annotations

from collections.abc import Iterator

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ApiError, Status, StatusDetails, error_from_status
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.strategy import Asked, Given, Subresource, Writes
from deltaloop.schemas.json_values import at, text

_CONNECT = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")


def proxy_of(kind: ResourceType[Resource]) -> Subresource:
    """Return the subresource that leads to what an object runs."""

    def answer(asked: Asked, writes: Writes, _given: Given) -> None:
        writes.fields_of(kind, asked.namespace, asked.name)
        raise _without_kubelet(kind, "proxy")

    return Subresource("proxy", "", "", f"{kind.kind}ProxyOptions", _PROXY, answer, takes_object=False)


def verbs_of_pods() -> Iterator[Subresource]:
    """Yield those of pods, which are refused in the real server's words as far as it gets without a kubelet."""
    for name, kind, verbs in (
        ("attach", "PodAttachOptions", _CONNECT),
        ("exec", "PodExecOptions", _CONNECT),
        ("log", "Pod", ("get",)),
        ("portforward", "PodPortForwardOptions", _CONNECT),
        ("proxy", "PodProxyOptions", _PROXY),
    ):
        yield _of_pods(name, kind, verbs)


def _of_pods(name: str, kind: str, verbs: tuple[str, ...]) -> Subresource:
    def answer(asked: Asked, writes: Writes, _given: Given) -> None:
        node = text(at(writes.fields_of(kinds.POD, asked.namespace, asked.name), "spec", "nodeName"))
        if not node and name == "log":
            return  # nothing was written yet
        if not node:
            raise failures.bad_request(f"pod {asked.name} does not have a host assigned")
        if writes.objects.get(kinds.NODE.group_resource, node) is None:
            raise failures.not_found(kinds.NODE, node)
        raise _without_kubelet(kinds.POD, name)

    return Subresource(name, "", "", kind, verbs, answer, takes_object=False, done=204 if name == "log" else 201)


def _without_kubelet(kind: ResourceType[Resource], subresource: str) -> ApiError:
    message = (
        f"{kind.plural}/{subresource} needs a kubelet, and this server has none: "
        "it keeps objects and runs no containers"
    )
    return error_from_status(Status(message=message, reason="NotImplemented", details=StatusDetails(), code=501))
