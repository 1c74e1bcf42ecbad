"""Services, Secrets, claims, ingresses, autoscalers, and the rest of what people write by hand.

Source: Kubernetes pkg/apis/core/validation, networking/validation, autoscaling/validation, rbac/validation (1.36).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, Final

from deltaloop.apiserver.core.failures import FieldError, duplicate, invalid_value, not_supported, required
from deltaloop.apiserver.core.json_values import at, integer, items, mapping, text, texts
from deltaloop.apiserver.core.metadata import label_name_errors, subdomain_errors
from deltaloop.apiserver.core.validation.checks import (
    IMMUTABLE,
    PROTOCOLS,
    amount,
    one_of,
    port_errors,
    shown,
)

Fields = dict[str, Any]

_SERVICE_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES: Final = ("ClientIP", "None")
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_SECRET_KEYS: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_HIGHEST_PRIORITY: Final = 1_000_000_000


def service_errors(service: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a Service."""
    spec = mapping(service.get("spec"))
    kind, ports = text(spec.get("type")), items(spec.get("ports"))
    headless = spec.get("clusterIP") == "None"
    if kind not in _SERVICE_TYPES:
        yield not_supported("spec.type", kind, _SERVICE_TYPES)
    if not ports and not headless and kind != "ExternalName":
        yield required("spec.ports")
    if kind == "ExternalName":
        name = text(spec.get("externalName"))
        if not name:
            yield required("spec.externalName")
        else:
            yield from subdomain_errors(name.removesuffix("."), "spec.externalName")
    yield from one_of(spec.get("sessionAffinity"), "spec.sessionAffinity", _AFFINITIES)
    yield from _address_errors(spec)
    yield from _service_port_errors(ports)


def _address_errors(spec: Fields) -> Iterator[FieldError]:
    sent = texts(spec.get("clusterIPs")) or ((text(spec["clusterIP"]),) if spec.get("clusterIP") else ())
    for place, address in enumerate(sent):
        if address != "None" and not _is_address(address):
            text_ = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            yield invalid_value(f"spec.clusterIPs[{place}]", shown(address), text_)


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def _service_port_errors(ports: list[Any]) -> Iterator[FieldError]:
    names: set[str] = set()
    seen: set[tuple[int, str]] = set()
    repeated: list[FieldError] = []
    for place, port in enumerate(ports):
        where, name = f"spec.ports[{place}]", text(at(port, "name"))
        number, target, protocol = at(port, "port"), at(port, "targetPort"), text(at(port, "protocol"))
        if not name and len(ports) > 1:
            yield required(f"{where}.name")
        elif name:
            yield from label_name_errors(name, f"{where}.name")
            if name in names:
                yield duplicate(f"{where}.name", shown(name))
        names.add(name)
        yield from port_errors(number, f"{where}.port")
        yield from one_of(protocol, f"{where}.protocol", PROTOCOLS)
        if not isinstance(target, str):
            yield from port_errors(target, f"{where}.targetPort")
        key = (integer(number), protocol)
        if key in seen:
            value = (
                f'{{"Name":"","Protocol":"{protocol}","AppProtocol":null,"Port":{key[0]},"TargetPort":0,"NodePort":0}}'
            )
            repeated.append(duplicate(where, value))
        seen.add(key)
    yield from repeated


def service_update_errors(before: Fields, after: Fields) -> Iterator[FieldError]:
    """Yield an error if an update changes the address of a Service that had one and needs one."""
    old, new = mapping(before.get("spec")), mapping(after.get("spec"))
    if "ExternalName" in (old.get("type"), new.get("type")) or not old.get("clusterIP"):
        return
    if new.get("clusterIP") != old["clusterIP"]:
        value = shown([new.get("clusterIP") or ""])
        yield invalid_value("spec.clusterIPs[0]", value, "may not change once set")


