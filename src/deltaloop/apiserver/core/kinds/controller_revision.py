"""ControllerRevision: it holds something.

Source: Kubernetes pkg/apis/apps/validation; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.cells import NONE
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.json_values import at, items, text


def _controller(revision: Mapping[str, object]) -> str:
    owners = items(at(revision, "metadata", "ownerReferences"))
    owner = next((item for item in owners if at(item, "controller") is True), None)
    if owner is None:
        return NONE
    group = text(at(owner, "apiVersion")).rpartition("/")[0]
    return f"{text(at(owner, 'kind')).lower()}{group and f'.{group}'}/{text(at(owner, 'name'))}"


STRATEGY: Final = Strategy(cells={"Controller": _controller})
