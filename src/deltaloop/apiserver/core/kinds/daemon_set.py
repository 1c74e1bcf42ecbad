"""DaemonSet: an annotation counts the changes of its template.

Source: Kubernetes pkg/apis/apps/v1/conversion.go, pkg/registry/apps/daemonset/strategy.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.apiserver.core.strategy import Fields, Given, Stored, Strategy
from deltaloop.schemas.json_values import at, mapping, text

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def _prepare_new(daemon_set: Fields) -> None:
    metadata = daemon_set["metadata"]
    metadata["annotations"] = {**mapping(metadata.get("annotations")), TEMPLATE_GENERATION: "1"}


def _keep(_before: Fields, after: Fields) -> None:
    # As on its way through Go's type, where no annotation is no count: that differs, and is its writer's then.
    metadata = mapping(after.get("metadata"))
    metadata["annotations"] = {TEMPLATE_GENERATION: "0", **mapping(metadata.get("annotations"))}


def _finish_update(before: Fields, after: Fields, _store: Stored, _given: Given) -> tuple[()]:
    _count_template(before, after)
    return ()


def _count_template(before: Fields, after: Fields) -> None:
    count = text(at(before, "metadata", "annotations", TEMPLATE_GENERATION))
    if count.isdecimal():
        changed = at(before, "spec", "template") != at(after, "spec", "template")
        metadata = after["metadata"]
        counted = {TEMPLATE_GENERATION: str(int(count) + changed)}
        metadata["annotations"] = {**mapping(metadata.get("annotations")), **counted}


STRATEGY: Final = Strategy(prepare_new=_prepare_new, keep=_keep, finish_update=_finish_update)
