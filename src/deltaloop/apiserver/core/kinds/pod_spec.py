"""Pod specs and templates: containers, ports, environment, probes, DNS and host names.

Source: Kubernetes pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, string_map, text, texts
from deltaloop.apiserver.core.kinds.field_checks import each, one_of, port_name_errors, port_or_name_errors
from deltaloop.apiserver.core.kinds.pod_placement import PLACEMENT_CHECKS, claimed_errors
from deltaloop.apiserver.core.kinds.pod_security import SECURITY_CHECKS
from deltaloop.apiserver.core.kinds.pod_volumes import VOLUME_CHECKS
from deltaloop.apiserver.core.kinds.resource_amounts import (
    container_name_errors,
    overhead_errors,
    pod_name_errors,
    requirements_check,
)
from deltaloop.apiserver.core.metadata.rules import annotation_errors, label_errors, subdomain_errors
from deltaloop.schemas.checking import Check, Place
from deltaloop.schemas.field_errors import SchemaError, duplicate, forbidden_field, invalid_value, required, too_long

_POD: Final = "core.v1.Pod"
_MOST_SERVERS, _MOST_SEARCHES, _LONGEST_SEARCHES, _LONGEST_HOST_NAME = 3, 32, 2048, 64
_POD_SPEC: Final = "core.v1.PodSpec"
_CONTAINERS: Final = ("core.v1.Container", "core.v1.EphemeralContainer")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_HEADER: Final = re.compile("[-A-Za-z0-9]+")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_ONLY_OF_SIDECARS: Final = ("lifecycle", *_PROBES)
_NOT_EPHEMERAL: Final = (
    "ports",
    "resources",
    *_ONLY_OF_SIDECARS,
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
)
_VALUE_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def _metadata_errors(place: Place) -> Iterator[SchemaError]:
    """Yield the errors in the labels and annotations of a template. Their paths do not contain ``metadata``."""
    metadata = place.fields.get("metadata")
    yield from label_errors(string_map(at(metadata, "labels")), place.below("labels"))
    yield from annotation_errors(string_map(at(metadata, "annotations")), place.below("annotations"))


def _container_name_errors(place: Place) -> Iterator[SchemaError]:
    if not place.within(_POD_SPEC).is_first("container", place.text):
        yield duplicate(place.path, place.text)


def _host_network_errors(place: Place) -> Iterator[SchemaError]:
    if place.beside("hostNetwork") is not True or place.name != "containers":
        return
    owner = place.within(_POD_SPEC).holder
    defaulted = owner is not None and owner.type.name != _POD  # pods from a template get default host ports
    for where, port in each(place.fields, "ports", place.path):
        number = integer(port.get("hostPort"))
        if number != integer(port.get("containerPort")) and not (defaulted and number == 0):
            yield invalid_value(f"{where}.hostPort", number, "must match `containerPort` when `hostNetwork` is true")


def _port_name_errors(place: Place) -> Iterator[SchemaError]:
    wrong = [*port_name_errors(place.value, place.path)]
    if not place.within(*_CONTAINERS).is_first("port", place.text) and not wrong:
        wrong.append(duplicate(place.path, place.text))
    yield from wrong


def _host_port_errors(place: Place) -> Iterator[SchemaError]:
    port = place.fields
    if port.get("hostPort"):
        taken = f"{text(port.get('protocol'))}/{text(port.get('hostIP'))}/{port['hostPort']}"
        group = "ephemeral" if place.within(*_CONTAINERS).name == "ephemeralContainers" else ""
        if not place.within(_POD_SPEC).is_first(f"{group} port", taken):
            yield duplicate(place.below("hostPort"), taken)


def _variable_source_errors(place: Place) -> Iterator[SchemaError]:
    value, source, path = place.fields.get("value"), place.fields.get("valueFrom"), place.below("valueFrom")
    if not is_mapping(source):
        return
    found = [kind for kind in _VALUE_SOURCES if is_mapping(source.get(kind))]
    if value:
        yield invalid_value(path, "", "may not be specified when `value` is not empty")
    if not found:
        *others, last = (f"`{kind}`" for kind in _VALUE_SOURCES)
        yield invalid_value(path, "", f"must specify one of: {', '.join(others)} or {last}")
    elif len(found) > 1 and not value:
        yield invalid_value(path, "", "may not have more than one field specified at a time")


def _handler_errors(place: Place) -> Iterator[SchemaError]:
    name = next((name for name in _HANDLERS if is_mapping(place.fields.get(name))), "")
    handler, path = mapping(place.fields.get(name)), place.below(name)
    if name == "exec" and not handler.get("command"):
        yield required(f"{path}.command")
    elif name == "sleep":
        grace, seconds = at(place.within(_POD_SPEC).value, "terminationGracePeriodSeconds"), handler.get("seconds")
        if not 0 <= integer(seconds) <= integer(grace):
            yield invalid_value(path, seconds, "must be non-negative and less than the grace period")
    elif name not in ("", "exec"):
        yield from port_or_name_errors(handler.get("port"), f"{path}.port")
    if name == "httpGet":
        yield from one_of(handler.get("scheme"), f"{path}.scheme", ("HTTP", "HTTPS"))
        if not handler.get("path"):
            yield required(f"{path}.path")
        for header in items(handler.get("httpHeaders")):
            value = text(at(header, "name"))
            if not _HEADER.fullmatch(value):
                text_ = "a valid HTTP header must consist of alphanumeric characters or '-'"
                yield invalid_value(f"{path}.httpHeaders", value, text_)


def _threshold_errors(place: Place) -> Iterator[SchemaError]:
    probe = place.holder
    if probe is not None and probe.name != "readinessProbe" and integer(place.value) > 1:
        yield invalid_value(place.path, place.value, "must be 1")


def _grace_errors(place: Place) -> Iterator[SchemaError]:
    if place.holder is not None and place.holder.name == "readinessProbe":
        yield invalid_value(place.path, place.value, "must not be set for readinessProbes")


def _group_errors(place: Place) -> Iterator[SchemaError]:
    """Yield errors for fields that the container's group does not allow."""
    container, always = place.fields, place.fields.get("restartPolicy") == "Always"
    if place.name == "initContainers" and not always:
        for name in _ONLY_OF_SIDECARS:
            if container.get(name) is not None:
                text_ = "may not be set for init containers without restartPolicy=Always"
                yield forbidden_field(place.below(name), text_)
        for where, policy in each(container, "resizePolicy", place.path):
            if policy.get("restartPolicy") == "RestartContainer":
                text_ = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                yield invalid_value(f"{where}.restartPolicy", "RestartContainer", text_)
    if place.name == "ephemeralContainers":
        for name in _NOT_EPHEMERAL:
            if container.get(name):
                yield forbidden_field(place.below(name), "cannot be set for an Ephemeral Container")
        for where, mount in each(container, "volumeMounts", place.path):
            for name in ("subPath", "subPathExpr"):
                if mount.get(name):
                    yield forbidden_field(f"{where}.{name}", "cannot be set for an Ephemeral Container")
    elif items(container.get("restartPolicyRules")) and container.get("restartPolicy") is None:
        yield required(place.below("restartPolicy"), "must specify restartPolicy when restart rules are used")


