"""MutatingAdmissionPolicy plugin: policies change the object one after another.

A failed mutation rejects the request unless the failure policy ignores it. The remaining mutations still run, and the
error's message is the first failure.

Source: apiserver pkg/cel/mutation/dynamic/objects.go, pkg/admission/plugin/policy/mutating/patch; apiserver
pkg/admission/plugin/policy/mutating/{dispatcher,compilation}.go, patch/{smd,json_patch}.go;
pkg/admission/plugin/policy/generic/policy_dispatcher.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, cast, final

import msgspec

from deltaloop import cel
from deltaloop.api.json_values import copied, is_mapping, items, mapping, text, value_type
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.admission.admission_request import (
    as_sent,
    expression_variables,
    has_own_kind,
    in_version,
    read_anew,
)
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.apiserver.core.admission.matching import is_exempt_from_policies
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
from deltaloop.apiserver.core.admission_expressions import (
    MUTATIONS,
    BudgetSpentError,
    ExpressionOutcome,
    Expressions,
    compiled,
    environment,
)
from deltaloop.apiserver.core.apply.checking import merging_faults
from deltaloop.apiserver.core.apply.field_set import shown
from deltaloop.apiserver.core.apply.walking import merge
from deltaloop.apiserver.core.json_patch import JsonPatchError, PatchTestError, apply_operations
from deltaloop.apiserver.core.metadata.types import merging_words
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.status_errors import UnreadableObjectError
from deltaloop.cel.json_values import as_json, plain_json
from deltaloop.cel.kubernetes import OBJECT_BUDGET
from deltaloop.cel.kubernetes.mutations import JSON_PATCH
from deltaloop.cel.types import Type, runtime_type, type_name
from deltaloop.cel.values import LIST_KINDS, Duration, ObjectValue, OptionalValue, Timestamp, Uint, kind_of
from deltaloop.schemas.types import FREE, TypeNode

_LISTS: Final = ("keyed", "set")
# Go writes whole doubles below this value without an exponent.
_WHOLE: Final = 1e21
_MOST_SAFE: Final = 2**53 - 1
_UNFIT: Final = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "
# Go type names of CEL library types: as the value of an expression, and inside an object.
_GO_TYPES: Final = {
    "net.IP": ("IP", "netip.Addr"),
    "net.CIDR": ("CIDR", "netip.Prefix"),
    "kubernetes.Quantity": ("Quantity", "*resource.Quantity"),
    "kubernetes.URL": ("URL", "*url.URL"),
    "kubernetes.Semver": ("Semver", "semver.Version"),
    "kubernetes.NamedFormat": ("Format", "cel.Format"),
}
_NOT_IN_OBJECTS: Final[Mapping[type[object], str]] = {
    Timestamp: "time.Time",
    Duration: "time.Duration",
    type(None): "structpb.NullValue",
}
_KEYS: Final[Mapping[type[object], str]] = {
    bool: "type conversion error from bool to 'string'",
    int: "unsupported type conversion from 'int' to string",
    Uint: "unsupported type conversion from 'uint' to string",
}


class WrongValueError(Exception):
    """Result that is not a valid mutation; the message is the real server's."""


class NoNumberError(Exception):
    """Number that JSON cannot represent; the message is the real server's."""


def applied_fields(value: object) -> dict[str, object]:
    """Return the fields to apply, or raise WrongValueError or NoNumberError."""
    _check(value)
    return mapping(as_json(value, _applied, _key))


def patch_operations(value: object) -> list[dict[str, object]]:
    """Return the patch operations, or raise WrongValueError if a value is not plain data."""
    found: list[dict[str, object]] = []
    for operation in map(mapping, items(value)):
        for name in ("op", "path", "from"):
            if not isinstance(operation.get(name, ""), str):
                kind = runtime_type(operation[name])
                raise WrongValueError(f"unexpected type {kind} for JSONPatchType '{name}' field")
        fields: dict[str, object] = {name: text(operation.get(name)) for name in ("op", "path")}
        if operation.get("from"):
            fields["from"] = operation["from"]
        if "value" in operation:
            _check(operation["value"])
            fields["value"] = _in_patch(operation["value"])
        found.append(fields)
    return found