def secret_errors(secret: Fields) -> Iterator[FieldError]:
    """Yield which keys the type of a Secret needs and are not there."""
    data, kind = mapping(secret.get("data")), text(secret.get("type"))
    for key in _SECRET_KEYS.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
    if kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield required("data[username]")
        yield required("data[password]")
    if kind == "kubernetes.io/service-account-token" and not at(secret, "metadata", "annotations", _ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")


def secret_update_errors(before: Fields, after: Fields) -> Iterator[FieldError]:
    """Yield an error if an update changes the type of a Secret."""
    if before.get("type") != after.get("type"):
        yield invalid_value("type", shown(after.get("type")), IMMUTABLE)


def new_event_errors(event: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a new event of the core group."""
    yield from _event_place_errors(event, at(event, "involvedObject", "namespace"))
    if event.get("eventTime") is not None:
        for name in ("reportingComponent", "reportingInstance", "action", "reason"):
            if not event.get(name):
                yield required(name)


def new_event_of_events_errors(event: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a new event of events.k8s.io, which has to say more."""
    yield from _event_place_errors(event, at(event, "regarding", "namespace"))
    if event.get("eventTime") is None:
        yield required("eventTime")
    else:
        for name in ("reportingController", "reportingInstance", "action", "reason"):
            if not event.get(name):
                yield required(name)
    kind = text(event.get("type"))
    if kind not in ("Normal", "Warning"):
        yield invalid_value("type", shown(kind), "has invalid value: " + kind)


def _event_place_errors(event: Fields, about: object) -> Iterator[FieldError]:
    """What is about something without a namespace goes to the namespace ``default``."""
    namespace, place = text(at(event, "metadata", "namespace")), text(about)
    if place != namespace and not (not place and namespace in ("default", "kube-system")):
        yield invalid_value("involvedObject.namespace", shown(place), "does not match event.namespace")


def claim_errors(claim: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a PersistentVolumeClaim."""
    spec = mapping(claim.get("spec"))
    modes = texts(spec.get("accessModes"))
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        yield from one_of(mode, "spec.accessModes", _ACCESS_MODES)
    storage = at(spec, "resources", "requests", "storage")
    if storage is None:
        yield required("spec.resources[storage]")
    elif amount(storage) <= 0:
        yield invalid_value("spec.resources[storage]", shown(storage), "must be greater than zero")


def volume_errors(volume: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a PersistentVolume."""
    spec = mapping(volume.get("spec"))
    if not texts(spec.get("accessModes")):
        yield required("spec.accessModes")
    for mode in texts(spec.get("accessModes")):
        yield from one_of(mode, "spec.accessModes", _ACCESS_MODES)
    capacity = spec.get("capacity")
    if not capacity:
        yield required("spec.capacity")
    if not isinstance(capacity, dict) or "storage" not in capacity:
        text_ = f'Unsupported value: {shown(capacity)}: supported values: "storage"'
        yield FieldError("spec.capacity", "FieldValueNotSupported", text_)


def ingress_errors(ingress: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with an Ingress."""
    spec = mapping(ingress.get("spec"))
    if not items(spec.get("rules")) and spec.get("defaultBackend") is None:
        yield invalid_value("spec", "null", "either `defaultBackend` or `rules` must be specified")
    for place, rule in enumerate(items(spec.get("rules"))):
        for number, path in enumerate(items(at(rule, "http", "paths"))):
            if at(path, "pathType") is None:
                field = f"spec.rules[{place}].http.paths[{number}].pathType"
                yield required(field, "pathType must be specified")


def autoscaler_errors(autoscaler: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with the numbers of an autoscaler, and with what it scales."""
    spec = mapping(autoscaler.get("spec"))
    least, most = spec.get("minReplicas"), integer(spec.get("maxReplicas"))
    if isinstance(least, int) and least < 1:
        yield invalid_value("spec.minReplicas", str(least), "must be greater than or equal to 1")
    if most < 1:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    if isinstance(least, int) and most < least:
        yield invalid_value("spec.maxReplicas", str(most), "must be greater than or equal to `minReplicas`")
    for name in ("kind", "name"):
        if not at(spec, "scaleTargetRef", name):
            yield required(f"spec.scaleTargetRef.{name}")


def binding_errors(binding: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with the role that a RoleBinding or ClusterRoleBinding names."""
    known = ("Role", "ClusterRole") if at(binding, "metadata", "namespace") else ("ClusterRole",)
    yield from one_of(at(binding, "roleRef", "kind") or "", "roleRef.kind", known)
    if not at(binding, "roleRef", "name"):
        yield required("roleRef.name")


def role_errors(role: Fields) -> Iterator[FieldError]:
    """Yield which parts of its rules a Role or ClusterRole lacks."""
    for place, rule in enumerate(items(role.get("rules"))):
        where = f"rules[{place}]"
        if not texts(at(rule, "verbs")):
            yield required(f"{where}.verbs", "verbs must contain at least one value")
        if texts(at(rule, "nonResourceURLs")):
            continue
        if not texts(at(rule, "apiGroups")):
            yield required(f"{where}.apiGroups", "resource rules must supply at least one api group")
        if not texts(at(rule, "resources")):
            yield required(f"{where}.resources", "resource rules must supply at least one resource")


def storage_class_errors(storage_class: Fields) -> Iterator[FieldError]:
    """Yield an error if a StorageClass names no provisioner."""
    if not storage_class.get("provisioner"):
        yield required("provisioner")


def priority_class_errors(priority_class: Fields) -> Iterator[FieldError]:
    """Yield an error if a PriorityClass of a user is as high as those of the system."""
    name = text(at(priority_class, "metadata", "name"))
    if integer(priority_class.get("value")) > _HIGHEST_PRIORITY and not name.startswith("system-"):
        text_ = f"Forbidden: maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        yield FieldError("value", "FieldValueForbidden", text_)


def network_policy_errors(policy: Fields) -> Iterator[FieldError]:
    """Yield an error for each type of policy that there is not."""
    for place, name in enumerate(texts(at(policy, "spec", "policyTypes"))):
        yield from one_of(name, f"spec.policyTypes[{place}]", ("Ingress", "Egress"))
