"""Policies of a Job: which failures of pods count, when it has succeeded, and what an index allows.

Source: Kubernetes pkg/apis/batch/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text
from deltaloop.apiserver.core.metadata.rules import qualified_name_errors
from deltaloop.schemas.checking import Check, Place, shown
from deltaloop.schemas.faults import FieldError, duplicate, invalid_value, not_supported, required, too_long, too_many

_MANY_COMPLETIONS: Final = 100_000
_MUCH: Final = 10_000
_MOST_CODES: Final = 255
_MOST_RULES: Final = 20
_LONGEST_INDEXES: Final = 64 * 1024
_INDEX: Final = re.compile("[+-]?[0-9]{1,18}")


def _index_errors(place: Place) -> Iterator[FieldError]:
    """Yield what the completion mode of a Job, and its number of completions, exclude."""
    spec, mode = place.fields, text(place.fields.get("completionMode"))
    most_failed, per_index = spec.get("maxFailedIndexes"), spec.get("backoffLimitPerIndex")
    if most_failed is not None and per_index is None:
        yield required(place.below("backoffLimitPerIndex"), "when maxFailedIndexes is specified")
    if mode == "Indexed":
        yield from _indexed_errors(place)
    elif mode in ("", "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield invalid_value(place.below(name), shown(spec[name]), "requires indexed completion mode")
    if is_mapping(spec.get("successPolicy")):
        if mode != "Indexed":
            yield invalid_value(place.below("successPolicy"), shown(spec["successPolicy"]), "requires indexed mode")
        else:
            yield from _success_errors(spec, place.below("successPolicy"))


def _indexed_errors(place: Place) -> Iterator[FieldError]:
    spec, path = place.fields, place.below("maxFailedIndexes")
    completions, parallelism = spec.get("completions"), integer(spec.get("parallelism"))
    most_failed = spec.get("maxFailedIndexes")
    if completions is None:
        yield required(place.below("completions"), "when completion mode is Indexed")
    if parallelism > _MANY_COMPLETIONS:
        yield invalid_value(place.below("parallelism"), str(parallelism), f"must be at most {_MANY_COMPLETIONS}")
    if most_failed is not None and integer(most_failed) > min(integer(completions), _MANY_COMPLETIONS):
        yield invalid_value(path, shown(most_failed), "must be less than or equal to completions")
    if integer(completions) > _MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        if most_failed is None:
            yield required(path, f"must be specified when completions is above {_MANY_COMPLETIONS}")
        for name in ("parallelism", "maxFailedIndexes"):
            if integer(spec.get(name)) > _MUCH:
                yield invalid_value(place.below(name), shown(spec[name]), f"must be less than or equal to {_MUCH}")


def _success_errors(spec: Mapping[str, object], path: str) -> Iterator[FieldError]:
    rules, completions = items(at(spec, "successPolicy", "rules")), integer(spec.get("completions"))
    if not rules:
        yield required(f"{path}.rules", "at least one rules must be specified when the successPolicy is specified")
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.rules", len(rules), _MOST_RULES)
    for number, rule in enumerate(rules):
        where, count, indexes = f"{path}.rules[{number}]", at(rule, "succeededCount"), at(rule, "succeededIndexes")
        if count is None and indexes is None:
            yield required(where, "at least one of succeededCount or succeededIndexes must be specified")
        found: int | None = 0
        if indexes is not None:
            if len(text(indexes)) > _LONGEST_INDEXES:
                yield too_long(f"{where}.succeededIndexes", _LONGEST_INDEXES)
            found = _count_indexes(text(indexes), completions)
            if found is None:
                yield invalid_value(f"{where}.succeededIndexes", shown(indexes), "error parsing succeededIndexes")
        most = completions if indexes is None else min(completions, found or 0)
        if count is not None and not 0 <= integer(count) <= most:
            yield invalid_value(f"{where}.succeededCount", shown(count), f"must be less than or equal to {most}")


def _count_indexes(listed: str, completions: int) -> int | None:
    """Return how many indexes are listed; None if that is not a list of them in rising order."""
    total, last = 0, -1
    for interval in listed.split(",") if listed else ():
        ends = interval.split("-")
        if len(ends) > 2 or not all(_INDEX.fullmatch(end) for end in ends):
            return None
        first, final = int(ends[0]), int(ends[-1])
        if final >= completions or first >= completions or (len(ends) == 2 and first >= final) or last >= first:
            return None
        total, last = total + final - first + 1, final
    return total


def _failure_errors(place: Place) -> Iterator[FieldError]:
    """Yield what is wrong with the rules by which failures of pods count."""
    spec = place.fields
    if not is_mapping(spec.get("podFailurePolicy")):
        return
    rules, path = items(at(spec, "podFailurePolicy", "rules")), place.below("podFailurePolicy.rules")
    if at(spec, "template", "spec", "restartPolicy") == "OnFailure":
        text_ = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid_value(place.below("template.spec.restartPolicy"), '"OnFailure"', text_)
    if len(rules) > _MOST_RULES:
        yield too_many(path, len(rules), _MOST_RULES)
    for number, rule in enumerate(map(mapping, rules)):
        where = f"{path}[{number}]"
        action = text(rule.get("action"))
        if not action:
            yield required(f"{where}.action")
        elif action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                text_ = "requires the backoffLimitPerIndex to be set"
                yield invalid_value(f"{where}.action", shown(action), text_)
        elif action not in ("Count", "FailJob", "Ignore"):
            yield not_supported(f"{where}.action", action, ("Count", "FailIndex", "FailJob", "Ignore"))
        codes, conditions = rule.get("onExitCodes"), items(rule.get("onPodConditions"))
        if is_mapping(codes) == bool(conditions):
            yield invalid_value(where, "", "specifying one of OnExitCodes and OnPodConditions is required")
        if is_mapping(codes):
            yield from _code_errors(codes, f"{where}.onExitCodes", mapping(at(spec, "template", "spec")))
        yield from _condition_errors(conditions, f"{where}.onPodConditions")


def _code_errors(codes: dict[str, object], path: str, pod: Mapping[str, object]) -> Iterator[FieldError]:
    operator, name, values = text(codes.get("operator")), codes.get("containerName"), items(codes.get("values"))
    if operator not in ("In", "NotIn"):
        yield not_supported(f"{path}.operator", operator, ("In", "NotIn")) if operator else required(f"{path}.operator")
    known = [at(item, "name") for group in ("containers", "initContainers") for item in items(pod.get(group))]
    if name is not None and name not in known:
        text_ = "must be one of the container or initContainer names in the pod template"
        yield invalid_value(f"{path}.containerName", shown(name), text_)
    if not values:
        yield invalid_value(f"{path}.values", "null", "at least one value is required")
    if len(values) > _MOST_CODES:
        yield too_many(f"{path}.values", len(values), _MOST_CODES)
    numbers = [integer(value) for value in values]
    for place, value in enumerate(numbers):
        if operator == "In" and value == 0:
            yield invalid_value(f"{path}.values[{place}]", "0", "must not be 0 for the In operator")
        if value in numbers[:place]:
            yield duplicate(f"{path}.values[{place}]", str(value))
    if numbers != sorted(numbers):
        yield invalid_value(f"{path}.values", shown(values), "must be ordered")


def _condition_errors(conditions: list[object], path: str) -> Iterator[FieldError]:
    if len(conditions) > _MOST_RULES:
        yield too_many(path, len(conditions), _MOST_RULES)
    for number, condition in enumerate(conditions):
        yield from qualified_name_errors(text(at(condition, "type")), f"{path}[{number}].type")
        status = text(at(condition, "status"))
        if status not in ("False", "True", "Unknown"):
            yield not_supported(f"{path}[{number}].status", status, ("False", "True", "Unknown"))


def _replacement_errors(place: Place) -> Iterator[FieldError]:
    failed = is_mapping(place.beside("podFailurePolicy"))
    known = ("Failed",) if failed else ("Failed", "TerminatingOrFailed")
    if place.value not in known:
        yield not_supported(place.path, place.text, known)


JOB_CHECKS: Final[Mapping[str, Check]] = {
    "failure_policy": _failure_errors,
    "job_indexes": _index_errors,
    "pod_replacement": _replacement_errors,
}
"""Checks that the rules of Jobs name."""
