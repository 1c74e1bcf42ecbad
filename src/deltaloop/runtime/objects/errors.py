"""Errors of writes to owned objects."""

from __future__ import annotations

from typing import Any, final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource_type import ResourceType
from deltaloop.workqueue.errors import TerminalError


@final
class InvalidChildrenError(InvalidArgumentError, TerminalError):
    """Desired children cannot be applied, and nothing was sent; the message names the child, the cause and a remedy.

    The key is parked, because the same children would be rejected again.
    """


@final
class NotOwnedError(DeltaloopError):
    """An object without a controlling owner has the name of a desired child; nothing was sent.

    Attributes:
        object: Reference of the object.
    """

    def __init__(self, obj: str) -> None:
        super().__init__(
            f"{obj} exists without a controlling owner. Pass adopt=True to take control, or choose another name."
        )
        self.object = obj


@final
class OwnerGoneError(TerminalError):
    """The owner of children is gone, being deleted, or replaced by an object of the same name; nothing more was sent.

    The next event of the owner reconciles it again.

    Attributes:
        owner: Kind and key of the owner.
        problem: State of the owner, for example ``is gone``.
    """

    def __init__(self, owner: str, problem: str) -> None:
        super().__init__(f"children of {owner} cannot be applied: it {problem}")
        self.owner: str = owner
        self.problem: str = problem


@final
class NoStatusSubresourceError(DeltaloopError):
    """The kind of an object has no status subresource, so its status was not written.

    Attributes:
        kind: Kind of the object.
    """

    def __init__(self, kind: ResourceType[Any]) -> None:
        super().__init__(
            f"{kind} has no status subresource. Add `subresources: {{status: {{}}}}` to the version of its "
            "CustomResourceDefinition, or do not write a status if the kind belongs to another program."
        )
        self.kind = kind
