"""ValidatingAdmissionPolicy plugin.

A failed validation counts as a failure for each binding. If the failure policy is ``Fail``, errors count as well.

Source: apiserver pkg/admission/plugin/policy/validating/dispatcher.go, validator.go, plugin.go (``compilePolicy``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

import msgspec

from deltaloop import cel
from deltaloop.api.json_values import at, escape_html, items, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.admission.admission_request import expression_variables
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.apiserver.core.admission.matching import is_exempt_from_policies
from deltaloop.apiserver.core.admission.policies.bound import (
    BrokenPolicy,
    Invocation,
    conditions_of,
    fields_of,
    invocations,
    namespace_of,
    variables_of,
)
from deltaloop.apiserver.core.admission_expressions import (
    BudgetSpentError,
    ExpressionOutcome,
    Expressions,
    compiled,
    environment,
)
from deltaloop.cel.kubernetes import OBJECT_BUDGET

_ALL: Final = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
_CODES: Final[Mapping[str, int]] = {"Forbidden": 403, "RequestEntityTooLarge": 413}
_INVALID: Final = "Invalid"
_LONGEST_MESSAGE: Final = 5 * 1024
_LONGEST_ANNOTATION: Final = 10 * 1024
_MOST_FAILURES: Final = 50
_FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"
_encode: Final = msgspec.json.Encoder().encode
_AUTHORIZERS: Final = ("authorizer", "authorizer.requestResource")


@final
@dataclass(frozen=True, slots=True)
class _Program:
    spec: Mapping[str, object]
    validations: Expressions
    messages: Expressions
    annotations: Expressions

    @property
    def ignores_failure(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"


@lru_cache(maxsize=256)
def _program(raw: bytes) -> _Program:
    spec = mapping(fields_of(raw).get("spec"))
    variables, types = variables_of(spec)
    has_params = spec.get("paramKind") is not None
    uses = environment(is_stored=True, has_params=has_params, variables=types)
    without = environment(is_stored=True, has_params=has_params, has_authorizer=False, variables=types)
    validations = [mapping(item) for item in items(spec.get("validations"))]
    annotations = [mapping(item) for item in items(spec.get("auditAnnotations"))]
    checks = [text(item.get("expression")) for item in validations]
    messages = [text(item.get("messageExpression")) for item in validations]
    values = [text(item.get("valueExpression")) for item in annotations]
    return _Program(
        spec,
        Expressions(checks, (compiled(uses, source, cel.BOOL) for source in checks), variables),
        Expressions(
            messages, (compiled(without, source, cel.STRING) if source else None for source in messages), variables
        ),
        Expressions(values, (compiled(uses, source, cel.STRING, cel.NULL) for source in values), variables),
    )


@final
@dataclass(frozen=True, slots=True)
class _Failure:
    """Failed validation, or an error that prevented validation."""

    message: str
    reason: str = _INVALID
    place: int = 0


@final
@dataclass(frozen=True, slots=True)
class _Annotation:
    """Audit annotation, or the error that prevents it and rejects the request regardless of the binding."""

    key: str
    value: str
    fault: str = ""


def _judged(program: _Program, bindings: Mapping[str, object]) -> tuple[list[_Failure], list[_Annotation]]:
    """Evaluate a policy once; the failure policy ``Ignore`` drops errors."""
    is_unmet, fault = conditions_of(program.spec, bindings)
    if is_unmet:
        return [], []
    if fault:
        return _unless_ignored(program, fault), []
    try:
        outcomes, left = program.validations.evaluate(bindings, OBJECT_BUDGET)
    except BudgetSpentError as error:
        return _unless_ignored(program, str(error)), []
    # The authorizer is limited to validations and match conditions.
    bindings = {name: value for name, value in bindings.items() if name not in _AUTHORIZERS}
    spent = ""
    messages: list[ExpressionOutcome | None] = [None] * len(outcomes)
    try:
        messages, _ = program.messages.evaluate(bindings, left)
    except BudgetSpentError as error:
        spent = f"failed messageExpression: {error}"
    failed: list[_Failure] = []
    for place, (outcome, message) in enumerate(zip(outcomes, messages, strict=True)):
        fault = (outcome.fault if outcome is not None else "") or spent
        if fault:
            failed += _unless_ignored(program, fault, place)
        elif outcome is not None and outcome.value is not True:
            failed.append(_failure(mapping(items(program.spec.get("validations"))[place]), message, place))
    try:
        values, _ = program.annotations.evaluate(bindings, OBJECT_BUDGET)
    except BudgetSpentError as error:
        return _unless_ignored(program, str(error)), []
    return failed, list(_annotations(program, values))


def _unless_ignored(program: _Program, fault: str, place: int = 0) -> list[_Failure]:
    return [] if program.ignores_failure else [_Failure(fault, place=place)]


def _failure(validation: Mapping[str, object], found: ExpressionOutcome | None, place: int) -> _Failure:
    message = text(found.value).strip() if found is not None else ""
    if len(message.encode()) > _LONGEST_MESSAGE or "\n" in message:
        message = ""
    message = message or text(validation.get("message")).strip()
    message = message or f"failed expression: {text(validation.get('expression')).strip()}"
    return _Failure(message, text(validation.get("reason")) or _INVALID, place)


def _annotations(program: _Program, outcomes: list[ExpressionOutcome | None]) -> Iterator[_Annotation]:
    declared = map(mapping, items(program.spec.get("auditAnnotations")))
    for annotation, outcome in zip(declared, outcomes, strict=True):
        key = text(annotation.get("key"))
        if outcome is None or (outcome.fault and program.ignores_failure):
            continue
        value = text(outcome.value).strip()
        if outcome.fault or value:
            yield _Annotation(key, value, outcome.fault)


@final
class _Judgement:
    def __init__(self, attributes: AdmissionAttributes) -> None:
        self._attributes = attributes
        self._refusal: tuple[str, str] | None = None
        self._audited: list[dict[str, object]] = []
        self._annotations: dict[str, list[str]] = {}

    def take(self, found: Invocation | BrokenPolicy) -> None:
        if isinstance(found, BrokenPolicy):
            if not found.ignored:
                self._deny(found.policy, found.binding, _Failure(str(found)))
            return
        program = _program(found.policy.raw)
        shown = expression_variables(self._attributes, found.served)
        shown = {**shown, "namespaceObject": namespace_of(self._attributes)}
        for params in found.params:
            failed, annotations = _judged(program, {**shown, "params": params})
            for failure in failed:
                self._act(found, failure)
            for annotation in annotations:
                if annotation.fault:
                    self._deny(found.policy, found.binding, _Failure(annotation.fault))
                    continue
                value = annotation.value.encode()[:_LONGEST_ANNOTATION].decode(errors="ignore")
                values = self._annotations.setdefault(f"{found.policy.name}/{annotation.key}", [])
                if value not in values:
                    values.append(value)

    def _act(self, invocation: Invocation, failure: _Failure) -> None:
        policy, binding = invocation.policy, invocation.binding
        actions = texts(at(fields_of(binding.raw), "spec", "validationActions"))
        for action in actions:
            if action == "Deny":
                self._deny(policy, binding, failure)
            elif action == "Warn":
                words = (
                    f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}': "
                    f"{failure.message}"
                )
                self._attributes.context.notes.stored.append(words)
            elif action == "Audit":
                self._audited.append(
                    {
                        "message": failure.message,
                        "policy": policy.name,
                        "binding": binding.name,
                        "expressionIndex": failure.place,
                        "validationActions": actions,
                    }
                )

    def _deny(self, policy: Resource, binding: Resource | None, failure: _Failure) -> None:
        if self._refusal is None:
            bound = "" if binding is None else f" with binding '{binding.name}'"
            message = f"ValidatingAdmissionPolicy '{policy.name}'{bound} denied request: {failure.message}"
            self._refusal = message, failure.reason

    def finish(self) -> None:
        """Write the audit annotations, and raise ApiError if the request is rejected."""
        annotate = self._attributes.context.notes.annotations.setdefault
        for key, values in self._annotations.items():
            annotate(key, ", ".join(values))
        if self._audited:
            annotate(_FAILURES, escape_html(_encode(self._audited[:_MOST_FAILURES]).decode()))
        if self._refusal is not None:
            message, reason = self._refusal
            refused = self._attributes.refused(message)
            raise status_errors.protected_otherwise(refused, reason, _CODES.get(reason, 422), message)


def _validate(attributes: AdmissionAttributes) -> None:
    if attributes.context.answers is None or is_exempt_from_policies(attributes):
        return
    judgement = None
    for found in invocations(attributes, "validating"):
        judgement = judgement or _Judgement(attributes)
        judgement.take(found)
    if judgement is not None:
        judgement.finish()


VALIDATING_POLICIES: Final = Plugin(operations=_ALL, validate=_validate)
