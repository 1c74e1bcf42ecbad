"""ReplicaSet, and ReplicationController, which selects by a plain map of labels.

Source: Kubernetes pkg/apis/apps/validation, pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds import pod_owners
from deltaloop.apiserver.core.kinds.cells import labels_at, selector_at
from deltaloop.apiserver.core.kinds.field_checks import needs, not_negative
from deltaloop.apiserver.core.kinds.pod_warnings import name_warnings
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.faults import FieldError, required
from deltaloop.schemas.json_values import is_mapping, mapping


def _errors(owner: Mapping[str, object]) -> Iterator[FieldError]:
    spec = mapping(owner.get("spec"))
    yield from not_negative(spec, "replicas", "minReadySeconds", path="spec")
    yield from pod_owners.selector_and_template_errors(spec, "deployment", "ReplicaSet")


def _controller_defaults(controller: dict[str, object]) -> None:
    labels, spec = pod_owners.labels_of_template(controller), mapping(controller.get("spec"))
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)


def _controller_errors(owner: Mapping[str, object]) -> Iterator[FieldError]:
    spec = mapping(owner.get("spec"))
    yield from needs(spec, "selector", path="spec")
    yield from not_negative(spec, "replicas", "minReadySeconds", path="spec")
    if not is_mapping(spec.get("template")):
        yield required("spec.template")
        return
    if spec.get("selector"):
        yield from pod_owners.selected_errors(spec, {"matchLabels": spec["selector"]})
    yield from pod_owners.template_errors(spec, "ReplicationController")


STRATEGY: Final = Strategy(
    validate=_errors,
    validate_update=pod_owners.selector_update_errors,
    warn_new=name_warnings,
    warn_wanted=pod_owners.template_warnings,
    cells={**pod_owners.replica_cells(), "Selector": selector_at("spec.selector")},
)
CONTROLLER: Final = Strategy(
    defaults={"core.v1.ReplicationController": _controller_defaults},
    validate=_controller_errors,
    warn_new=name_warnings,
    warn_wanted=pod_owners.template_warnings,
    cells={**pod_owners.replica_cells(), "Selector": labels_at("spec.selector")},
)
