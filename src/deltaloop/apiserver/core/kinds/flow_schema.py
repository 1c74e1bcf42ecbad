"""FlowSchema: the rows of a table come in the order in which the server tries FlowSchemas.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.json_values import at, integer, text


def _order(schema: Mapping[str, Any]) -> tuple[int, str]:
    return integer(at(schema, "spec", "matchingPrecedence")), text(at(schema, "metadata", "name"))


STRATEGY: Final = Strategy(row_order=_order)
