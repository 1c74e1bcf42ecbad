"""Node: a new one is not ready, and its address ranges agree.

Source: Kubernetes pkg/registry/core/node/strategy.go, plugin/pkg/admission/nodetaint, pkg/apis/core/v1/conversion.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.apiserver.core.kinds.agreeing_fields import agree_on_first
from deltaloop.apiserver.core.kinds.kubelet_verbs import proxy_of
from deltaloop.apiserver.core.strategy import Fields, Given, Stored, Strategy
from deltaloop.schemas.json_values import at, items, mapping

_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def _default(node: Fields) -> None:
    agree_on_first(mapping(node["spec"]), "podCIDR", "podCIDRs")


def _finish_new(node: Fields, _store: Stored, _given: Given) -> tuple[()]:
    spec = mapping(node.get("spec"))
    taints = items(spec.get("taints"))
    if not any(all(at(taint, name) == value for name, value in _NOT_READY.items()) for taint in taints):
        node["spec"] = {**spec, "taints": [*taints, dict(_NOT_READY)]}
    return ()


STRATEGY: Final = Strategy(
    default=_default,
    finish_new=_finish_new,
    subresources=(proxy_of(kinds.NODE),),
    status_when_new=True,  # kubelets register nodes together with what they have
)
