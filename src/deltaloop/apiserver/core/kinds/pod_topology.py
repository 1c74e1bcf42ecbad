"""The zone and the region of a node, which its pods have as labels, too.

Source: Kubernetes plugin/pkg/admission/podtopologylabels (KEP-4742).
"""

from __future__ import annotations

from deltaloop.api import kinds
from deltaloop.apiserver.core.strategy import Stored
from deltaloop.schemas.json_values import at, mapping

_COPIED = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


def topology_labels(store: Stored, node: str) -> dict[str, object]:
    """Return the labels that a pod gets of its node; none of a node that is not there."""
    found = store.get(kinds.NODE.group_resource, node) if node else None
    labels = mapping(at(found.to_dict(), "metadata", "labels")) if found is not None else {}
    return {name: labels[name] for name in _COPIED if name in labels}
