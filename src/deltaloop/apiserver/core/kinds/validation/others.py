"""Services, Secrets, autoscalers and ControllerRevisions.

Source: Kubernetes pkg/apis/core/validation, autoscaling/validation, apps/validation.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from deltaloop.apiserver.core.kinds.validation.addresses import NO_ADDRESS, is_address
from deltaloop.apiserver.core.kinds.validation.checks import (
    IMMUTABLE,
    PROTOCOLS,
    one_of,
    port_errors,
    port_name_errors,
    shown,
)
from deltaloop.apiserver.core.metadata.rules import label_errors, label_name_errors, subdomain_errors
from deltaloop.schemas.faults import FieldError, duplicate, forbidden_field, invalid_value, not_supported, required
from deltaloop.schemas.json_values import at, integer, items, mapping, string_map, text, texts
from deltaloop.schemas.nesting import decode_json

Fields = dict[str, Any]

_SERVICE_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES: Final = ("ClientIP", "None")
_TRAFFIC_POLICIES: Final = ("Cluster", "Local")
_SECRET_KEYS: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_DOCKER: Final = ".dockerconfigjson"
# What each type of metric is described by.
_METRIC_PARTS: Final = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


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
    yield from _family_errors(spec)
    yield from _service_port_errors(ports, kind)
    yield from label_errors(string_map(spec.get("selector")), "spec.selector")
    yield from _policy_errors(spec, kind)


def _policy_errors(spec: Fields, kind: str) -> Iterator[FieldError]:
    external, internal = spec.get("externalTrafficPolicy"), spec.get("internalTrafficPolicy")
    if external and kind not in ("NodePort", "LoadBalancer") and not texts(spec.get("externalIPs")):
        text_ = "may only be set for externally-accessible services"
        yield invalid_value("spec.externalTrafficPolicy", shown(external), text_)
    elif external:
        yield from one_of(external, "spec.externalTrafficPolicy", _TRAFFIC_POLICIES)
    if internal:
        yield from one_of(internal, "spec.internalTrafficPolicy", _TRAFFIC_POLICIES)


def _family_errors(spec: Fields) -> Iterator[FieldError]:
    """Yield an error for each family of addresses that this server does not have: it has IPv4."""
    if spec.get("clusterIP") == "None" and not mapping(spec.get("selector")):
        return
    for place, family in enumerate(texts(spec.get("ipFamilies"))):
        if family == "IPv6":
            yield invalid_value(f"spec.ipFamilies[{place}]", shown(family), "not configured on this cluster")
    if spec.get("ipFamilyPolicy") == "RequireDualStack":
        text_ = "this cluster is not configured for dual-stack services"
        yield invalid_value("spec.ipFamilyPolicy", shown("RequireDualStack"), text_)


def _address_errors(spec: Fields) -> Iterator[FieldError]:
    sent = texts(spec.get("clusterIPs")) or ((text(spec["clusterIP"]),) if spec.get("clusterIP") else ())
    for place, address in enumerate(sent):
        if address != "None" and not is_address(address):
            yield invalid_value(f"spec.clusterIPs[{place}]", shown(address), NO_ADDRESS)
    for place, address in enumerate(texts(spec.get("externalIPs"))):
        if not is_address(address):
            yield invalid_value(f"spec.externalIPs[{place}]", shown(address), NO_ADDRESS)


def _service_port_errors(ports: list[Any], kind: str) -> Iterator[FieldError]:
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
        check = port_name_errors if isinstance(target, str) else port_errors
        yield from check(target, f"{where}.targetPort")
        if kind == "ClusterIP" and integer(at(port, "nodePort")):
            yield forbidden_field(f"{where}.nodePort", "may not be used when `type` is 'ClusterIP'")
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
    if kind == "kubernetes.io/dockerconfigjson" and _DOCKER in data and not _is_json(text(data[_DOCKER])):
        # What is wrong with it would show a part of it.
        yield invalid_value(f"data[{_DOCKER}]", '"<secret contents redacted>"', "it is no JSON")
    if kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield required("data[username]")
        yield required("data[password]")
    if kind == "kubernetes.io/service-account-token" and not at(secret, "metadata", "annotations", _ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")


def _is_json(encoded: str) -> bool:
    try:
        decode_json(base64.b64decode(encoded))
    except (msgspec.DecodeError, ValueError):
        return False
    return True


def secret_update_errors(before: Fields, after: Fields) -> Iterator[FieldError]:
    """Yield an error if an update changes the type of a Secret."""
    if before.get("type") != after.get("type"):
        yield invalid_value("type", shown(after.get("type")), IMMUTABLE)


def autoscaler_errors(autoscaler: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with the numbers of an autoscaler, and with what it scales."""
    spec = mapping(autoscaler.get("spec"))
    least, most = spec.get("minReplicas"), integer(spec.get("maxReplicas"))
    if isinstance(least, int) and least < 1:
        yield invalid_value("spec.minReplicas", str(least), "must be greater than or equal to 1")
        if least == 0 and not any(
            at(metric, "type") in ("Object", "External") for metric in items(spec.get("metrics"))
        ):
            text_ = "must specify at least one Object or External metric to support scaling to zero replicas"
            yield forbidden_field("spec.metrics", text_)
    if most < 1:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    if isinstance(least, int) and most < least:
        yield invalid_value("spec.maxReplicas", str(most), "must be greater than or equal to `minReplicas`")
    for name in ("kind", "name"):
        if not at(spec, "scaleTargetRef", name):
            yield required(f"spec.scaleTargetRef.{name}")
    for place, metric in enumerate(items(spec.get("metrics"))):
        kind = text(at(metric, "type"))
        if kind not in _METRIC_PARTS:
            yield not_supported(f"spec.metrics[{place}].type", kind, _METRIC_PARTS)
        elif not isinstance(at(metric, _METRIC_PARTS[kind]), dict):
            field = f"spec.metrics[{place}].{_METRIC_PARTS[kind]}"
            yield required(field, "must populate information for the given metric source")


def revision_errors(revision: Fields) -> Iterator[FieldError]:
    """Yield an error if a ControllerRevision holds nothing."""
    if revision.get("data") is None:
        yield required("data", "data is mandatory")
