"""Warnings about pods and pod templates, and the conversion of deprecated AppArmor annotations to fields.

Source: Kubernetes pkg/api/pod/warnings.go, util.go; pkg/registry/core/pod/strategy.go (``applyAppArmorVersionSkew``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from deltaloop.api.dns_names import numbered_label_problems
from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text, texts
from deltaloop.apiserver.core.kinds.claim_spec import claim_spec_warnings, fraction_warnings
from deltaloop.apiserver.core.kinds.cluster import DEPRECATED_LABELS, node_term_warnings
from deltaloop.apiserver.core.kinds.field_checks import address_warnings, each
from deltaloop.apiserver.core.kinds.pod_volumes import overlapping_path_warnings
from deltaloop.schemas.field_errors import shown

_PREFIX: Final = "container.apparmor.security.beta.kubernetes.io/"
_TYPES: Final = {"unconfined": "Unconfined", "runtime/default": "RuntimeDefault"}
_LOCAL: Final = "localhost/"
_LONGEST_PROFILE: Final = 4095


def app_armor_warnings(pod: object, path: str = "") -> Iterator[str]:
    """Yield a warning for each AppArmor annotation without an equal field; a template's ``path`` has a trailing dot."""
    for name, _container, profile in _annotated(pod):
        if profile is None or profile != at(pod, "spec", "securityContext", "appArmorProfile"):
            key = f"{path}metadata.annotations[{_PREFIX}{name}]"
            yield f'{key}: deprecated since v1.30; use the "appArmorProfile" field instead'


def set_app_armor_profiles(pod: dict[str, object]) -> None:
    """Set the profiles of containers that only annotations specify, in place."""
    for _name, container, profile in _annotated(pod):
        if profile is not None and profile != at(pod, "spec", "securityContext", "appArmorProfile"):
            container["securityContext"] = {**mapping(container.get("securityContext")), "appArmorProfile": profile}


def is_windows(pod: object) -> bool:
    """Return whether a Pod runs on Windows, which does not support AppArmor."""
    return at(pod, "spec", "os", "name") == "windows"


def _annotated(pod: object) -> Iterator[tuple[str, dict[str, object], dict[str, str] | None]]:
    """Yield container name, container and annotated profile of containers with an annotation but without the field."""
    annotations = mapping(at(pod, "metadata", "annotations"))
    if not any(name.startswith(_PREFIX) for name in annotations):
        return
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in map(mapping, items(at(pod, "spec", group))):
            name = text(container.get("name"))
            if _PREFIX + name in annotations and at(container, "securityContext", "appArmorProfile") is None:
                yield name, container, _profile(text(annotations[_PREFIX + name]))


def _profile(annotation: str) -> dict[str, str] | None:
    if annotation in _TYPES:
        return {"type": _TYPES[annotation]}
    local = annotation.removeprefix(_LOCAL) if annotation.startswith(_LOCAL) else ""
    if not local or local != local.strip() or len(local.encode()) > _LONGEST_PROFILE:
        return None
    return {"type": "Localhost", "localhostProfile": local}


_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUME_SOURCES: Final = {
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
_COMPARED_PORTS: Final = 16  # with equal numbers; more warnings are not useful
_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_POD_SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
_CONTAINER_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_REQUIRED, _PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))
_Ports: TypeAlias = list[tuple[str, dict[str, object]]]


def name_warnings(fields: Mapping[str, object], used: str = "in Pod names and hostnames") -> Iterator[str]:
    problems = numbered_label_problems(text(at(fields, "metadata", "name")))
    if problems:
        told = "which can result in surprising behavior; a DNS label is recommended"
        yield f"metadata.name: this is used {used}, {told}: [{' '.join(problems)}]"


def pod_warnings(pod: object, path: str = "") -> Iterator[str]:
    spec, where = mapping(at(pod, "spec")), f"{path}spec"
    annotations = mapping(at(pod, "metadata", "annotations"))
    selected = DEPRECATED_LABELS.keys() & mapping(spec.get("nodeSelector"))
    yield from (f"{where}.nodeSelector[{label}]: {DEPRECATED_LABELS[label]}" for label in sorted(selected))
    yield from _node_affinity_warnings(at(spec, "affinity", "nodeAffinity"), f"{where}.affinity.nodeAffinity")
    for field, spread in each(spec, "topologySpreadConstraints", where):
        key = text(spread.get("topologyKey"))
        if key in DEPRECATED_LABELS:
            yield f"{field}.topologyKey: {key} is {DEPRECATED_LABELS[key]}"
        yield from _selector_warnings(spread, field)
    yield from (
        f"{path}metadata.annotations[{key}]: {told}" for key, told in _ANNOTATIONS.items() if key in annotations
    )
    yield from _volume_warnings(spec, where)
    yield from _list_warnings(spec, where)
    if at(spec, "securityContext", "seccompProfile") is None and _POD_SECCOMP in annotations:
        yield f"{path}metadata.annotations[{_POD_SECCOMP}]: {_SECCOMP}"
    containers = [
        found for group in ("initContainers", "containers", "ephemeralContainers") for found in each(spec, group, where)
    ]
    for field, container in containers:
        name = f"{_CONTAINER_SECCOMP}{text(container.get('name'))}"
        if at(container, "securityContext", "seccompProfile") is None and name in annotations:
            yield f"{path}metadata.annotations[{name}]: {_SECCOMP}"
        yield from _container_warnings(container, field)
    if path:
        yield from app_armor_warnings(pod, path)
    ports = [found for field, container in containers for found in each(container, "ports", field)]
    yield from _port_warnings(ports)
    yield from _port_name_warnings(ports)
    if integer(spec.get("terminationGracePeriodSeconds")) < 0:
        told = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{where}.terminationGracePeriodSeconds: {told}"
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity, field = at(spec, "affinity", kind), f"{where}.affinity.{kind}"
        for below, term in each(affinity, _REQUIRED, field):
            yield from _selector_warnings(term, below)
        for below, term in each(affinity, _PREFERRED, field):
            yield from _selector_warnings(at(term, "podAffinityTerm"), f"{below}.podAffinityTerm")
    for place, address in enumerate(texts(at(spec, "dnsConfig", "nameservers"))):
        yield from address_warnings(address, f"{where}.dnsConfig.nameservers[{place}]")
    for field, alias in each(spec, "hostAliases", where):
        yield from address_warnings(text(alias.get("ip")), f"{field}.ip")