def _resize_errors(place: Place) -> Iterator[SchemaError]:
    never = at(place.within(_POD_SPEC).value, "restartPolicy") == "Never"
    seen: set[str] = set()
    for number, policy in enumerate(map(mapping, items(place.value))):
        resource, restart = text(policy.get("resourceName")), text(policy.get("restartPolicy"))
        if resource in seen:
            yield duplicate(f"{place.path}[{number}]", resource)
        seen.add(resource)
        yield from one_of(resource, place.path, ("cpu", "memory"))
        yield from one_of(restart, place.path, ("NotRequired", "RestartContainer"))
        if never and restart != "NotRequired":
            yield invalid_value(place.path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def _environment_errors(place: Place) -> Iterator[SchemaError]:
    """Yield an error unless each environment source has exactly one reference. All errors have the same path."""
    for source in items(place.value):
        found = [name for name in ("configMapRef", "secretRef") if is_mapping(at(source, name))]
        if not found:
            yield invalid_value(place.path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(found) > 1:
            yield invalid_value(place.path, "", "may not have more than one field specified at a time")


def _dns_errors(place: Place) -> Iterator[SchemaError]:
    pod, path = place.fields, place.below("dnsConfig")
    config, servers = mapping(pod.get("dnsConfig")), texts(at(pod, "dnsConfig", "nameservers"))
    if pod.get("dnsPolicy") == "None" and not servers:
        field = f"{path}.nameservers" if is_mapping(pod.get("dnsConfig")) else path
        yield required(field, "must provide at least one DNS nameserver when `dnsPolicy` is None")
    if len(servers) > _MOST_SERVERS:
        yield invalid_value(f"{path}.nameservers", servers, f"must not have more than {_MOST_SERVERS} nameservers")
    searches = texts(config.get("searches"))
    if len(searches) > _MOST_SEARCHES or len(" ".join(searches)) > _LONGEST_SEARCHES:
        yield invalid_value(f"{path}.searches", searches, "must not have so many search paths")
    for where, option in each(config, "options", path):
        if not option.get("name"):
            yield required(where, "must not be empty")


def _host_name_errors(place: Place) -> Iterator[SchemaError]:
    pod, path = place.fields, place.below("hostnameOverride")
    name = pod.get("hostnameOverride")
    if name is None:
        return
    for other in ("setHostnameAsFQDN", "hostNetwork"):
        if pod.get(other) is True:
            yield forbidden_field(path, f"may not be specified when {other} is true")
    if len(text(name)) > _LONGEST_HOST_NAME:
        yield too_long(path, _LONGEST_HOST_NAME)
    yield from subdomain_errors(text(name), path)


def _no_claims_errors(place: Place) -> Iterator[SchemaError]:
    if place.fields.get("claims") is not None:
        yield forbidden_field(place.below("claims"), "claims may not be set for Resources at pod-level")


def _account_errors(place: Place) -> Iterator[SchemaError]:
    if text(place.fields.get("serviceAccount")) != text(place.fields.get("serviceAccountName")):
        account = place.fields.get("serviceAccount")
        yield invalid_value(place.below("deprecatedServiceAccount"), account, "must be the same as serviceAccountName")


def _template_errors(place: Place) -> Iterator[SchemaError]:
    yield from _metadata_errors(place)
    if items(at(place.fields, "spec", "ephemeralContainers")):
        text_ = "ephemeral containers not allowed in pod template"
        yield forbidden_field(place.below("spec.ephemeralContainers"), text_)


POD_CHECKS: Final[Mapping[str, Check]] = {
    **PLACEMENT_CHECKS,
    **SECURITY_CHECKS,
    **VOLUME_CHECKS,
    "account": _account_errors,
    "claims_of_container": claimed_errors,
    "container_group": _group_errors,
    "container_name": _container_name_errors,
    "container_port_name": _port_name_errors,
    "container_resources": requirements_check(container_name_errors),
    "dns": _dns_errors,
    "environment": _environment_errors,
    "free_host_port": _host_port_errors,
    "grace_of_probe": _grace_errors,
    "handler": _handler_errors,
    "host_name": _host_name_errors,
    "no_claims": _no_claims_errors,
    "overhead": overhead_errors,
    "pod_resources": requirements_check(pod_name_errors),
    "ports_of_host_network": _host_network_errors,
    "resize_policy": _resize_errors,
    "success_threshold": _threshold_errors,
    "template_metadata": _template_errors,
    "variable_source": _variable_source_errors,
}
