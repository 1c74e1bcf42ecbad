"""Validation of admission policies and their bindings, validating and mutating.

Source: Kubernetes pkg/apis/admissionregistration/validation/validation.go, static_suffix.go;
pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias, final

from deltaloop import cel
from deltaloop.api.dns_names import label_problems, subdomain_problems
from deltaloop.api.json_values import at, is_mapping, items, mapping, text, texts
from deltaloop.apiserver.core.admission_expressions import (
    MUTATIONS,
    compiled,
    environment,
    expression_error,
    variable_type,
)
from deltaloop.apiserver.core.kinds.cells import UNSET, format_selector
from deltaloop.apiserver.core.kinds.field_checks import each, one_of
from deltaloop.apiserver.core.kinds.webhook_configuration import (
    CONDITIONS,
    choice_errors,
    condition_errors,
    reserved_name_errors,
    rule_errors,
)
from deltaloop.apiserver.core.metadata.rules import path_segment_errors, qualified_name_errors, subdomain_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.crds.rules.declarations import RESERVED
from deltaloop.schemas.field_errors import (
    SchemaError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)

Fields = Mapping[str, object]
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_LINE_BREAKS: Final = re.compile(r"[\n\r]")
_FAILURE_POLICIES: Final = ("Fail", "Ignore")
_MATCH_POLICIES: Final = ("Equivalent", "Exact")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_MUTATING_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")
_NOT_FOUND: Final = ("Deny", "Allow")
_MOST_ANNOTATIONS: Final = 20
_LONGEST_VALUE: Final = 5 * 1024
_NOTHING_TO_DO: Final = "validations or auditAnnotations must contain at least one item"
_NOT_BOTH: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)
_EITHER: Final = "name and selector are mutually exclusive"
_NOT_EMPTY: Final = "must be non-empty if specified"


@final
@dataclass(frozen=True, slots=True)
class _Past:
    """Old spec of a policy, None if new. Stored expressions can use more of CEL than new expressions."""

    spec: Fields | None = None

    def of(self, listed: str, field: str) -> frozenset[str]:
        """Return the old values of a field of a list's items."""
        return frozenset(text(at(item, field)) for item in items(at(self.spec, listed)))

    def has_conditions_of(self, spec: Fields) -> bool:
        return self.spec is not None and all(
            (self.spec.get(name) or None) == (spec.get(name) or None) for name in (CONDITIONS, "paramKind")
        )


@final
class _Compiler:
    """Compiler for the expressions of one policy; variables are available to later expressions."""

    def __init__(self, spec: Fields) -> None:
        self._has_params = spec.get("paramKind") is not None
        self._variables: dict[str, cel.Type] | None = {} if items(spec.get("variables")) else None

    def compile(
        self,
        source: str,
        *wanted: cel.Type,
        is_stored: bool,
        has_authorizer: bool = True,
        makes_patches: bool = False,
    ) -> cel.CompiledExpression | str:
        uses = environment(
            is_stored=is_stored,
            has_params=self._has_params,
            has_authorizer=has_authorizer,
            makes_patches=makes_patches,
            variables=self._variables,
        )
        return compiled(uses, source, *wanted)

    def declare(self, name: str, source: str, *, is_stored: bool) -> str:
        """Declare a variable for later expressions, and return an error message or an empty string."""
        found = self.compile(source, is_stored=is_stored)
        assert self._variables is not None
        self._variables[name] = variable_type(found)
        return found if isinstance(found, str) else ""


_Errors: TypeAlias = Callable[[Fields, _Past], Iterator[SchemaError]]


def _new_errors(errors: _Errors) -> Callable[[Fields], Iterator[SchemaError]]:
    return lambda policy: chain(errors(policy, _Past()), reserved_name_errors(policy))


def _updated_errors(errors: _Errors) -> Callable[[Fields, Fields], Iterator[SchemaError]]:
    return lambda before, after: errors(after, _Past(mapping(before.get("spec"))))


