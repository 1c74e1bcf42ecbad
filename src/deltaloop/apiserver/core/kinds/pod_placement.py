"""Placement of pods: affinity, node selectors, tolerations, topology spread, scheduling gates, claims and taints.

Source: Kubernetes pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.dns_names import label_value_problems
from deltaloop.api.json_values import at, integer, items, mapping, text, texts
from deltaloop.apiserver.core.kinds.field_checks import one_of
from deltaloop.apiserver.core.metadata.rules import (
    invalid_values,
    label_name_errors,
    qualified_name_errors,
    subdomain_errors,
)
from deltaloop.schemas.checking import Check, Place
from deltaloop.schemas.field_errors import SchemaError, duplicate, forbidden_field, invalid_value, missing, required

_POD_SPEC: Final = "core.v1.PodSpec"


def _requirement_errors(place: Place) -> Iterator[SchemaError]:
    requirement, path = place.fields, place.below("values")
    operator, values = text(requirement.get("operator")), texts(requirement.get("values"))
    fields = place.name == "matchFields"
    if operator in ("In", "NotIn") and (len(values) != 1 if fields else not values):
        yield required(path, "must be specified when `operator` is 'In' or 'NotIn'")
    elif not fields and operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden_field(path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif not fields and operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield required(path, "must be specified single value when `operator` is 'Lt' or 'Gt'")
    elif operator not in ("In", "NotIn"):
        yield invalid_value(place.below("operator"), operator, "not a valid selector operator")
    key = text(requirement.get("key"))
    if fields:
        if key != "metadata.name":
            yield invalid_value(place.below("key"), key, "not a valid field selector key")
        else:
            yield from (
                error for at_, value in enumerate(values) for error in subdomain_errors(value, f"{path}[{at_}]")
            )
        return
    yield from qualified_name_errors(key, place.below("key"))
    if "preferredDuringScheduling" not in place.path:
        for number, value in enumerate(values):
            yield from invalid_values(f"{path}[{number}]", value, label_value_problems(value))


def _affinity_term_errors(place: Place) -> Iterator[SchemaError]:
    yield from _label_keys_errors(place, place.path, ("matchLabelKeys", "mismatchLabelKeys"))
    other = texts(place.fields.get("mismatchLabelKeys"))
    for number, key in enumerate(texts(place.fields.get("matchLabelKeys"))):
        if key in other:
            text_ = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid_value(f"{place.below('matchLabelKeys')}[{number}]", key, text_)


def _label_keys_errors(place: Place, path: str, names: tuple[str, ...]) -> Iterator[SchemaError]:
    selector = place.fields.get("labelSelector")
    for name in names:
        keys = texts(place.fields.get(name))
        if keys and selector is None:
            yield forbidden_field(place.below(name), "must not be specified when labelSelector is not set")
        elif keys:
            for number, key in enumerate(keys):
                yield from qualified_name_errors(key, f"{place.below(name)}[{number}]")
    seen = set(mapping(at(selector, "matchLabels")))
    matched = texts(place.fields.get("matchLabelKeys"))
    for expression in items(at(selector, "matchExpressions")):
        key = text(at(expression, "key"))
        if key in matched and key in seen:
            yield invalid_value(f"{path}[{matched.index(key)}]", key, "exists in both lists of keys")
        seen.add(key)


def _spread_errors(place: Place) -> Iterator[SchemaError]:
    constraint = place.fields
    pair = f"{text(constraint.get('topologyKey'))}, {text(constraint.get('whenUnsatisfiable'))}"
    later = items(at(place.within(_POD_SPEC).value, "topologySpreadConstraints"))
    number = int(place.path.rpartition("[")[2][:-1])
    for other in later[number + 1 :]:
        if pair == f"{text(at(other, 'topologyKey'))}, {text(at(other, 'whenUnsatisfiable'))}":
            yield duplicate(place.below("{topologyKey, whenUnsatisfiable}"), f"{{{pair}}}")
            break
    least = constraint.get("minDomains")
    if least is not None and constraint.get("whenUnsatisfiable") != "DoNotSchedule":
        text_ = "can only use minDomains if whenUnsatisfiable=DoNotSchedule"
        yield invalid_value(place.below("minDomains"), least, text_)
    yield from _label_keys_errors(place, place.path, ("matchLabelKeys",))


def toleration_errors(place: Place) -> Iterator[SchemaError]:
    operator, value = text(place.fields.get("operator")), text(place.fields.get("value"))
    path = place.below("operator")
    if not place.fields.get("key") and operator != "Exists":
        text_ = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(path, operator, text_)
    if place.fields.get("tolerationSeconds") is not None and place.fields.get("effect") != "NoExecute":
        text_ = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid_value(place.below("effect"), text(place.fields.get("effect")), text_)
    if operator == "Exists":
        if value:
            yield invalid_value(path, value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("", "Equal"):
        problems = label_value_problems(value)
        if problems:
            yield invalid_value(path, value, ";".join(problems))
    else:
        yield from one_of(operator, path, ("Equal", "Exists"))


def taint_errors(place: Place) -> Iterator[SchemaError]:
    """Yield the errors in the taints of a node, with paths below ``metadata`` like on the real server."""
    seen: set[tuple[str, str]] = set()
    for number, taint in enumerate(map(mapping, items(place.value))):
        where = f"metadata.taints[{number}]"
        key, effect, value = (text(taint.get(name)) for name in ("key", "effect", "value"))
        yield from qualified_name_errors(key, f"{where}.key")
        problems = label_value_problems(value)
        if problems:
            yield invalid_value(f"{where}.value", value, ";".join(problems))
        if not effect:
            yield required(f"{where}.effect")
        else:
            yield from one_of(effect, f"{where}.effect", ("NoSchedule", "PreferNoSchedule", "NoExecute"))
        if (key, effect) in seen:
            yield duplicate(where, taint)
        seen.add((key, effect))


def _gate_errors(place: Place) -> Iterator[SchemaError]:
    names = [text(at(gate, "name")) for gate in items(place.value)]
    for number, name in enumerate(names):
        where = f"{place.path}[{number}]"
        yield from qualified_name_errors(name, where)
        if name in names[:number]:
            yield duplicate(where, name)


def gate_update_errors(old: object, new: object) -> Iterator[SchemaError]:
    before = [at(gate, "name") for gate in items(old)]
    for number, gate in enumerate(items(new)):
        if at(gate, "name") not in before:
            text_ = f"only deletion is allowed, but found new scheduling gate '{text(at(gate, 'name'))}'"
            yield forbidden_field(f"spec.schedulingGates[{number}].name", text_)


def narrowed_errors(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[SchemaError]:
    """Yield an error for each change of a gated pod's node selection that does not restrict it further."""
    before, after = mapping(old.get("nodeSelector")), mapping(new.get("nodeSelector"))
    if any(after.get(name) != value for name, value in before.items()):
        text_ = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid_value("spec.nodeSelector", after, text_)
    where = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    path, terms = f"spec.{'.'.join(where)}", items(at(old, *where))
    wanted = items(at(new, *where))
    if terms and len(terms) != len(wanted):
        yield invalid_value(path, wanted, "no additions/deletions to non-empty NodeSelectorTerms list")
        return
    for number, (term, other) in enumerate(zip(terms, wanted, strict=False)):
        if not _has_only_additions(mapping(term), mapping(other)):
            yield invalid_value(f"{path}[{number}]", other, "only additions are allowed (no mutations or deletions)")


