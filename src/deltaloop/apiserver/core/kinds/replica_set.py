"""ReplicaSet, and ReplicationController, which selects by a plain map of labels.

Source: Kubernetes pkg/apis/apps/validation, pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deltaloop.api.json_values import is_mapping, mapping
from deltaloop.apiserver.core.kinds import pod_owners
from deltaloop.apiserver.core.kinds.pod_warnings import name_warnings
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.faults import FieldError


def _controller_defaults(controller: dict[str, object]) -> None:
    labels, spec = pod_owners.labels_of_template(controller), mapping(controller.get("spec"))
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)


def _controller_selector_errors(place: Place) -> Iterator[FieldError]:
    selector = place.fields.get("selector")
    if selector and is_mapping(place.fields.get("template")):
        yield from pod_owners.selected_errors(place, {"matchLabels": selector})


STRATEGY: Final = Strategy(
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
