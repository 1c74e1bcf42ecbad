"""What programs say of objects: whether Ready is said of one while what belongs to it is not, by kstatus' rules.

Only the moment counts at which Ready turns True: what a child does later, its owner can know only later. And only what
is written of the object as it is: an ``observedGeneration`` of before says nothing of today.
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
    """An object of which Ready was said before a child of it was.

    Attributes:
        kind: The object's, with its group and version.
        key: Of the object.
        child_kind: The child's.
        child: Its key.
        status: How far it had come, as kstatus names it.
        why: Why, for people.
    """

    kind: str
    key: str
    child_kind: str
    child: str
    status: str
    why: str

    @property
    def kinds(self) -> tuple[str, str]:
        """The two kinds: what a program does of one object, it does of another."""
        return (self.kind, self.child_kind)

    def __str__(self) -> str:
        return f"{self.kind} {self.key} says Ready while {self.child_kind} {self.child} is {self.status}: {self.why}"


@final
class ReadyClaims:
    """Of which objects Ready has been said in a run."""

    def __init__(self) -> None:
        """Know of none."""
        self._ready: set[str] = set()

    def turns(self, obj: Resource) -> bool:
        """Take an object as it was stored, and tell whether Ready has turned True in it.

        Args:
            obj: The object after a write.
        """
        says = any(
            each.get("type") == _READY and each.get("status") == "True" and not is_outdated(obj, each)
            for each in conditions_of(obj)
        )
        turned = says and obj.uid not in self._ready
        (self._ready.add if says else self._ready.discard)(obj.uid)
        return turned


def early_claims(owner: Resource, others: Iterable[Resource]) -> tuple[EarlyClaim, ...]:
    """Return what is wrong with Ready being said of an object now.

    Args:
        owner: The object.
        others: What its children are among.
    """
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
