"""Strategies of custom resource definitions and API services.

Source: apiextensions-apiserver pkg/registry/customresourcedefinition, pkg/controller/finalizer; kube-aggregator
pkg/registry/apiservice, pkg/controllers/autoregister; Kubernetes pkg/controlplane/controller/crdregistration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, is_mapping, items, mapping, text, texts
from deltaloop.api.kinds import API_SERVICE
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.crds.definition import CLEANUP_FINALIZER, crd_warnings, default_crd, with_condition
from deltaloop.apiserver.core.crds.validation import validate_crd
from deltaloop.apiserver.core.kinds.cells import condition
from deltaloop.apiserver.core.kinds.field_checks import port_errors
from deltaloop.apiserver.core.metadata.rules import subdomain_errors
from deltaloop.apiserver.core.strategy import Moment, Stored, Strategy, Writes
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, invalid_value, required

_PENDING: Final = (
    "True",
    "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
)


def _default(crd: dict[str, object]) -> None:
    crd.update(default_crd(crd))


def _update_warnings(before: dict[str, object], after: dict[str, object]) -> Iterator[str]:
    known = {*crd_warnings(before)}
    return (warning for warning in crd_warnings(after) if warning not in known)


def _store(
    _before: dict[str, object] | None, after: dict[str, object], writes: Writes, moment: Moment
) -> dict[str, object]:
    return writes.crds.applied(after, moment)


def _mark(before: dict[str, object], crd: dict[str, object]) -> None:
    """Change the generation, grace period and other finalizers back, unlike for other kinds."""
    metadata, marked = mapping(before["metadata"]), mapping(crd["metadata"])
    finalizers = [name for name in texts(metadata.get("finalizers")) if name != CLEANUP_FINALIZER]
    since = text(marked["deletionTimestamp"])
    crd["metadata"] = {**metadata, "deletionTimestamp": since, "finalizers": [*finalizers, CLEANUP_FINALIZER]}
    crd["status"] = {**mapping(crd.get("status")), "conditions": with_condition(crd, "Terminating", _PENDING, since)}


def _marked(crd: Resource, writes: Writes, now: float) -> None:
    writes.crds.begin_deletion(crd.name, now=now)
    writes.delete_few(crd.name, now=now)
    writes.crds.finish(crd.name, now=now)


def _removed(_resource: str, crd: Resource, writes: Writes, now: float) -> None:
    writes.crds.stop_serving(crd.name, now=now)


def _why_unserved(crd: dict[str, object]) -> str:
    conditions = {text(at(item, "type")): item for item in items(at(crd, "status", "conditions"))}
    if text(at(conditions, "Established", "status")) == "True":
        return ""
    return f"the CRD is not served: {text(at(conditions, 'NamesAccepted', 'message')) or 'no reason is given'}"


def _versions(crd: Mapping[str, object]) -> str:
    served = [each for each in items(at(crd, "spec", "versions")) if at(each, "served") is True]
    return ",".join(sorted(f"{text(at(each, 'name'))}{'(storage)' * (at(each, 'storage') is True)}" for each in served))


DEFINITIONS: Final = Strategy(
    cells={
        "Versions": _versions,
        "Established": lambda crd: condition(crd, "Established") == "True",
    },
    default=_default,
    validate_new=validate_crd,
    validate_update=lambda before, after: validate_crd(after, old=before),
    warn_new=crd_warnings,
    warn_update=_update_warnings,
    finalizers=(CLEANUP_FINALIZER,),
    store=_store,
    mark=_mark,
    marked=_marked,
    removed=_removed,
    why_unserved=_why_unserved,
)


_MANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
ON_START: Final = "onstart"
WHILE_DEFINED: Final = "true"


def service_name(group: str, version: str) -> str:
    return f"{version}.{group}"


def own_service(
    group: str, version: str, priority: tuple[int, int], *, managed: str, uid: str, time: str
) -> dict[str, object]:
    """Return the stored APIService of a group version."""
    spec: dict[str, object] = {"group": group} if group else {}
    spec |= {"version": version, "groupPriorityMinimum": priority[0], "versionPriority": priority[1]}
    owned: dict[str, object] = {
        "f:metadata": {"f:labels": {".": {}, f"f:{_MANAGED}": {}}},
        "f:spec": {f"f:{name}": {} for name in spec},
    }
    entry: dict[str, object] = {"manager": "kube-apiserver", "operation": "Update", "time": time}
    entry |= {"apiVersion": API_SERVICE.api_version, "fieldsType": "FieldsV1", "fieldsV1": owned}
    return {
        "metadata": {
            "name": service_name(group, version),
            "uid": uid,
            "creationTimestamp": time,
            "labels": {_MANAGED: managed},
            "managedFields": [entry],
        },
        "spec": spec,
        "status": _available_locally(time),
    }


def follows_definitions(api_service: Resource) -> bool:
    return api_service.labels.get(_MANAGED) == WHILE_DEFINED


def _available_locally(time: str) -> dict[str, object]:
    available = {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": time,
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    return {"conditions": [available]}


def _finish_new(api_service: dict[str, object], _store: Stored, moment: Moment) -> tuple[()]:
    if at(api_service, "spec", "service") is None:
        api_service["status"] = _available_locally(moment.time)
    return ()


def _service(api_service: Mapping[str, object]) -> str:
    service = at(api_service, "spec", "service")
    return "Local" if service is None else f"{text(at(service, 'namespace'))}/{text(at(service, 'name'))}"


def _available(api_service: Mapping[str, object]) -> str:
    conditions = items(at(api_service, "status", "conditions"))
    available = next((item for item in conditions if at(item, "type") == "Available"), None)
    status, reason = text(at(available, "status")), text(at(available, "reason"))
    if available is None:
        return "Unknown"
    return f"{status} ({reason})" if reason and status != "True" else status


def _errors(place: Place) -> Iterator[SchemaError]:
    spec, service = place.fields, place.fields.get("service")
    group, version, skips = (
        text(spec.get("group")),
        text(spec.get("version")),
        spec.get("insecureSkipTLSVerify") is True,
    )
    if not group and version != "v1":
        yield required(place.below("group"), "only v1 may have an empty group and it better be legacy kube")
    elif group:
        yield from subdomain_errors(group, place.below("group"))
    name, wanted = at(place.whole, "metadata", "name"), service_name(group, version)
    if name and name != wanted:
        yield invalid_value("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{wanted}"')
    if not is_mapping(service):
        if spec.get("caBundle"):
            yield invalid_value(place.below("caBundle"), "", "local APIServices may not have a caBundle")
        if skips:
            text_ = "local APIServices may not have insecureSkipTLSVerify"
            yield invalid_value(place.below("insecureSkipTLSVerify"), True, text_)
        return
    for field in ("namespace", "name"):
        if not service.get(field):
            yield required(place.below(f"service.{field}"))
    yield from port_errors(service.get("port"), place.below("service.port"))
    if skips and spec.get("caBundle"):
        yield invalid_value(place.below("insecureSkipTLSVerify"), True, "may not be true if caBundle is present")


API_SERVICES: Final = Strategy(
    checks={"api_service": _errors}, finish_new=_finish_new, cells={"Service": _service, "Available": _available}
)
