"""StatefulSet: claim templates, update strategy and immutable fields.

Source: Kubernetes pkg/apis/apps/validation, pkg/registry/apps/statefulset/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text
from deltaloop.apiserver.core.kinds import pod_owners
from deltaloop.apiserver.core.kinds.claim_spec import claim_spec_warnings
from deltaloop.apiserver.core.kinds.field_checks import (
    NOT_NEGATIVE,
    each,
    most_percent_errors,
    share_errors,
    shown_selector,
)
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import IMMUTABLE, Place
from deltaloop.schemas.field_errors import SchemaError, invalid_text, invalid_value, shown


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


def _strategy_errors(place: Place) -> Iterator[SchemaError]:
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


def _update_warnings(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
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


STRATEGY: Final = Strategy(
    defaults={
        "apps.v1.StatefulSetSpec": _spec_defaults,
        "apps.v1.StatefulSetUpdateStrategy": _strategy_defaults,
    },
    checks={
        "pod_management_policy": _policy_errors,
        "stateful_set_selector": pod_owners.selector_check("statefulset"),
        "stateful_set_strategy": _strategy_errors,
        "stateful_set_template": _template_errors,
    },
    validate_update=_update_errors,
    warn_new=_new_warnings,
    warn_update=_update_warnings,
    cells={"Ready": pod_owners.ready_of_replicas},
)
