"""Deployments and the other kinds that make pods: selectors, templates, numbers, and what an update may change.

Source: Kubernetes pkg/apis/apps/validation, pkg/apis/batch/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from deltaloop.apiserver.core.kinds.validation.checks import (
    IMMUTABLE,
    most_percent_errors,
    not_negative,
    one_of,
    selector_errors,
    share_errors,
    shown,
    shown_selector,
    template_errors,
)
from deltaloop.apiserver.core.kinds.validation.pods import pod_template_errors
from deltaloop.apiserver.core.kinds.validation.schedules import schedule_problem
from deltaloop.apiserver.core.kinds.validation.storage import claim_spec_errors
from deltaloop.apiserver.core.metadata.label_match import selects
from deltaloop.apiserver.core.metadata.rules import label_name_errors
from deltaloop.schemas.faults import FieldError, forbidden_field, invalid_value, not_supported, required
from deltaloop.schemas.json_values import at, integer, items, mapping, string_map, text

Fields = dict[str, Any]

_JOB_POLICIES: Final = ("OnFailure", "Never")
_JOB_NUMBERS: Final = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
)
_JOB_UID: Final = "batch.kubernetes.io/controller-uid"
_SET_UPDATES: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_SET_REFUSAL: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def deployment_errors(deployment: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a Deployment."""
    spec = mapping(deployment.get("spec"))
    yield from not_negative(spec, "replicas", path="spec")
    yield from _selector_and_template(spec, "deployment", "ReplicaSet")
    yield from _strategy_errors(mapping(spec.get("strategy")))
    yield from not_negative(spec, "minReadySeconds", "revisionHistoryLimit", path="spec")
    deadline = spec.get("progressDeadlineSeconds")
    if isinstance(deadline, int) and deadline <= integer(spec.get("minReadySeconds")):
        yield invalid_value("spec.progressDeadlineSeconds", str(deadline), "must be greater than minReadySeconds")


