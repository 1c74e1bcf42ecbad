"""Job: a new one selects its pods by its own uid, unless its author selects them; most of it stays as it is.

Source: Kubernetes pkg/registry/batch/job/strategy.go, pkg/apis/batch/validation, pkg/api/job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, mapping, string_map, text
from deltaloop.apiserver.core.kinds.cells import condition, since
from deltaloop.apiserver.core.kinds.field_checks import immutable, one_of, shown_selector
from deltaloop.apiserver.core.kinds.job_policies import JOB_CHECKS
from deltaloop.apiserver.core.kinds.pod_owners import selected_errors
from deltaloop.apiserver.core.kinds.pod_warnings import name_warnings, pod_warnings
from deltaloop.apiserver.core.metadata.label_match import selects
from deltaloop.apiserver.core.metadata.rules import label_name_errors, label_value_problems
from deltaloop.apiserver.core.strategy import Given, Stored, Strategy
from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.faults import FieldError, invalid_value, required

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
    # These are defaults of Jobs, not of the Jobs that a CronJob describes.
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
    """Share the labels of the template, so that the Job also gets those that the server adds to it."""
    metadata, labels = mapping(job.get("metadata")), mapping(at(job, "spec", "template", "metadata", "labels"))
    if labels and not metadata.get("labels"):
        metadata["labels"] = labels


def _finish_new(job: dict[str, object], _store: Stored, _given: Given) -> Iterator[FieldError]:
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
    """Return the labels that the server adds to the template."""
    uid, name = at(job, "metadata", "uid"), at(job, "metadata", "name") or ""
    return {**dict.fromkeys(_JOB_UID, uid), **dict.fromkeys(_JOB_NAME, name)}


def _restart_errors(place: Place) -> Iterator[FieldError]:
    policy, path = at(place.fields, "template", "spec", "restartPolicy"), place.below("template.spec.restartPolicy")
    if policy == "Always":
        yield required(path, 'valid values: "OnFailure", "Never"')
    else:
        yield from one_of(policy, path, ("OnFailure", "Never"))


def _new_errors(job: Mapping[str, object]) -> Iterator[FieldError]:
    """Yield an error for a name that the label of its pods, or the host names of indexed pods, cannot hold."""
    name, spec = text(at(job, "metadata", "name")), job.get("spec")
    if at(spec, "manualSelector") is not True:
        for problem in label_value_problems(name):
            yield invalid_value("spec.template.labels", shown(name), problem)
    last = integer(at(spec, "completions")) - 1
    if at(spec, "completionMode") == "Indexed" and last >= 0 and any(label_name_errors(f"{name}-{last}", "")):
        yield invalid_value("metadata.name", shown(name), "will not able to create pod with invalid DNS label")


def _generated_errors(job: Mapping[str, object], generated: dict[str, object]) -> Iterator[FieldError]:
    """Yield an error unless a Job has the labels that the server generates, and selects by them."""
    spec = mapping(job.get("spec"))
    labels, selector = at(spec, "template", "metadata", "labels"), mapping(spec.get("selector"))
    for name in (*_JOB_UID[1:], *_JOB_NAME[1:], *_JOB_UID[:1], *_JOB_NAME[:1]):
        if at(labels, name) != generated[name]:
            path = f"spec.template.metadata.labels[{name}]"
            yield invalid_value(path, shown(labels), f"must be '{generated[name]}'")
    if not selects(selector, string_map(generated)):
        yield invalid_value("spec.selector", shown_selector(selector), "`selector` not auto-generated")
    yield from _selected_errors(spec)


def _selected_errors(spec: dict[str, object]) -> Iterator[FieldError]:
    if spec.get("selector") is None:
        yield required("spec.selector")
    yield from selected_errors(Place(spec, "spec", "spec", None), spec.get("selector"))


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[FieldError]:
    """Yield an error for each part that must stay as it is; while a Job is suspended, its template may change."""
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
    """Yield what there is to warn about in the spec of a Job, or of those that a CronJob makes."""
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


STRATEGY: Final = Strategy(
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
