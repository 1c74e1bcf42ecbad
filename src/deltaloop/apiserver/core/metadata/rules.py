"""Validation of metadata, with the real server's messages.

Source: apimachinery pkg/apis/meta/v1 ``LabelSelectorAsSelector``; apimachinery pkg/api/validation/objectmeta.go,
pkg/util/validation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from deltaloop.api.dns_names import (
    label_key_problems,
    label_value_problems,
    numbered_label_problems,
    subdomain_problems,
)
from deltaloop.api.json_values import items, mapping, text, texts
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.schemas.field_errors import (
    SchemaError,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    too_long,
)


def selects(selector: dict[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a selector matches labels. Unknown operators match nothing."""
    wanted = mapping(selector.get("matchLabels"))
    if any(labels.get(name) != value for name, value in wanted.items()):
        return False
    return all(_holds(mapping(item), labels) for item in items(selector.get("matchExpressions")))


def _holds(expression: dict[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(text(expression.get("key")))
    values = texts(expression.get("values"))
    match text(expression.get("operator")):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False


GENERATED_TRIES: Final = 8
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_LONGEST_BASE: Final = 58
_SUFFIXES: Final = len(_LETTERS) ** _SUFFIX_LENGTH
_NEXT_SUFFIX: Final = 8_867_117  # shares no factor with _SUFFIXES, so that attempts do not repeat


def generated_name(base: str, *, random: float, attempt: int) -> str:
    """Return the base with five more characters (``pkg/storage/names/generate.go``); ``random`` is in [0, 1)."""
    number = (int(random * _SUFFIXES) + attempt * _NEXT_SUFFIX) % _SUFFIXES
    suffix = ""
    for _ in range(_SUFFIX_LENGTH):
        number, position = divmod(number, len(_LETTERS))
        suffix += _LETTERS[position]
    return base[:_LONGEST_BASE] + suffix


_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_MAX_ANNOTATIONS: Final = 256 * 1024

_STRINGS: Final = ("name", "generateName", "namespace", "uid", "resourceVersion")
_NULLABLE: Final = (
    *_STRINGS,
    "generation",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_canonical: Final = msgspec.json.Encoder(order="sorted").encode


def normalized_metadata(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of valid metadata without empty fields."""
    kept: dict[str, Any] = dict(mapping(fields.get("metadata")))
    for name in _NULLABLE:
        if name in kept and kept[name] in (None, "", {}, []):
            del kept[name]
    for name in ("labels", "annotations"):
        if None in kept.get(name, {}).values():
            kept[name] = {key: value or "" for key, value in kept[name].items()}
    if None in kept.get("finalizers", ()):
        kept["finalizers"] = [item or "" for item in kept["finalizers"]]
    if None in kept.get("ownerReferences", ()):
        kept["ownerReferences"] = [item or {} for item in kept["ownerReferences"]]
    owners = kept.get("ownerReferences", [])
    if len(owners) > 1:
        kept["ownerReferences"] = [*{_canonical(owner): owner for owner in reversed(owners)}.values()][::-1]
    return kept


def owner_warnings(metadata: dict[str, Any], when: str = "") -> tuple[str, ...]:
    """Return a warning if several owners have the same UID; ``when`` is inserted into the text."""
    uids = Counter(mapping(owner).get("uid") for owner in items(metadata.get("ownerReferences")))
    repeated = sorted(uid for uid, times in uids.items() if isinstance(uid, str) and times > 1)
    if not repeated:
        return ()
    return (
        f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and "
        "may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        + ", ".join(repeated),
    )


def finalizer_warnings(served: ServedResource, sent: dict[str, Any], old: Iterable[str] = ()) -> tuple[str, ...]:
    """Return a warning for each new finalizer of a custom resource without a qualified name."""
    if served.flags.own_finalizers:
        return ()
    before = {*old, *_STANDARD_FINALIZERS}
    added = {item for item in items(sent.get("finalizers")) if isinstance(item, str) and "/" not in item} - before
    return tuple(
        f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name'
        f"{' including a path (/)' if '.' in finalizer else ''} to avoid accidental conflicts with other finalizer "
        "writers"
        for finalizer in sorted(added)
    )


def name_errors(served: ServedResource, name: str, field: str = "metadata.name") -> Iterator[SchemaError]:
    return _NAME_FORMS[served.flags.name_form](name, field)


def invalid_values(field: str, value: str, problems: Iterable[str]) -> Iterator[SchemaError]:
    return (invalid_value(field, value, problem) for problem in problems)


def label_name_errors(name: str, field: str) -> Iterator[SchemaError]:
    return invalid_values(field, name, numbered_label_problems(name))


def subdomain_errors(name: str, field: str) -> Iterator[SchemaError]:
    return invalid_values(field, name, subdomain_problems(name))


def qualified_name_errors(name: str, field: str) -> Iterator[SchemaError]:
    return invalid_values(field, name, label_key_problems(name))


def path_segment_errors(name: str, field: str) -> Iterator[SchemaError]:
    if name in (".", ".."):
        yield invalid_value(field, name, f"may not be '{name}'")
    for sign in ("/", "%"):
        if sign in name:
            yield invalid_value(field, name, f"may not contain '{sign}'")


_NAME_FORMS: Final = {"subdomain": subdomain_errors, "label": label_name_errors, "path": path_segment_errors}


def metadata_errors(served: ServedResource, metadata: dict[str, Any], *, new: bool = False) -> list[SchemaError]:
    """Return the errors in normalized metadata."""
    errors: list[SchemaError] = []
    base = metadata.get("generateName", "")
    if base and new:
        # A trailing dash is valid, because the suffix follows.
        errors.extend(name_errors(served, f"{base[:-1]}a" if base.endswith("-") else base, "metadata.generateName"))
    name = metadata.get("name", "")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors.extend(name_errors(served, name))
    errors.extend(_other_errors(metadata, strict=not served.flags.any_finalizer))
    return errors


def inner_metadata_errors(metadata: dict[str, Any]) -> Iterator[SchemaError]:
    for name in ("name", "generateName"):
        if metadata.get(name):
            yield from path_segment_errors(metadata[name], f"metadata.{name}")
    if metadata.get("namespace"):
        yield from label_name_errors(metadata["namespace"], "metadata.namespace")
    yield from _other_errors(metadata, strict=False)
    for position, entry in enumerate(metadata.get("managedFields", [])):
        where = f"metadata.managedFields[{position}]"
        operation, fields_type = entry.get("operation") or "", entry.get("fieldsType") or ""
        if not operation:
            yield required(f"{where}.operation", "must not be empty")
        elif operation not in ("Apply", "Update"):
            yield not_supported(f"{where}.operation", operation, ("Apply", "Update"))
        if fields_type not in ("", "FieldsV1"):
            yield invalid_value(f"{where}.fieldsType", fields_type, "must be `FieldsV1`")


def _other_errors(metadata: dict[str, Any], *, strict: bool) -> Iterator[SchemaError]:
    generation = metadata.get("generation", 0)
    if generation < 0:
        yield invalid_value("metadata.generation", generation, "must be greater than or equal to 0")
    yield from label_errors(metadata.get("labels", {}))
    yield from annotation_errors(metadata.get("annotations", {}))
    yield from _owner_errors(metadata.get("ownerReferences", []))
    for position, finalizer in enumerate(metadata.get("finalizers", [])):
        yield from _finalizer_errors(finalizer, position, strict=strict)


def mark_errors(old: dict[str, Any], sent: dict[str, Any], dropped: Mapping[str, str]) -> list[SchemaError]:
    """Return an error for each deletion field that an update would change or that was unreadable."""
    found: list[SchemaError] = []
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if name in dropped:
            found.append(invalid_value("metadata", sent, dropped[name]))
        if name in sent and sent[name] != old.get(name):
            found.append(invalid_value(f"metadata.{name}", sent[name], "field is immutable"))
    return found


def new_finalizer_errors(old: Iterable[str], new: Iterable[str]) -> list[SchemaError]:
    known = set(old)
    added = [name for name in new if name not in known]
    if not added:
        return []
    listed = ", ".join(f'"{name}"' for name in added)
    text = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [forbidden_field("metadata.finalizers", text)]


def label_errors(labels: dict[str, str], field: str = "metadata.labels") -> Iterator[SchemaError]:
    for key, value in labels.items():
        yield from qualified_name_errors(key, field)
        yield from invalid_values(field, value, label_value_problems(value))


def annotation_errors(annotations: dict[str, str], field: str = "metadata.annotations") -> Iterator[SchemaError]:
    for key in annotations:
        yield from invalid_values(field, key, label_key_problems(key.lower()))
    if sum(len(key) + len(value.encode()) for key, value in annotations.items()) > _MAX_ANNOTATIONS:
        yield too_long(field, _MAX_ANNOTATIONS)


def _finalizer_errors(finalizer: str, position: int, *, strict: bool) -> Iterator[SchemaError]:
    yield from qualified_name_errors(finalizer, "metadata.finalizers")
    if strict and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        text = "name is neither a standard finalizer name nor is it fully qualified"
        yield invalid_value(f"metadata.finalizers[{position}]", finalizer, text)


def _owner_errors(owners: list[dict[str, Any]]) -> Iterator[SchemaError]:
    field = "metadata.ownerReferences"
    for place, owner in enumerate(owners):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield required(f"{field}[{place}].{name}", "must not be empty")
    controllers = [f"{owner.get('kind')}/{owner.get('name')}" for owner in owners if owner.get("controller") is True]
    if len(controllers) > 1:
        text = 'Only one reference can have Controller set to true. Found "true" in references for '
        yield invalid_value(field, owners, text + " and ".join(controllers[:2]))
