"""CustomResourceDefinitions: default, validate, accept the names, and turn into served resources.

A CRD passes four stages, each a function here:

    default_crd     fills in what the author left out (singular, listKind, conversion)
    validate_crd    says what is wrong, field by field
    crd_status      accepts its names unless another resource of the group has them: NamesAccepted, Established
    crd_resources   one ServedResource for each served version of an established CRD

A name that another resource of the same group uses is not accepted; the CRD then serves what it served before, which is
nothing for a new one. Once true, Established stays true.

Source: apiextensions-apiserver pkg/apis/apiextensions/validation, pkg/controller/status, pkg/controller/establish.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from deltaloop.api.errors import InvalidPathError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import StatusCause
from deltaloop.api.times import format_time, from_epoch
from deltaloop.apiserver.core.json_path import JsonPath
from deltaloop.apiserver.core.json_values import at, integer, is_mapping, items, mapping, text, texts
from deltaloop.apiserver.core.schema.structural import has_rules, structural_errors
from deltaloop.apiserver.core.served_resource import PrinterColumn, ScalePaths, ServedResource

CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"

_APPROVED: Final = "api-approved.kubernetes.io"
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name', or 'abc-123')"
)


def default_crd(crd: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a CRD with singular name, list kind and conversion filled in."""
    result = copy.deepcopy(crd)
    spec = result.get("spec")
    if not is_mapping(spec):
        return result
    names = mapping(spec.get("names"))
    kind = text(names.get("kind"))
    if kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    spec["conversion"] = spec.get("conversion") or {"strategy": "None"}
    if spec.get("preserveUnknownFields") is False:
        del spec["preserveUnknownFields"]
    return result


def validate_crd(crd: dict[str, Any], *, old: dict[str, Any] | None = None) -> tuple[StatusCause, ...]:
    """Say what is wrong with a CRD after defaulting: the causes of a 422 Invalid, none if it is right.

    Args:
        crd: The CRD as it would be stored.
        old: The stored CRD that it replaces; some fields must not change then.
    """
    causes = [*_identity_causes(crd), *_names_causes(crd), *_versions_causes(crd), *_conversion_causes(crd)]
    if old is not None:
        causes += _change_causes(crd, old)
    return tuple(causes)


def is_established(crd: dict[str, Any]) -> bool:
    """Tell whether the condition Established is true, so that its resources are served."""
    return _condition(crd, "Established").get("status") == "True"


def crd_status(crd: dict[str, Any], others: Iterable[ServedResource], *, now: float) -> dict[str, Any]:
    """Return the status that a CRD has to have among the other served resources.

    Args:
        crd: The CRD, defaulted and valid.
        others: What is served besides this CRD's own resources; only the same group matters.
        now: Seconds since 1970; becomes ``lastTransitionTime`` of the conditions that changed.
    """
    wanted = mapping(at(crd, "spec", "names"))
    accepted = dict(mapping(at(crd, "status", "acceptedNames")))
    reason, message = "NoConflicts", "no conflicts found"
    for field, value, conflict in _wanted_names(wanted, _names_in_use(crd, others)):
        if conflict:
            reason = f"{field[0].upper()}{field[1:]}Conflict"
            message = f'"{conflict}" is already in use'
        else:
            accepted[field] = value
    is_accepted = reason == "NoConflicts"
    if is_accepted:
        accepted = {"plural": "", "kind": "", **{name: value for name, value in wanted.items() if value}}
    accepted = {name: value for name, value in accepted.items() if value or name in ("plural", "kind")}
    if is_accepted or is_established(crd):
        established = ("True", "InitialNamesAccepted", "the initial names have been accepted")
    else:
        established = ("False", "NotAccepted", "not all names are accepted")
    conditions = [
        _changed(crd, "NamesAccepted", ("True" if is_accepted else "False", reason, message), now),
        _changed(crd, "Established", established, now),
    ]
    known = {"NamesAccepted", "Established"}
    conditions += [item for item in items(at(crd, "status", "conditions")) if at(item, "type") not in known]
    stored = [*texts(at(crd, "status", "storedVersions"))]
    stored += [name for name in _storage_versions(crd) if name not in stored]
    return {"conditions": conditions, "acceptedNames": accepted, "storedVersions": stored}