def _policy_errors(policy: Fields, past: _Past) -> Iterator[SchemaError]:
    spec = mapping(policy.get("spec"))
    compiler = _Compiler(spec)
    yield from _common_errors(spec, compiler, past)
    stored = past.of("validations", "expression"), past.of("validations", "messageExpression")
    if not items(spec.get("validations")) and not items(spec.get("auditAnnotations")):
        yield required("spec.validations", _NOTHING_TO_DO)
        yield required("spec.auditAnnotations", _NOTHING_TO_DO)
    for path, validation in each(spec, "validations", "spec"):
        yield from _validation_errors(validation, path, compiler, *stored)
    yield from _annotations_errors(policy, spec, compiler, past.of("auditAnnotations", "valueExpression"))


def _common_errors(
    spec: Fields, compiler: _Compiler, past: _Past, operations: Sequence[str] = ()
) -> Iterator[SchemaError]:
    """Yield errors that are common to both kinds of policies. Without ``operations``, all operations are valid."""
    yield from choice_errors(spec, "failurePolicy", _FAILURE_POLICIES, "spec")
    kind = spec.get("paramKind")
    if kind is not None:
        yield from _params_kind_errors(kind, "spec.paramKind")
    constraints = spec.get("matchConstraints")
    if constraints is None:
        yield required("spec.matchConstraints")
    else:
        yield from _match_errors(mapping(constraints), "spec.matchConstraints")
        if not items(at(constraints, "resourceRules")):
            yield required("spec.matchConstraints.resourceRules")
        if operations:
            yield from _operation_errors(constraints, "spec.matchConstraints")
    if not past.has_conditions_of(spec):
        stored = past.of(CONDITIONS, "expression")
        conditions = items(spec.get(CONDITIONS))
        yield from condition_errors(conditions, f"spec.{CONDITIONS}", stored, has_params=kind is not None)
    for path, variable in each(spec, "variables", "spec"):
        yield from _variable_errors(variable, path, compiler, past.of("validations", "expression"))


def _params_kind_errors(kind: object, path: str) -> Iterator[SchemaError]:
    version, name = text(at(kind, "apiVersion")), text(at(kind, "kind"))
    where = f"{path}.apiVersion"
    if not version:
        yield required(where)
    elif version.count("/") > 1:
        yield invalid_value(where, version, f"unexpected GroupVersion string: {version}")
    else:
        group, _, last = ("", "", "") if version == "/" else version.rpartition("/")
        if group and (problems := subdomain_problems(group)):
            yield invalid_value(where, group, ",".join(problems))
        if not last:
            yield invalid_value(where, version, "version must be specified")
        elif problems := label_problems(last):
            yield invalid_value(where, last, ",".join(problems))
    if not name:
        yield required(f"{path}.kind")
    elif problems := label_problems(name.lower()):
        words = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        yield invalid_value(f"{path}.kind", name, words)


def _match_errors(resources: Fields, path: str) -> Iterator[SchemaError]:
    yield from choice_errors(resources, "matchPolicy", _MATCH_POLICIES, path)
    for listed in ("resourceRules", "excludeResourceRules"):
        for where, rule in each(resources, listed, path):
            names: set[str] = set()
            for place, name in enumerate(texts(rule.get("resourceNames"))):
                yield from path_segment_errors(name, f"{where}.resourceNames[{place}]")
                if name in names:
                    yield duplicate(f"{where}.resourceNames[{place}]", name)
                names.add(name)
            yield from rule_errors(rule, where)


def _variable_errors(variable: Fields, path: str, compiler: _Compiler, stored: frozenset[str]) -> Iterator[SchemaError]:
    name, source = text(variable.get("name")), text(variable.get("expression"))
    if not name.strip():
        yield required(f"{path}.name", "name is not specified")
    elif not _IDENTIFIER.fullmatch(name) or name in RESERVED:
        yield invalid_value(f"{path}.name", name, "must be a valid CEL identifier")
    if not source.strip():
        yield required(f"{path}.expression", "expression is not specified")
    elif fault := compiler.declare(name, source, is_stored=source in stored):
        yield expression_error(f"{path}.expression", source, fault)


