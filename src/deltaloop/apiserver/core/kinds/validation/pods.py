"""Pods and pod templates: containers, ports, environment, volumes, probes, and what an update may change.

Source: Kubernetes pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from deltaloop.apiserver.core.kinds.validation.checks import (
    NOT_NEGATIVE,
    PROTOCOLS,
    not_negative,
    one_of,
    port_errors,
    port_name_errors,
    shown,
)
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

Fields = dict[str, Any]

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
_UPDATES: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_template_errors(template: Fields, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with a pod template: its labels and annotations, and the spec of its pods."""
    yield from label_errors(string_map(at(template, "metadata", "labels")), f"{path}.labels")
    yield from annotation_errors(string_map(at(template, "metadata", "annotations")), f"{path}.annotations")
    yield from pod_spec_errors(mapping(template.get("spec")), f"{path}.spec")


def pod_spec_errors(spec: Fields, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the spec of a pod or of a pod template."""
    volumes: set[str] = set()
    for place, volume in enumerate(items(spec.get("volumes"))):
        yield from _volume_errors(mapping(volume), f"{path}.volumes[{place}]", volumes)
    names: set[str] = set()
    containers = items(spec.get("containers"))
    if not containers:
        yield required(f"{path}.containers")
    ports: set[str] = set()
    for group in ("containers", "initContainers", "ephemeralContainers"):
        for place, container in enumerate(items(spec.get(group))):
            where = f"{path}.{group}[{place}]"
            name = text(at(container, "name"))
            if name in names and name:
                yield duplicate(f"{where}.name", shown(name))
            names.add(name)
            yield from _container_errors(mapping(container), where, volumes, ports)
            if spec.get("hostNetwork") is True and group != "ephemeralContainers":
                yield from _host_network_errors(items(at(container, "ports")), f"{where}.ports")
        if group == "initContainers":
            ports = set()
    yield from one_of(spec.get("restartPolicy"), f"{path}.restartPolicy", _RESTART_POLICIES)
    yield from one_of(spec.get("dnsPolicy"), f"{path}.dnsPolicy", _DNS_POLICIES)
    yield from label_errors(string_map(spec.get("nodeSelector")), f"{path}.nodeSelector")
    if spec.get("serviceAccountName"):
        yield from subdomain_errors(text(spec["serviceAccountName"]), f"{path}.serviceAccountName")
    if spec.get("nodeName"):
        yield from subdomain_errors(text(spec["nodeName"]), f"{path}.nodeName")
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 0 < deadline <= _MAX_SECONDS:
        text_ = f"must be between 1 and {_MAX_SECONDS}, inclusive"
        yield invalid_value(f"{path}.activeDeadlineSeconds", str(deadline), text_)
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from label_name_errors(text(spec[name]), f"{path}.{name}")
    for place, toleration in enumerate(items(spec.get("tolerations"))):
        yield from _toleration_errors(mapping(toleration), f"{path}.tolerations[{place}]")


def _container_errors(container: Fields, path: str, volumes: set[str], host_ports: set[str]) -> Iterator[FieldError]:
    name, image = text(container.get("name")), text(container.get("image"))
    if not name:
        yield required(f"{path}.name")
    else:
        yield from label_name_errors(name, f"{path}.name")
    if not image:
        yield required(f"{path}.image")
    elif image != image.strip():
        yield invalid_value(f"{path}.image", shown(image), "must not have leading or trailing whitespace")
    yield from one_of(container.get("terminationMessagePolicy"), f"{path}.terminationMessagePolicy", _MESSAGE_POLICIES)
    yield from _port_list_errors(items(container.get("ports")), f"{path}.ports", host_ports)
    for place, variable in enumerate(items(container.get("env"))):
        yield from _variable_errors(mapping(variable), f"{path}.env[{place}]")
    yield from _mount_errors(items(container.get("volumeMounts")), f"{path}.volumeMounts", volumes)
    yield from one_of(container.get("imagePullPolicy"), f"{path}.imagePullPolicy", _PULL_POLICIES)
    yield from _resource_errors(mapping(container.get("resources")), f"{path}.resources")
    for probe in _PROBES:
        if isinstance(container.get(probe), dict):
            yield from _probe_errors(mapping(container[probe]), f"{path}.{probe}", once=probe != "readinessProbe")


def _host_network_errors(ports: list[Any], path: str) -> Iterator[FieldError]:
    for place, port in enumerate(ports):
        number = integer(at(port, "hostPort"))
        if number != integer(at(port, "containerPort")):
            text_ = "must match `containerPort` when `hostNetwork` is true"
            yield invalid_value(f"{path}[{place}].hostPort", str(number), text_)


def _port_list_errors(ports: list[Any], path: str, host_ports: set[str]) -> Iterator[FieldError]:
    names: set[str] = set()
    for place, port in enumerate(ports):
        where, name = f"{path}[{place}]", text(at(port, "name"))
        if name:
            wrong = [*port_name_errors(name, f"{where}.name")]
            if not wrong and name in names:
                wrong.append(duplicate(f"{where}.name", shown(name)))
            yield from wrong
            names.add(name)
        number, host_port = integer(at(port, "containerPort")), integer(at(port, "hostPort"))
        if not number:
            yield required(f"{where}.containerPort")
        else:
            yield from port_errors(number, f"{where}.containerPort")
        if host_port:
            yield from port_errors(host_port, f"{where}.hostPort")
        yield from one_of(at(port, "protocol"), f"{where}.protocol", PROTOCOLS)
        if host_port:
            taken = f"{text(at(port, 'protocol'))}/{text(at(port, 'hostIP'))}/{host_port}"
            if taken in host_ports:
                yield duplicate(f"{where}.hostPort", shown(taken))
            host_ports.add(taken)


def _variable_errors(variable: Fields, path: str) -> Iterator[FieldError]:
    name = text(variable.get("name"))
    if not name:
        yield required(f"{path}.name")
    elif "=" in name or not (name.isascii() and name.isprintable()):
        text_ = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        yield invalid_value(f"{path}.name", shown(name), text_)
    if isinstance(variable.get("valueFrom"), dict) and variable.get("value"):
        yield invalid_value(f"{path}.valueFrom", '""', "may not be specified when `value` is not empty")
    sources = [name for name in _VALUE_SOURCES if isinstance(at(variable, "valueFrom", name), dict)]
    if isinstance(variable.get("valueFrom"), dict) and not sources:
        *others, last = (f"`{name}`" for name in _VALUE_SOURCES)
        yield invalid_value(f"{path}.valueFrom", '""', f"must specify one of: {', '.join(others)} or {last}")
    elif len(sources) > 1 and not variable.get("value"):
        yield invalid_value(f"{path}.valueFrom", '""', "may not have more than one field specified at a time")
    for source in ("configMapKeyRef", "secretKeyRef"):
        reference = at(variable, "valueFrom", source)
        if is_mapping(reference):
            yield from subdomain_errors(text(at(reference, "name")), f"{path}.valueFrom.{source}.name")
            if not at(reference, "key"):
                yield required(f"{path}.valueFrom.{source}.key")


def _mount_errors(mounts: list[Any], path: str, volumes: set[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for place, mount in enumerate(mounts):
        where, name, target = f"{path}[{place}]", text(at(mount, "name")), text(at(mount, "mountPath"))
        if not name:
            yield required(f"{where}.name")
        if name not in volumes:
            yield missing(f"{where}.name", shown(name))
        if not target:
            yield required(f"{where}.mountPath")
        elif target in seen:
            yield invalid_value(f"{where}.mountPath", shown(target), "must be unique")
        seen.add(target)


def _resource_name_errors(name: str, field: str) -> Iterator[FieldError]:
    wrong = [*qualified_name_errors(name, field)]
    if "/" not in name and name not in _RESOURCES and not name.startswith("hugepages-"):
        if not wrong and name not in _QUOTA_RESOURCES:
            wrong.append(invalid_value(field, shown(name), "must be a standard resource type or fully qualified"))
        wrong.append(invalid_value(field, shown(name), "must be a standard resource for containers"))
    yield from wrong


def _resource_errors(resources: Fields, path: str) -> Iterator[FieldError]:
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    for group, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            yield from _resource_name_errors(name, f"{path}.{group}[{name}]")
            if amount(value) < 0:
                yield invalid_value(f"{path}.{group}[{name}]", shown(value), NOT_NEGATIVE)
    for name, value in requests.items():
        if name in limits and amount(value) > amount(limits[name]):
            text_ = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid_value(f"{path}.requests", shown(value), text_)


def _probe_errors(probe: Fields, path: str, *, once: bool) -> Iterator[FieldError]:
    handlers = [name for name in _HANDLERS if isinstance(probe.get(name), dict)]
    if not handlers:
        yield required(path, "must specify a handler type")
    for name in handlers[1:]:
        yield forbidden_field(f"{path}.{name}", "may not specify more than 1 handler type")
    for name in handlers[:1]:
        if name == "exec":
            if not items(at(probe, "exec", "command")):
                yield required(f"{path}.exec.command")
            continue
        port = at(probe, name, "port")
        check = port_name_errors if isinstance(port, str) else port_errors
        yield from check(port, f"{path}.{name}.port")
    yield from not_negative(probe, *_PROBE_NUMBERS, path=path)
    threshold = integer(probe.get("successThreshold"))
    if once and threshold > 1:
        yield invalid_value(f"{path}.successThreshold", str(threshold), "must be 1")


def _volume_errors(volume: Fields, path: str, names: set[str]) -> Iterator[FieldError]:
    name = text(volume.get("name"))
    if not name:
        yield required(f"{path}.name")
    else:
        yield from label_name_errors(name, f"{path}.name")
    if name in names:
        yield duplicate(f"{path}.name", shown(name))
    names.add(name)
    sources = [source for source, value in volume.items() if isinstance(value, dict)]
    for source in sources[1:]:
        yield forbidden_field(f"{path}.{source}", "may not specify more than 1 volume type")
    for source in sources[:1]:
        needed = _VOLUME_NEEDS.get(source)
        if needed and not at(volume, source, needed):
            yield required(f"{path}.{source}.{needed}")
    if amount(at(volume, "emptyDir", "sizeLimit")) < 0:
        yield forbidden_field(f"{path}.emptyDir.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _toleration_errors(toleration: Fields, path: str) -> Iterator[FieldError]:
    operator, value = text(toleration.get("operator")), text(toleration.get("value"))
    if operator == "Exists" and value:
        yield invalid_value(f"{path}.operator", shown(value), "value must be empty when `operator` is 'Exists'")
    elif not toleration.get("key") and operator != "Exists":
        text_ = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(f"{path}.operator", shown(operator), text_)
    elif operator not in ("", "Equal", "Exists"):
        yield from one_of(operator, f"{path}.operator", ("Equal", "Exists"))
    if toleration.get("effect"):
        yield from one_of(toleration["effect"], f"{path}.effect", _EFFECTS)


def new_pod_errors(pod: Fields) -> Iterator[FieldError]:
    """Yield what a new pod may not have."""
    if items(at(pod, "spec", "ephemeralContainers")):
        yield forbidden_field("spec.ephemeralContainers", "cannot be set on create")


def pod_update_errors(before: Fields, after: Fields) -> Iterator[FieldError]:
    """Yield what an update of a pod changes although it must not; the message ends before the real server's diff."""
    old, new = mapping(before.get("spec")), dict(mapping(after.get("spec")))
    for group in ("containers", "initContainers"):
        if len(items(old.get(group))) != len(items(new.get(group))):
            yield forbidden_field(f"spec.{group}", "pod updates may not add or remove containers")
            return
        if items(new.get(group)):
            pairs = zip(items(new[group]), items(old.get(group)), strict=True)
            new[group] = [{**mapping(mine), "image": at(theirs, "image")} for mine, theirs in pairs]
    tolerations = items(old.get("tolerations"))
    if {*map(shown, tolerations)} <= {*map(shown, items(new.get("tolerations")))}:
        new["tolerations"] = tolerations
    for name in ("activeDeadlineSeconds", "schedulingGates"):
        new.pop(name, None)
        old = {key: value for key, value in old.items() if key != name}
    if items(at(before, "spec", "schedulingGates")):
        for name in ("nodeSelector", "affinity"):  # may be narrowed while the pod waits
            new[name] = old.get(name)
    if integer(old.get("terminationGracePeriodSeconds")) < 0 and new.get("terminationGracePeriodSeconds") == 1:
        new["terminationGracePeriodSeconds"] = old["terminationGracePeriodSeconds"]
    if {name: value for name, value in new.items() if value not in (None, [])} != {
        name: value for name, value in old.items() if value not in (None, [])
    }:
        yield forbidden_field("spec", _UPDATES)
