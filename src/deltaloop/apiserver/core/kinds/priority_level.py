"""PriorityLevelConfiguration and FlowSchema: which requests the server answers first.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.cells import NONE, condition, number_at, text_at
from deltaloop.apiserver.core.strategy import Cell, Strategy
from deltaloop.schemas.json_values import at, integer

_QUEUING: Final = ("spec", "limited", "limitResponse", "queuing")


def _number(name: str, *way: str) -> Cell:
    """A number of a part that need not be there."""

    def cell(level: Mapping[str, object]) -> object:
        part = at(level, *way)
        return NONE if part is None else integer(at(part, name))

    return cell


STRATEGY: Final = Strategy(
    cells={
        "Type": "spec.type",
        "NominalConcurrencyShares": _number("nominalConcurrencyShares", "spec", "limited"),
        "Queues": _number("queues", *_QUEUING),
        "HandSize": _number("handSize", *_QUEUING),
        "QueueLengthLimit": _number("queueLengthLimit", *_QUEUING),
    }
)
FLOW_SCHEMA: Final = Strategy(
    cells={
        "PriorityLevel": "spec.priorityLevelConfiguration.name",
        "MatchingPrecedence": number_at("spec.matchingPrecedence"),
        "DistinguisherMethod": text_at("spec.distinguisherMethod.type", NONE),
        "MissingPL": lambda schema: condition(schema, "Dangling") or "?",
    }
)