def _validation_errors(
    validation: Fields, path: str, compiler: _Compiler, stored: frozenset[str], stored_messages: frozenset[str]
) -> Iterator[SchemaError]:
    source, by_expression = text(validation.get("expression")), text(validation.get("messageExpression"))
    message = text(validation.get("message"))
    if not source.strip():
        yield required(f"{path}.expression", "expression is not specified")
    elif isinstance(fault := compiler.compile(source, cel.BOOL, is_stored=source in stored), str):
        yield expression_error(f"{path}.expression", source, fault)
    if by_expression and not by_expression.strip():
        yield invalid_value(f"{path}.messageExpression", by_expression, _NOT_EMPTY)
    elif by_expression:
        is_stored = by_expression in stored_messages
        found = compiler.compile(by_expression, cel.STRING, is_stored=is_stored, has_authorizer=False)
        if isinstance(found, str):
            yield expression_error(f"{path}.messageExpression", by_expression, found)
    if message and not message.strip():
        yield invalid_value(f"{path}.message", message, _NOT_EMPTY)
    elif _LINE_BREAKS.search(message.strip()):
        yield invalid_value(f"{path}.message", message, "must not contain line breaks")
    yield from choice_errors(validation, "reason", _REASONS, path)


def _annotations_errors(
    policy: Fields, spec: Fields, compiler: _Compiler, stored: frozenset[str]
) -> Iterator[SchemaError]:
    annotations = [mapping(item) for item in items(spec.get("auditAnnotations"))]
    name = text(at(policy, "metadata", "name"))
    keys: set[str] = set()
    if len(annotations) > _MOST_ANNOTATIONS:
        value = [{"Key": item.get("key"), "ValueExpression": item.get("valueExpression")} for item in annotations]
        words = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        yield invalid_value("spec.auditAnnotations", value, words)
    for place, annotation in enumerate(annotations):
        path = f"spec.auditAnnotations[{place}]"
        key, source = text(annotation.get("key")), text(annotation.get("valueExpression"))
        yield from qualified_name_errors(f"{name}/{key}", f"{path}.key")
        if not source.strip():
            yield required(f"{path}.valueExpression", "valueExpression is not specified")
        elif len(source.strip().encode()) > _LONGEST_VALUE:
            yield required(f"{path}.valueExpression", f"must not exceed {_LONGEST_VALUE} bytes in length")
        else:
            found = compiler.compile(source.strip(), cel.STRING, cel.NULL, is_stored=source in stored)
            if isinstance(found, str):
                yield expression_error(f"{path}.valueExpression", source, found)
        if key in keys:
            yield duplicate(f"{path}.key", key)
        keys.add(key)


def _mutating_errors(policy: Fields, past: _Past) -> Iterator[SchemaError]:
    spec = mapping(policy.get("spec"))
    compiler = _Compiler(spec)
    yield from _common_errors(spec, compiler, past, _MUTATING_OPERATIONS)
    # Like on the real server, stored apply expressions count for both patch types.
    stored = frozenset(text(at(item, "applyConfiguration", "expression")) for item in items(at(past.spec, "mutations")))
    if not items(spec.get("mutations")):
        yield required("spec.mutations", "mutations must contain at least one item")
    for path, mutation in each(spec, "mutations", "spec"):
        yield from _mutation_errors(mutation, path, compiler, stored)
    policies = spec.get("reinvocationPolicy")
    if not policies:
        yield required("spec.reinvocationPolicy")
    elif policies not in _REINVOCATION_POLICIES:
        yield not_supported("spec.reinvocationPolicy", text(policies), _REINVOCATION_POLICIES)


def _mutation_errors(mutation: Fields, path: str, compiler: _Compiler, stored: frozenset[str]) -> Iterator[SchemaError]:
    patch_type = text(mutation.get("patchType"))
    if not patch_type:
        yield required(f"{path}.patchType")
        return
    if patch_type not in MUTATIONS:
        yield not_supported(f"{path}.patchType", patch_type, tuple(MUTATIONS))
        return
    field, wanted = MUTATIONS[patch_type]
    if mutation.get(field) is None:
        yield required(f"{path}.{field}", f"must be specified when patchType is {patch_type}")
    else:
        source = text(at(mutation, field, "expression"))
        where = f"{path}.{field}.expression"
        if not source.strip():
            yield required(where)
        else:
            found = compiler.compile(source.strip(), wanted, is_stored=source in stored, makes_patches=True)
            if isinstance(found, str):
                yield expression_error(where, source.strip(), found)
    for other, _ in MUTATIONS.values():
        if other != field and mutation.get(other) is not None:
            words = f"must not be specified when patchType is {patch_type}"
            yield invalid_value(f"{path}.{other}", f"{{{other}}}", words)


