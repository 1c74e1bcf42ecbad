"""What a server warns about in pods and pod templates: what is deprecated, hidden, doubled or without effect.

Source: Kubernetes pkg/api/pod/warnings.go, pkg/api/node/util.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, Final

from deltaloop.apiserver.core.kinds.validation.checks import shown
from deltaloop.apiserver.core.metadata.rules import label_value_problems
from deltaloop.schemas.json_values import at, integer, is_mapping, items, mapping, text, texts
from deltaloop.schemas.quantity import amount

Fields = dict[str, Any]

DEPRECATED_LABELS: Final[Mapping[str, str]] = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
}
"""Labels of nodes that nobody should select by any more."""
_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_COMPARED_PORTS: Final = 16  # of one number; of thousands nobody reads all that is wrong
_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_POD_SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
_CONTAINER_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"
_REQUIRED, _PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))


def pod_warnings(pod: Fields, path: str = "") -> Iterator[str]:
    """Yield what there is to warn about in a pod, or in a pod template at a path that ends with a dot."""
    spec, where = mapping(pod.get("spec")), f"{path}spec"
    annotations = mapping(at(pod, "metadata", "annotations"))
    selected = DEPRECATED_LABELS.keys() & mapping(spec.get("nodeSelector"))
    yield from (f"{where}.nodeSelector[{label}]: {DEPRECATED_LABELS[label]}" for label in sorted(selected))
    yield from _node_affinity_warnings(mapping(at(spec, "affinity", "nodeAffinity")), f"{where}.affinity.nodeAffinity")
    for place, spread in enumerate(items(spec.get("topologySpreadConstraints"))):
        field, key = f"{where}.topologySpreadConstraints[{place}]", text(at(spread, "topologyKey"))
        if key in DEPRECATED_LABELS:
            yield f"{field}.topologyKey: {key} is {DEPRECATED_LABELS[key]}"
        if at(spread, "labelSelector") is None:
            yield f"{field}.labelSelector: {_NO_SELECTOR}"
    yield from (
        f"{path}metadata.annotations[{key}]: {told}" for key, told in _ANNOTATIONS.items() if key in annotations
    )
    yield from _volume_warnings(items(spec.get("volumes")), f"{where}.volumes")
    yield from _list_warnings(spec, where)
    if at(spec, "securityContext", "seccompProfile") is None and _POD_SECCOMP in annotations:
        yield f"{path}metadata.annotations[{_POD_SECCOMP}]: {_SECCOMP}"
    containers = [
        (mapping(container), f"{where}.{group}[{place}]")
        for group in ("initContainers", "containers", "ephemeralContainers")
        for place, container in enumerate(items(spec.get(group)))
    ]
    for container, field in containers:
        name = f"{_CONTAINER_SECCOMP}{text(container.get('name'))}"
        if at(container, "securityContext", "seccompProfile") is None and name in annotations:
            yield f"{path}metadata.annotations[{name}]: {_SECCOMP}"
        yield from _container_warnings(container, field)
    yield from _port_warnings(containers)
    yield from _port_name_warnings(containers)
    if integer(spec.get("terminationGracePeriodSeconds")) < 0:
        told = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{where}.terminationGracePeriodSeconds: {told}"
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity_warnings(mapping(at(spec, "affinity", kind)), f"{where}.affinity.{kind}")
    for place, address in enumerate(texts(at(spec, "dnsConfig", "nameservers"))):
        yield from address_warnings(address, f"{where}.dnsConfig.nameservers[{place}]")
    for place, alias in enumerate(items(spec.get("hostAliases"))):
        yield from address_warnings(text(at(alias, "ip")), f"{where}.hostAliases[{place}].ip")


def address_warnings(address: str, field: str) -> Iterator[str]:
    """Yield a warning if an address is not written in its one right form."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return
    if found.version == 6 and str(found) != address:
        yield f'{field}: IPv6 address "{address}" should be in RFC 5952 canonical format ("{found}")'


def node_term_warnings(term: object, field: str, *, values: bool = False) -> Iterator[str]:
    """Yield a warning for each deprecated label of a term, and for each value that is no label's, if those count."""
    for place, expression in enumerate(items(at(term, "matchExpressions"))):
        key, where = text(at(expression, "key")), f"{field}.matchExpressions[{place}]"
        if key in DEPRECATED_LABELS:
            yield f"{where}.key: {key} is {DEPRECATED_LABELS[key]}"
        for number, value in enumerate(texts(at(expression, "values")) if values else ()):
            for problem in label_value_problems(value):
                yield f"{where}.values[{number}]: {value} is invalid, {problem}"


def claim_spec_warnings(spec: object, field: str) -> Iterator[str]:
    """Yield a warning for each size of a claim that is no whole number of bytes."""
    for group in ("requests", "limits"):
        yield from _fraction_warnings(mapping(at(spec, "resources", group)), f"{field}.resources.{group}", "storage")


