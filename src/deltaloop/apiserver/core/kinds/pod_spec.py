"""Pod specs and templates: containers, ports, environment, volumes, probes, and what an update may change.

Source: Kubernetes pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds import field_checks as check
from deltaloop.apiserver.core.metadata.rules import (
    annotation_errors,
    label_errors,
    label_name_errors,
    qualified_name_errors,
    subdomain_errors,
)
from deltaloop.schemas.faults import FieldError, duplicate, forbidden_field, invalid_value, missing, required
from deltaloop.schemas.json_values import at, integer, is_mapping, items, mapping, string_map, text
from deltaloop.schemas.quantity import amount

_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_MAX_SECONDS: Final = 2_147_483_647
_VALUE_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
# Names that stand for something in quotas, but not in containers.
_QUOTA_RESOURCES: Final = (
    "configmaps",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
)
# What a volume's source cannot do without.
_VOLUME_NEEDS: Final = {
    "secret": "secretName",
    "configMap": "name",
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
}


def pod_template_errors(template: object, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with a pod template: its labels and annotations, and the spec of its pods."""
    yield from label_errors(string_map(at(template, "metadata", "labels")), f"{path}.labels")
    yield from annotation_errors(string_map(at(template, "metadata", "annotations")), f"{path}.annotations")
    yield from pod_spec_errors(mapping(at(template, "spec")), f"{path}.spec")


