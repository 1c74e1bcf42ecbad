"""CEL expressions of admission: environments, compilation, and evaluation within a cost budget.

Expressions can use ``object``, ``oldObject``, ``request``, ``namespaceObject``, ``params`` (with a paramKind),
``authorizer`` and ``variables`` (each evaluated once on first use).

Source: apiserver pkg/admission/plugin/cel/compile.go, composition.go, activation.go; apiserver
pkg/admission/plugin/webhook/matchconditions/matcher.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

from deltaloop import cel
from deltaloop.api.json_values import mapping, text
from deltaloop.cel.errors import EvaluationError, InvalidExpressionError
from deltaloop.cel.kubernetes import (
    AUTHORIZER,
    JSON_PATCH,
    JSON_PATCHES,
    MATCH_CONDITIONS_BUDGET,
    OBJECT,
    PER_CALL_LIMIT,
    RESOURCE_CHECK,
    MutationTypes,
)
from deltaloop.cel.types import type_name
from deltaloop.cel.values import LazyObject
from deltaloop.crds.rules.compiled import NEW, STORED
from deltaloop.schemas.field_errors import SchemaError, internal, invalid_value

VARIABLES: Final = "variables"
_KIND: Final = cel.object_of("kubernetes.GroupVersionKind")
_RESOURCE: Final = cel.object_of("kubernetes.GroupVersionResource")
_USER: Final = cel.object_of("kubernetes.UserInfo")
_REQUEST: Final = cel.object_of("kubernetes.AdmissionRequest")
_NAMESPACE: Final = cel.object_of("kubernetes.Namespace")
_NAMESPACE_METADATA: Final = cel.object_of("kubernetes.NamespaceMetadata")
_NAMESPACE_SPEC: Final = cel.object_of("kubernetes.NamespaceSpec")
_NAMESPACE_STATUS: Final = cel.object_of("kubernetes.NamespaceStatus")
_NAMESPACE_CONDITION: Final = cel.object_of("kubernetes.NamespaceCondition")
_COMPOSED: Final = cel.object_of("kubernetes.variables")
_TEXTS: Final = cel.map_of(cel.STRING, cel.STRING)
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
    _NAMESPACE.name: {"metadata": _NAMESPACE_METADATA, "spec": _NAMESPACE_SPEC, "status": _NAMESPACE_STATUS},
    _NAMESPACE_METADATA.name: {
        "name": cel.STRING,
        "generateName": cel.STRING,
        "namespace": cel.STRING,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "UID": cel.STRING,
        "creationTimestamp": cel.TIMESTAMP,
        "deletionGracePeriodSeconds": cel.INT,
        "deletionTimestamp": cel.TIMESTAMP,
        "generation": cel.INT,
        "resourceVersion": cel.STRING,
        "finalizers": cel.list_of(cel.STRING),
    },
    _NAMESPACE_SPEC.name: {"finalizers": cel.list_of(cel.STRING)},
    _NAMESPACE_STATUS.name: {"conditions": cel.list_of(_NAMESPACE_CONDITION), "phase": cel.STRING},
    _NAMESPACE_CONDITION.name: {
        "status": cel.STRING,
        "type": cel.STRING,
        "lastTransitionTime": cel.TIMESTAMP,
        "message": cel.STRING,
        "reason": cel.STRING,
    },
}
_ALWAYS: Final[Mapping[str, cel.Type]] = {
    "object": cel.DYN,
    "oldObject": cel.DYN,
    "namespaceObject": _NAMESPACE,
    "request": _REQUEST,
}
_AUTHORIZER: Final[Mapping[str, cel.Type]] = {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK}
_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_MUTATION_TYPES: Final = MutationTypes()
MUTATIONS: Final[Mapping[str, tuple[str, cel.Type]]] = {
    "ApplyConfiguration": ("applyConfiguration", OBJECT),
    "JSONPatch": ("jsonPatch", cel.list_of(JSON_PATCH)),
}
"""Field of the expression and type of its value, by patch type."""
ANY: Final = ()


@final
class _Types:
    """``TypeProvider`` for the request's parts and variables."""

    def __init__(self, variables: Mapping[str, cel.Type], *more: cel.TypeProvider) -> None:
        self._fields = {**_FIELDS, _COMPOSED.name: variables}
        self._more = more

    def field_type(self, type_name: str, field: str) -> cel.Type | None:
        found = self._fields.get(type_name, {}).get(field)
        others = (each.field_type(type_name, field) for each in self._more)
        return found if found is not None else next((each for each in others if each is not None), None)

    def named_type(self, name: str) -> cel.Type | None:
        """Return a type for mutations. Expressions cannot name the other types."""
        return next((found for each in self._more if (found := each.named_type(name)) is not None), None)


def environment(
    *,
    is_stored: bool,
    has_params: bool = False,
    has_authorizer: bool = True,
    makes_patches: bool = False,
    variables: Mapping[str, cel.Type] | None = None,
) -> cel.Environment:
    """Return the CEL environment for an admission expression; without ``variables`` it has none."""
    names = dict(_ALWAYS)
    if has_params:
        names["params"] = cel.DYN
    if has_authorizer:
        names |= _AUTHORIZER
    if variables is not None:
        names[VARIABLES] = _COMPOSED
    types = _Types({} if variables is None else variables, *((_MUTATION_TYPES,) if makes_patches else ()))
    libraries = (JSON_PATCHES,) if makes_patches else ()
    return (STORED if is_stored else NEW).with_variables(names, types, libraries=libraries)


