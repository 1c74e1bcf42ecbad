"""CustomResourceDefinitions from the classes of a kind's versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource_type import ResourceType
from deltaloop.crds.class_schemas import InvalidKindError
from deltaloop.crds.declaring import DeclaredKind, column_of, declared_kind, scale_of


def generate_crd(*versions: type) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind.

    Without a webhook, the server only changes the apiVersion when it converts objects. Kinds whose versions differ
    therefore need a conversion webhook.

    Args:
        versions: Classes of all versions. Objects are stored in the version with ``storage=True``, which a single class
            does not need.

    Raises:
        InvalidKindError: If the classes are not versions of one kind.
        InvalidArgumentError: If there is no class, or one is not decorated with ``custom_resource``.

    Source: apiextensions-apiserver pkg/apis/apiextensions/v1/types.go.
    """
    if not versions:
        raise InvalidArgumentError("generate_crd() got no class; give the class of each version of the kind")
    declared = {cls: declared_kind(cls) for cls in versions}
    stored = _storage(declared)
    _check_versions(declared, stored)
    hub = declared[stored]
    keywords, kind = hub.keywords, hub.type
    names: dict[str, Any] = {
        "plural": kind.plural,
        "singular": kind.kind.lower(),
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "shortNames": [*keywords.get("short_names", ())],
        "categories": [*keywords.get("categories", ())],
    }
    annotations = {name: said for each in declared.values() for name, said in _annotations(each).items()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.group_resource, **({"annotations": annotations} if annotations else {})},
        "spec": {
            "group": kind.group,
            "names": {name: value for name, value in names.items() if value},
            "scope": _scope(kind),
            "versions": [_version(each, storage=cls is stored) for cls, each in declared.items()],
        },
    }


def _annotations(declared: DeclaredKind) -> Mapping[str, str]:
    return declared.keywords.get("annotations", {})


def _own(schema: dict[str, Any]) -> dict[str, Any]:
    copied: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    return copied


def _scope(kind: ResourceType[Any]) -> str:
    return "Namespaced" if kind.namespaced else "Cluster"


def _storage(declared: dict[type, DeclaredKind]) -> type:
    marked = [cls for cls, each in declared.items() if each.keywords.get("storage")]
    if len(declared) == 1:
        return next(iter(declared))
    if len(marked) != 1:
        names = ", ".join(cls.__name__ for cls in marked or declared)
        what = "none of them says" if not marked else "more than one says"
        advice = "put storage=True on the one that objects are stored in"
        raise InvalidKindError(names, "", f"{what} that objects are stored in its version: {advice}, and on no other")
    return marked[0]


def _check_versions(declared: dict[type, DeclaredKind], stored: type) -> None:
    hub, seen = declared[stored].type, dict[str, type]()
    for cls, each in declared.items():
        found = each.type
        for what, own, other in (
            ("group", found.group, hub.group),
            ("kind", found.kind, hub.kind),
            ("plural", found.plural, hub.plural),
            ("scope", _scope(found), _scope(hub)),
        ):
            if own != other:
                text = f"its {what} is {own!r}, that of {stored.__name__} is {other!r}: versions of a kind have one"
                raise InvalidKindError(cls.__name__, "", text)
        if found.version in seen:
            text = f"{seen[found.version].__qualname__} is {found}, too: give each class a version of its own"
            raise InvalidKindError(cls.__name__, "", text)
        seen[found.version] = cls


def _version(declared: DeclaredKind, *, storage: bool) -> dict[str, Any]:
    keywords, schema = declared.keywords, _own(declared.schema)
    result: dict[str, Any] = {
        "name": declared.type.version,
        "served": keywords.get("served", True),
        "storage": storage,
    }
    if deprecated := keywords.get("deprecated"):
        result["deprecated"] = True
        if isinstance(deprecated, str):
            result["deprecationWarning"] = deprecated
    result["schema"] = {"openAPIV3Schema": schema}
    subresources: dict[str, Any] = {"status": {}} if declared.has_status else {}
    if (scale := keywords.get("scale")) is not None:
        subresources["scale"] = scale_of(scale)
    if subresources:
        result["subresources"] = subresources
    if columns := keywords.get("printer_columns"):
        result["additionalPrinterColumns"] = [column_of(each, schema) for each in columns]
    if selectable := keywords.get("selectable_fields"):
        result["selectableFields"] = [{"jsonPath": each} for each in selectable]
    return result
