"""Strategies of jobs and cron jobs.

Source: Kubernetes pkg/registry/batch/job/strategy.go, pkg/apis/batch/validation, pkg/api/job; Kubernetes
pkg/apis/batch/validation; pkg/registry/batch/cronjob/strategy.go; github.com/robfig/cron v3, parser.go.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.dns_names import label_value_problems
from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, string_map, text
from deltaloop.apiserver.core.kinds.cells import condition, since
from deltaloop.apiserver.core.kinds.field_checks import immutable, one_of, shown_selector
from deltaloop.apiserver.core.kinds.pod_owners import selected_errors
from deltaloop.apiserver.core.kinds.pod_warnings import name_warnings, pod_warnings
from deltaloop.apiserver.core.metadata.rules import (
    invalid_values,
    label_name_errors,
    qualified_name_errors,
    selects,
)
from deltaloop.apiserver.core.strategy import Moment, Stored, Strategy
from deltaloop.schemas.checking import Check, Place
from deltaloop.schemas.field_errors import (
    SchemaError,
    duplicate,
    invalid_text,
    invalid_value,
    not_supported,
    required,
    too_long,
    too_many,
)

_MUCH: Final = 10_000
_MOST_CODES: Final = 255
_MOST_RULES: Final = 20
_LONGEST_INDEXES: Final = 64 * 1024
_INDEX: Final = re.compile("[+-]?[0-9]{1,18}")


def _index_errors(place: Place) -> Iterator[SchemaError]:
    spec, mode = place.fields, text(place.fields.get("completionMode"))
    most_failed, per_index = spec.get("maxFailedIndexes"), spec.get("backoffLimitPerIndex")
    if most_failed is not None and per_index is None:
        yield required(place.below("backoffLimitPerIndex"), "when maxFailedIndexes is specified")
    if mode == "Indexed":
        yield from _indexed_errors(place)
    elif mode in ("", "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield invalid_value(place.below(name), spec[name], "requires indexed completion mode")
    if is_mapping(spec.get("successPolicy")):
        if mode != "Indexed":
            yield invalid_value(place.below("successPolicy"), spec["successPolicy"], "requires indexed mode")
        else:
            yield from _success_errors(spec, place.below("successPolicy"))


def _indexed_errors(place: Place) -> Iterator[SchemaError]:
    spec, path = place.fields, place.below("maxFailedIndexes")
    completions, parallelism = spec.get("completions"), integer(spec.get("parallelism"))
    most_failed = spec.get("maxFailedIndexes")
    if completions is None:
        yield required(place.below("completions"), "when completion mode is Indexed")
    if parallelism > _MANY_COMPLETIONS:
        yield invalid_value(place.below("parallelism"), parallelism, f"must be at most {_MANY_COMPLETIONS}")
    if most_failed is not None and integer(most_failed) > min(integer(completions), _MANY_COMPLETIONS):
        yield invalid_value(path, most_failed, "must be less than or equal to completions")
    if integer(completions) > _MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        if most_failed is None:
            yield required(path, f"must be specified when completions is above {_MANY_COMPLETIONS}")
        for name in ("parallelism", "maxFailedIndexes"):
            if integer(spec.get(name)) > _MUCH:
                yield invalid_value(place.below(name), spec[name], f"must be less than or equal to {_MUCH}")


def _success_errors(spec: Mapping[str, object], path: str) -> Iterator[SchemaError]:
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
                yield invalid_value(f"{where}.succeededIndexes", indexes, "error parsing succeededIndexes")
        most = completions if indexes is None else min(completions, found or 0)
        if count is not None and not 0 <= integer(count) <= most:
            yield invalid_value(f"{where}.succeededCount", count, f"must be less than or equal to {most}")


def _count_indexes(listed: str, completions: int) -> int | None:
    """Return the number of indexes in a list, or None unless it is valid and ascending."""
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


def _failure_errors(place: Place) -> Iterator[SchemaError]:
    spec = place.fields
    if not is_mapping(spec.get("podFailurePolicy")):
        return
    rules, path = items(at(spec, "podFailurePolicy", "rules")), place.below("podFailurePolicy.rules")
    if at(spec, "template", "spec", "restartPolicy") == "OnFailure":
        text_ = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid_value(place.below("template.spec.restartPolicy"), "OnFailure", text_)
    if len(rules) > _MOST_RULES:
        yield too_many(path, len(rules), _MOST_RULES)
    for number, rule in enumerate(map(mapping, rules)):
        where = f"{path}[{number}]"
        action = text(rule.get("action"))
        if not action:
            yield required(f"{where}.action")
        elif action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                yield invalid_value(f"{where}.action", action, "requires the backoffLimitPerIndex to be set")
        elif action not in ("Count", "FailJob", "Ignore"):
            yield not_supported(f"{where}.action", action, ("Count", "FailIndex", "FailJob", "Ignore"))
        codes, conditions = rule.get("onExitCodes"), items(rule.get("onPodConditions"))
        if is_mapping(codes) == bool(conditions):
            yield invalid_text(where, "", "specifying one of OnExitCodes and OnPodConditions is required")
        if is_mapping(codes):
            yield from _code_errors(codes, f"{where}.onExitCodes", mapping(at(spec, "template", "spec")))
        yield from _condition_errors(conditions, f"{where}.onPodConditions")


def _code_errors(codes: dict[str, object], path: str, pod: Mapping[str, object]) -> Iterator[SchemaError]:
    operator, name, values = text(codes.get("operator")), codes.get("containerName"), items(codes.get("values"))
    if operator not in ("In", "NotIn"):
        yield not_supported(f"{path}.operator", operator, ("In", "NotIn")) if operator else required(f"{path}.operator")
    known = [at(item, "name") for group in ("containers", "initContainers") for item in items(pod.get(group))]
    if name is not None and name not in known:
        text_ = "must be one of the container or initContainer names in the pod template"
        yield invalid_value(f"{path}.containerName", name, text_)
    if not values:
        yield invalid_value(f"{path}.values", None, "at least one value is required")
    if len(values) > _MOST_CODES:
        yield too_many(f"{path}.values", len(values), _MOST_CODES)
    numbers = [integer(value) for value in values]
    for place, value in enumerate(numbers):
        if operator == "In" and value == 0:
            yield invalid_value(f"{path}.values[{place}]", 0, "must not be 0 for the In operator")
        if value in numbers[:place]:
            yield duplicate(f"{path}.values[{place}]", value)
    if numbers != sorted(numbers):
        yield invalid_value(f"{path}.values", values, "must be ordered")


def _condition_errors(conditions: list[object], path: str) -> Iterator[SchemaError]:
    if len(conditions) > _MOST_RULES:
        yield too_many(path, len(conditions), _MOST_RULES)
    for number, rule in enumerate(conditions):
        yield from qualified_name_errors(text(at(rule, "type")), f"{path}[{number}].type")
        yield from one_of(text(at(rule, "status")), f"{path}[{number}].status", ("False", "True", "Unknown"))


def _replacement_errors(place: Place) -> Iterator[SchemaError]:
    failed = is_mapping(place.beside("podFailurePolicy"))
    return one_of(place.value, place.path, ("Failed",) if failed else ("Failed", "TerminatingOrFailed"))


JOB_CHECKS: Final[Mapping[str, Check]] = {
    "failure_policy": _failure_errors,
    "job_indexes": _index_errors,
    "pod_replacement": _replacement_errors,
}


_JOB_UID: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")
_JOB_NAME: Final = ("batch.kubernetes.io/job-name", "job-name")
_ENDLESS: Final = 2_147_483_647
_ENDED: Final = ("Complete", "Failed")
_MANY_COMPLETIONS: Final = 100_000
_MUCH_PARALLELISM: Final = 10_000
_PODS_STAY: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


def _defaults(job: dict[str, object]) -> None:
    # These defaults apply to Jobs, but not to the job templates of CronJobs.
    _label_by_template(job)
    spec = mapping(job.setdefault("spec", {}))
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _ENDLESS)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed")


def _label_by_template(job: dict[str, object]) -> None:
    """Use the template's labels object for the Job, so that the Job also gets the generated labels."""
    metadata, labels = mapping(job.get("metadata")), mapping(at(job, "spec", "template", "metadata", "labels"))
    if labels and not metadata.get("labels"):
        metadata["labels"] = labels