def _applied(value: object, path: str) -> object:
    """Convert a value to apply, or reject values with a special Go type."""
    kind = kind_of(value)
    if kind is float:
        number = cast("float", value)
        if not math.isfinite(number):
            raise NoNumberError(f"json: unsupported value: {_go_number(number)}")
        return _whole(number)
    if kind in (str, int, bool):
        return value
    if kind is OptionalValue:
        return None
    if isinstance(value, Type):
        return type_name(value)
    why = "is null" if value is None else f"a value of type {type_name(runtime_type(value))} cannot be applied"
    raise WrongValueError(f"error applying patch: failed to convert patch object to typed object: {path}: {why}")


def _in_patch(value: object) -> object:
    """Convert the value of an operation; integers beyond the double range become strings, except in objects."""
    if isinstance(value, ObjectValue):
        if value.type_name == JSON_PATCH.name:
            raise WrongValueError(f"{_UNFIT}cannot convert to native type: *structpb.Value")
        return as_json(value, _in_object, _key)
    if kind_of(value) is dict:
        return {_key(name, _KEYS): _in_patch(inner) for name, inner in mapping(value).items()}
    if kind_of(value) in LIST_KINDS:
        return [_in_patch(inner) for inner in items(value)]
    if isinstance(value, OptionalValue):
        if not value.present:
            raise WrongValueError(f"{_UNFIT}optional.none() dereference")
        return _in_patch(value.value)
    if kind_of(value) in (int, Uint) and not -_MOST_SAFE <= cast("int", value) <= _MOST_SAFE:
        return str(int(cast("int", value)))
    if isinstance(value, Type):
        raise WrongValueError(f"{_UNFIT}type conversion not supported for 'type'")
    return _number_or_text(value, _no_form)


def _in_object(value: object, path: str) -> object:  # noqa: ARG001
    kind = kind_of(value)
    if kind in (int, Uint):
        return _whole(float(cast("int", value)))
    if kind is OptionalValue:
        return None
    if isinstance(value, Type):
        return type_name(value)
    if kind in _NOT_IN_OBJECTS:
        raise WrongValueError(f"{_UNFIT}proto: invalid type: {_NOT_IN_OBJECTS[kind]}")
    return _number_or_text(value, lambda name: f"proto: invalid type: {_GO_TYPES.get(name, (name, name))[1]}")


def _number_or_text(value: object, no_form: Callable[[str], str]) -> object:
    if value is None:
        return None
    if kind_of(value) is float:
        number = cast("float", value)
        if not math.isfinite(number):
            words = (
                "json: error calling MarshalJSON for type *structpb.Value: proto: google.protobuf.Value.number_value"
            )
            raise WrongValueError(f"{_UNFIT}{words}: invalid {_go_number(number)} value")
        return _whole(number)
    found = plain_json(value)
    if found is None:
        raise WrongValueError(_UNFIT + no_form(type_name(runtime_type(value))))
    return found


def _no_form(name: str) -> str:
    return f"type conversion error from '{_GO_TYPES.get(name, (name, name))[0]}' to '*structpb.Value'"


def _whole(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) < _WHOLE else number


def _go_number(number: float) -> str:
    return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"


def _key(name: object, words: Mapping[type[object], str] | None = None) -> str:
    if not isinstance(name, str):
        told = (words or {}).get(kind_of(name), "")
        raise WrongValueError(f"{_UNFIT}{told}" if told else "the keys of the changed object must be texts")
    return name


def _check(value: object) -> None:
    if isinstance(value, ObjectValue) and (wrong := "\n".join(_type_faults(value, value.type_name))):
        raise WrongValueError(f"type mismatch: {wrong}")


def _type_faults(value: object, path: str) -> Iterator[str]:
    if isinstance(value, ObjectValue):
        if value.type_name != path:
            yield (
                f'unexpected type name "{value.type_name}", expected "{path}", which matches field name path from root '
                "Object type"
            )
        for name, inner in value.items():
            yield from _type_faults(inner, f"{path}.{name}")
        return
    for inner in (*mapping(value).values(), *items(value)):
        yield from _type_faults(inner, path)