def crd_resources(crd: dict[str, Any]) -> tuple[ServedResource, ...]:
    """Return one resource for each served version of a CRD, under its accepted names; none before it is established."""
    if not is_established(crd):
        return ()
    names = mapping(at(crd, "status", "acceptedNames"))
    return tuple(
        _served_version(crd, names, mapping(version))
        for version in items(at(crd, "spec", "versions"))
        if at(version, "served") is True
    )


def crd_warnings(crd: dict[str, Any]) -> tuple[str, ...]:
    """Return what the author of a CRD should be told: rules in CEL are kept, but this server does not evaluate them."""
    if any(has_rules(at(version, "schema", "openAPIV3Schema")) for version in items(at(crd, "spec", "versions"))):
        return (
            "x-kubernetes-validations: this server does not evaluate CEL rules; objects that break them are stored",
        )
    return ()


def storage_version(crd: dict[str, Any]) -> str:
    """Return the name of the version that objects are stored in."""
    return next(iter(_storage_versions(crd)), "")


def _served_version(crd: dict[str, Any], names: dict[str, Any], version: dict[str, Any]) -> ServedResource:
    schema = at(version, "schema", "openAPIV3Schema")
    scale = at(version, "subresources", "scale")
    return ServedResource(
        type=ResourceType[Resource](
            group=text(at(crd, "spec", "group")),
            version=text(version.get("name")),
            kind=text(names.get("kind")),
            plural=text(names.get("plural")),
            namespaced=at(crd, "spec", "scope") == "Namespaced",
        ),
        singular=text(names.get("singular")),
        list_kind=text(names.get("listKind")),
        short_names=texts(names.get("shortNames")),
        categories=texts(names.get("categories")),
        status=isinstance(at(version, "subresources", "status"), dict),
        scale=is_mapping(scale),
        scale_paths=_scale_paths(scale) if is_mapping(scale) else None,
        custom=True,
        unconditional_update=False,
        generation=True,
        schema=msgspec.json.encode(schema) if schema is not None else b"",
        columns=tuple(_column(mapping(column)) for column in items(version.get("additionalPrinterColumns"))),
        field_labels=tuple(
            text(at(field, "jsonPath")).removeprefix(".") for field in items(version.get("selectableFields"))
        ),
        deprecated=version.get("deprecated") is True,
        deprecation_warning=text(version.get("deprecationWarning")),
    )


def _scale_paths(scale: dict[str, Any]) -> ScalePaths:
    return ScalePaths(
        spec_replicas=text(scale.get("specReplicasPath")),
        status_replicas=text(scale.get("statusReplicasPath")),
        label_selector=text(scale.get("labelSelectorPath")),
    )


def _column(column: dict[str, Any]) -> PrinterColumn:
    return PrinterColumn(
        name=text(column.get("name")),
        type=text(column.get("type")),
        json_path=text(column.get("jsonPath")),
        description=text(column.get("description")),
        format=text(column.get("format")),
        priority=integer(column.get("priority")),
    )


def _storage_versions(crd: dict[str, Any]) -> list[str]:
    versions = items(at(crd, "spec", "versions"))
    return [text(at(version, "name")) for version in versions if at(version, "storage") is True]


def _condition(crd: dict[str, Any], kind: str) -> dict[str, Any]:
    conditions = items(at(crd, "status", "conditions"))
    return mapping(next((item for item in conditions if at(item, "type") == kind), None))


def _changed(crd: dict[str, Any], kind: str, state: tuple[str, str, str], now: float) -> dict[str, Any]:
    status, reason, message = state
    old = _condition(crd, kind)
    since = old.get("lastTransitionTime") if old.get("status") == status else None
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": since or format_time(from_epoch(now)),
        "reason": reason,
        "message": message,
    }


