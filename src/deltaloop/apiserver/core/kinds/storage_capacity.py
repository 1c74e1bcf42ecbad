"""CSIStorageCapacity: warnings about the labels of its nodes.

Source: Kubernetes pkg/api/storage/util.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, mapping
from deltaloop.apiserver.core.kinds.node_labels import DEPRECATED_LABELS, node_term_warnings
from deltaloop.apiserver.core.strategy import Strategy


def _warnings(capacity: Mapping[str, object]) -> Iterator[str]:
    topology = capacity.get("nodeTopology")
    yield from node_term_warnings(topology, "nodeTopology")
    for label in sorted(DEPRECATED_LABELS.keys() & mapping(at(topology, "matchLabels"))):
        yield f"nodeTopology.matchLabels.{label}: {DEPRECATED_LABELS[label]}"


STRATEGY: Final = Strategy(warn=_warnings)