def replica_set_errors(owner: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a ReplicaSet."""
    spec = mapping(owner.get("spec"))
    yield from not_negative(spec, "replicas", "minReadySeconds", path="spec")
    yield from _selector_and_template(spec, "deployment", "ReplicaSet")


def stateful_set_errors(owner: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a StatefulSet."""
    spec = mapping(owner.get("spec"))
    policy = text(spec.get("podManagementPolicy"))
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid_value("spec.podManagementPolicy", shown(policy), "must be 'OrderedReady' or 'Parallel'")
    yield from _set_strategy_errors(mapping(spec.get("updateStrategy")))
    for name in ("whenDeleted", "whenScaled"):
        chosen = at(spec, "persistentVolumeClaimRetentionPolicy", name)
        if chosen is not None:
            yield from one_of(chosen, f"spec.persistentVolumeClaimRetentionPolicy.{name}", ("Retain", "Delete"))
    yield from not_negative(spec, "replicas", "minReadySeconds", path="spec")
    yield from not_negative(mapping(spec.get("ordinals")), "start", path="spec.ordinals")
    yield from _selector_and_template({**spec, "template": _template_of_set(spec)}, "statefulset", "StatefulSet")


def _template_of_set(spec: Fields) -> Fields:
    """Return the pod template of a StatefulSet as its pods will be: with its claims, which hide volumes of their name.

    Host names and subdomains are the controller's, whatever the template says.
    """
    template = dict(mapping(spec.get("template")))
    claims = {text(at(claim, "metadata", "name")): claim for claim in items(spec.get("volumeClaimTemplates"))}
    pod_spec = {
        name: value for name, value in mapping(template.get("spec")).items() if name not in ("hostname", "subdomain")
    }
    if claims:
        volumes: list[dict[str, object]] = [
            {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims
        ]
        volumes += [mapping(volume) for volume in items(pod_spec.get("volumes")) if at(volume, "name") not in claims]
        pod_spec["volumes"] = volumes
    template["spec"] = pod_spec
    return template


def _set_strategy_errors(strategy: Fields) -> Iterator[FieldError]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    field = "spec.updateStrategy"
    if kind == "OnDelete" and rolling is not None:
        in_go = (
            f'{{"Partition":{shown(at(rolling, "partition"))},"MaxUnavailable":{shown(at(rolling, "maxUnavailable"))}}}'
        )
        yield invalid_value(f"{field}.rollingUpdate", in_go, "only allowed for updateStrategy 'RollingUpdate'")
    elif kind == "RollingUpdate":
        yield from not_negative(mapping(rolling), "partition", path=f"{field}.rollingUpdate")
    elif kind not in ("RollingUpdate", "OnDelete"):
        yield invalid_value(field, _shown_strategy(strategy), "must be 'RollingUpdate' or 'OnDelete'")


def new_stateful_set_errors(owner: Fields) -> Iterator[FieldError]:
    """Yield what a new StatefulSet may not have; an update cannot change it, and old objects may be as they are."""
    spec = mapping(owner.get("spec"))
    for place, claim in enumerate(items(spec.get("volumeClaimTemplates"))):
        yield from claim_spec_errors(mapping(at(claim, "spec")), f"spec.volumeClaimTemplates[{place}].spec")
    if spec.get("serviceName"):
        yield from label_name_errors(text(spec["serviceName"]), "spec.serviceName")


def daemon_set_errors(owner: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a DaemonSet."""
    spec = mapping(owner.get("spec"))
    if spec.get("selector") == {}:
        yield invalid_value("spec.selector", "{}", "empty selector is invalid for daemonset")
    wrong = [*selector_errors(spec.get("selector"), "spec.selector")]
    yield from wrong
    if spec.get("selector") != {} and not wrong:
        yield from template_errors(spec, "spec")
    yield from _template_spec_errors(spec, "DaemonSet")
    strategy = mapping(spec.get("updateStrategy"))
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        yield _no_strategy("spec.updateStrategy", strategy, ("RollingUpdate", "OnDelete"))
    yield from not_negative(spec, "minReadySeconds", "revisionHistoryLimit", path="spec")


def replication_controller_errors(owner: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a ReplicationController."""
    spec = mapping(owner.get("spec"))
    if not spec.get("selector"):
        yield required("spec.selector")
    yield from not_negative(spec, "replicas", "minReadySeconds", path="spec")
    if not isinstance(spec.get("template"), dict):
        yield required("spec.template")
        return
    labels = at(spec, "template", "metadata", "labels")
    if spec.get("selector") and not selects({"matchLabels": spec["selector"]}, string_map(labels)):
        yield invalid_value(
            "spec.template.metadata.labels", shown(labels), "`selector` does not match template `labels`"
        )
    yield from _template_spec_errors(spec, "ReplicationController")


def _selector_and_template(spec: Fields, kind: str, owner: str) -> Iterator[FieldError]:
    selector = spec.get("selector")
    wrong = [*selector_errors(selector, "spec.selector")]
    yield from wrong
    if selector is None:
        yield required("spec.selector")
    elif selector == {}:
        yield invalid_value("spec.selector", "{}", f"empty selector is invalid for {kind}")
    elif wrong:
        text_ = "" if owner == "StatefulSet" else ": invalid label selector"
        yield FieldError("spec.selector", "FieldValueInvalid", f"Invalid value: {shown_selector(selector)}{text_}")
    if selector != {} and not wrong:
        yield from template_errors(spec, "spec")
    yield from _template_spec_errors(spec, owner)


def _template_spec_errors(spec: Fields, owner: str) -> Iterator[FieldError]:
    """Yield what is wrong with pods that are always started again."""
    pod_spec = mapping(at(spec, "template", "spec"))
    yield from pod_template_errors(mapping(spec.get("template")), "spec.template")
    if pod_spec.get("restartPolicy") in _JOB_POLICIES:
        yield not_supported("spec.template.spec.restartPolicy", text(pod_spec["restartPolicy"]), ("Always",))
    if pod_spec.get("activeDeadlineSeconds") is not None:
        text_ = f"activeDeadlineSeconds in {owner} is not Supported"
        yield forbidden_field("spec.template.spec.activeDeadlineSeconds", text_)


def _strategy_errors(strategy: Fields) -> Iterator[FieldError]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("Recreate", "RollingUpdate"):
        yield _no_strategy("spec.strategy", strategy, ("Recreate", "RollingUpdate"))
    if kind == "Recreate" and rolling is not None:
        text_ = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden_field("spec.strategy.rollingUpdate", text_)
    if kind != "RollingUpdate":
        return
    for name in ("maxUnavailable", "maxSurge"):
        yield from share_errors(at(rolling, name), f"spec.strategy.rollingUpdate.{name}")
    yield from most_percent_errors(at(rolling, "maxUnavailable"), "spec.strategy.rollingUpdate.maxUnavailable")
    if at(rolling, "maxUnavailable") in (0, "0%") and at(rolling, "maxSurge") in (0, "0%"):
        value = shown(at(rolling, "maxUnavailable"))
        yield invalid_value("spec.strategy.rollingUpdate.maxUnavailable", value, "may not be 0 when `maxSurge` is 0")


def _shown_strategy(strategy: Fields) -> str:
    return f'{{"Type":{shown(strategy.get("type"))},"RollingUpdate":{shown(strategy.get("rollingUpdate"))}}}'


def _no_strategy(field: str, strategy: Fields, known: tuple[str, ...]) -> FieldError:
    listed = ", ".join(f'"{name}"' for name in known)
    text_ = f"Unsupported value: {_shown_strategy(strategy)}: supported values: {listed}"
    return FieldError(field, "FieldValueNotSupported", text_)


def job_errors(job: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a Job."""
    yield from job_spec_errors(mapping(job.get("spec")), "spec")


def job_spec_errors(spec: Fields, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the spec of a Job, or of those that a CronJob makes."""
    yield from not_negative(spec, *_JOB_NUMBERS, path=path)
    if spec.get("completionMode") is not None:
        yield from one_of(spec["completionMode"], f"{path}.completionMode", ("NonIndexed", "Indexed"))
    always = at(spec, "template", "spec", "restartPolicy") == "Always"
    yield from pod_template_errors(mapping(spec.get("template")), f"{path}.template")
    if always:
        yield required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def cron_job_errors(cron_job: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a CronJob; its time zone is not looked at."""
    spec = mapping(cron_job.get("spec"))
    schedule = text(spec.get("schedule"))
    problem = schedule_problem(schedule)
    if not schedule:
        yield required("spec.schedule")
    elif problem:
        yield invalid_value("spec.schedule", shown(schedule), problem)
    yield from not_negative(spec, "startingDeadlineSeconds", path="spec")
    yield from one_of(spec.get("concurrencyPolicy"), "spec.concurrencyPolicy", ("Allow", "Forbid", "Replace"))
    yield from not_negative(spec, "successfulJobsHistoryLimit", "failedJobsHistoryLimit", path="spec")
    yield from job_spec_errors(mapping(at(spec, "jobTemplate", "spec")), "spec.jobTemplate.spec")


def selector_update_errors(before: Fields, after: Fields) -> Iterator[FieldError]:
    """Yield an error if an update changes the selector of an object that must keep it."""
    if at(before, "spec", "selector") != at(after, "spec", "selector"):
        yield invalid_value("spec.selector", shown(at(after, "spec", "selector")), IMMUTABLE)


def stateful_set_update_errors(before: Fields, after: Fields) -> Iterator[FieldError]:
    """Yield an error if an update changes what a StatefulSet must keep."""
    old, new = mapping(before.get("spec")), mapping(after.get("spec"))
    if any(old.get(name) != new.get(name) for name in (old.keys() | new.keys()) - set(_SET_UPDATES)):
        yield forbidden_field("spec", _SET_REFUSAL)


def job_selector_errors(job: Fields) -> Iterator[FieldError]:
    """Yield an error unless a Job selects its own pods: by its uid, or by what its author has written."""
    spec, uid = mapping(job.get("spec")), text(at(job, "metadata", "uid"))
    selector, labels = spec.get("selector"), at(spec, "template", "metadata", "labels")
    if selector is None:
        yield required("spec.selector")
    if spec.get("manualSelector") is not True and selector != {"matchLabels": {_JOB_UID: uid}}:
        yield invalid_value("spec.selector", shown_selector(selector), "`selector` not auto-generated")
    if selector is None or not selects(mapping(selector), string_map(labels)):
        value = shown(labels)
        yield invalid_value("spec.template.metadata.labels", value, "`selector` does not match template `labels`")


def job_update_errors(before: Fields, after: Fields) -> Iterator[FieldError]:
    """Yield an error for each part of a Job that must stay as it is; while it is suspended, its template may change."""
    yield from job_selector_errors(after)
    old, new = mapping(before.get("spec")), mapping(after.get("spec"))
    watched = ["selector", "completionMode", "podFailurePolicy"]
    if old.get("suspend") is not True:
        watched.append("template")
    if old.get("completionMode") != "Indexed":
        watched.append("completions")
    for name in watched:
        if old.get(name) != new.get(name):
            yield invalid_value(f"spec.{name}", shown(new.get(name)), IMMUTABLE)
