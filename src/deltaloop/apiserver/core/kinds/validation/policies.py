"""Roles and bindings, disruption budgets and priority classes.

Source: Kubernetes pkg/apis/rbac/validation, pkg/apis/policy/validation, pkg/apis/scheduling/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from deltaloop.apiserver.core.kinds.validation.checks import (
    IMMUTABLE,
    most_percent_errors,
    one_of,
    selector_errors,
    share_errors,
    shown,
    shown_selector,
)
from deltaloop.schemas.faults import FieldError, forbidden_field, invalid_value, not_supported, required
from deltaloop.schemas.json_values import at, integer, items, mapping, text, texts

Fields = dict[str, Any]

_GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")
_HIGHEST_PRIORITY: Final = 1_000_000_000
_SYSTEM_CLASSES: Final = ("system-node-critical", "system-cluster-critical")
_EVICTION_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")


def role_errors(role: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with the rules of a Role or ClusterRole."""
    namespaced = bool(at(role, "metadata", "namespace"))
    for place, rule in enumerate(items(role.get("rules"))):
        where = f"rules[{place}]"
        if not texts(at(rule, "verbs")):
            yield required(f"{where}.verbs", "verbs must contain at least one value")
        urls = texts(at(rule, "nonResourceURLs"))
        if urls:
            if namespaced:
                text_ = "namespaced rules cannot apply to non-resource URLs"
                yield invalid_value(f"{where}.nonResourceURLs", shown(urls), text_)
            if any(texts(at(rule, name)) for name in ("apiGroups", "resources", "resourceNames")):
                text_ = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid_value(f"{where}.nonResourceURLs", shown(urls), text_)
            continue
        if not texts(at(rule, "apiGroups")):
            yield required(f"{where}.apiGroups", "resource rules must supply at least one api group")
        if not texts(at(rule, "resources")):
            yield required(f"{where}.resources", "resource rules must supply at least one resource")


def binding_errors(binding: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a RoleBinding or ClusterRoleBinding."""
    namespaced = bool(at(binding, "metadata", "namespace"))
    known = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    yield from one_of(at(binding, "roleRef", "apiGroup") or "", "roleRef.apiGroup", (_GROUP,))
    yield from one_of(at(binding, "roleRef", "kind") or "", "roleRef.kind", known)
    if not at(binding, "roleRef", "name"):
        yield required("roleRef.name")
    for place, subject in enumerate(items(binding.get("subjects"))):
        yield from _subject_errors(mapping(subject), f"subjects[{place}]", namespaced=namespaced)


def _subject_errors(subject: Fields, where: str, *, namespaced: bool) -> Iterator[FieldError]:
    kind, group = text(subject.get("kind")), text(subject.get("apiGroup"))
    if not subject.get("name"):
        yield required(f"{where}.name")
    if kind not in _SUBJECTS:
        yield not_supported(f"{where}.kind", kind, _SUBJECTS)
    elif kind == "ServiceAccount":
        yield from one_of(group, f"{where}.apiGroup", ("",))
        if not namespaced and not subject.get("namespace"):
            yield required(f"{where}.namespace")
    else:
        yield from one_of(group, f"{where}.apiGroup", (_GROUP,))


def binding_update_errors(before: Fields, after: Fields) -> Iterator[FieldError]:
    """Yield an error if an update changes the role that a binding names."""
    old, new = mapping(before.get("roleRef")), mapping(after.get("roleRef"))
    if old != new:
        in_go = {"APIGroup": new.get("apiGroup"), "Kind": new.get("kind"), "Name": new.get("name")}
        yield invalid_value("roleRef", shown(in_go), "cannot change roleRef")


def budget_errors(budget: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a PodDisruptionBudget."""
    spec = mapping(budget.get("spec"))
    names = ("minAvailable", "maxUnavailable")
    if all(spec.get(name) is not None for name in names):
        in_go = (
            f'{{"MinAvailable":{shown(spec["minAvailable"])},"Selector":{shown_selector(spec.get("selector"))},'
            f'"MaxUnavailable":{shown(spec["maxUnavailable"])},'
            f'"UnhealthyPodEvictionPolicy":{shown(spec.get("unhealthyPodEvictionPolicy"))}}}'
        )
        yield invalid_value("spec", in_go, "minAvailable and maxUnavailable cannot be both set")
    for name in names:
        yield from share_errors(spec.get(name), f"spec.{name}")
        yield from most_percent_errors(spec.get(name), f"spec.{name}")
    yield from selector_errors(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None:
        yield from one_of(policy, "spec.unhealthyPodEvictionPolicy", _EVICTION_POLICIES)


def priority_class_errors(priority_class: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a PriorityClass of a user."""
    name = text(at(priority_class, "metadata", "name"))
    if name.startswith("system-") and name not in _SYSTEM_CLASSES:
        text_ = (
            "priority class names with 'system-' prefix are reserved for system use only. error: "
            f"{name} is not a known system priority class"
        )
        yield forbidden_field("metadata.name", text_)
    elif integer(priority_class.get("value")) > _HIGHEST_PRIORITY and name not in _SYSTEM_CLASSES:
        yield forbidden_field("value", f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}")
    policy = priority_class.get("preemptionPolicy")
    if policy is not None:
        yield from one_of(policy, "preemptionPolicy", ("PreemptLowerPriority", "Never"))


def priority_class_update_errors(before: Fields, after: Fields) -> Iterator[FieldError]:
    """Yield an error if an update changes what a PriorityClass stands for."""
    if integer(before.get("value")) != integer(after.get("value")):
        yield forbidden_field("value", "may not be changed in an update.")
    if before.get("preemptionPolicy") != after.get("preemptionPolicy"):
        yield invalid_value("preemptionPolicy", shown(after.get("preemptionPolicy")), IMMUTABLE)