def _volume_warnings(spec: Mapping[str, object], where: str) -> Iterator[str]:
    for field, volume in each(spec, "volumes", where):
        yield from volume_source_warnings(volume, field)
        claim = at(volume, "ephemeral", "volumeClaimTemplate", "spec")
        yield from claim_spec_warnings(claim, f"{field}.ephemeral.volumeClaimTemplate.spec")
    for _, volume in each(spec, "volumes", where):
        yield from overlapping_path_warnings(volume)


def volume_source_warnings(
    volume: Mapping[str, object], path: str, known: Iterable[str] = _VOLUME_SOURCES
) -> Iterator[str]:
    for source in known:
        if is_mapping(volume.get(source)):
            name = "storageOS" if source == "storageos" else source  # spelling of the real server
            yield f"{path}.{name}: {_VOLUME_SOURCES[source]}"


def _selector_warnings(term: object, path: str) -> Iterator[str]:
    if at(term, "labelSelector") is None:
        yield f"{path}.labelSelector: a null labelSelector results in matching no pod"


def _node_affinity_warnings(affinity: object, path: str) -> Iterator[str]:
    for field, term in each(at(affinity, _REQUIRED), "nodeSelectorTerms", f"{path}.{_REQUIRED}"):
        yield from node_term_warnings(term, field)
    for field, term in each(affinity, _PREFERRED, path):
        yield from node_term_warnings(term.get("preference"), f"{field}.preference", values=True)


def _list_warnings(spec: Mapping[str, object], where: str) -> Iterator[str]:
    for group, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for field, item in each(spec, group, where):
            value = text(item.get(key))
            if value in seen:
                yield f"{field}.{key}: duplicate {key} {shown(value)}"
            seen.add(value)
    for field, item in each(spec, "imagePullSecrets", where):
        if not item.get("name"):
            yield f'{field}.name: invalid empty name ""'
    yield from fraction_warnings(mapping(spec.get("overhead")), f"{where}.overhead", "memory", "ephemeral-storage")


def _container_warnings(container: Mapping[str, object], path: str) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        for group in ("limits", "requests"):
            amounts = mapping(at(container, "resources", group))
            yield from fraction_warnings(amounts, f"{path}.resources.{group}", name)
    seen: set[str] = set()
    for field, variable in each(container, "env", path):
        name, value = text(variable.get("name")), text(variable.get("value"))
        reference = f"$({name})"
        hides = variable.get("valueFrom") is not None or value == reference or reference not in value
        if name in seen and hides:
            yield f'{field}: hides previous definition of "{name}", which may be dropped when using apply'
        seen.add(name)


def _port_warnings(ports: _Ports) -> Iterator[str]:
    known: dict[tuple[int, str], list[tuple[str, int, str]]] = {}
    for field, port in ports:
        address, number = text(port.get("hostIP")), integer(port.get("hostPort"))
        if address and not number:
            yield f"{field}: hostIP set without hostPort: {_in_go(port)}"
        others = known.setdefault((integer(port.get("containerPort")), text(port.get("protocol"))), [])
        for other_address, other_number, other in others:
            if (address, number) == (other_address, other_number):
                yield f"{field}: duplicate port definition with {other}"
            elif not number or not other_number:
                yield f"{field}: overlapping port definition with {other}"
            elif number == other_number and bool(address) is not bool(other_address):
                yield f"{field}: dangerously ambiguous port definition with {other}"
        if len(others) < _COMPARED_PORTS:
            others.append((address, number, field))


def _in_go(port: Mapping[str, object]) -> str:
    return (
        f"{{Name:{text(port.get('name'))} HostPort:{integer(port.get('hostPort'))} "
        f"ContainerPort:{integer(port.get('containerPort'))} Protocol:{text(port.get('protocol'))} "
        f"HostIP:{text(port.get('hostIP'))}}}"
    )


def _port_name_warnings(ports: _Ports) -> Iterator[str]:
    known: dict[str, str] = {}
    for field, port in ports:
        name = text(port.get("name"))
        if name in known:
            other = known[name]
            yield (
                f'{field}: duplicate port name "{name}" with {other}, services and probes that select ports by '
                f"name will use {other}"
            )
        elif name:
            known[name] = field