def _names_in_use(crd: dict[str, Any], others: Iterable[ServedResource]) -> tuple[set[str], set[str]]:
    group = at(crd, "spec", "group")
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other.type.group == group:
            resources |= {other.type.plural, other.singular, *other.short_names}
            kinds |= {other.type.kind, other.list_kind}
    return resources, kinds


def _wanted_names(wanted: dict[str, Any], in_use: tuple[set[str], set[str]]) -> Iterator[tuple[str, Any, str]]:
    """Give each name wanted with the name that stands against it, or the empty string."""
    resources, kinds = in_use
    for field in ("plural", "singular"):
        name = text(wanted.get(field))
        yield field, name, name if name in resources else ""
    short_names = texts(wanted.get("shortNames"))
    yield "shortNames", list(short_names), next((name for name in short_names if name in resources), "")
    for field in ("kind", "listKind"):
        name = text(wanted.get(field))
        yield field, name, name if name in kinds else ""


def _required(field: str, message: str = "") -> StatusCause:
    return StatusCause("FieldValueRequired", f"Required value: {message}" if message else "Required value", field)


def _invalid(field: str, value: object, message: str) -> StatusCause:
    return StatusCause("FieldValueInvalid", f"Invalid value: {_written(value)}: {message}", field)


def _not_supported(field: str, value: object, supported: Iterable[str]) -> StatusCause:
    listed = ", ".join(f'"{name}"' for name in supported)
    return StatusCause(
        "FieldValueNotSupported", f"Unsupported value: {_written(value)}: supported values: {listed}", field
    )


