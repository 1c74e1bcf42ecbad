"""Why the embedded server answers some requests differently, where that is known and is for a later change.

``docs/reference/embedded-server.md`` has the same for readers. An explanation looks at what was asked and at the
fields of the answers, and at a text only where a text is what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from lab.corpus.comparing import Difference
from lab.corpus.outcomes import Outcome
from lab.corpus.requests import Request

_IDENTITY: Final = (".properties.apiVersion.description", ".properties.kind.description")
Holds = Callable[[Request, Difference, Outcome, Outcome], bool]


@dataclass(frozen=True)
class Explanation:
    """A reason, and which differences have it."""

    reason: str
    holds: Holds


def _described_columns(request: Request, difference: Difference, _ours: Outcome, _real: Outcome) -> bool:
    return request.action == "table of a CRD" and difference.at.endswith("].description")


def _described_inside(request: Request, difference: Difference, _ours: Outcome, _real: Outcome) -> bool:
    """Tell whether an embedded object's identity is described in other words."""
    return request.action == "OpenAPI v3" and difference.at.endswith(_IDENTITY)


def _scaled(request: Request, difference: Difference, _ours: Outcome, _real: Outcome) -> bool:
    return request.action == "get what is scaled" and ".managedFields" in difference.at


def _generation(request: Request, difference: Difference, _ours: Outcome, _real: Outcome) -> bool:
    """Tell whether writes of an object of a version that is not stored were counted otherwise."""
    return request.kind is not None and not request.kind.stored and difference.at == ".metadata.generation"


EXPLANATIONS: Final[Sequence[Explanation]] = (
    Explanation("the columns of a CRD's table are not described", _described_columns),
    Explanation("what identifies an embedded object is described as of a whole one", _described_inside),
    Explanation("who owns the rest of a spec that a write through a Scale has made is seen otherwise", _scaled),
    Explanation("writes in a version whose fields the stored one lacks are counted otherwise", _generation),
)


def explanation(request: Request, difference: Difference, ours: Outcome, real: Outcome) -> str:
    """Return the reason for a difference; empty if nobody knows one."""
    for each in EXPLANATIONS:
        if each.holds(request, difference, ours, real):
            return each.reason
    return ""
