"""Dynamic resource allocation: ResourceClaims, templates, DeviceClasses, ResourceSlices and DeviceTaintRules.

Source: Kubernetes pkg/apis/resource/validation/validation.go; pkg/apis/resource/v1/defaults.go
(``SetDefaults_DeviceTaint``); pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop import cel
from deltaloop.api import kinds
from deltaloop.api.dns_names import label_key_problems
from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, string_map, text, texts
from deltaloop.apiserver.core.admission_expressions import compiled, expression_error
from deltaloop.apiserver.core.kinds.field_checks import driver_name_errors, duplicate_errors
from deltaloop.apiserver.core.metadata.rules import (
    annotation_errors,
    label_errors,
    label_name_errors,
    qualified_name_errors,
    subdomain_errors,
)
from deltaloop.apiserver.core.strategy import Moment, Stored, Strategy
from deltaloop.crds.rules.compiled import NEW
from deltaloop.schemas.checking import Check, Place
from deltaloop.schemas.field_errors import (
    SchemaError,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    shown,
    too_long,
    too_many,
)

_LONGEST_EXPRESSION: Final = 10 * 1024
_LONGEST_POOL: Final = 253
_LONGEST_VALUE: Final = 64
_LONGEST_IDENTIFIER: Final = 32
_MOST_TAINTS: Final = 16
_MOST_DEVICES, _MOST_TAINTED_DEVICES = 128, 64
_MOST_ATTRIBUTES: Final = 32
_IDENTIFIER: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
    r"(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)
_VALUES: Final = ("int", "bool", "string", "version", "ints", "bools", "strings", "versions")
_ENVIRONMENT: Final = NEW.with_variables({"device": cel.DYN}, None)
_ADMIN: Final = "resource.kubernetes.io/admin-access"
_NODE_CHOICES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def _selector_errors(place: Place) -> Iterator[SchemaError]:
    if not is_mapping(place.fields.get("cel")):
        yield required(place.below("cel"))
        return
    source, path = text(at(place.fields, "cel", "expression")), place.below("cel.expression")
    if len(source) > _LONGEST_EXPRESSION:
        yield too_long(path, _LONGEST_EXPRESSION)
    elif isinstance(fault := compiled(_ENVIRONMENT, source, cel.BOOL, cel.DYN), str):
        yield expression_error(path, source, fault)


def _request_errors(place: Place) -> Iterator[SchemaError]:
    found = [bool(place.fields.get("firstAvailable")), is_mapping(place.fields.get("exactly"))]
    if not any(found):
        yield required(place.path, "exactly one of `exactly` or `firstAvailable` is required")
    elif all(found):
        yield invalid_value(place.path, None, "exactly one of `exactly` or `firstAvailable` is required")


def _mode_errors(place: Place) -> Iterator[SchemaError]:
    mode, count = place.fields.get("allocationMode"), integer(place.fields.get("count"))
    if mode == "All" and count:
        yield invalid_value(place.below("count"), count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and count <= 0:
        yield invalid_value(place.below("count"), count, "must be greater than zero")


def _toleration_errors(place: Place) -> Iterator[SchemaError]:
    operator, value = place.fields.get("operator"), text(place.fields.get("value"))
    if operator == "Exists" and value:
        yield invalid_value(place.below("value"), value, "must be empty for operator `Exists`")


def _claim_errors(place: Place) -> Iterator[SchemaError]:
    known: dict[str, set[str]] = {}
    for number, request in enumerate(map(mapping, items(place.fields.get("requests")))):
        name, where = text(request.get("name")), f"{place.below('requests')}[{number}]"
        if name in known:
            yield duplicate(where, request)
        subs = [text(at(sub, "name")) for sub in items(request.get("firstAvailable"))]
        yield from duplicate_errors(subs, f"{where}.firstAvailable")
        known[name] = {*subs}
    for group in ("constraints", "config"):
        for number, part in enumerate(items(place.fields.get(group))):
            yield from _reference_errors(texts(at(part, "requests")), f"{place.below(group)}[{number}].requests", known)


def _reference_errors(names: tuple[str, ...], path: str, known: Mapping[str, set[str]]) -> Iterator[SchemaError]:
    text_ = "must be the name of a request in the claim, or of a subrequest after a slash"
    for number, name in enumerate(names):
        where, (request, *subs) = f"{path}[{number}]", name.split("/")
        if len(subs) > 1:
            yield invalid_value(where, name, text_)
            continue
        for part in (request, *subs):
            yield from label_name_errors(part, where)
        if request not in known or any(sub not in known[request] for sub in subs):
            yield invalid_value(where, name, text_)
        if name in names[:number]:
            yield duplicate(where, name)


def _constraint_errors(place: Place) -> Iterator[SchemaError]:
    for name in ("matchAttribute", "distinctAttribute"):
        value = place.fields.get(name)
        if value is not None:
            yield from _attribute_name_errors(text(value), place.below(name), qualified=True)
    if not (place.fields.keys() & {"matchAttribute", "distinctAttribute"}):
        yield required(place.path, 'exactly one of "matchAttribute" or "distinctAttribute" is required')


def _attribute_name_errors(name: str, field: str, *, qualified: bool = False) -> Iterator[SchemaError]:
    domain, slash, last = name.rpartition("/")
    if name.count("/") < 2:
        if slash and not domain:
            yield invalid_value(field, "", "the domain must not be empty")
        elif slash:
            yield from (subdomain_errors if qualified else driver_name_errors)(domain, field)
        if slash and not last:
            yield invalid_value(field, "", "the name must not be empty")
        else:
            yield from _identifier_errors(last, field)
    if qualified and not slash:
        yield invalid_value(field, name, "a fully qualified name must be a domain and a name separated by a slash")


def _identifier_errors(name: str, field: str) -> Iterator[SchemaError]:
    if len(name) > _LONGEST_IDENTIFIER:
        yield too_long(field, _LONGEST_IDENTIFIER)
    if not _IDENTIFIER.fullmatch(name):
        yield invalid_value(field, name, "a valid C identifier must start with alphabetic character or '_'")


def _opaque_errors(place: Place) -> Iterator[SchemaError]:
    if not is_mapping(place.fields.get("opaque")):
        yield required(place.below("opaque"))


def _parameters_errors(place: Place) -> Iterator[SchemaError]:
    value, path = place.fields.get("parameters"), place.below("parameters")
    if value is None:
        yield required(path)
    elif len(shown(value)) > _LONGEST_EXPRESSION:
        yield too_long(path, _LONGEST_EXPRESSION)
    elif not is_mapping(value):
        yield invalid_value(path, "<value omitted>", "must be a valid JSON object")


def _pool_name_errors(place: Place) -> Iterator[SchemaError]:
    if not place.value:
        yield required(place.path)
        return
    if len(place.text) > _LONGEST_POOL:
        yield too_long(place.path, _LONGEST_POOL)
    for part in place.text.split("/"):
        yield from subdomain_errors(part, place.path)


def _taint_errors(place: Place) -> Iterator[SchemaError]:
    return qualified_name_errors(text(place.fields.get("key")), place.below("key"))


def _slice_errors(place: Place) -> Iterator[SchemaError]:
    spec = place.fields
    chosen = [name for name in _NODE_CHOICES if spec.get(name) not in (None, "", False)]
    for name in ("allNodes", "perDeviceNodeSelection", "nodeName"):
        if spec.get(name) in ("", False):
            yield invalid_value(place.below(name), spec[name], "must be either unset or set")
    terms = at(spec, "nodeSelector", "nodeSelectorTerms")
    if is_mapping(spec.get("nodeSelector")) and len(items(terms)) != 1:
        path = place.below("nodeSelector.nodeSelectorTerms")
        yield invalid_value(path, terms, "must have exactly one node selector term")
    text_ = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not chosen:
        yield required(place.path, text_)
    elif len(chosen) > 1:
        yield invalid_value(place.path, chosen, text_)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        yield invalid_value(place.path, "", "only one of `sharedCounters` or `devices` is allowed")
    devices = [mapping(device) for device in items(spec.get("devices"))]
    special = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    most = _MOST_TAINTED_DEVICES if special else _MOST_DEVICES
    if len(devices) > most:
        yield too_many(place.below("devices"), len(devices), most)
        return
    for group in ("devices", "sharedCounters"):
        yield from duplicate_errors([text(at(named, "name")) for named in items(spec.get(group))], place.below(group))


def _device_errors(place: Place) -> Iterator[SchemaError]:
    device, path = place.fields, place.below("attributes")
    attributes, capacity = mapping(device.get("attributes")), mapping(device.get("capacity"))
    if len(attributes) + len(capacity) > _MOST_ATTRIBUTES:
        yield invalid_value(place.path, len(attributes) + len(capacity), "must not have so many attributes")
    for name, attribute in attributes.items():
        yield from _attribute_name_errors(name, path)
        yield from _attribute_errors(mapping(attribute), f"{path}[{name}]")
    for name, amount in capacity.items():
        yield from _attribute_name_errors(name, place.below("capacity"))
        if at(amount, "requestPolicy") is not None and device.get("allowMultipleAllocations") is not True:
            where = f"{place.below('capacity')}[{name}].requestPolicy"
            yield forbidden_field(where, "allowMultipleAllocations must be true")
    taints = items(device.get("taints"))
    if len(taints) > _MOST_TAINTS:
        yield too_many(place.below("taints"), len(taints), _MOST_TAINTS)
    yield from _node_choice_errors(place)
    yield from _binding_errors(place)


def _node_choice_errors(place: Place) -> Iterator[SchemaError]:
    device = place.fields
    chosen = [name for name in _NODE_CHOICES[:3] if device.get(name) not in (None, "", False)]
    if at(place.whole, "spec", "perDeviceNodeSelection") is True:
        if len(chosen) != 1:
            yield required(place.path, "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required")
    elif any(device.get(name) is not None for name in _NODE_CHOICES[:3]):
        text_ = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true"
        yield invalid_value(place.path, None, text_)


def _binding_errors(place: Place) -> Iterator[SchemaError]:
    groups = ("bindingConditions", "bindingFailureConditions")
    binding, failing = (texts(place.fields.get(name)) for name in groups)
    for name, conditions in zip(groups, (binding, failing), strict=True):
        path = place.below(name)
        for number, condition in enumerate(conditions):
            where = f"{path}[{number}]"
            yield from qualified_name_errors(condition, where)
            if condition in conditions[:number]:
                yield duplicate(where, condition)
            if name == groups[1] and condition in binding:
                yield invalid_value(
                    where, condition, "bindingFailureConditions must not overlap with bindingConditions"
                )
    if bool(binding) is not bool(failing):
        yield invalid_value(place.below(groups[1] if binding else groups[0]), None, "both are required, or neither")


def _attribute_errors(attribute: Mapping[str, object], path: str) -> Iterator[SchemaError]:
    given = [name for name in _VALUES if attribute.get(name) is not None]
    if len(given) != 1:
        listed = ", ".join(f"`{name}`" for name in _VALUES)
        yield invalid_value(path, given, f"must specify exactly one of: {listed}")
    for name in given:
        for value in items(attribute[name]) or [attribute[name]]:
            if name.startswith(("string", "version")) and len(text(value)) > _LONGEST_VALUE:
                yield too_long(f"{path}.{name}", _LONGEST_VALUE)
            if name.startswith("version") and not _VERSION.fullmatch(text(value)):
                yield invalid_value(f"{path}.{name}", value, "must be compatible with semver.org spec 2.0.0")


def _metadata_errors(place: Place) -> Iterator[SchemaError]:
    metadata = mapping(place.fields.get("metadata"))
    yield from label_errors(string_map(metadata.get("labels")), place.below("metadata.labels"))
    yield from annotation_errors(string_map(metadata.get("annotations")), place.below("metadata.annotations"))
    for name, value in metadata.items():
        if value and name not in ("labels", "annotations"):
            yield forbidden_field(place.below(f"metadata.{name}"), "cannot be set")


def _extended_name_errors(place: Place) -> Iterator[SchemaError]:
    domain, slash, name = place.text.partition("/")
    if not slash or not name or "/" in name or any(subdomain_errors(domain, "")) or any(label_key_problems(place.text)):
        text_ = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        yield invalid_value(place.path, place.value, text_)
    elif "kubernetes.io" in domain or domain.startswith("requests."):
        yield invalid_value(place.path, place.value, "must be a valid extended resource name")


def finish_claim(claim: dict[str, object], store: Stored, _moment: Moment) -> Iterator[SchemaError]:
    for way in (("spec",), ("spec", "spec")):
        for number, request in enumerate(items(at(claim, *way, "devices", "requests"))):
            if at(request, "exactly", "adminAccess") is True and not _allows_admins(claim, store):
                text_ = f"admin access to devices requires the `{_ADMIN}: true` label on the containing namespace"
                yield forbidden_field(f"{'.'.join(way)}.devices.requests[{number}].adminAccess", text_)


def _finish_slice(device_slice: dict[str, object], _store: Stored, moment: Moment) -> tuple[()]:
    for device in items(at(device_slice, "spec", "devices")):
        for taint in items(at(device, "taints")):
            mapping(taint).setdefault("timeAdded", moment.time)
    return ()


def _allows_admins(claim: dict[str, object], store: Stored) -> bool:
    found = store.get(kinds.NAMESPACE.group_resource, text(at(claim, "metadata", "namespace")))
    return found is not None and found.labels.get(_ADMIN) == "true"


DEVICE_CHECKS: Final[Mapping[str, Check]] = {
    "allocation_mode": _mode_errors,
    "claim_metadata": _metadata_errors,
    "device": _device_errors,
    "device_claim": _claim_errors,
    "device_constraint": _constraint_errors,
    "device_request": _request_errors,
    "device_selector": _selector_errors,
    "device_slice": _slice_errors,
    "device_taint": _taint_errors,
    "device_toleration": _toleration_errors,
    "extended_resource": _extended_name_errors,
    "opaque_configuration": _opaque_errors,
    "opaque_parameters": _parameters_errors,
    "pool_name": _pool_name_errors,
}


def _slice_warnings(resource_slice: Mapping[str, object]) -> Iterator[str]:
    driver = text(at(resource_slice, "spec", "driver"))
    if driver != driver.lower():
        yield f"spec.driver: driver names should be lowercase; {shown(driver)} contains uppercase characters"


DEVICES: Final = Strategy(checks=DEVICE_CHECKS)
SLICE: Final = Strategy(
    checks=DEVICE_CHECKS,
    warn=_slice_warnings,
    finish_new=_finish_slice,
    finish_update=lambda _before, after, store, moment: _finish_slice(after, store, moment),
)
TEMPLATE: Final = Strategy(checks=DEVICE_CHECKS, finish_new=finish_claim)


def _finish_new(rule: dict[str, object], _store: Stored, moment: Moment) -> tuple[()]:
    taint = at(rule, "spec", "taint")
    if is_mapping(taint):
        taint.setdefault("timeAdded", moment.time)
    return ()


TAINT_RULE: Final = Strategy(
    finish_new=_finish_new,
    finish_update=lambda _before, after, store, moment: _finish_new(after, store, moment),
)


def _state(claim: Mapping[str, object]) -> str:
    states = ["deleted"] if at(claim, "metadata", "deletionTimestamp") is not None else []
    if at(claim, "status", "allocation") is not None:
        states += ["allocated", "reserved"] if items(at(claim, "status", "reservedFor")) else ["allocated"]
    return ",".join(states) or "pending"


def _request_defaults(request: dict[str, object]) -> None:
    request["allocationMode"] = request.get("allocationMode") or "ExactCount"
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1


CLAIM: Final = Strategy(
    defaults=dict.fromkeys(("resource.v1.DeviceSubRequest", "resource.v1.ExactDeviceRequest"), _request_defaults),
    finish_new=finish_claim,
    cells={"State": _state},
)
