"""What mutating policies have beside the rest: ``jsonpatch.escapeKey``, and the type of a patch's operations.

Source: k8s.io/apiserver pkg/cel/library/jsonpatch.go, pkg/admission/plugin/policy/mutating/patch/json_patch.go.
"""

from __future__ import annotations

from typing import Final, final

from deltaloop.cel.library import Library, function
from deltaloop.cel.types import DYN, STRING, Type, object_of

JSON_PATCH: Final = object_of("JSONPatch")
_FIELDS: Final = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}


@final
class JsonPatchTypes:
    """The one type whose name is ``JSONPatch``: an operation of a JSON patch."""

    def field_type(self, type_name: str, field: str) -> Type | None:
        """Return the type of a field of an operation."""
        return _FIELDS.get(field) if type_name == JSON_PATCH.name else None

    def named_type(self, name: str) -> Type | None:
        """Return the type by its name."""
        return JSON_PATCH if name == JSON_PATCH.name else None


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


JSON_PATCHES: Final = Library(
    "kubernetes.jsonpatch",
    {"jsonpatch.escapeKey": (function("string_jsonpatch_escapeKey_string", (STRING,), STRING, _escaped),)},
)