def _written(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _identity_causes(crd: dict[str, Any]) -> Iterator[StatusCause]:
    group = text(at(crd, "spec", "group"))
    plural = text(at(crd, "spec", "names", "plural"))
    name = text(at(crd, "metadata", "name"))
    if name != f"{plural}.{group}":
        yield _invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield _required("spec.group")
    elif not _SUBDOMAIN.fullmatch(group):
        yield _invalid("spec.group", group, "a lowercase RFC 1123 subdomain is needed (e.g. 'example.com')")
    elif "." not in group:
        yield _invalid("spec.group", group, "should be a domain with at least one dot")
    elif _is_protected(group) and not at(crd, "metadata", "annotations", _APPROVED):
        yield _required(
            f"metadata.annotations[{_APPROVED}]",
            "protected groups must have approval annotation "
            '"api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
        )
    scope = at(crd, "spec", "scope")
    if not scope:
        yield _required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield _not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    if at(crd, "spec", "preserveUnknownFields"):
        yield _invalid(
            "spec.preserveUnknownFields",
            value=True,
            message="cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead",
        )


def _is_protected(group: str) -> bool:
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def _names_causes(crd: dict[str, Any]) -> Iterator[StatusCause]:
    names = mapping(at(crd, "spec", "names"))
    for field in ("plural", "singular", "kind", "listKind"):
        name = text(names.get(field))
        path = f"spec.names.{field}"
        if not name:
            yield _required(path)
        elif not _LABEL.fullmatch(name.lower() if field in ("kind", "listKind") else name):
            mixed = "may have mixed case, but should otherwise match: " if field in ("kind", "listKind") else ""
            yield _invalid(path, name, mixed + _LABEL_RULE)
    for field in ("shortNames", "categories"):
        for position, name in enumerate(items(names.get(field))):
            if not _LABEL.fullmatch(text(name)):
                yield _invalid(f"spec.names.{field}[{position}]", name, _LABEL_RULE)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield _invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _versions_causes(crd: dict[str, Any]) -> Iterator[StatusCause]:
    versions = items(at(crd, "spec", "versions"))
    if not versions:
        yield _required("spec.versions", "must have at least one version")
        return
    names = [text(at(version, "name")) for version in versions]
    if len(set(names)) != len(names):
        yield _invalid("spec.versions", names, "must contain unique version names")
    if len(_storage_versions(crd)) != 1:
        yield _invalid("spec.versions", names, "must have exactly one version marked as storage version")
    for position, version in enumerate(versions):
        yield from _version_causes(f"spec.versions[{position}]", mapping(version))


def _version_causes(path: str, version: dict[str, Any]) -> Iterator[StatusCause]:
    name = version.get("name")
    if not _LABEL.fullmatch(text(name)):
        yield _invalid(f"{path}.name", name, _LABEL_RULE)
    for field in ("served", "storage"):
        if not isinstance(version.get(field), bool):
            yield _required(f"{path}.{field}")
    schema = at(version, "schema", "openAPIV3Schema")
    at_schema = f"{path}.schema.openAPIV3Schema"
    if not is_mapping(schema):
        yield _required(at_schema, "schemas are required")
    else:
        yield from (error.cause() for error in structural_errors(schema, at_schema))
    for position, column in enumerate(items(version.get("additionalPrinterColumns"))):
        yield from _column_causes(f"{path}.additionalPrinterColumns[{position}]", mapping(column))
    scale = at(version, "subresources", "scale")
    if scale is not None:
        yield from _scale_causes(f"{path}.subresources.scale", mapping(scale))
    for position, field in enumerate(items(version.get("selectableFields"))):
        yield from _path_causes(f"{path}.selectableFields[{position}].jsonPath", at(field, "jsonPath"))


def _column_causes(path: str, column: dict[str, Any]) -> Iterator[StatusCause]:
    if not column.get("name"):
        yield _required(f"{path}.name")
    if not column.get("type"):
        yield _required(f"{path}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif column["type"] not in _COLUMN_TYPES:
        yield _invalid(f"{path}.type", column["type"], f"must be one of {','.join(_COLUMN_TYPES)}")
    yield from _path_causes(f"{path}.jsonPath", column.get("jsonPath"))


def _path_causes(path: str, value: object) -> Iterator[StatusCause]:
    if not value:
        yield _required(path)
        return
    try:
        JsonPath.parse(text(value))
    except InvalidPathError as error:
        yield _invalid(path, value, str(error))


def _scale_causes(path: str, scale: dict[str, Any]) -> Iterator[StatusCause]:
    for field, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        value = text(scale.get(field))
        if not value:
            yield _required(f"{path}.{field}")
        elif not value.startswith(f"{root}."):
            yield _invalid(f"{path}.{field}", value, f"should be a json path under {root}")
    selector = text(scale.get("labelSelectorPath"))
    if selector and not selector.startswith((".spec.", ".status.")):
        yield _invalid(f"{path}.labelSelectorPath", selector, "should be a json path under either .spec or .status")


def _conversion_causes(crd: dict[str, Any]) -> Iterator[StatusCause]:
    strategy = at(crd, "spec", "conversion", "strategy")
    if strategy not in ("None", "Webhook"):
        yield _not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    elif strategy == "Webhook" and len(items(at(crd, "spec", "versions"))) > 1:
        # This server calls no webhooks. With one version there is nothing to convert, and the CRD can be served.
        yield _not_supported("spec.conversion.strategy", strategy, ("None",))


def _change_causes(crd: dict[str, Any], old: dict[str, Any]) -> Iterator[StatusCause]:
    fixed: list[tuple[str, ...]] = [("spec", "group"), ("spec", "names", "plural")]
    if is_established(old):
        fixed += [("spec", "scope"), ("spec", "names", "kind")]
    for path in fixed:
        if at(crd, *path) != at(old, *path):
            yield _invalid(".".join(path), at(crd, *path), "field is immutable")
    names = [text(at(version, "name")) for version in items(at(crd, "spec", "versions"))]
    for position, stored in enumerate(texts(at(old, "status", "storedVersions"))):
        if stored not in names:
            yield _invalid(
                f"status.storedVersions[{position}]",
                stored,
                f"missing from spec.versions; {stored} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in it and removes it "
                "from status.storedVersions",
            )