def pod_spec_errors(spec: Mapping[str, object], path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the spec of a pod or of a pod template."""
    volumes: set[str] = set()
    for where, volume in check.each(spec, "volumes", path):
        yield from _volume_errors(volume, where, volumes)
    names: set[str] = set()
    if not items(spec.get("containers")):
        yield required(f"{path}.containers")
    ports: set[str] = set()
    for group in ("containers", "initContainers", "ephemeralContainers"):
        for where, container in check.each(spec, group, path):
            name = text(container.get("name"))
            if name in names and name:
                yield duplicate(f"{where}.name", check.shown(name))
            names.add(name)
            yield from _container_errors(container, where, volumes, ports)
            if spec.get("hostNetwork") is True and group != "ephemeralContainers":
                yield from _host_network_errors(container, where)
        if group == "initContainers":
            ports = set()
    yield from check.one_of(spec.get("restartPolicy"), f"{path}.restartPolicy", _RESTART_POLICIES)
    yield from check.one_of(spec.get("dnsPolicy"), f"{path}.dnsPolicy", _DNS_POLICIES)
    yield from label_errors(string_map(spec.get("nodeSelector")), f"{path}.nodeSelector")
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            yield from subdomain_errors(text(spec[name]), f"{path}.{name}")
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 0 < deadline <= _MAX_SECONDS:
        text_ = f"must be between 1 and {_MAX_SECONDS}, inclusive"
        yield invalid_value(f"{path}.activeDeadlineSeconds", str(deadline), text_)
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from label_name_errors(text(spec[name]), f"{path}.{name}")
    for where, toleration in check.each(spec, "tolerations", path):
        yield from _toleration_errors(toleration, where)


def _container_errors(
    container: Mapping[str, object], path: str, volumes: set[str], host_ports: set[str]
) -> Iterator[FieldError]:
    image = text(container.get("image"))
    yield from check.named(container, path, label_name_errors)
    yield from check.needs(container, "image", path=path)
    if image != image.strip():
        yield invalid_value(f"{path}.image", check.shown(image), "must not have leading or trailing whitespace")
    yield from check.one_of(
        container.get("terminationMessagePolicy"), f"{path}.terminationMessagePolicy", _MESSAGE_POLICIES
    )
    yield from _port_list_errors(container, path, host_ports)
    for where, variable in check.each(container, "env", path):
        yield from _variable_errors(variable, where)
    yield from _mount_errors(container, path, volumes)
    yield from check.one_of(container.get("imagePullPolicy"), f"{path}.imagePullPolicy", _PULL_POLICIES)
    yield from _resource_errors(mapping(container.get("resources")), f"{path}.resources")
    for probe in _PROBES:
        if is_mapping(container.get(probe)):
            yield from _probe_errors(mapping(container[probe]), f"{path}.{probe}", once=probe != "readinessProbe")


def _host_network_errors(container: Mapping[str, object], path: str) -> Iterator[FieldError]:
    for where, port in check.each(container, "ports", path):
        number = integer(port.get("hostPort"))
        if number != integer(port.get("containerPort")):
            text_ = "must match `containerPort` when `hostNetwork` is true"
            yield invalid_value(f"{where}.hostPort", str(number), text_)


def _port_list_errors(container: Mapping[str, object], path: str, host_ports: set[str]) -> Iterator[FieldError]:
    names: set[str] = set()
    for where, port in check.each(container, "ports", path):
        name = text(port.get("name"))
        if name:
            wrong = [*check.port_name_errors(name, f"{where}.name")]
            if not wrong and name in names:
                wrong.append(duplicate(f"{where}.name", check.shown(name)))
            yield from wrong
            names.add(name)
        host_port = integer(port.get("hostPort"))
        if port.get("containerPort"):
            yield from check.port_errors(port["containerPort"], f"{where}.containerPort")
        else:
            yield required(f"{where}.containerPort")
        if host_port:
            yield from check.port_errors(host_port, f"{where}.hostPort")
        yield from check.one_of(port.get("protocol"), f"{where}.protocol", check.PROTOCOLS)
        if host_port:
            taken = f"{text(port.get('protocol'))}/{text(port.get('hostIP'))}/{host_port}"
            if taken in host_ports:
                yield duplicate(f"{where}.hostPort", check.shown(taken))
            host_ports.add(taken)


def _variable_errors(variable: Mapping[str, object], path: str) -> Iterator[FieldError]:
    name, value, source = text(variable.get("name")), variable.get("value"), variable.get("valueFrom")
    yield from check.needs(variable, "name", path=path)
    if "=" in name or not (name.isascii() and name.isprintable()):
        text_ = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        yield invalid_value(f"{path}.name", check.shown(name), text_)
    if is_mapping(source):
        found = [kind for kind in _VALUE_SOURCES if is_mapping(source.get(kind))]
        if value:
            yield invalid_value(f"{path}.valueFrom", '""', "may not be specified when `value` is not empty")
        if not found:
            *others, last = (f"`{kind}`" for kind in _VALUE_SOURCES)
            yield invalid_value(f"{path}.valueFrom", '""', f"must specify one of: {', '.join(others)} or {last}")
        elif len(found) > 1 and not value:
            yield invalid_value(f"{path}.valueFrom", '""', "may not have more than one field specified at a time")
    for kind in ("configMapKeyRef", "secretKeyRef"):
        reference = at(source, kind)
        if is_mapping(reference):
            yield from subdomain_errors(text(reference.get("name")), f"{path}.valueFrom.{kind}.name")
            yield from check.needs(reference, "key", path=f"{path}.valueFrom.{kind}")


def _mount_errors(container: Mapping[str, object], path: str, volumes: set[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for where, mount in check.each(container, "volumeMounts", path):
        name, target = text(mount.get("name")), text(mount.get("mountPath"))
        yield from check.needs(mount, "name", path=where)
        if name not in volumes:
            yield missing(f"{where}.name", check.shown(name))
        yield from check.needs(mount, "mountPath", path=where)
        if target in seen:
            yield invalid_value(f"{where}.mountPath", check.shown(target), "must be unique")
        seen |= {target} - {""}


def _resource_name_errors(name: str, field: str) -> Iterator[FieldError]:
    wrong = [*qualified_name_errors(name, field)]
    if "/" not in name and name not in _RESOURCES and not name.startswith("hugepages-"):
        if not wrong and name not in _QUOTA_RESOURCES:
            wrong.append(invalid_value(field, check.shown(name), "must be a standard resource type or fully qualified"))
        wrong.append(invalid_value(field, check.shown(name), "must be a standard resource for containers"))
    yield from wrong


def _resource_errors(resources: Mapping[str, object], path: str) -> Iterator[FieldError]:
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    for group, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            yield from _resource_name_errors(name, f"{path}.{group}[{name}]")
            if amount(value) < 0:
                yield invalid_value(f"{path}.{group}[{name}]", check.shown(value), check.NOT_NEGATIVE)
    for name, value in requests.items():
        if name in limits and amount(value) > amount(limits[name]):
            text_ = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid_value(f"{path}.requests", check.shown(value), text_)


def _probe_errors(probe: Mapping[str, object], path: str, *, once: bool) -> Iterator[FieldError]:
    handlers = [name for name in _HANDLERS if is_mapping(probe.get(name))]
    if not handlers:
        yield required(path, "must specify a handler type")
    for name in handlers[1:]:
        yield forbidden_field(f"{path}.{name}", "may not specify more than 1 handler type")
    if handlers[:1] == ["exec"]:
        yield from check.needs(probe["exec"], "command", path=f"{path}.exec")
    elif handlers:
        yield from check.port_or_name_errors(at(probe, handlers[0], "port"), f"{path}.{handlers[0]}.port")
    yield from check.not_negative(probe, *_PROBE_NUMBERS, path=path)
    threshold = integer(probe.get("successThreshold"))
    if once and threshold > 1:
        yield invalid_value(f"{path}.successThreshold", str(threshold), "must be 1")


def _volume_errors(volume: Mapping[str, object], path: str, names: set[str]) -> Iterator[FieldError]:
    name = text(volume.get("name"))
    yield from check.named(volume, path, label_name_errors)
    if name in names:
        yield duplicate(f"{path}.name", check.shown(name))
    names.add(name)
    sources = [source for source, value in volume.items() if is_mapping(value)]
    for source in sources[1:]:
        yield forbidden_field(f"{path}.{source}", "may not specify more than 1 volume type")
    for source in sources[:1]:
        if source in _VOLUME_NEEDS:
            yield from check.needs(volume[source], _VOLUME_NEEDS[source], path=f"{path}.{source}")
    if amount(at(volume, "emptyDir", "sizeLimit")) < 0:
        yield forbidden_field(f"{path}.emptyDir.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _toleration_errors(toleration: Mapping[str, object], path: str) -> Iterator[FieldError]:
    operator, value = text(toleration.get("operator")), text(toleration.get("value"))
    if operator == "Exists" and value:
        yield invalid_value(f"{path}.operator", check.shown(value), "value must be empty when `operator` is 'Exists'")
    elif not toleration.get("key") and operator != "Exists":
        text_ = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(f"{path}.operator", check.shown(operator), text_)
    elif operator:
        yield from check.one_of(operator, f"{path}.operator", ("Equal", "Exists"))
    if toleration.get("effect"):
        yield from check.one_of(toleration["effect"], f"{path}.effect", _EFFECTS)
