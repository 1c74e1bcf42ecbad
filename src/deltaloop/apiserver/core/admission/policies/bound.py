"""Admission policies and their bindings.

    no params      the policy has no paramKind or the binding no paramRef; the policy is evaluated once
    by name        in the namespace of the binding, or of the request
    by selector    in the same namespaces; the policy is evaluated once per object
    none found     ignored or rejected, depending on ``parameterNotFoundAction``

The selection per resource is cached until a policy or binding changes.

Source: apiserver pkg/admission/plugin/policy/generic/policy_source.go, policy_dispatcher.go (``CollectParams``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, final

from deltaloop import cel
from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.matching import matched_by_policy, may_concern
from deltaloop.apiserver.core.admission_expressions import compiled, environment, unmet, variable_type
from deltaloop.apiserver.core.metadata.rules import selects
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.schemas.json_in_parts import decode_in_parts

Fields = dict[str, object]
_NAMESPACES: Final = kinds.NAMESPACE.group_resource
_MOST_RESOURCES: Final = 4096


class PolicyFaultError(Exception):
    """Unusable policy or binding; the message is the real server's."""


@lru_cache(maxsize=256)
def fields_of(raw: bytes) -> Fields:
    return mapping(decode_in_parts(raw))


@final
@dataclass(frozen=True, slots=True)
class BrokenPolicy:
    policy: Resource
    binding: Resource | None
    why: str

    @property
    def ignored(self) -> bool:
        return at(fields_of(self.policy.raw), "spec", "failurePolicy") == "Ignore"

    def __str__(self) -> str:
        return f"failed to configure {'policy' if self.binding is None else 'binding'}: {self.why}"


@final
@dataclass(frozen=True, slots=True)
class Invocation:
    """Policy that applies to a request because of a binding. An item of ``params`` can be None."""

    policy: Resource
    binding: Resource
    served: ServedResource
    params: tuple[Fields | None, ...]


def invocations(
    attributes: AdmissionAttributes, kind: Literal["validating", "mutating"]
) -> Iterator[Invocation | BrokenPolicy]:
    """Yield the policies of a kind that apply to a request, and those that are broken."""
    stored = attributes.objects
    bindings = stored.list(f"{kind}admissionpolicybindings.admissionregistration.k8s.io").items
    if not bindings:
        return
    policies = stored.list(f"{kind}admissionpolicies.admissionregistration.k8s.io").items
    # Both lists are sorted by name.
    table = _table(tuple(item.raw for item in policies), tuple(item.raw for item in bindings))
    for place, bound in table.concerning(attributes):
        yield from _of_policy(policies[place], [bindings[each] for each in bound], attributes)


