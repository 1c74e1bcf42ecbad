"""What is wrong with a CustomResourceDefinition, field by field.

Source: apiextensions-apiserver pkg/apis/apiextensions/validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from deltaloop.api.errors import InvalidPathError
from deltaloop.api.status import StatusCause
from deltaloop.apiserver.core.crd import is_established, storage_versions
from deltaloop.apiserver.core.json_path import JsonPath
from deltaloop.apiserver.core.json_values import at, is_mapping, items, mapping, text, texts
from deltaloop.apiserver.core.schema.structural import structural_errors

_APPROVED: Final = "api-approved.kubernetes.io"
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name', or 'abc-123')"
)


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
    if len(storage_versions(crd)) != 1:
        yield _invalid("spec.versions", names, "must have exactly one version marked as storage version")
    yield from _common_causes([mapping(version) for version in versions])


# What all versions have alike is, to the real server, a field of the spec, and is looked at once.
_COMMON: Final = {
    "schema": "spec.validation",
    "subresources": "spec.subresources",
    "additionalPrinterColumns": "spec.additionalPrinterColumns",
    "selectableFields": "spec.selectableFields",
}


def _common_causes(versions: list[dict[str, Any]]) -> Iterator[StatusCause]:
    first = versions[0]
    common = {
        field: path
        for field, path in _COMMON.items()
        if first.get(field) and all(version.get(field) == first[field] for version in versions)
    }
    for position, version in enumerate(versions):
        path = f"spec.versions[{position}]"
        places = {field: f"{path}.{field}" for field in _COMMON} | common
        shown = version if position == 0 else {name: value for name, value in version.items() if name not in common}
        yield from _version_causes(path, shown, places, has_schema="schema" in common)


def _version_causes(
    path: str, version: dict[str, Any], places: dict[str, str], *, has_schema: bool
) -> Iterator[StatusCause]:
    name = version.get("name")
    if not _LABEL.fullmatch(text(name)):
        yield _invalid(f"{path}.name", name, _LABEL_RULE)
    for field in ("served", "storage"):
        if not isinstance(version.get(field), bool):
            yield _required(f"{path}.{field}")
    schema = at(version, "schema", "openAPIV3Schema")
    at_schema = f"{places['schema']}.openAPIV3Schema"
    if "schema" not in version and has_schema:
        pass
    elif not is_mapping(schema):
        yield _required(at_schema)
    else:
        yield from (error.cause() for error in structural_errors(schema, at_schema))
    for position, column in enumerate(items(version.get("additionalPrinterColumns"))):
        yield from _column_causes(f"{places['additionalPrinterColumns']}[{position}]", mapping(column))
    scale = at(version, "subresources", "scale")
    if scale is not None:
        yield from _scale_causes(f"{places['subresources']}.scale", mapping(scale))
    for position, field in enumerate(items(version.get("selectableFields"))):
        yield from _path_causes(f"{places['selectableFields']}[{position}].jsonPath", at(field, "jsonPath"))


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
                f"spec.versions until a storage migration ensures no data remains persisted in {stored} and removes "
                f"{stored} from status.storedVersions",
            )
