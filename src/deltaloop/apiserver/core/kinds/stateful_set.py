"""StatefulSet: its claims, its strategy of updates, and the few fields that an update may change.

Source: Kubernetes pkg/apis/apps/validation, pkg/registry/apps/statefulset/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds import pod_owners
from deltaloop.apiserver.core.kinds.cells import template_cells
from deltaloop.apiserver.core.kinds.claim_spec import claim_spec_errors, claim_spec_warnings
from deltaloop.apiserver.core.kinds.field_checks import (
    IMMUTABLE,
    each,
    immutable,
    most_percent_errors,
    not_negative,
    set_to_one_of,
    share_errors,
    shown,
    shown_selector,
)
from deltaloop.apiserver.core.metadata.rules import label_name_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.faults import FieldError, invalid_value
from deltaloop.schemas.json_values import at, integer, is_mapping, items, mapping, text

_KEPT: Final = ("volumeClaimTemplates", "serviceName", "podManagementPolicy")


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


def _errors(owner: Mapping[str, object]) -> Iterator[FieldError]:
    spec = mapping(owner.get("spec"))
    policy, claims = text(spec.get("podManagementPolicy")), "persistentVolumeClaimRetentionPolicy"
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid_value("spec.podManagementPolicy", shown(policy), "must be 'OrderedReady' or 'Parallel'")
    yield from _strategy_errors(mapping(spec.get("updateStrategy")))
    for name in ("whenDeleted", "whenScaled"):
        yield from set_to_one_of(spec.get(claims), name, ("Retain", "Delete"), f"spec.{claims}")
    yield from not_negative(spec, "replicas", "minReadySeconds", path="spec")
    yield from not_negative(spec.get("ordinals"), "start", path="spec.ordinals")
    with_claims = {**spec, "template": _template_with_claims(spec)}
    yield from pod_owners.selector_and_template_errors(with_claims, "statefulset", "StatefulSet")


def _template_with_claims(spec: Mapping[str, object]) -> dict[str, object]:
    """Return the pod template as its pods will be: with their claims, which hide volumes of their name.

    Host names and subdomains are the controller's, whatever the template says.
    """
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


def _strategy_errors(strategy: Mapping[str, object]) -> Iterator[FieldError]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    field = "spec.updateStrategy"
    if kind == "RollingUpdate":
        share, where = at(rolling, "maxUnavailable"), f"{field}.rollingUpdate.maxUnavailable"
        yield from not_negative(rolling, "partition", path=f"{field}.rollingUpdate")
        yield from share_errors(share, where)
        if share in (0, "0%"):
            yield invalid_value(where, shown(share), "cannot be 0")
        yield from most_percent_errors(share, where)
    elif kind != "OnDelete":
        yield invalid_value(field, pod_owners.shown_strategy(strategy), "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None:
        in_go = (
            f'{{"Partition":{shown(at(rolling, "partition"))},"MaxUnavailable":{shown(at(rolling, "maxUnavailable"))}}}'
        )
        yield invalid_value(f"{field}.rollingUpdate", in_go, "only allowed for updateStrategy 'RollingUpdate'")


def _new_errors(owner: Mapping[str, object]) -> Iterator[FieldError]:
    """Yield what a new one may not have; an update cannot change it, and old objects may be as they are."""
    spec = mapping(owner.get("spec"))
    for path, claim in each(spec, "volumeClaimTemplates", "spec"):
        yield from claim_spec_errors(claim.get("spec"), f"{path}.spec")
    if spec.get("serviceName"):
        yield from label_name_errors(text(spec["serviceName"]), "spec.serviceName")


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[FieldError]:
    selector = at(after, "spec", "selector")
    if at(before, "spec", "selector") != selector:
        yield invalid_value("spec.selector", shown_selector(selector), IMMUTABLE)
    yield from immutable(before.get("spec"), after.get("spec"), *_KEPT, path="spec")


def _warnings(owner: Mapping[str, object]) -> Iterator[str]:
    for path, claim in each(owner.get("spec"), "volumeClaimTemplates", "spec"):
        yield from claim_spec_warnings(claim.get("spec"), path)
    if integer(at(owner, "spec", "revisionHistoryLimit")) < 0:
        yield (
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
        )


STRATEGY: Final = Strategy(
    defaults={
        "apps.v1.StatefulSetSpec": _spec_defaults,
        "apps.v1.StatefulSetUpdateStrategy": _strategy_defaults,
    },
    validate=_errors,
    validate_new=_new_errors,
    validate_update=_update_errors,
    warn=_warnings,
    warn_wanted=pod_owners.template_warnings,
    cells={"Ready": pod_owners.ready_of_replicas, **template_cells()},
)