def _operation_errors(resources: object, path: str) -> Iterator[SchemaError]:
    for rule in items(at(resources, "resourceRules")):
        for operation in texts(at(rule, "operations")):
            yield from one_of(operation, f"{path}.resourceRules.operations", _MUTATING_OPERATIONS)


def _mutating_binding_errors(binding: Fields) -> Iterator[SchemaError]:
    if not at(binding, "spec", "policyName"):
        yield required("spec.policyName")
    yield from _binding_errors(binding)
    yield from _operation_errors(at(binding, "spec", "matchResources"), "spec.matchResources")


def _status_errors(_before: Fields, after: Fields) -> Iterator[SchemaError]:
    warned = mapping(at(after, "status", "typeChecking"))
    for path, warning in each(warned, "expressionWarnings", "status.typeChecking"):
        for field in ("warning", "fieldRef"):
            if not text(warning.get(field)).strip():
                yield required(f"{path}.{field}")


def _binding_errors(binding: Fields) -> Iterator[SchemaError]:
    spec = mapping(binding.get("spec"))
    name = text(spec.get("policyName"))
    if name:
        yield from subdomain_errors(name, "spec.policyName")
    if is_mapping(spec.get("paramRef")):
        yield from _reference_errors(mapping(spec.get("paramRef")), "spec.paramRef")
    if is_mapping(spec.get("matchResources")):
        yield from _match_errors(mapping(spec.get("matchResources")), "spec.matchResources")


def _reference_errors(reference: Fields, path: str) -> Iterator[SchemaError]:
    name, has_selector = text(reference.get("name")), reference.get("selector") is not None
    if name:
        yield from path_segment_errors(name, f"{path}.name")
    if name and has_selector:
        yield forbidden_field(f"{path}.name", _EITHER)
        yield forbidden_field(f"{path}.selector", _EITHER)
    if not name and not has_selector:
        yield required(path, "one of name or selector must be specified")
    if not reference.get("parameterNotFoundAction"):
        yield required(f"{path}.parameterNotFoundAction")
    else:
        yield from choice_errors(reference, "parameterNotFoundAction", _NOT_FOUND, path)


def _actions_errors(binding: Fields) -> Iterator[SchemaError]:
    yield from _binding_errors(binding)
    actions = texts(at(binding, "spec", "validationActions"))
    path = "spec.validationActions"
    for place, action in enumerate(actions):
        yield from one_of(action, f"{path}[{place}]", _ACTIONS)
        if action in actions[:place]:
            yield duplicate(f"{path}[{place}]", action)
    if {"Deny", "Warn"} <= set(actions):
        yield invalid_value(path, actions, _NOT_BOTH)


def _parameter_kind(policy: Fields) -> str:
    kind = at(policy, "spec", "paramKind")
    return UNSET if kind is None else f"{text(at(kind, 'apiVersion'))}/{text(at(kind, 'kind'))}"


def _parameter(binding: Fields) -> str:
    reference = at(binding, "spec", "paramRef")
    name = text(at(reference, "name"))
    if name:
        # The scope of the parameter kind is unknown here.
        return f"{text(at(reference, 'namespace')) or '*'}/{name}"
    selector = at(reference, "selector")
    return UNSET if selector is None else format_selector(selector)


VALIDATING: Final = Strategy(
    cells={"ParamKind": _parameter_kind},
    validate_new=_new_errors(_policy_errors),
    validate_update=_updated_errors(_policy_errors),
    validate_status=_status_errors,
)
VALIDATING_BINDING: Final = Strategy(
    cells={"ParamRef": _parameter}, validate=_actions_errors, validate_new=reserved_name_errors
)
MUTATING: Final = Strategy(
    cells={"ParamKind": _parameter_kind},
    validate_new=_new_errors(_mutating_errors),
    validate_update=_updated_errors(_mutating_errors),
)
MUTATING_BINDING: Final = Strategy(
    cells={"ParamRef": _parameter}, validate=_mutating_binding_errors, validate_new=reserved_name_errors
)
