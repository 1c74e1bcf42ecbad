"""Detect objects whose condition Ready turns True before their children are ready, by the rules of kstatus.

Later changes of children do not count. Conditions with an outdated ``observedGeneration`` are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

import msgspec

from deltaloop.api.conditions import conditions_of, is_outdated
from deltaloop.api.kstatus import object_status
from deltaloop.api.resource import Resource

_READY: Final = "Ready"


@final
class EarlyClaim(msgspec.Struct, frozen=True):
    """Object that claimed to be ready before its child was ready; ``status`` is kstatus of the child."""

    kind: str
    key: str
    child_kind: str
    child: str
    status: str
    why: str

    @property
    def kinds(self) -> tuple[str, str]:
        return (self.kind, self.child_kind)

    def __str__(self) -> str:
        return f"{self.kind} {self.key} reports Ready while {self.child_kind} {self.child} is {self.status}: {self.why}"


@final
class ReadyClaims:
    def __init__(self) -> None:
        self._ready: set[str] = set()

    def turns(self, obj: Resource) -> bool:
        """Process a stored object, and return whether Ready has turned True."""
        says = any(
            each.get("type") == _READY and each.get("status") == "True" and not is_outdated(obj, each)
            for each in conditions_of(obj)
        )
        turned = says and obj.uid not in self._ready
        (self._ready.add if says else self._ready.discard)(obj.uid)
        return turned


def early_claims(owner: Resource, others: Iterable[Resource]) -> tuple[EarlyClaim, ...]:
    """Return the children of an object that are not ready."""
    found: list[EarlyClaim] = []
    for other in others:
        if not any(reference.uid == owner.uid for reference in other.owner_references):
            continue
        status = object_status(other)
        if not status.is_current:
            found.append(
                EarlyClaim(
                    kind=_kind_of(owner),
                    key=owner.key,
                    child_kind=_kind_of(other),
                    child=other.key,
                    status=str(status.status),
                    why=status.message,
                )
            )
    return tuple(found)


def _kind_of(obj: Resource) -> str:
    return str(obj.resource_type or f"{obj.api_version}/{obj.kind}")
