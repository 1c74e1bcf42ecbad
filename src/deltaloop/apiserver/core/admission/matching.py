"""Matching of requests with webhooks and policies.

Rules with the match policy ``Equivalent`` also match the other versions of the resource. Match conditions are evaluated
last. Webhooks and policies do not apply to their own configurations, so they cannot prevent their repair; policies do
apply to webhook configurations.

Source: apiserver pkg/admission/plugin/webhook/generic/webhook.go, predicates/; pkg/admission/plugin/policy/matching,
policy/generic/plugin.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.metadata.rules import selects
from deltaloop.apiserver.core.served_resource import ServedResource

_NAMESPACES: Final = kinds.NAMESPACE.group_resource
_GROUP: Final = "admissionregistration.k8s.io"
_VIRTUAL: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


def is_exempt(attributes: AdmissionAttributes) -> bool:
    group = attributes.served.type.group
    return group == _GROUP or group in _VIRTUAL


def is_exempt_from_policies(attributes: AdmissionAttributes) -> bool:
    kind = attributes.served.type
    return kind.group in _VIRTUAL or (kind.group == _GROUP and "admissionpolic" in kind.plural)


def matched_resource(hook: Mapping[str, object], attributes: AdmissionAttributes) -> ServedResource | None:
    """Return the version of the resource for a call of the webhook, or None; match conditions are not evaluated here.

    Raises ApiError if a namespace selector applies but the namespace does not exist.
    """
    return _matched(hook, attributes, "rules")


def matched_by_policy(resources: Mapping[str, object], attributes: AdmissionAttributes) -> ServedResource | None:
    """Return the version of the resource for a policy, or None if it does not match; raises ApiError like above."""
    if _by_rules(resources, attributes, "excludeResourceRules") is not None:
        return None
    return _matched(resources, attributes, "resourceRules" if resources.get("resourceRules") else "")


def may_concern(
    resources: Mapping[str, object],
    operation: str,
    kind: ResourceType[Resource],
    subresource: str,
    versions: Iterable[ResourceType[Resource]],
) -> bool:
    """Return whether a policy's ``matchConstraints`` can match a resource with any name, labels and namespace."""
    rules = [mapping(rule) for rule in items(resources.get("resourceRules"))]
    named = (kind, *versions) if resources.get("matchPolicy", "Equivalent") == "Equivalent" else (kind,)
    return not rules or any(_concerns(rule, operation, each, subresource) for rule in rules for each in named)


def _matched(criteria: Mapping[str, object], attributes: AdmissionAttributes, rules: str) -> ServedResource | None:
    if not _selects_object(criteria, attributes):
        return None
    selected = _selects_namespace(criteria, attributes)
    if selected is False:
        return None
    found = _by_rules(criteria, attributes, rules) if rules else attributes.served
    if found is not None and selected is None:
        raise status_errors.not_found(kinds.NAMESPACE, attributes.namespace)
    return found


def _by_rules(criteria: Mapping[str, object], attributes: AdmissionAttributes, field: str) -> ServedResource | None:
    rules = [mapping(rule) for rule in items(criteria.get(field))]
    if any(_holds(rule, attributes, attributes.served) for rule in rules):
        return attributes.served
    if criteria.get("matchPolicy", "Equivalent") != "Equivalent":
        return None
    others = [other for other in attributes.equivalents() if other is not attributes.served]
    return next((other for rule in rules for other in others if _holds(rule, attributes, other)), None)


def _holds(rule: Mapping[str, object], attributes: AdmissionAttributes, served: ServedResource) -> bool:
    names = texts(rule.get("resourceNames"))
    if names and attributes.name not in names:
        return False
    return _concerns(rule, attributes.operation, served.type, attributes.subresource)


def _concerns(rule: Mapping[str, object], operation: str, kind: ResourceType[Resource], subresource: str) -> bool:
    """Return whether a rule matches, regardless of the object's name."""
    if not _has(rule, "operations", operation):
        return False
    if not (_has(rule, "apiGroups", kind.group) and _has(rule, "apiVersions", kind.version)):
        return False
    scope = text(rule.get("scope")) or "*"
    if scope != "*" and (scope == "Namespaced") != kind.namespaced:
        return False
    return any(_names(name, kind.plural, subresource) for name in texts(rule.get("resources")))


def _has(rule: Mapping[str, object], field: str, wanted: str) -> bool:
    listed = texts(rule.get(field))
    return "*" in listed or wanted in listed


def _names(name: str, plural: str, subresource: str) -> bool:
    resource, _, below = name.partition("/")
    return resource in ("*", plural) and below in ("*", subresource)


def _selects_object(hook: Mapping[str, object], attributes: AdmissionAttributes) -> bool:
    selector = mapping(hook.get("objectSelector"))
    if not _says_something(selector):
        return True
    shown = (attributes.after, attributes.before)
    return any(obj is not None and selects(selector, _labels(obj)) for obj in shown)


def _selects_namespace(hook: Mapping[str, object], attributes: AdmissionAttributes) -> bool | None:
    if not attributes.namespace:
        return True
    selector = mapping(hook.get("namespaceSelector"))
    if not _says_something(selector):
        return True
    of_namespace = attributes.served.storage == _NAMESPACES and not attributes.subresource
    if of_namespace and attributes.operation in ("CREATE", "UPDATE"):
        return selects(selector, _labels(attributes.after))
    namespace = attributes.objects.get(_NAMESPACES, attributes.namespace)
    return None if namespace is None else selects(selector, namespace.labels)


def _says_something(selector: Mapping[str, object]) -> bool:
    return any(selector.values())


def _labels(obj: object) -> dict[str, str]:
    return {name: text(value) for name, value in mapping(at(obj, "metadata", "labels")).items()}