def atomic_parts(kind: TypeNode, value: object, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the paths where a value would replace a whole list or object instead of merging."""
    if is_mapping(value):
        if kind.merging == "scalar":
            yield shown(path)
        for name, inner in value.items():
            below = kind.merge_fields.get(name)
            if below is not None:
                yield from atomic_parts(below, inner, (*path, f"f:{name}"))
    elif value_type(value) == "array":
        if kind.merging not in _LISTS:
            yield shown(path)
        for position, inner in enumerate(items(value)):
            if kind.element is not None:
                yield from atomic_parts(kind.element, inner, (*path, f"i:{position}"))


_HANDLED: Final = frozenset({"CREATE", "UPDATE", "CONNECT"})
_POLICIES: Final = "mutatingadmissionpolicies.admissionregistration.k8s.io"


class _FailedError(Exception):
    """Failed mutation; the failure policy decides."""


@final
@dataclass(frozen=True, slots=True)
class _Mutation:
    patch_type: str
    source: str
    program: cel.CompiledExpression | str


@final
@dataclass(frozen=True, slots=True)
class _Program:
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
    """One round of all policies for one request."""

    def __init__(self, attributes: AdmissionAttributes) -> None:
        self.attributes = attributes
        self._sent = attributes.after
        self._made: dict[ResourceType[Resource], Fields] = {}
        self._last: ResourceType[Resource] | None = None
        self._config_faults: list[tuple[str, str]] = []
        self._faults: list[tuple[str, str]] = []
        self._asked = attributes.reinvocation.of(_POLICIES)

    def run(self, found: list[Invocation | BrokenPolicy]) -> None:
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
        self.attributes = msgspec.structs.replace(self.attributes, after=kept)
        if has_mutated:
            rounds.is_wanted = rounds.shows_managers = True
            self._asked.see_change()
        self._asked.leave(self.attributes.after)
        self._refuse()

    def _invoke(self, invocation: Invocation, params: Fields | None) -> bool:
        """Evaluate a policy once and return whether a mutation succeeded, even without an effect."""
        version = invocation.served.type
        self.attributes = msgspec.structs.replace(self.attributes, after=self._made.get(version, self._sent))
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
        make = _applied_configuration if mutation.patch_type == "ApplyConfiguration" else _patched
        try:
            made = make(self.attributes, served, outcome.value)
        except WrongValueError as error:
            raise _FailedError(str(error)) from None
        except NoNumberError as error:
            raise status_errors.internal(str(error)) from None
        requested = self.attributes.served
        if served.type != requested.type and not served.codec.says_kind:
            # The real server tries a conversion between two external versions, which always fails.
            kinds = [f"({each.type.version}.{each.type.kind})" for each in (served, requested)]
            raise _FailedError(f"converting {' to '.join(kinds)}: unknown conversion")
        self.attributes = msgspec.structs.replace(self.attributes, after=made)
        return made

    def _fail(self, invocation: Invocation, why: str) -> None:
        if mapping(fields_of(invocation.policy.raw).get("spec")).get("failurePolicy") != "Ignore":
            self._faults.append(("Invalid", _denial(invocation.policy, invocation.binding, why)))

    def _refuse(self) -> None:
        faults = self._config_faults + self._faults
        if faults:
            reason, message = faults[0]
            raise status_errors.refused_by_policies(
                self.attributes.refused(message), reason, [why for _, why in faults]
            )


def _denial(policy: Resource, binding: Resource | None, why: str) -> str:
    if binding is None:
        return f'policy "{policy.name}" denied request: {why}'
    return f"policy '{policy.name}' with binding '{binding.name}' denied request: {why}"


def _applied_configuration(attributes: AdmissionAttributes, served: ServedResource, value: object) -> Fields:
    """Merge the result of an expression into the object, which keeps its apiVersion and kind."""
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
    """Return the patched object, or the unchanged object if a test operation fails."""
    operations = patch_operations(value)
    try:
        result = apply_operations(copied(mapping(in_version(attributes, served)[0])), operations)
    except PatchTestError:
        return mapping(attributes.after)
    except JsonPatchError as error:
        raise _FailedError(f"JSON Patch: {error}") from None
    if not is_mapping(result):
        raise status_errors.internal("the patch of a policy must not change the kind or version of the object")
    try:
        made, unknown = read_anew(attributes, served, result)
    except UnreadableObjectError as error:
        raise status_errors.internal(error.why) from None
    if unknown and not served.codec.says_kind:
        raise status_errors.internal(f"strict decoding error: {', '.join(unknown)}")
    return made


def _mutate(attributes: AdmissionAttributes) -> Fields | None:
    if attributes.context.answers is None or is_exempt_from_policies(attributes):
        return None
    found = list(invocations(attributes, "mutating"))
    if not found:
        return None
    shown = as_sent(attributes)
    policies = _Round(shown)
    policies.run(found)
    return None if policies.attributes.after is shown.after else policies.attributes.after


MUTATING_POLICIES: Final = Plugin(operations=_HANDLED, mutate=_mutate)
