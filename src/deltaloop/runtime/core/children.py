"""The children of an object: what marks them, and which of them are an owner's.

A child is an object of a declared kind that ``ctx.children`` has applied. Its owner reference names the object that it
belongs to; a label with the owner's uid, and an annotation with the controller's name, tell it from what others made
for the same owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType

OWNER_UID: Final = "deltaloop.dev/owner-uid"
"""The label with the owner's uid."""
OWNER_INDEX: Final = OWNER_UID
"""The index of the caches of children, by the owner's uid."""
CHILD_VERBS: Final = ("create", "patch", "delete")
"""What is done to children, beside watching them."""


@final
@dataclass(frozen=True, slots=True)
class ChildKind:
    """A declared kind of children.

    Attributes:
        kind: The kind.
        namespace: The only namespace of its cache; None is the manager's.
    """

    kind: ResourceType[Any]
    namespace: str | None


def owner_uids(obj: Resource) -> tuple[str, ...]:
    """Return the uids by which an object is filed: of the owner that controls it, and of its label."""
    found = [reference.uid for reference in obj.owner_references if reference.controller]
    return tuple(dict.fromkeys((*found, *filter(None, [obj.labels.get(OWNER_UID)]))))