def _finish_new(job: dict[str, object], _store: Stored, _moment: Moment) -> Iterator[SchemaError]:
    spec, metadata = mapping(job.get("spec")), mapping(job["metadata"])
    if spec.get("manualSelector") is True:
        return _selected_errors(spec)
    template = dict(mapping(spec.get("template")))
    template_metadata = dict(mapping(template.get("metadata")))
    sent, generated = template_metadata.get("labels"), _generated_labels(job)
    labels = template_metadata["labels"] = {**generated, **mapping(sent)}
    selector = dict(mapping(spec.get("selector")))
    selector["matchLabels"] = {_JOB_UID[0]: metadata["uid"], **mapping(selector.get("matchLabels"))}
    job["spec"] = {**spec, "selector": selector, "template": {**template, "metadata": template_metadata}}
    if not metadata.get("labels") or metadata["labels"] is sent:
        metadata["labels"] = dict(labels)
    return _generated_errors(job, generated)


def _generated_labels(job: Mapping[str, object]) -> dict[str, object]:
    uid, name = at(job, "metadata", "uid"), at(job, "metadata", "name") or ""
    return {**dict.fromkeys(_JOB_UID, uid), **dict.fromkeys(_JOB_NAME, name)}


def _restart_errors(place: Place) -> Iterator[SchemaError]:
    policy, path = at(place.fields, "template", "spec", "restartPolicy"), place.below("template.spec.restartPolicy")
    if policy == "Always":
        yield required(path, 'valid values: "OnFailure", "Never"')
    else:
        yield from one_of(policy, path, ("OnFailure", "Never"))


