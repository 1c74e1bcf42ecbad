"""Validation of CustomResourceDefinitions.

Source: apiextensions-apiserver pkg/apis/apiextensions/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from deltaloop.api.dns_names import label_problems, subdomain_problems
from deltaloop.api.json_values import at, is_mapping, items, mapping, text, texts
from deltaloop.apiserver.core.crds.conversion import conversion_errors, has_authority
from deltaloop.apiserver.core.crds.definition import APPROVED, approval_of, is_established, storage_versions
from deltaloop.crds.fields import column_errors, scale_errors, selectable_errors
from deltaloop.crds.rules.definitions import RuleChecks, expressions_of
from deltaloop.schemas.field_errors import SchemaError, invalid_value, not_supported, required
from deltaloop.schemas.schema_rules import schema_errors

_LONGEST_WARNING: Final = 256
_REMEMBERED: Final = 64 * 1024  # maximum size in bytes of the cached definitions; the cache has 16 entries


def validate_crd(crd: dict[str, Any], *, old: dict[str, Any] | None = None) -> list[SchemaError]:
    """Return the errors in a CRD after defaulting. ``old`` is the stored CRD, which some fields must match."""
    if old is not None:
        return _errors(crd, old)
    judged = _judged_parts(crd)
    return list(_errors_of_new(judged)) if len(judged) <= _REMEMBERED else _errors(crd, None)


def _judged_parts(crd: dict[str, Any]) -> bytes:
    metadata = mapping(crd.get("metadata"))
    kept = {name: metadata[name] for name in ("name", "annotations") if name in metadata}
    return msgspec.json.encode({"metadata": kept, "spec": crd.get("spec"), "status": crd.get("status")})


@lru_cache(maxsize=16)
def _errors_of_new(crd: bytes) -> tuple[SchemaError, ...]:
    """Validate a new CRD. Cached, because tests and simulations create the same CRDs on many servers."""
    return tuple(_errors(msgspec.json.decode(crd), None))


def _errors(crd: dict[str, Any], old: dict[str, Any] | None) -> list[SchemaError]:
    errors = [*_identity_errors(crd), *_spec_errors(crd, old), *_names_errors(crd)]
    errors += conversion_errors(crd, any_authority=old is None or not is_established(old) or not has_authority(old))
    errors += _stored_version_errors(crd)
    errors += _approval_errors(crd, old)
    if at(crd, "spec", "preserveUnknownFields") is True:
        words = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        errors.append(invalid_value("spec.preserveUnknownFields", True, words))
    return errors + list(_change_errors(crd, old)) if old is not None else errors


def _identity_errors(crd: dict[str, Any]) -> Iterator[SchemaError]:
    group = text(at(crd, "spec", "group"))
    plural = text(at(crd, "spec", "names", "plural"))
    name = text(at(crd, "metadata", "name"))
    if name != f"{plural}.{group}":
        yield invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield required("spec.group")
    elif problems := subdomain_problems(group):
        yield invalid_value("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid_value("spec.group", group, "should be a domain with at least one dot")
    scope = text(at(crd, "spec", "scope"))
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", scope, ("Cluster", "Namespaced"))


def _approval_errors(crd: dict[str, Any], old: dict[str, Any] | None) -> Iterator[SchemaError]:
    """Yield errors in the approval of protected groups, unless the old CRD had an error as well."""
    approval = approval_of(crd)
    if approval is None or approval.is_given:
        return
    before = approval_of(old) if old is not None else None
    if before is not None and not before.is_given:
        return
    field = f"metadata.annotations[{APPROVED}]"
    given = text(at(crd, "metadata", "annotations", APPROVED))
    yield invalid_value(field, given, approval.message) if given else required(field, approval.message)


def _names_errors(crd: dict[str, Any]) -> Iterator[SchemaError]:
    names = mapping(at(crd, "spec", "names"))
    for field in ("plural", "singular", "kind", "listKind"):
        name, path = text(names.get(field)), f"spec.names.{field}"
        mixed = field in ("kind", "listKind")
        if not name:
            yield required(path)
            continue
        yield from _label_errors(name, path, mixed=mixed)
    for field in ("shortNames", "categories"):
        for position, each in enumerate(items(names.get(field))):
            yield from _label_errors(text(each), f"spec.names.{field}[{position}]")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid_value("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _label_errors(name: str, field: str, *, mixed: bool = False) -> Iterator[SchemaError]:
    problems = ",".join(label_problems(name.lower() if mixed else name))
    if problems:
        words = f"may have mixed case, but should otherwise match: {problems}" if mixed else problems
        yield invalid_value(field, name, words)


def _spec_errors(crd: dict[str, Any], old: dict[str, Any] | None) -> Iterator[SchemaError]:
    versions = [mapping(version) for version in items(at(crd, "spec", "versions"))]
    has_defaults = False
    for position, version in enumerate(versions):
        schema = at(version, "schema", "openAPIV3Schema")
        if not is_mapping(schema):
            yield required(f"spec.versions[{position}].schema.openAPIV3Schema")
        has_defaults = has_defaults or _has_default(schema)
    if has_defaults and at(crd, "spec", "preserveUnknownFields") is True:
        yield invalid_value("spec.preserveUnknownFields", True, "must be false in order to use defaults in the schema")
    names = [text(version.get("name")) for version in versions]
    yield from _common_errors(versions, old or {})
    if len(set(names)) != len(names):
        yield invalid_value("spec.versions", names, "must contain unique version names")
    if len(storage_versions(crd)) != 1:
        yield invalid_value("spec.versions", names, "must have exactly one version marked as storage version")
    if names and names[0]:
        yield from _label_errors(names[0], "spec.version")


def _has_default(schema: object) -> bool:
    if any(_has_default(item) for item in items(schema)):
        return True
    fields = mapping(schema)
    return "default" in fields or any(_has_default(inner) for inner in fields.values())


# The real server treats fields that are equal in all versions as fields of the spec, and checks them once.
_COMMON: Final = {
    "schema": "spec.validation",
    "subresources": "spec.subresources",
    "additionalPrinterColumns": "spec.additionalPrinterColumns",
    "selectableFields": "spec.selectableFields",
}


def _common_errors(versions: list[dict[str, Any]], old: dict[str, Any]) -> Iterator[SchemaError]:
    if not versions:
        return
    first = versions[0]
    common = {
        field: path
        for field, path in _COMMON.items()
        if first.get(field) and all(version.get(field) == first[field] for version in versions)
    }
    known = expressions_of(old)
    before = {at(version, "name"): at(version, "schema") for version in items(at(old, "spec", "versions"))}
    for position, version in enumerate(versions):
        path = f"spec.versions[{position}]"
        unchanged = version.get("name") in before and before[version["name"]] == version.get("schema")
        places = {field: f"{path}.{field}" for field in _COMMON} | common
        looked_at = _COMMON if position == 0 else [field for field in _COMMON if field not in common]
        yield from _label_errors(text(version.get("name")), f"{path}.name")
        yield from _warning_errors(version, f"{path}.deprecationWarning")
        checks = RuleChecks(known, unchanged=unchanged)
        yield from _version_errors(version, {field: places[field] for field in looked_at}, checks)


def _warning_errors(version: dict[str, Any], field: str) -> Iterator[SchemaError]:
    warning = version.get("deprecationWarning")
    if not isinstance(warning, str):
        return
    if version.get("deprecated") is not True:
        yield invalid_value(field, warning, "can only be set for deprecated versions")
        return
    encoded = warning.encode()
    if len(encoded) > _LONGEST_WARNING:
        yield invalid_value(field, warning, f"must be <= {_LONGEST_WARNING} characters long")
    if not warning:
        yield invalid_value(field, "", "must not be an empty string")
    for position, sign in enumerate(warning):
        if not sign.isprintable():
            place = len(warning[:position].encode())
            words = f"must only contain printable UTF-8 characters; non-printable character found at index {place}"
            yield invalid_value(field, warning, words)
            break


def _version_errors(version: dict[str, Any], places: dict[str, str], checks: RuleChecks) -> Iterator[SchemaError]:
    """Yield the errors in the parts of a version that ``places`` contains, with their paths."""
    schema = at(version, "schema", "openAPIV3Schema")
    with_status = isinstance(at(version, "subresources", "status"), dict)
    if "schema" in places and is_mapping(schema):
        where = f"{places['schema']}.openAPIV3Schema"
        yield from schema_errors(schema, where, with_status=with_status, expressions=checks)
    scale = at(version, "subresources", "scale")
    if "subresources" in places and scale is not None:
        yield from scale_errors(f"{places['subresources']}.scale", mapping(scale))
    if "additionalPrinterColumns" in places:
        for position, column in enumerate(items(version.get("additionalPrinterColumns"))):
            yield from column_errors(f"{places['additionalPrinterColumns']}[{position}]", mapping(column))
    if "selectableFields" in places:
        yield from selectable_errors(
            places["selectableFields"], items(version.get("selectableFields")), mapping(schema)
        )


def _stored_version_errors(crd: dict[str, Any]) -> Iterator[SchemaError]:
    known = texts(at(crd, "status", "storedVersions"))
    stored = storage_versions(crd)
    if not stored and not known:
        yield invalid_value("status.storedVersions", None, "must have at least one stored version")
    for name in stored[1:]:
        if name not in known:
            yield invalid_value("status.storedVersions", [*known, stored[0]], f"must have the storage version {name}")


def _change_errors(crd: dict[str, Any], old: dict[str, Any]) -> Iterator[SchemaError]:
    fixed: list[tuple[str, ...]] = [("spec", "group"), ("spec", "names", "plural")]
    if is_established(old):
        fixed += [("spec", "scope"), ("spec", "names", "kind")]
    for path in fixed:
        if at(crd, *path) != at(old, *path):
            yield invalid_value(".".join(path), at(crd, *path), "field is immutable")
    names = [text(at(version, "name")) for version in items(at(crd, "spec", "versions"))]
    for position, stored in enumerate(texts(at(old, "status", "storedVersions"))):
        if stored not in names:
            yield invalid_value(
                f"status.storedVersions[{position}]",
                stored,
                f"missing from spec.versions; {stored} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {stored} and removes "
                f"{stored} from status.storedVersions",
            )
