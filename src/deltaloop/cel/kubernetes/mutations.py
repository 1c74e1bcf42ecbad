"""Functions and types of mutating policies: ``jsonpatch.escapeKey``, ``JSONPatch`` and ``Object``.

Source: k8s.io/apiserver pkg/cel/library/jsonpatch.go, pkg/cel/mutation.
"""

from __future__ import annotations

from typing import Final, final

from deltaloop.cel.library import Library, function
from deltaloop.cel.types import DYN, STRING, Type, object_of

JSON_PATCH: Final = object_of("JSONPatch")
OBJECT: Final = object_of("Object")
_NOTHING: Final = Type("none", "")  # the real server accepts every field name, with a type that no value has
_FIELDS: Final = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}


@final
class MutationTypes:
    """Types ``JSONPatch``, an operation of a JSON patch, and ``Object``, which has no schema.

    Nested objects have a type that is named after their path, for example ``Object.spec.template``.
    """

    def field_type(self, type_name: str, field: str) -> Type | None:
        """Return the type of a field."""
        if type_name == JSON_PATCH.name:
            return _FIELDS.get(field, _NOTHING)
        return DYN if _is_object(type_name) else None

    def named_type(self, name: str) -> Type | None:
        """Return a type by its name."""
        return JSON_PATCH if name == JSON_PATCH.name else object_of(name) if _is_object(name) else None


def _is_object(name: str) -> bool:
    return name == OBJECT.name or name.startswith(f"{OBJECT.name}.")


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


JSON_PATCHES: Final = Library(
    "kubernetes.jsonpatch",
    {"jsonpatch.escapeKey": (function("string_jsonpatch_escapeKey_string", (STRING,), STRING, _escaped),)},
)