def _new_errors(job: Mapping[str, object]) -> Iterator[SchemaError]:
    name, spec = text(at(job, "metadata", "name")), job.get("spec")
    if at(spec, "manualSelector") is not True:
        yield from invalid_values("spec.template.labels", name, label_value_problems(name))
    last = integer(at(spec, "completions")) - 1
    if at(spec, "completionMode") == "Indexed" and last >= 0 and any(label_name_errors(f"{name}-{last}", "")):
        yield invalid_value("metadata.name", name, "will not able to create pod with invalid DNS label")


def _generated_errors(job: Mapping[str, object], generated: dict[str, object]) -> Iterator[SchemaError]:
    spec = mapping(job.get("spec"))
    labels, selector = at(spec, "template", "metadata", "labels"), mapping(spec.get("selector"))
    for name in (*_JOB_UID[1:], *_JOB_NAME[1:], *_JOB_UID[:1], *_JOB_NAME[:1]):
        if at(labels, name) != generated[name]:
            yield invalid_value(f"spec.template.metadata.labels[{name}]", labels, f"must be '{generated[name]}'")
    if not selects(selector, string_map(generated)):
        yield invalid_text("spec.selector", shown_selector(selector), "`selector` not auto-generated")
    yield from _selected_errors(spec)


def _selected_errors(spec: dict[str, object]) -> Iterator[SchemaError]:
    if spec.get("selector") is None:
        yield required("spec.selector")
    yield from selected_errors(Place(spec, "spec", "spec", None), spec.get("selector"))


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    """Yield an error for each changed immutable field. The template of a suspended Job can change."""
    yield from _selected_errors(mapping(after.get("spec")))
    old = mapping(before.get("spec"))
    watched = [
        "selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy",
    ]  # fmt: skip
    if old.get("suspend") is not True:
        watched.append("template")
    if old.get("completionMode") != "Indexed":
        watched.append("completions")
    yield from immutable(old, after.get("spec"), *watched, path="spec")


