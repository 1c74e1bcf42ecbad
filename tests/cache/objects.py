"""Small pods to put into caches."""

from __future__ import annotations

from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource


def pod(
    name: str,
    version: int | str = 1,
    *,
    namespace: str = "default",
    node: str | None = None,
    labels: dict[str, str] | None = None,
    uid: str | None = None,
) -> Resource:
    """Make a pod; its uid is its name unless given."""
    metadata: dict[str, object] = {
        "name": name,
        "namespace": namespace,
        "uid": name if uid is None else uid,
        "resourceVersion": str(version),
    }
    if labels:
        metadata["labels"] = labels
    return Resource.from_dict({"metadata": metadata, "spec": {"nodeName": node} if node else {}}, POD)


def nameless(version: int | str = 1) -> Resource:
    """Make an object with metadata but without a name."""
    return Resource.from_dict({"metadata": {"resourceVersion": str(version)}}, POD)
