"""RuntimeClass: the nodes that run it.

Source: Kubernetes pkg/registry/node/runtimeclass/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.node_labels import DEPRECATED_LABELS
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.json_values import at, mapping


def _warnings(runtime_class: Mapping[str, object]) -> Iterator[str]:
    for label in mapping(at(runtime_class, "scheduling", "nodeSelector")):
        if label in DEPRECATED_LABELS:
            yield f"scheduling.nodeSelector: {DEPRECATED_LABELS[label]}"


STRATEGY: Final = Strategy(warn=_warnings)