def job_spec_warnings(spec: object, path: str) -> Iterator[str]:
    completions, parallelism = integer(at(spec, "completions")), integer(at(spec, "parallelism"))
    indexed = at(spec, "completionMode") == "Indexed"
    if indexed and completions > _MANY_COMPLETIONS and parallelism > _MUCH_PARALLELISM:
        yield (
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
            "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    yield from pod_warnings(at(spec, "template"), f"{path}.template.")


def _completions(job: Mapping[str, object]) -> str:
    wanted, parallelism = at(job, "spec", "completions"), integer(at(job, "spec", "parallelism"))
    if wanted is None:
        wanted = f"1 of {parallelism}" if parallelism > 1 else "1"
    return f"{integer(at(job, 'status', 'succeeded'))}/{wanted}"


def _duration(job: Mapping[str, object], now: float) -> dict[str, object]:
    return {"Duration": since(at(job, "status", "startTime"), at(job, "status", "completionTime"), now)}


def _status(job: Mapping[str, object]) -> str:
    deleting = at(job, "metadata", "deletionTimestamp")
    named = _ENDED if deleting else (*_ENDED, "Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((name for name in named if condition(job, name) == "True"), "Terminating" if deleting else "Running")


JOB: Final = Strategy(
    defaults={"batch.v1.Job": _defaults},
    checks={**JOB_CHECKS, "ending_pods": _restart_errors},
    validate_update=_update_errors,
    validate_new=_new_errors,
    warn_new=name_warnings,
    warn_wanted=lambda job: job_spec_warnings(job.get("spec"), "spec"),
    finish_new=_finish_new,
    dependents="orphaned",
    delete_warning=_PODS_STAY,
    cells={
        "Status": _status,
        "Completions": _completions,
    },
    timed_cells=_duration,
)


_MONTHS: Final = {
    name: place
    for place, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_DAYS: Final = {name: place for place, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: Final[tuple[tuple[int, int, Mapping[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_WORDS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def schedule_problem(schedule: str) -> str:
    """Return the error in a schedule, or an empty string. The time after ``@every`` is not checked."""
    if schedule.startswith("@"):
        known = schedule in _WORDS or schedule.startswith("@every ")
        return "" if known else f"unrecognized descriptor: {schedule}"
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{' '.join(parts)}]"
    try:
        for part, (least, most, names) in zip(parts, _FIELDS, strict=True):
            for expression in filter(None, part.split(",")):
                _check(expression, least, most, names)
    except ValueError as error:
        return str(error)
    return ""


def _check(expression: str, least: int, most: int, names: Mapping[str, int]) -> None:
    range_and_step = expression.split("/")
    ends = range_and_step[0].split("-")
    if ends[0] in ("*", "?"):
        start, end = least, most
    else:
        start = end = _number(ends[0], names)
        if len(ends) > 2:
            raise ValueError(f"too many hyphens: {expression}")
        if len(ends) == 2:
            end = _number(ends[1], names)
    if len(range_and_step) > 2:
        raise ValueError(f"too many slashes: {expression}")
    step = 1
    if len(range_and_step) == 2:
        step = _number(range_and_step[1], {})
        end = most if len(ends) == 1 else end
    if start < least:
        raise ValueError(f"beginning of range ({start}) below minimum ({least}): {expression}")
    if end > most:
        raise ValueError(f"end of range ({end}) above maximum ({most}): {expression}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {expression}")


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    digits = text.removeprefix("+").removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if int(text) < 0:
        raise ValueError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


_ZONE: Final = re.compile("[-A-Za-z0-9_+.]{1,14}")
_LONGEST_NAME: Final = 52
_JOB: Final = "spec.jobTemplate.spec"


def _schedule_errors(place: Place) -> Iterator[SchemaError]:
    problem = schedule_problem(place.text)
    if problem:
        yield invalid_value(place.path, place.value, problem)
    if "TZ" in place.text:
        yield invalid_value(place.path, place.value, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")


def _zone_errors(place: Place) -> Iterator[SchemaError]:
    zone = place.text
    parts = zone.split("/")
    if not zone:
        yield invalid_value(place.path, "", "timeZone must be nil or non-empty string")
    elif any(part in (".", "..") or part.startswith("-") or not _ZONE.fullmatch(part) for part in parts):
        yield invalid_value(place.path, zone, f"unknown time zone {zone}")
    elif zone.lower() == "local":
        yield invalid_value(place.path, zone, "timeZone must be an explicit time zone")
    elif not _is_known(zone):
        yield invalid_value(place.path, zone, f"unknown time zone {zone}")


def _is_known(zone: str) -> bool:
    """Return whether the time zone database contains a name, or True if no database is available."""
    for name, found in ((zone, True), ("Europe/London", False)):
        try:
            zoneinfo.ZoneInfo(name)
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
            continue
        return found
    return True


def _template_errors(place: Place) -> Iterator[SchemaError]:
    spec = place.fields.get("spec")
    if at(spec, "selector") is not None:
        yield invalid_value(place.below("spec.selector"), None, "`selector` will be auto-generated")
    if at(spec, "manualSelector") is True:
        yield not_supported(place.below("spec.manualSelector"), "true", ("nil", "false"))


def _cron_job_new_errors(cron_job: Mapping[str, object]) -> Iterator[SchemaError]:
    name = text(at(cron_job, "metadata", "name"))
    if len(name) > _LONGEST_NAME:
        yield invalid_value("metadata.name", name, f"must be no more than {_LONGEST_NAME} characters")


def _update_warnings(_before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    if "TZ" in text(at(after, "spec", "schedule")):
        yield (
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )


CRON_JOB: Final = Strategy(
    warn_update=_update_warnings,
    checks={"job_template": _template_errors, "schedule": _schedule_errors, "time_zone": _zone_errors},
    validate_new=_cron_job_new_errors,
    warn_new=name_warnings,
    warn_wanted=lambda cron_job: job_spec_warnings(at(cron_job, "spec", "jobTemplate", "spec"), _JOB),
)
