"""Pod specs and templates: containers, ports, environment, volumes, probes, and what an update may change.

Source: Kubernetes pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.field_checks import (
    NOT_NEGATIVE,
    each,
    one_of,
    port_name_errors,
    port_or_name_errors,
)
from deltaloop.apiserver.core.metadata.rules import (
    annotation_errors,
    label_errors,
    qualified_name_errors,
)
from deltaloop.schemas.checking import Check, Place, shown
from deltaloop.schemas.faults import FieldError, duplicate, forbidden_field, invalid_value, missing, required
from deltaloop.schemas.json_values import at, integer, is_mapping, mapping, string_map, text
from deltaloop.schemas.quantity import amount

_POD: Final = "core.v1.Pod"
_POD_SPEC: Final = "core.v1.PodSpec"
_CONTAINERS: Final = ("core.v1.Container", "core.v1.EphemeralContainer")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
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


def _metadata_errors(place: Place) -> Iterator[FieldError]:
    """Yield what is wrong with labels and annotations of a template, which have paths of their own."""
    metadata = place.fields.get("metadata")
    yield from label_errors(string_map(at(metadata, "labels")), place.below("labels"))
    yield from annotation_errors(string_map(at(metadata, "annotations")), place.below("annotations"))


def _container_name_errors(place: Place) -> Iterator[FieldError]:
    if not place.within(_POD_SPEC).is_first("container", place.text):
        yield duplicate(place.path, shown(place.text))


def _host_network_errors(place: Place) -> Iterator[FieldError]:
    if place.beside("hostNetwork") is not True or place.name != "containers":
        return
    owner = place.within(_POD_SPEC).holder
    defaulted = owner is not None and owner.type.name != _POD  # in the Pods that are made of a template
    for where, port in each(place.fields, "ports", place.path):
        number = integer(port.get("hostPort"))
        if number != integer(port.get("containerPort")) and not (defaulted and number == 0):
            text_ = "must match `containerPort` when `hostNetwork` is true"
            yield invalid_value(f"{where}.hostPort", str(number), text_)


def _port_name_errors(place: Place) -> Iterator[FieldError]:
    wrong = [*port_name_errors(place.value, place.path)]
    if not place.within(*_CONTAINERS).is_first("port", place.text) and not wrong:
        wrong.append(duplicate(place.path, shown(place.text)))
    yield from wrong


def _host_port_errors(place: Place) -> Iterator[FieldError]:
    port = place.fields
    if port.get("hostPort"):
        taken = f"{text(port.get('protocol'))}/{text(port.get('hostIP'))}/{port['hostPort']}"
        group = "ephemeral" if place.within(*_CONTAINERS).name == "ephemeralContainers" else ""
        if not place.within(_POD_SPEC).is_first(f"{group} port", taken):
            yield duplicate(place.below("hostPort"), shown(taken))


def _variable_name_errors(place: Place) -> Iterator[FieldError]:
    if "=" in place.text or not (place.text.isascii() and place.text.isprintable()):
        text_ = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        yield invalid_value(place.path, shown(place.text), text_)


def _variable_source_errors(place: Place) -> Iterator[FieldError]:
    value, source, path = place.fields.get("value"), place.fields.get("valueFrom"), place.below("valueFrom")
    if not is_mapping(source):
        return
    found = [kind for kind in _VALUE_SOURCES if is_mapping(source.get(kind))]
    if value:
        yield invalid_value(path, '""', "may not be specified when `value` is not empty")
    if not found:
        *others, last = (f"`{kind}`" for kind in _VALUE_SOURCES)
        yield invalid_value(path, '""', f"must specify one of: {', '.join(others)} or {last}")
    elif len(found) > 1 and not value:
        yield invalid_value(path, '""', "may not have more than one field specified at a time")


def _mounted_errors(place: Place) -> Iterator[FieldError]:
    name, path = text(place.fields.get("name")), place.below("name")
    if not name:
        yield required(path)
    if not place.within(_POD_SPEC).is_noted("volume", name):
        yield missing(path, shown(name))


def _mount_path_errors(place: Place) -> Iterator[FieldError]:
    if not place.within(*_CONTAINERS).is_first("mount", place.text):
        yield invalid_value(place.path, shown(place.text), "must be unique")


def _resource_name_errors(name: str, field: str) -> Iterator[FieldError]:
    wrong = [*qualified_name_errors(name, field)]
    if "/" not in name and name not in _RESOURCES and not name.startswith("hugepages-"):
        if not wrong and name not in _QUOTA_RESOURCES:
            wrong.append(invalid_value(field, shown(name), "must be a standard resource type or fully qualified"))
        wrong.append(invalid_value(field, shown(name), "must be a standard resource for containers"))
    yield from wrong


def _resource_errors(place: Place) -> Iterator[FieldError]:
    limits, requests, path = mapping(place.fields.get("limits")), mapping(place.fields.get("requests")), place.path
    for group, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            yield from _resource_name_errors(name, f"{path}.{group}[{name}]")
            if amount(value) < 0:
                yield invalid_value(f"{path}.{group}[{name}]", shown(value), NOT_NEGATIVE)
    for name, value in requests.items():
        if name in limits and amount(value) > amount(limits[name]):
            text_ = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid_value(f"{path}.requests", shown(value), text_)


def _handler_errors(place: Place) -> Iterator[FieldError]:
    name = next((name for name in _HANDLERS if is_mapping(place.fields.get(name))), "")
    if name == "exec" and not at(place.fields, "exec", "command"):
        yield required(place.below("exec.command"))
    elif name not in ("", "exec"):
        yield from port_or_name_errors(at(place.fields, name, "port"), place.below(f"{name}.port"))


def _threshold_errors(place: Place) -> Iterator[FieldError]:
    probe = place.holder
    if probe is not None and probe.name != "readinessProbe" and integer(place.value) > 1:
        yield invalid_value(place.path, shown(place.value), "must be 1")


def _volume_name_errors(place: Place) -> Iterator[FieldError]:
    name = text(place.fields.get("name"))
    if not place.within(_POD_SPEC).is_first("volume", name):
        yield duplicate(place.below("name"), shown(name))


def _volume_source_errors(place: Place) -> Iterator[FieldError]:
    volume = place.fields
    sources = [source for source, value in volume.items() if is_mapping(value)]
    for source in sources[1:]:
        yield forbidden_field(place.below(source), "may not specify more than 1 volume type")
    for source in sources[:1]:
        if source in _VOLUME_NEEDS and not at(volume, source, _VOLUME_NEEDS[source]):
            yield required(place.below(f"{source}.{_VOLUME_NEEDS[source]}"))
    if amount(at(volume, "emptyDir", "sizeLimit")) < 0:
        text_ = "SizeLimit field must be a valid resource quantity"
        yield forbidden_field(place.below("emptyDir.sizeLimit"), text_)


def _toleration_errors(place: Place) -> Iterator[FieldError]:
    operator, value = text(place.fields.get("operator")), text(place.fields.get("value"))
    path = place.below("operator")
    if operator == "Exists" and value:
        yield invalid_value(path, shown(value), "value must be empty when `operator` is 'Exists'")
    elif not place.fields.get("key") and operator != "Exists":
        text_ = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(path, shown(operator), text_)
    elif operator:
        yield from one_of(operator, path, ("Equal", "Exists"))


POD_CHECKS: Final[Mapping[str, Check]] = {
    "container_name": _container_name_errors,
    "container_port_name": _port_name_errors,
    "container_resources": _resource_errors,
    "free_host_port": _host_port_errors,
    "mount_path": _mount_path_errors,
    "mounted_volume": _mounted_errors,
    "ports_of_host_network": _host_network_errors,
    "probe_handler": _handler_errors,
    "success_threshold": _threshold_errors,
    "template_metadata": _metadata_errors,
    "toleration_operator": _toleration_errors,
    "variable_name": _variable_name_errors,
    "variable_source": _variable_source_errors,
    "volume_name": _volume_name_errors,
    "volume_source": _volume_source_errors,
}
"""Checks that the rules of pods' types name."""