def typed_environment(
    names: Mapping[str, cel.Type], variables: Mapping[str, cel.Type], *types: cel.TypeProvider
) -> cel.Environment:
    """Return the environment for type checking; ``names`` are the types of ``object``, ``oldObject`` and ``params``."""
    known = {**_ALWAYS, "authorizer": AUTHORIZER, VARIABLES: _COMPOSED, **names}
    return STORED.with_variables(known, _Types(variables, *types))


@final
class ProgramFault(str):
    """Internal error of a constant that cannot be converted or is not a valid pattern."""

    __slots__ = ()


def expression_error(path: str, source: str, fault: str) -> SchemaError:
    """Return the field error for an error message of ``compiled``."""
    return internal(path, fault) if isinstance(fault, ProgramFault) else invalid_value(path, source, fault)


def compiled(uses: cel.Environment, source: str, *wanted: cel.Type) -> cel.CompiledExpression | str:
    """Compile an expression of a wanted type (default any), or return the real server's error message."""
    try:
        program = uses.compile(source)
    except InvalidExpressionError as error:
        if error.checked:
            return ProgramFault(f"program instantiation failed: {error.faults[0].message}")
        return f"compilation failed: {error}"
    if not wanted or program.type in wanted:
        return program
    names = [_go_name(one) for one in wanted]
    listed = names[0] if len(names) == 1 else f"one of [{' '.join(names)}]"
    return f"must evaluate to {listed} but got {_go_name(program.type)}"


def _go_name(found: cel.Type) -> str:
    if not found.parameters:
        return type_name(found)
    return f"{found.name}({', '.join(map(_go_name, found.parameters))})"


def variable_type(found: cel.CompiledExpression | str) -> cel.Type:
    """Return the type of a variable for expressions that use it. Objects are dynamic."""
    return cel.DYN if isinstance(found, str) else _plain(found.type)


def _plain(found: cel.Type) -> cel.Type:
    if found.kind in ("list", "map"):
        parts = [_plain(part) for part in found.parameters]
        return cel.list_of(*parts) if found.kind == "list" else cel.map_of(*parts)
    return cel.DYN if found.kind in ("object", "opaque", "type", "wrapper") else found


class BudgetSpentError(Exception):
    def __init__(self) -> None:
        super().__init__(_SPENT)


@final
@dataclass(frozen=True, slots=True)
class ExpressionOutcome:
    """Result of an expression. ``value`` is also None after an error; ``fault`` is empty or the error message."""

    value: object = None
    fault: str = ""


@final
class Expressions:
    def __init__(
        self,
        sources: Iterable[str],
        programs: Iterable[cel.CompiledExpression | str | None],
        variables: Mapping[str, cel.CompiledExpression | str] | None = None,
    ) -> None:
        """Keep compiled expressions or error messages; None is a missing expression."""
        self._programs = tuple(zip(sources, programs, strict=True))
        self._variables = variables or {}

    def __bool__(self) -> bool:
        return bool(self._programs)

    def evaluate(self, bindings: Mapping[str, object], budget: int) -> tuple[list[ExpressionOutcome | None], int]:
        """Return the results and the remaining budget, or raise BudgetSpentError."""
        names = _Names(bindings, self._variables)
        found: list[ExpressionOutcome | None] = []
        for source, program in self._programs:
            if program is None:
                found.append(None)
            elif isinstance(program, str):
                found.append(ExpressionOutcome(fault=f"compilation error: {program}"))
            else:
                result = program.evaluate_with_cost(names.bindings, limit=PER_CALL_LIMIT)
                budget -= result.cost + names.spent
                names.spent = 0
                if budget < 0:
                    raise BudgetSpentError
                why = f"expression '{source}' resulted in error: {result.error}" if result.error is not None else ""
                found.append(ExpressionOutcome(result.value, why))
        return found, budget


@final
class _Names:
    def __init__(self, bindings: Mapping[str, object], variables: Mapping[str, cel.CompiledExpression | str]) -> None:
        self.spent = 0
        self._programs = variables
        self.bindings = {**bindings, VARIABLES: LazyObject(variables, self._compute)}

    def _compute(self, name: str) -> object:
        program = self._programs[name]
        if isinstance(program, str):
            raise EvaluationError(f'composited variable "{name}" fails to compile: {program}')
        found = program.evaluate_with_cost(self.bindings, limit=PER_CALL_LIMIT)
        self.spent += found.cost
        if found.error is not None:
            raise EvaluationError(f'composited variable "{name}" fails to evaluate: {found.error}')
        return found.value


@lru_cache(maxsize=256)
def compiled_condition(
    source: str, *, is_stored: bool = True, has_params: bool = False
) -> cel.CompiledExpression | str:
    """Compile a boolean expression, or return the error message. ``has_params`` declares ``params``."""
    return compiled(environment(is_stored=is_stored, has_params=has_params), source, cel.BOOL)


def unmet(
    conditions: Sequence[object], variables: Mapping[str, object], *, has_params: bool = False
) -> tuple[bool, tuple[str, ...]]:
    """Return whether a condition is false, which decides even after errors, and otherwise the errors."""
    sources = [text(mapping(condition).get("expression")) for condition in conditions]
    programs = [compiled_condition(source, has_params=has_params) for source in sources]
    try:
        outcomes, _ = Expressions(sources, programs).evaluate(variables, MATCH_CONDITIONS_BUDGET)
    except BudgetSpentError as error:
        return False, (str(error),)
    found = [outcome for outcome in outcomes if outcome is not None]
    if any(outcome.value is False for outcome in found):
        return True, ()
    return False, tuple(outcome.fault for outcome in found if outcome.fault)
