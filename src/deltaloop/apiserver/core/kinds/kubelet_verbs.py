"""Subresources that require a kubelet, which does not exist: ``log``, ``exec``, ``attach``, ``portforward``, ``proxy``.

Source: Kubernetes pkg/registry/core/pod/strategy.go (``LogLocation``, ``ExecLocation``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ApiError, Status, StatusDetails, error_from_status
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.strategy import Asked, Moment, Option, Subresource, Writes

_CONNECT = ("create", "get")
_OF_ONE_CONTAINER = ("attach", "exec", "log")
_OPTIONS: Mapping[str, Mapping[str, Option]] = {
    "attach": {**dict.fromkeys(("stdin", "stdout", "stderr", "tty"), "flag"), "container": "text"},
    "exec": {**dict.fromkeys(("stdin", "stdout", "stderr", "tty"), "flag"), "container": "text", "command": "texts"},
    "portforward": {"ports": "numbers"},
}
_PROXY = ("create", "delete", "get", "patch", "update")


def proxy_of(kind: ResourceType[Resource]) -> Subresource:
    def answer(asked: Asked, writes: Writes, _moment: Moment) -> None:
        writes.fields_of(kind, asked.namespace, asked.name)
        raise _without_kubelet(kind, "proxy")

    return Subresource("proxy", "", "", f"{kind.kind}ProxyOptions", _PROXY, answer, takes_object=False)


def verbs_of_pods() -> Iterator[Subresource]:
    """Yield the subresources of pods. They fail with the real server's messages as far as no kubelet is involved."""
    for name, kind, verbs in (
        ("attach", "PodAttachOptions", _CONNECT),
        ("exec", "PodExecOptions", _CONNECT),
        ("log", "Pod", ("get",)),
        ("portforward", "PodPortForwardOptions", _CONNECT),
        ("proxy", "PodProxyOptions", _PROXY),
    ):
        yield _of_pods(name, kind, verbs)


def _of_pods(name: str, kind: str, verbs: tuple[str, ...]) -> Subresource:
    def answer(asked: Asked, writes: Writes, _moment: Moment) -> None:
        pod = writes.fields_of(kinds.POD, asked.namespace, asked.name)
        if name in _OF_ONE_CONTAINER:
            _check_container(asked.name, mapping(pod.get("spec")), asked.query.get("container", ""))
        node = text(at(pod, "spec", "nodeName"))
        if not node and name == "log":
            return  # the log is empty
        if not node:
            raise status_errors.bad_request(f"pod {asked.name} does not have a host assigned")
        if writes.objects.get(kinds.NODE.group_resource, node) is None:
            raise status_errors.not_found(kinds.NODE, node)
        raise _without_kubelet(kinds.POD, name)

    done, options = 204 if name == "log" else 201, _OPTIONS.get(name, {})
    return Subresource(name, "", "", kind, verbs, answer, takes_object=False, options=options, done=done)


def _check_container(pod: str, spec: Mapping[str, object], wanted: str) -> None:
    own, first, later = (
        [text(at(item, "name")) for item in items(spec.get(field))]
        for field in ("containers", "initContainers", "ephemeralContainers")
    )
    if wanted and wanted not in (*own, *first, *later):
        raise status_errors.bad_request(f"container {wanted} is not valid for pod {pod}")
    if not wanted and len(own) > 1:
        listed = " ".join((*first, *own, *later))
        raise status_errors.bad_request(f"a container name must be specified for pod {pod}, choose one of: [{listed}]")


def _without_kubelet(kind: ResourceType[Resource], subresource: str) -> ApiError:
    message = (
        f"{kind.plural}/{subresource} needs a kubelet, and this server has none: "
        "it keeps objects and runs no containers"
    )
    return error_from_status(Status(message=message, reason="NotImplemented", details=StatusDetails(), code=501))
