"""Namespace: finalizers in ``spec``, which only ``/finalize`` changes, and the name label.

Source: Kubernetes pkg/registry/core/namespace/strategy.go, storage/storage.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api.json_values import at, mapping, texts
from deltaloop.apiserver.core.strategy import CLIENTS_METADATA, Strategy

NAMESPACE_FINALIZER: Final = "kubernetes"
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_SPEC_FINALIZERS: Final[dict[str, object]] = {"f:spec": {"f:finalizers": {}}}


def _label(namespace: dict[str, object]) -> None:
    metadata = mapping(namespace["metadata"])
    if metadata.get("name"):
        labels = {**mapping(metadata.get("labels")), _NAME_LABEL: metadata["name"]}
        namespace["metadata"] = {**metadata, "labels": labels}


def _prepare_new(namespace: dict[str, object]) -> None:
    finalizers = [*texts(at(namespace, "spec", "finalizers"))]
    if NAMESPACE_FINALIZER not in finalizers:
        finalizers.insert(0, NAMESPACE_FINALIZER)
    namespace["spec"] = {**mapping(namespace.get("spec")), "finalizers": finalizers}
    namespace["status"] = {"phase": "Active"}
    _label(namespace)


def _prepare_update(before: dict[str, object], after: dict[str, object]) -> None:
    finalizers = [*texts(at(before, "spec", "finalizers"))]
    after["spec"] = {**mapping(after.get("spec")), "finalizers": finalizers}
    _label(after)


def _prepare_status(_before: dict[str, object], after: dict[str, object]) -> None:
    _label(after)


def _finalize(current: dict[str, object], sent: dict[str, object]) -> dict[str, object]:
    old, new = mapping(current["metadata"]), mapping(sent["metadata"])
    metadata = {name: value for name, value in old.items() if name not in CLIENTS_METADATA}
    metadata |= {name: new[name] for name in new if name in CLIENTS_METADATA}
    spec = {**mapping(current.get("spec")), "finalizers": [*texts(at(sent, "spec", "finalizers"))]}
    result = {**current, "metadata": metadata, "spec": spec}
    _label(result)
    return result


def _mark(namespace: dict[str, object]) -> None:
    mapping(namespace["metadata"]).pop("deletionGracePeriodSeconds", None)
    namespace["status"] = {**mapping(namespace.get("status")), "phase": "Terminating"}


STRATEGY: Final = Strategy(
    prepare_new=_prepare_new,
    prepare_update=_prepare_update,
    prepare_status=_prepare_status,
    parts={"finalize": _finalize},
    mark=_mark,
    is_held=lambda namespace: bool(at(namespace, "spec", "finalizers")),
    reset_fields={"": _SPEC_FINALIZERS},
)
