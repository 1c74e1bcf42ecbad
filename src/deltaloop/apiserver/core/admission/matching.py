"""Which webhooks and policies a request concerns.

    rules              operation, group, version, resource, scope and names; if none holds and the match policy is
                       ``Equivalent``, those of the other versions of the resource, to which the object is converted
                       then; a policy may exclude some, and may have no rules
    selectors          of the namespace's labels and of the object's, as it is or as it is to be
    match conditions   expressions, last

Nobody is asked about configurations of webhooks and policies, so that none can lock out its own repair; policies are
asked about those of webhooks.

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
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.metadata.label_match import selects
from deltaloop.apiserver.core.served_resource import ServedResource

_NAMESPACES: Final = kinds.NAMESPACE.group_resource
_GROUP: Final = "admissionregistration.k8s.io"
_VIRTUAL: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


def is_exempt(attributes: AdmissionAttributes) -> bool:
    """Tell whether nobody is asked about such objects."""
    group = attributes.served.type.group
    return group == _GROUP or group in _VIRTUAL


def is_exempt_from_policies(attributes: AdmissionAttributes) -> bool:
    """Tell whether no policy is asked about such objects."""
    kind = attributes.served.type
    return kind.group in _VIRTUAL or (kind.group == _GROUP and "admissionpolic" in kind.plural)


def matched_resource(hook: Mapping[str, object], attributes: AdmissionAttributes) -> ServedResource | None:
    """Return the version of the resource in which a webhook is to be asked; None if it is not to be.

    Match conditions are not looked at here.

    Args:
        hook: The webhook, of a configuration.
        attributes: The request.

    Raises:
        ApiError: If the request's namespace is not there, and would have to be looked at.
    """
    return _matched(hook, attributes, "rules")


def matched_by_policy(resources: Mapping[str, object], attributes: AdmissionAttributes) -> ServedResource | None:
    """Return the version of the resource in which a policy is to look at it; None if it is not to.

    Args:
        resources: The ``matchConstraints`` of a policy, or the ``matchResources`` of a binding.
        attributes: The request.

    Raises:
        ApiError: If the request's namespace is not there, and would have to be looked at.
    """
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
    """Tell whether a policy could be asked about a resource at all; for some names, labels and namespaces it may not.

    Args:
        resources: The ``matchConstraints`` of the policy.
        operation: What is done.
        kind: The resource that the request names.
        subresource: Of it.
        versions: All versions of the resource.
    """
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
        raise failures.not_found(kinds.NAMESPACE, attributes.namespace)
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
    """Tell whether a rule holds for objects of a kind, whatever their names are."""
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
    """Tell whether the namespace is selected; None if it is not there."""
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
