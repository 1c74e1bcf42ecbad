"""The plugin that asks MutatingAdmissionPolicies: each changes the object, and the next one of its version sees that.

A mutation is an object that is laid over the one that there is (``ApplyConfiguration``), or a list of operations
(``JSONPatch``). What is wrong with one is a refusal, unless the failure policy ignores it; the mutations after it
are made all the same. All refusals are told, the first one in the message.

Source: apiserver pkg/admission/plugin/policy/mutating/{dispatcher,compilation}.go, patch/{smd,json_patch}.go;
pkg/admission/plugin/policy/generic/policy_dispatcher.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, final

from deltaloop import cel
from deltaloop.api.json_values import copied, is_mapping, items, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.admission.admission_request import as_sent, expression_variables, in_version
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.apiserver.core.admission.matching import is_exempt_from_policies
from deltaloop.apiserver.core.admission.patched import has_own_kind, read_anew
from deltaloop.apiserver.core.admission.policies.bound import (
    BrokenPolicy,
    Fields,
    Invocation,
    conditions_of,
    fields_of,
    invocations,
    namespace_of,
    variables_of,
)
from deltaloop.apiserver.core.admission.policies.mutation_values import (
    NoNumberError,
    WrongValueError,
    applied_fields,
    atomic_parts,
    patch_operations,
)
from deltaloop.apiserver.core.admission_expressions import (
    MUTATIONS,
    BudgetSpentError,
    ExpressionOutcome,
    Expressions,
    compiled,
    environment,
)
from deltaloop.apiserver.core.apply.checking import merging_faults
from deltaloop.apiserver.core.apply.walking import merge
from deltaloop.apiserver.core.failures import UnreadableObjectError
from deltaloop.apiserver.core.json_patch import JsonPatchError, PatchTestError, apply_operations
from deltaloop.apiserver.core.metadata.go_words import merging_words
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.cel.kubernetes import OBJECT_BUDGET
from deltaloop.schemas.types import FREE

_HANDLED: Final = frozenset({"CREATE", "UPDATE", "CONNECT"})
_POLICIES: Final = "mutatingadmissionpolicies.admissionregistration.k8s.io"


class _FailedError(Exception):
    """A mutation cannot be made: the failure policy decides."""


@final
@dataclass(frozen=True, slots=True)
class _Mutation:
    """One mutation of a policy, compiled if it can be."""

    patch_type: str
    source: str
    program: cel.CompiledExpression | str


@final
@dataclass(frozen=True, slots=True)
class _Program:
    """A policy whose expressions are compiled."""

    spec: Mapping[str, object]
    mutations: tuple[_Mutation, ...]
    variables: Mapping[str, cel.CompiledExpression | str]


@lru_cache(maxsize=256)
def _program(raw: bytes) -> _Program:
    spec = mapping(fields_of(raw).get("spec"))
    variables, types = variables_of(spec)
    has_params = spec.get("paramKind") is not None
    uses = environment(is_stored=True, has_params=has_params, makes_patches=True, variables=types)
    mutations: list[_Mutation] = []
    for mutation in map(mapping, items(spec.get("mutations"))):
        patch_type = text(mutation.get("patchType"))
        field, wanted = MUTATIONS[patch_type]
        source = text(mapping(mutation.get(field)).get("expression"))
        mutations.append(_Mutation(patch_type, source, compiled(uses, source, wanted)))
    return _Program(spec, tuple(mutations), variables)


@final
class _Round:
    """What policies make of one request's object, in one round.

    For each version that policies are for there is an object of its own, and none is shown what the policies for
    another one have made. What is kept in the end is the object of the version whose policy was asked last.
    """

    def __init__(self, attributes: AdmissionAttributes) -> None:
        self.attributes = attributes
        self._sent = attributes.after
        self._made: dict[ResourceType[Resource], Fields] = {}
        self._last: ResourceType[Resource] | None = None
        self._config_faults: list[tuple[str, str]] = []
        self._faults: list[tuple[str, str]] = []
        self._asked = attributes.reinvocation.of(_POLICIES)

    def run(self, found: list[Invocation | BrokenPolicy]) -> None:
        """Let policies change the object.

        Raises:
            ApiError: If one of them refuses the request.
        """
        rounds = self.attributes.reinvocation
        if rounds.is_second:
            self._asked.see(self.attributes.after)
        has_mutated = False
        for item in found:
            if isinstance(item, BrokenPolicy):
                if not item.ignored:
                    self._config_faults.append(("", _denial(item.policy, item.binding, str(item))))
                continue
            for params in item.params:
                has_mutated = self._invoke(item, params) or has_mutated
        kept = self._sent if self._last is None else self._made.get(self._last, self._sent)
        self.attributes = replace(self.attributes, after=kept)
        if has_mutated:
            rounds.is_wanted = rounds.shows_managers = True
            self._asked.see_change()
        self._asked.leave(self.attributes.after)
        self._refuse()

    def _invoke(self, invocation: Invocation, params: Fields | None) -> bool:
        """Ask a policy once; return whether it has made a mutation, though it may have changed nothing."""
        version = invocation.served.type
        self.attributes = replace(self.attributes, after=self._made.get(version, self._sent))
        rounds, before = self.attributes.reinvocation, self.attributes.after
        program = _program(invocation.policy.raw)
        is_unmet, fault = conditions_of(program.spec, self._shown(invocation.served, params))
        if is_unmet:
            return False
        if fault:
            self._fail(invocation, fault)
            return False
        metadata = mapping((params or {}).get("metadata"))
        who = invocation.policy.name, invocation.binding.name, metadata.get("namespace"), metadata.get("name")
        if rounds.is_second and not self._asked.is_due(who):
            return False
        has_mutated = False
        for mutation in program.mutations if before is not None else ():
            self._last = version
            try:
                self._made[version] = self._mutate(program, mutation, invocation.served, params)
                has_mutated = True
            except _FailedError as error:
                self._fail(invocation, str(error))
        if self.attributes.after != before:
            self._asked.see_change()
        if program.spec.get("reinvocationPolicy") == "IfNeeded":
            self._asked.note(who)
        return has_mutated

    def _shown(self, served: ServedResource, params: Fields | None) -> dict[str, object]:
        shown = expression_variables(self.attributes, served)
        return {**shown, "namespaceObject": namespace_of(self.attributes), "params": params}

    def _mutate(self, program: _Program, mutation: _Mutation, served: ServedResource, params: Fields | None) -> Fields:
        if isinstance(mutation.program, str):
            raise _FailedError(mutation.program)
        one = Expressions([mutation.source], [mutation.program], program.variables)
        try:
            outcomes, _ = one.evaluate(self._shown(served, params), OBJECT_BUDGET)
        except BudgetSpentError as error:
            raise _FailedError(str(error)) from None
        outcome = outcomes[0] or ExpressionOutcome()
        if outcome.fault:
            raise _FailedError(outcome.fault)
        make = _applied if mutation.patch_type == "ApplyConfiguration" else _patched
        try:
            made = make(self.attributes, served, outcome.value)
        except WrongValueError as error:
            raise _FailedError(str(error)) from None
        except NoNumberError as error:
            raise failures.internal(str(error)) from None
        requested = self.attributes.served
        if served.type != requested.type and not served.codec.says_kind:
            # Upstream asks for a conversion between two versions of which none is the internal one: there is none.
            kinds = [f"({each.type.version}.{each.type.kind})" for each in (served, requested)]
            raise _FailedError(f"converting {' to '.join(kinds)}: unknown conversion")
        self.attributes = replace(self.attributes, after=made)
        return made

    def _fail(self, invocation: Invocation, why: str) -> None:
        if mapping(fields_of(invocation.policy.raw).get("spec")).get("failurePolicy") != "Ignore":
            self._faults.append(("Invalid", _denial(invocation.policy, invocation.binding, why)))

    def _refuse(self) -> None:
        faults = self._config_faults + self._faults
        if faults:
            reason, message = faults[0]
            raise failures.refused_by_policies(self.attributes.refused(message), reason, [why for _, why in faults])


def _denial(policy: Resource, binding: Resource | None, why: str) -> str:
    if binding is None:
        return f'policy "{policy.name}" denied request: {why}'
    return f"policy '{policy.name}' with binding '{binding.name}' denied request: {why}"


def _applied(attributes: AdmissionAttributes, served: ServedResource, value: object) -> Fields:
    """Lay what an expression gave over the object, which keeps its owners."""
    live = mapping(in_version(attributes, served)[0])
    fields = applied_fields(value)
    fields |= {name: live[name] for name in ("apiVersion", "kind") if name in live}
    tree = served.schema.tree if has_own_kind(attributes) else FREE
    words = "error applying patch: "
    if wrong := merging_words(merging_faults(tree, fields)):
        raise _FailedError(f"{words}failed to convert patch object to typed object: {wrong}")
    if atomics := ", ".join(atomic_parts(tree, fields)):
        refused = f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {atomics}"
        raise _FailedError(words + refused)
    if wrong := merging_words(merging_faults(tree, live, unlike=False)):
        raise _FailedError(f"{words}failed to convert original object to typed object: {wrong}")
    try:
        return read_anew(attributes, served, mapping(copied(merge(tree, live, fields))))[0]
    except ApiError as error:
        raise _FailedError(words + str(error)) from None


def _patched(attributes: AdmissionAttributes, served: ServedResource, value: object) -> Fields:
    """Return an object with the operations of a patch; as it is, if a test of it fails.

    Raises:
        _FailedError: If they do not fit.
        ApiError: 500 if what they make is no object of the kind.
    """
    operations = patch_operations(value)
    try:
        result = apply_operations(copied(mapping(in_version(attributes, served)[0])), operations)
    except PatchTestError:
        return mapping(attributes.after)
    except JsonPatchError as error:
        raise _FailedError(f"JSON Patch: {error}") from None
    if not is_mapping(result):
        raise failures.internal("the patch of a policy has made the object something else")
    try:
        made, unknown = read_anew(attributes, served, result)
    except UnreadableObjectError as error:
        raise failures.internal(error.why) from None
    if unknown and not served.codec.says_kind:
        raise failures.internal(f"strict decoding error: {', '.join(unknown)}")
    return made


def _mutate(attributes: AdmissionAttributes) -> Fields | None:
    if attributes.stamp.outside is None or is_exempt_from_policies(attributes):
        return None
    found = list(invocations(attributes, "mutating"))
    if not found:
        return None
    shown = as_sent(attributes)
    policies = _Round(shown)
    policies.run(found)
    return None if policies.attributes.after is shown.after else policies.attributes.after


MUTATING_POLICIES: Final = Plugin(operations=_HANDLED, mutate=_mutate)
