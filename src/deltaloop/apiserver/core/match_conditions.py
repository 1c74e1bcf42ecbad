"""Match conditions: expressions that decide whether a webhook is asked at all.

They know the object as it is and as it is to be, the request, and who may do what
(``core/admission/admission_request.py``).

Source: apiserver pkg/admission/plugin/webhook/matchconditions/matcher.go, pkg/admission/plugin/cel/condition.go,
compile.go (``BuildRequestType``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, final

from deltaloop import cel
from deltaloop.apiserver.core.cel_environments import NEW, STORED
from deltaloop.cel.faults import InvalidExpressionError
from deltaloop.cel.kubernetes import (
    AUTHORIZER,
    MATCH_CONDITIONS_BUDGET,
    PER_CALL_LIMIT,
    RESOURCE_CHECK,
)
from deltaloop.schemas.json_values import mapping, text

_KIND: Final = cel.object_of("kubernetes.GroupVersionKind")
_RESOURCE: Final = cel.object_of("kubernetes.GroupVersionResource")
_USER: Final = cel.object_of("kubernetes.UserInfo")
_REQUEST: Final = cel.object_of("kubernetes.AdmissionRequest")
_FIELDS: Final[Mapping[str, Mapping[str, cel.Type]]] = {
    _KIND.name: {"group": cel.STRING, "version": cel.STRING, "kind": cel.STRING},
    _RESOURCE.name: {"group": cel.STRING, "version": cel.STRING, "resource": cel.STRING},
    _USER.name: {
        "username": cel.STRING,
        "uid": cel.STRING,
        "groups": cel.list_of(cel.STRING),
        "extra": cel.map_of(cel.STRING, cel.list_of(cel.STRING)),
    },
    _REQUEST.name: {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": cel.STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": cel.STRING,
        "name": cel.STRING,
        "namespace": cel.STRING,
        "operation": cel.STRING,
        "userInfo": _USER,
        "dryRun": cel.BOOL,
        "options": cel.DYN,
    },
}
_VARIABLES: Final[Mapping[str, cel.Type]] = {
    "object": cel.DYN,
    "oldObject": cel.DYN,
    "namespaceObject": cel.DYN,
    "request": _REQUEST,
    "authorizer": AUTHORIZER,
    "authorizer.requestResource": RESOURCE_CHECK,
}


@final
class _Types:
    """The types of the request's parts. A ``TypeProvider``."""

    def field_type(self, type_name: str, field: str) -> cel.Type | None:
        """Return the type of a field of an object."""
        return _FIELDS.get(type_name, {}).get(field)

    def named_type(self, name: str) -> cel.Type | None:
        """Return None: expressions cannot name these types."""
        del name
        return None


@lru_cache(maxsize=256)
def compiled_condition(source: str, *, is_stored: bool = True) -> cel.CompiledExpression | str:
    """Return an expression as a program, or what keeps it from being one that is true or false.

    Args:
        source: The expression.
        is_stored: Whether it is stored already.
    """
    environment = (STORED if is_stored else NEW).with_variables(_VARIABLES, _Types())
    try:
        program = environment.compile(source)
    except InvalidExpressionError as error:
        return f"compilation failed: {error}"
    if program.type not in (cel.BOOL, cel.DYN):
        return f"must evaluate to bool but got {program.type}"
    return program


def unmet(conditions: Sequence[object], variables: Mapping[str, object]) -> tuple[bool, tuple[str, ...]]:
    """Return whether a condition is false, and else the faults of those that have no value.

    One that is false decides, whatever is wrong with those before it.
    """
    faults: list[str] = []
    left = MATCH_CONDITIONS_BUDGET
    for condition in map(mapping, conditions):
        source = text(condition.get("expression")).strip()
        program = compiled_condition(source)
        if isinstance(program, str):
            faults.append(program)
            continue
        found = program.evaluate_with_cost(variables, limit=min(left, PER_CALL_LIMIT))
        left -= found.cost
        if found.value is False:
            return True, ()
        if found.error is not None:
            faults.append(f"expression '{source}' resulted in error: {found.error}")
    return False, tuple(faults)
