"""DaemonSet: an annotation counts the changes of its template.

Source: Kubernetes pkg/apis/apps/v1/conversion.go, pkg/apis/apps/validation,
pkg/registry/apps/daemonset/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, mapping, text
from deltaloop.apiserver.core.kinds import pod_owners
from deltaloop.apiserver.core.kinds.field_checks import is_none, most_percent_errors, share_errors
from deltaloop.apiserver.core.strategy import Given, Stored, Strategy
from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.faults import FieldError, invalid_value, required

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def _prepare_new(daemon_set: dict[str, object]) -> None:
    metadata = mapping(daemon_set["metadata"])
    metadata["annotations"] = {**mapping(metadata.get("annotations")), TEMPLATE_GENERATION: "1"}


def _keep(_before: dict[str, object], after: dict[str, object]) -> None:
    # As on its way through Go's type, where no annotation is no count: that differs, and is its writer's then.
    metadata = mapping(after.get("metadata"))
    metadata["annotations"] = {TEMPLATE_GENERATION: "0", **mapping(metadata.get("annotations"))}


def _finish_update(before: dict[str, object], after: dict[str, object], _store: Stored, _given: Given) -> tuple[()]:
    _count_template(before, after)
    return ()


def _count_template(before: dict[str, object], after: dict[str, object]) -> None:
    count = text(at(before, "metadata", "annotations", TEMPLATE_GENERATION))
    if count.isdecimal():
        changed = at(before, "spec", "template") != at(after, "spec", "template")
        metadata = mapping(after["metadata"])
        counted = {TEMPLATE_GENERATION: str(int(count) + changed)}
        metadata["annotations"] = {**mapping(metadata.get("annotations")), **counted}


def _update_warnings(before: Mapping[str, object], after: Mapping[str, object]) -> Iterable[str]:
    changed = at(before, "spec", "template") != at(after, "spec", "template")
    return pod_owners.template_warnings(after) if changed else ()


def _strategy_errors(place: Place) -> Iterator[FieldError]:
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
            yield invalid_value(f"{path}.maxSurge", shown(at(rolling, "maxSurge")), text_)
        elif all(none.values()):
            yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


STRATEGY: Final = Strategy(
    defaults={"apps.v1.DaemonSetUpdateStrategy": pod_owners.rolling_update(maxUnavailable=1, maxSurge=0)},
    prepare_new=_prepare_new,
    keep=_keep,
    checks={
        "daemon_set_selector": pod_owners.selector_check("daemonset"),
        "daemon_set_strategy": _strategy_errors,
        "daemon_set_template": pod_owners.template_check("DaemonSet"),
    },
    validate_update=pod_owners.selector_update_errors,
    warn_new=pod_owners.template_warnings,
    warn_update=_update_warnings,
    finish_update=_finish_update,
)