@final
class _Table:
    """Policies of one kind and their bindings, as list indexes, with a cached selection per resource."""

    def __init__(self, bound: tuple[tuple[Mapping[str, object], tuple[int, tuple[int, ...]]], ...]) -> None:
        self._bound = bound
        self._concerning: dict[object, tuple[tuple[int, tuple[int, ...]], ...]] = {}

    def concerning(self, attributes: AdmissionAttributes) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Return the indexes of the policies, and of their bindings, that can match a request."""
        operation, kind, subresource = attributes.operation, attributes.served.type, attributes.subresource
        versions = tuple([each.type for each in attributes.equivalents()])
        key = operation, kind, subresource, versions
        found = self._concerning.get(key)
        if found is None:
            if len(self._concerning) >= _MOST_RESOURCES:
                self._concerning.clear()
            found = tuple(
                places
                for constraints, places in self._bound
                if may_concern(constraints, operation, kind, subresource, versions)
            )
            self._concerning[key] = found
        return found


@lru_cache(maxsize=16)
def _table(policies: tuple[bytes, ...], bindings: tuple[bytes, ...]) -> _Table:
    by_policy: dict[str, list[int]] = {}
    for place, raw in enumerate(bindings):
        by_policy.setdefault(text(at(fields_of(raw), "spec", "policyName")), []).append(place)
    bound: list[tuple[Mapping[str, object], tuple[int, tuple[int, ...]]]] = []
    for place, raw in enumerate(policies):
        fields = fields_of(raw)
        used = by_policy.get(text(at(fields, "metadata", "name")))
        if used:
            bound.append((mapping(at(fields, "spec", "matchConstraints")), (place, tuple(used))))
    return _Table(tuple(bound))


def _of_policy(
    policy: Resource, bound: list[Resource], attributes: AdmissionAttributes
) -> Iterator[Invocation | BrokenPolicy]:
    spec = mapping(fields_of(policy.raw).get("spec"))
    try:
        served = matched_by_policy(mapping(spec.get("matchConstraints")), attributes)
        if served is None:
            return
        kind = _params_kind(spec, attributes)
    except (ApiError, PolicyFaultError) as error:
        yield BrokenPolicy(policy, None, str(error))
        return
    for binding in bound:
        try:
            fields = mapping(fields_of(binding.raw).get("spec"))
            resources = fields.get("matchResources")
            if resources is None or matched_by_policy(mapping(resources), attributes) is not None:
                params = _params(kind, fields.get("paramRef"), attributes)
                yield Invocation(policy, binding, served, params)
        except (ApiError, PolicyFaultError) as error:
            yield BrokenPolicy(policy, binding, str(error))


def _params_kind(spec: Mapping[str, object], attributes: AdmissionAttributes) -> ServedResource | None:
    kind = spec.get("paramKind")
    if kind is None:
        return None
    group, _, version = text(at(kind, "apiVersion")).rpartition("/")
    name = text(at(kind, "kind"))
    found = attributes.registry.find_kind(group, version, name)
    if found is None:
        raise PolicyFaultError(f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={name}'")
    return found


def _params(
    kind: ServedResource | None, reference: object, attributes: AdmissionAttributes
) -> tuple[Fields | None, ...]:
    if kind is None or reference is None:
        return (None,)
    namespace = text(at(reference, "namespace"))
    if kind.type.namespaced:
        namespace = namespace or attributes.namespace
        if not namespace:
            raise PolicyFaultError(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
    elif namespace:
        raise PolicyFaultError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    name, selector = text(at(reference, "name")), mapping(at(reference, "selector"))
    stored = attributes.objects
    if name:
        one = stored.get(kind.storage, kind.key(namespace, name))
        found = [] if one is None else [one]
    else:
        listed = stored.list(kind.storage, prefix=kind.prefix(namespace)).items
        found = [item for item in listed if selects(selector, item.labels)]
    if not found and at(reference, "parameterNotFoundAction") == "Deny":
        raise PolicyFaultError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return tuple(_shown(kind, item, attributes) for item in found)


def _shown(kind: ServedResource, obj: Resource, attributes: AdmissionAttributes) -> Fields:
    asking = kind.asking(attributes.context.answers)
    return asking.codec.in_version(decode_object(asking, obj), kind.type.api_version)


def variables_of(
    spec: Mapping[str, object],
) -> tuple[dict[str, cel.CompiledExpression | str], dict[str, cel.Type]]:
    """Return a policy's compiled variables and their types; each variable can use the earlier variables."""
    types: dict[str, cel.Type] = {}
    variables: dict[str, cel.CompiledExpression | str] = {}
    uses = environment(is_stored=True, has_params=spec.get("paramKind") is not None, variables=types)
    for variable in map(mapping, items(spec.get("variables"))):
        name = text(variable.get("name"))
        variables[name] = compiled(uses, text(variable.get("expression")))
        types[name] = variable_type(variables[name])
    return variables, types


def conditions_of(spec: Mapping[str, object], bindings: Mapping[str, object]) -> tuple[bool, str]:
    """Return whether a match condition is false, and otherwise the errors of the conditions."""
    conditions = items(spec.get("matchConditions"))
    if not conditions:
        return False, ""
    request = mapping(bindings["request"])
    shown = {**bindings, "request": {**request, "resource": request["requestResource"]}, "namespaceObject": None}
    is_unmet, faults = unmet(conditions, shown, has_params=spec.get("paramKind") is not None)
    return is_unmet, faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]" if faults else ""


def namespace_of(attributes: AdmissionAttributes) -> Fields | None:
    """Return the namespace object for expressions, or None if the object has no namespace or it does not exist."""
    if not attributes.namespace or (attributes.served.storage == _NAMESPACES and not attributes.subresource):
        return None
    found = attributes.objects.get(_NAMESPACES, attributes.namespace)
    if found is None:
        return None
    fields = dict(fields_of(found.raw))
    hidden = ("managedFields", "ownerReferences", "selfLink")
    fields["metadata"] = {name: value for name, value in mapping(fields.get("metadata")).items() if name not in hidden}
    return fields