def _has_only_additions(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    names = ("matchExpressions", "matchFields")
    if not any(items(old.get(name)) for name in names):
        return not any(items(new.get(name)) for name in names)
    return all(items(new.get(name))[: len(items(old.get(name)))] == items(old.get(name)) for name in names)


def _claim_errors(place: Place) -> Iterator[SchemaError]:
    claim, name = place.fields, text(place.fields.get("name"))
    if name and not place.within(_POD_SPEC).is_first("claim", name):
        yield duplicate(place.below("name"), name)
    given = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None]
    if len(given) != 1:
        yield invalid_value(place.path, claim, "must specify one of its names")


def claimed_errors(place: Place) -> Iterator[SchemaError]:
    known = [text(at(claim, "name")) for claim in items(at(place.within(_POD_SPEC).value, "resourceClaims"))]
    seen: list[tuple[str, str]] = []
    for number, claim in enumerate(items(place.fields.get("claims"))):
        name, request = text(at(claim, "name")), text(at(claim, "request"))
        where = f"{place.below('claims')}[{number}]"
        if not name:
            yield required(where)
        elif (name, request) in seen or (name, "") in seen or (not request and any(name == one for one, _ in seen)):
            yield duplicate(where, name)
        if request and name:
            yield from label_name_errors(request, f"{where}.request")
        if name not in known:
            yield missing(where, name)
        seen.append((name, request))


def _weight_errors(place: Place) -> Iterator[SchemaError]:
    if not 1 <= integer(place.value) <= 100:
        yield invalid_value(place.path, place.value, "must be in the range 1-100")


def _namespace_errors(place: Place) -> Iterator[SchemaError]:
    for name in texts(place.value):
        yield from label_name_errors(name, place.path.removesuffix("s"))


PLACEMENT_CHECKS: Final[Mapping[str, Check]] = {
    "affinity_namespaces": _namespace_errors,
    "affinity_term": _affinity_term_errors,
    "affinity_weight": _weight_errors,
    "node_requirement": _requirement_errors,
    "pod_claim": _claim_errors,
    "scheduling_gates": _gate_errors,
    "spread": _spread_errors,
    "toleration_operator": toleration_errors,
}
