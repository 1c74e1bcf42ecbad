"""Strategies of the kinds that own pods, except for jobs.

Source: Kubernetes pkg/apis/apps/validation, pkg/registry/apps/statefulset/strategy.go; Kubernetes
pkg/apis/apps/validation, pkg/apis/apps/v1/{defaults,conversion}.go, pkg/apis/core/validation/validation.go;
pkg/registry/apps/daemonset/strategy.go, pkg/registry/core/podtemplate/strategy.go;
pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text
from deltaloop.apiserver.core.kinds import pod_owners
from deltaloop.apiserver.core.kinds.cells import NONE, format_selector
from deltaloop.apiserver.core.kinds.claim_spec import claim_spec_warnings
from deltaloop.apiserver.core.kinds.field_checks import (
    NOT_NEGATIVE,
    each,
    is_none,
    most_percent_errors,
    share_errors,
    shown_selector,
)
from deltaloop.apiserver.core.kinds.pod_warnings import name_warnings, pod_warnings
from deltaloop.apiserver.core.strategy import Moment, Stored, Strategy
from deltaloop.schemas.checking import IMMUTABLE, Place
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_text, invalid_value, required, shown


def _spec_defaults(spec: dict[str, object]) -> None:
    for claim in map(mapping, items(spec.get("volumeClaimTemplates"))):
        claim.update({"kind": "PersistentVolumeClaim", "apiVersion": "v1"})


def _strategy_defaults(strategy: dict[str, object]) -> None:
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and is_mapping(rolling):
        rolling.setdefault("partition", 0)
        rolling.setdefault("maxUnavailable", 1)


def _policy_errors(place: Place) -> Iterator[SchemaError]:
    if place.value not in ("OrderedReady", "Parallel"):
        yield invalid_value(place.path, place.value, "must be 'OrderedReady' or 'Parallel'")


def _template_errors(place: Place) -> Iterator[SchemaError]:
    yield from place.errors_below("template", _template_with_claims(place.fields))
    yield from pod_owners.ending_errors(place, "StatefulSet")


def _template_with_claims(spec: Mapping[str, object]) -> dict[str, object]:
    """Return the template of the resulting pods: claims replace volumes, and the controller sets the host name."""
    template = dict(mapping(spec.get("template")))
    claims = {text(at(claim, "metadata", "name")): claim for claim in items(spec.get("volumeClaimTemplates"))}
    pod_spec = {
        name: value for name, value in mapping(template.get("spec")).items() if name not in ("hostname", "subdomain")
    }
    if claims:
        volumes: list[object] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        volumes += [volume for volume in items(pod_spec.get("volumes")) if at(volume, "name") not in claims]
        pod_spec["volumes"] = volumes
    return {**template, "spec": pod_spec}


def _stateful_set_strategy_errors(place: Place) -> Iterator[SchemaError]:
    kind, rolling = place.fields.get("type"), place.fields.get("rollingUpdate")
    path, partition, share = place.below("rollingUpdate"), at(rolling, "partition"), at(rolling, "maxUnavailable")
    if kind == "RollingUpdate":
        if integer(partition) < 0:
            yield invalid_value(f"{path}.partition", partition, NOT_NEGATIVE)
        yield from share_errors(share, f"{path}.maxUnavailable")
        if share in (0, "0%"):
            yield invalid_value(f"{path}.maxUnavailable", share, "cannot be 0")
        yield from most_percent_errors(share, f"{path}.maxUnavailable")
    elif kind != "OnDelete":
        yield invalid_text(place.path, pod_owners.shown_strategy(place.fields), "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None:
        in_go = f'{{"Partition":{shown(partition)},"MaxUnavailable":{shown(share)}}}'
        yield invalid_text(path, in_go, "only allowed for updateStrategy 'RollingUpdate'")


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    selector = at(after, "spec", "selector")
    if at(before, "spec", "selector") != selector:
        yield invalid_text("spec.selector", shown_selector(selector), IMMUTABLE)


def _new_warnings(owner: Mapping[str, object]) -> Iterator[str]:
    yield from pod_owners.template_warnings(owner)
    yield from _claim_warnings(owner)


def _stateful_set_update_warnings(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    if at(before, "metadata", "generation") != at(after, "metadata", "generation"):
        yield from pod_owners.template_warnings(after)
    yield from _claim_warnings(after, ".Spec")


def _claim_warnings(owner: Mapping[str, object], below: str = "") -> Iterator[str]:
    for path, claim in each(owner.get("spec"), "volumeClaimTemplates", "spec"):
        yield from claim_spec_warnings(claim.get("spec"), f"{path}{below}")
    if integer(at(owner, "spec", "revisionHistoryLimit")) < 0:
        yield (
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
        )


STATEFUL_SET: Final = Strategy(
    defaults={
        "apps.v1.StatefulSetSpec": _spec_defaults,
        "apps.v1.StatefulSetUpdateStrategy": _strategy_defaults,
    },
    checks={
        "pod_management_policy": _policy_errors,
        "stateful_set_selector": pod_owners.selector_check("statefulset"),
        "stateful_set_strategy": _stateful_set_strategy_errors,
        "stateful_set_template": _template_errors,
    },
    validate_update=_update_errors,
    warn_new=_new_warnings,
    warn_update=_stateful_set_update_warnings,
    cells={"Ready": pod_owners.ready_of_replicas},
)


def _deadline_errors(place: Place) -> Iterator[SchemaError]:
    if integer(place.value) <= integer(place.beside("minReadySeconds")):
        yield invalid_value(place.path, place.value, "must be greater than minReadySeconds")


def _deployment_strategy_errors(place: Place) -> Iterator[SchemaError]:
    kind, rolling = place.fields.get("type"), place.fields.get("rollingUpdate")
    path = place.below("rollingUpdate")
    if kind == "RollingUpdate":
        for name in ("maxUnavailable", "maxSurge"):
            yield from share_errors(at(rolling, name), f"{path}.{name}")
        unavailable = at(rolling, "maxUnavailable")
        yield from most_percent_errors(unavailable, f"{path}.maxUnavailable")
        if unavailable in (0, "0%") and at(rolling, "maxSurge") in (0, "0%"):
            yield invalid_value(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    elif kind != "Recreate":
        yield pod_owners.no_strategy(place, ("Recreate", "RollingUpdate"))
    elif rolling is not None:
        yield forbidden_field(path, "may not be specified when strategy `type` is 'Recreate'")


DEPLOYMENT: Final = Strategy(
    defaults={"apps.v1.DeploymentStrategy": pod_owners.rolling_update(maxUnavailable="25%", maxSurge="25%")},
    checks={
        "deployment_strategy": _deployment_strategy_errors,
        "more_than_ready_seconds": _deadline_errors,
        "replica_set_selector": pod_owners.selector_check("deployment", ": invalid label selector"),
        "replica_set_template": pod_owners.template_check("ReplicaSet"),
    },
    validate_update=pod_owners.selector_update_errors,
    warn_new=name_warnings,
    warn_wanted=pod_owners.template_warnings,
    cells={
        "Ready": pod_owners.ready_of_replicas,
        "Selector": lambda owner: format_selector(at(owner, "spec", "selector"), empty="", wrong="<invalid>"),
    },
)


TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def _prepare_new(daemon_set: dict[str, object]) -> None:
    metadata = mapping(daemon_set["metadata"])
    metadata["annotations"] = {**mapping(metadata.get("annotations")), TEMPLATE_GENERATION: "1"}


def _keep(_before: dict[str, object], after: dict[str, object]) -> None:
    # Go converts a missing annotation to the count 0, so that the writer owns the changed annotation.
    metadata = mapping(after.get("metadata"))
    metadata["annotations"] = {TEMPLATE_GENERATION: "0", **mapping(metadata.get("annotations"))}


def _finish_update(before: dict[str, object], after: dict[str, object], _store: Stored, _moment: Moment) -> tuple[()]:
    _count_template(before, after)
    return ()


def _count_template(before: dict[str, object], after: dict[str, object]) -> None:
    count = text(at(before, "metadata", "annotations", TEMPLATE_GENERATION))
    if count.isdecimal():
        changed = at(before, "spec", "template") != at(after, "spec", "template")
        metadata = mapping(after["metadata"])
        counted = {TEMPLATE_GENERATION: str(int(count) + changed)}
        metadata["annotations"] = {**mapping(metadata.get("annotations")), **counted}


def _daemon_set_update_warnings(before: Mapping[str, object], after: Mapping[str, object]) -> Iterable[str]:
    changed = at(before, "spec", "template") != at(after, "spec", "template")
    return pod_owners.template_warnings(after) if changed else ()


def _daemon_strategy_errors(place: Place) -> Iterator[SchemaError]:
    known, kind, rolling = ("RollingUpdate", "OnDelete"), place.fields.get("type"), place.fields.get("rollingUpdate")
    if kind not in known:
        yield pod_owners.no_strategy(place, known)
    elif kind == "RollingUpdate":
        path, none = place.below("rollingUpdate"), dict[str, bool]()
        for name in ("maxUnavailable", "maxSurge"):
            share = at(rolling, name)
            yield from share_errors(share, f"{path}.{name}")
            yield from most_percent_errors(share, f"{path}.{name}")
            none[name] = share is None or is_none(share)
        if not any(none.values()):
            text_ = "may not be set when maxUnavailable is non-zero"
            yield invalid_value(f"{path}.maxSurge", at(rolling, "maxSurge"), text_)
        elif all(none.values()):
            yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


DAEMON_SET: Final = Strategy(
    defaults={"apps.v1.DaemonSetUpdateStrategy": pod_owners.rolling_update(maxUnavailable=1, maxSurge=0)},
    prepare_new=_prepare_new,
    keep=_keep,
    checks={
        "daemon_set_selector": pod_owners.selector_check("daemonset"),
        "daemon_set_strategy": _daemon_strategy_errors,
        "daemon_set_template": pod_owners.template_check("DaemonSet"),
    },
    validate_update=pod_owners.selector_update_errors,
    warn_new=pod_owners.template_warnings,
    warn_update=_daemon_set_update_warnings,
    finish_update=_finish_update,
)


def _controller_defaults(controller: dict[str, object]) -> None:
    labels, spec = pod_owners.labels_of_template(controller), mapping(controller.get("spec"))
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)


def _controller_selector_errors(place: Place) -> Iterator[SchemaError]:
    selector = place.fields.get("selector")
    if selector and is_mapping(place.fields.get("template")):
        yield from pod_owners.selected_errors(place, {"matchLabels": selector})


REPLICA_SET: Final = Strategy(
    validate_update=pod_owners.selector_update_errors,
    warn_new=name_warnings,
    warn_wanted=pod_owners.template_warnings,
    cells={"Desired": pod_owners.replicas},
)
CONTROLLER: Final = Strategy(
    defaults={"core.v1.ReplicationController": _controller_defaults},
    checks={
        "replication_controller_selector": _controller_selector_errors,
        "replication_controller_template": pod_owners.template_check("ReplicationController"),
    },
    warn_new=name_warnings,
    warn_wanted=pod_owners.template_warnings,
    dependents="orphaned",
    cells={"Desired": pod_owners.replicas},
)


def _controller(revision: Mapping[str, object]) -> str:
    owners = items(at(revision, "metadata", "ownerReferences"))
    owner = next((item for item in owners if at(item, "controller") is True), None)
    if owner is None:
        return NONE
    group = text(at(owner, "apiVersion")).rpartition("/")[0]
    return f"{text(at(owner, 'kind')).lower()}{group and f'.{group}'}/{text(at(owner, 'name'))}"


def _data_errors(place: Place) -> Iterator[SchemaError]:
    if place.value is None:
        yield required(place.path, "data is mandatory")
    elif not is_mapping(place.value):
        yield required(place.path, "data must be a valid JSON object")


REVISION: Final = Strategy(checks={"revision_data": _data_errors}, cells={"Controller": _controller})


POD_TEMPLATE: Final = Strategy(
    warn_new=lambda template: pod_warnings(template.get("template"), "template."),
)