def _fraction_warnings(amounts: Fields, field: str, *names: str) -> Iterator[str]:
    for name in names:
        if name in amounts and amount(amounts[name]).denominator != 1:
            yield f'{field}[{name}]: fractional byte value "{amounts[name]}" is invalid, must be an integer'


def _node_affinity_warnings(affinity: Fields, field: str) -> Iterator[str]:
    for place, term in enumerate(items(at(affinity, _REQUIRED, "nodeSelectorTerms"))):
        yield from node_term_warnings(term, f"{field}.{_REQUIRED}.nodeSelectorTerms[{place}]")
    for place, term in enumerate(items(affinity.get(_PREFERRED))):
        yield from node_term_warnings(at(term, "preference"), f"{field}.{_PREFERRED}[{place}].preference", values=True)


def _pod_affinity_warnings(affinity: Fields, field: str) -> Iterator[str]:
    for place, term in enumerate(items(affinity.get(_REQUIRED))):
        if at(term, "labelSelector") is None:
            yield f"{field}.{_REQUIRED}[{place}].labelSelector: {_NO_SELECTOR}"
    for place, term in enumerate(items(affinity.get(_PREFERRED))):
        if at(term, "podAffinityTerm", "labelSelector") is None:
            yield f"{field}.{_PREFERRED}[{place}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


def _volume_warnings(volumes: list[Any], path: str) -> Iterator[str]:
    for place, volume in enumerate(volumes):
        for source, told in _VOLUMES.items():
            if is_mapping(at(volume, source)):
                name = "storageOS" if source == "storageos" else source  # as it is called there
                yield f"{path}[{place}].{name}: {told}"
        claim = at(volume, "ephemeral", "volumeClaimTemplate", "spec")
        yield from claim_spec_warnings(claim, f"{path}[{place}].ephemeral.volumeClaimTemplate.spec")


def _list_warnings(spec: Fields, where: str) -> Iterator[str]:
    for group, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for place, item in enumerate(items(spec.get(group))):
            value = text(at(item, key))
            if value in seen:
                yield f"{where}.{group}[{place}].{key}: duplicate {key} {shown(value)}"
            seen.add(value)
    for place, item in enumerate(items(spec.get("imagePullSecrets"))):
        if not at(item, "name"):
            yield f'{where}.imagePullSecrets[{place}].name: invalid empty name ""'
    yield from _fraction_warnings(mapping(spec.get("overhead")), f"{where}.overhead", "memory", "ephemeral-storage")


def _container_warnings(container: Fields, path: str) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        for group in ("limits", "requests"):
            amounts = mapping(at(container, "resources", group))
            yield from _fraction_warnings(amounts, f"{path}.resources.{group}", name)
    seen: set[str] = set()
    for place, variable in enumerate(items(container.get("env"))):
        name, value = text(at(variable, "name")), text(at(variable, "value"))
        reference = f"$({name})"
        hides = at(variable, "valueFrom") is not None or value == reference or reference not in value
        if name in seen and hides:
            yield f'{path}.env[{place}]: hides previous definition of "{name}", which may be dropped when using apply'
        seen.add(name)


def _port_warnings(containers: list[tuple[Fields, str]]) -> Iterator[str]:
    known: dict[tuple[int, str], list[tuple[str, int, str]]] = {}
    for container, path in containers:
        for place, port in enumerate(items(container.get("ports"))):
            field, address, number = f"{path}.ports[{place}]", text(at(port, "hostIP")), integer(at(port, "hostPort"))
            if address and not number:
                yield f"{field}: hostIP set without hostPort: {_in_go(port)}"
            others = known.setdefault((integer(at(port, "containerPort")), text(at(port, "protocol"))), [])
            for other_address, other_number, other in others:
                if (address, number) == (other_address, other_number):
                    yield f"{field}: duplicate port definition with {other}"
                elif not number or not other_number:
                    yield f"{field}: overlapping port definition with {other}"
                elif number == other_number and bool(address) is not bool(other_address):
                    yield f"{field}: dangerously ambiguous port definition with {other}"
            if len(others) < _COMPARED_PORTS:
                others.append((address, number, field))


def _in_go(port: object) -> str:
    return (
        f"{{Name:{text(at(port, 'name'))} HostPort:{integer(at(port, 'hostPort'))} "
        f"ContainerPort:{integer(at(port, 'containerPort'))} Protocol:{text(at(port, 'protocol'))} "
        f"HostIP:{text(at(port, 'hostIP'))}}}"
    )


def _port_name_warnings(containers: list[tuple[Fields, str]]) -> Iterator[str]:
    known: dict[str, str] = {}
    for container, path in containers:
        for place, port in enumerate(items(container.get("ports"))):
            name, field = text(at(port, "name")), f"{path}.ports[{place}]"
            if name in known:
                other = known[name]
                yield (
                    f'{field}: duplicate port name "{name}" with {other}, services and probes that select ports by '
                    f"name will use {other}"
                )
            elif name:
                known[name] = field
