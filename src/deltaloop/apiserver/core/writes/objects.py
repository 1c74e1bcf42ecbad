"""What creating and updating do to an object: which fields are the server's, which are the client's.

The server owns uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, generation (where it counts),
resourceVersion and managedFields (``managed_fields``). Where status is a subresource, the main endpoint
leaves it alone and ``/status`` changes nothing else, but for metadata of most built-in kinds.

Source: apiserver pkg/registry/rest/create.go, update.go; apiextensions-apiserver
pkg/registry/customresource/strategy.go.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.builtin.defaulting import initial_status
from deltaloop.apiserver.core.builtin.tables import kind_types
from deltaloop.apiserver.core.metadata.rules import normalized_metadata
from deltaloop.apiserver.core.metadata.types import unreadable_type
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.stamp import Stamp
from deltaloop.schemas.faults import FieldError, invalid_value
from deltaloop.schemas.json_values import at

GENERATED_TRIES: Final = 8
_SERVER_FIELDS: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)
_KEPT_FIELDS: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5
_LONGEST_BASE: Final = 58
_SUFFIXES: Final = len(_LETTERS) ** _SUFFIX_LENGTH
_NEXT_SUFFIX: Final = 8_867_117  # shares no factor with _SUFFIXES, so that tries do not repeat
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def generated_name(base: str, *, chance: float, attempt: int) -> str:
    """Return ``generateName`` with five more signs; each attempt gives others.

    Source: apiserver pkg/storage/names/generate.go.
    """
    number = (int(chance * _SUFFIXES) + attempt * _NEXT_SUFFIX) % _SUFFIXES
    suffix = ""
    for _ in range(_SUFFIX_LENGTH):
        number, position = divmod(number, len(_LETTERS))
        suffix += _LETTERS[position]
    return base[:_LONGEST_BASE] + suffix


def check_identity(
    served: ServedResource, fields: dict[str, Any], *, namespace: str, name: str = "", patched: bool = False
) -> dict[str, Any]:
    """Check that an object is what the URL says, and return its normalized metadata.

    Args:
        served: The resource in the URL.
        fields: The object; ``kind`` and ``apiVersion`` may be missing for built-in kinds.
        namespace: Namespace in the URL; filled in where the object has none.
        name: Name in the URL, or "" for a create.
        patched: Whether a patch made the object; what it says of its version is then looked at later.

    Raises:
        BadRequestError: If kind, version, name or namespace do not fit.
        InvalidError: If a custom resource has another kind.
    """
    api_version = fields.get("apiVersion") or ""
    check_kind(served, fields)
    if not patched and (api_version or served.custom) and api_version != served.type.api_version:
        raise failures.bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({served.type.api_version})"
        )
    if not name:
        check_custom_kind(served, fields)
    unnamed = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
    if patched and name and not (served.custom or api_version):
        raise failures.bad_request(unnamed)  # without a version it is read as nothing at all
    metadata = normalized_metadata(served, fields)
    if not served.type.namespaced:
        metadata.pop("namespace", None)
    elif metadata.setdefault("namespace", namespace) != namespace:
        raise failures.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if name and "name" not in metadata:
        raise failures.bad_request(unnamed)
    if name and metadata["name"] != name:
        raise failures.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )
    if patched and served.custom and not api_version:
        raise failures.internal("Object 'apiVersion' is missing in 'object has no apiVersion field'")
    return metadata


def check_custom_kind(served: ServedResource, fields: dict[str, Any]) -> None:
    """Refuse another kind of custom resource; in an update, the resource version is looked at before.

    Raises:
        InvalidError: If it is another.
    """
    if not served.custom:
        return
    kind, api_version = fields.get("kind") or "", fields.get("apiVersion") or ""
    errors: list[FieldError] = []
    if kind and kind != served.type.kind:
        errors.append(invalid_value("kind", f'"{kind}"', f"must be {served.type.kind}"))
    if api_version != served.type.api_version:
        errors.append(invalid_value("apiVersion", f'"{api_version}"', f"must be {served.type.api_version}"))
    if errors:
        group = api_version.rpartition("/")[0]
        raise failures.another_kind(group, kind, str(at(fields, "metadata", "name") or ""), errors)


def check_kind(served: ServedResource, fields: dict[str, Any]) -> None:
    """Refuse an object that cannot be decoded for its kind; this comes before whatever else may be wrong with it.

    Raises:
        BadRequestError: If a built-in kind is another one, or a custom resource has none.
    """
    unreadable = unreadable_type(fields)
    if unreadable:
        raise failures.unrecognized(served.type.kind, unreadable)
    if not served.custom:
        api_version = fields.get("apiVersion") or served.type.api_version
        _check_registered(served, api_version, fields.get("kind") or served.type.kind)
    elif not fields.get("kind"):
        raise failures.unrecognized(served.type.kind, "Object 'Kind' is missing in the body of the request")


def _check_registered(served: ServedResource, api_version: str, kind: str) -> None:
    """Refuse another kind in the words of a server that decodes by what the body says it is."""
    version = api_version.rpartition("/")[2]
    wanted = served.type.kind
    if (api_version, kind) not in kind_types() and (api_version, kind) != (served.type.api_version, wanted):
        why = f'no kind "{kind}" is registered for version "{api_version}"'
        raise failures.unreadable(wanted, why, said=kind, version=version)
    if kind != wanted:
        group = served.type.group.partition(".")[0] or "core"
        why = f"converting ({version}.{kind}) to ({group}.{wanted}): unknown conversion"
        raise failures.unreadable(wanted, why, said=kind, version=version)


def new_object(
    served: ServedResource, fields: dict[str, Any], metadata: dict[str, Any], *, stamp: Stamp
) -> dict[str, Any]:
    """Return the object that a create stores, without a name if it is to be generated."""
    kept = {name: value for name, value in metadata.items() if name not in _SERVER_FIELDS}
    kept["uid"] = stamp.uid
    kept["creationTimestamp"] = stamp.time
    if served.flags.generation:
        kept["generation"] = 1
    result = {**fields, "metadata": kept}
    if served.status and not served.strategy.status_when_new:
        result.pop("status", None)
        status = None if served.custom else initial_status(served.type.api_version, served.type.kind)
        if status is not None:
            result["status"] = status
    return result


def updated_object(
    served: ServedResource,
    current: dict[str, Any],
    fields: dict[str, Any],
    metadata: dict[str, Any],
    *,
    subresource: str,
) -> dict[str, Any]:
    """Return the object that an update stores.

    Args:
        served: The resource.
        current: The object as it is.
        fields: The object as sent, or as patched.
        metadata: Its normalized metadata.
        subresource: "", ``status`` or ``finalize``.
    """
    old = current["metadata"]
    if subresource == "status":
        result = {name: value for name, value in current.items() if name != "status"}
        result["metadata"] = _with_status_metadata(served, old, metadata)
        if fields.get("status") is not None:
            result["status"] = fields["status"]
        served.strategy.prepare_status(current, result)
        return result
    if subresource:
        return served.strategy.parts[subresource](current, {**fields, "metadata": metadata})
    kept = {name: value for name, value in metadata.items() if name not in _SERVER_FIELDS}
    kept.pop("generation", None)
    kept.update({name: old[name] for name in _KEPT_FIELDS if name in old})
    result = {**fields, "metadata": kept}
    if served.status:
        result.pop("status", None)
        if "status" in current:
            result["status"] = current["status"]
    served.strategy.prepare_update(current, result)
    kept = result["metadata"]
    counted = served.flags.generation and _desired(result) != _desired(current)
    also = served.flags.counted
    if counted or (also and kept.get(also) != old.get(also)):
        kept["generation"] = kept.get("generation", 0) + 1
    return result


def _with_status_metadata(served: ServedResource, old: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata that a write to ``/status`` leaves."""
    taken = served.flags.status_metadata
    if not taken:
        return old
    result = {name: value for name, value in old.items() if name not in taken}
    return result | {name: sent[name] for name in sent if name in taken}


def told_by_status(served: ServedResource, errors: list[FieldError]) -> list[FieldError]:
    """Return which errors in metadata count for a write to ``/status``: not those of what is put back before a look.

    Source: Kubernetes pkg/registry (``PrepareForUpdate`` of status strategies), pkg/registry/core/pod/strategy.go.
    """
    restores = served.flags.status_restores
    if restores == "metadata":
        return []
    return [error for error in errors if restores != "deletion" or error.field != "metadata.deletionTimestamp"]


def has_finalizers(served: ServedResource, fields: dict[str, Any]) -> bool:
    """Tell whether something still holds an object that is being deleted."""
    if fields["metadata"].get("finalizers"):
        return True
    return served.strategy.is_held(fields)


def ends_with_update(served: ServedResource, fields: dict[str, Any]) -> bool:
    """Tell whether an update removed the last thing that held an object that is being deleted."""
    metadata = fields["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("deletionGracePeriodSeconds", 0) != 0:
        return False
    return not has_finalizers(served, fields)


def _desired(fields: dict[str, Any]) -> bytes:
    # Where status is a subresource, both sides have the same one by now; elsewhere it counts like any other field.
    return _encode({name: value for name, value in fields.items() if name not in ("kind", "apiVersion", "metadata")})
