"""Options of single verbs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from deltaloop.api.errors import InvalidInputError

PropagationPolicy = Literal["", "Orphan", "Background", "Foreground"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """How to delete; what is empty or None is left to the server.

    Attributes:
        grace_period_seconds: Time to end in good order; 0 deletes at once.
        propagation_policy: What becomes of the objects that this one owns.
        uid: Delete only the object with this uid, not a successor of the same name.
        resource_version: Delete only this version.
    """

    grace_period_seconds: int | None = None
    propagation_policy: PropagationPolicy = ""
    uid: str = ""
    resource_version: str = ""

    def __post_init__(self) -> None:
        """Refuse a negative grace period."""
        if self.grace_period_seconds is not None and self.grace_period_seconds < 0:
            raise InvalidInputError(
                f"DeleteOptions.grace_period_seconds is {self.grace_period_seconds}; 0 or more is needed"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the body of a delete request."""
        fields: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if self.grace_period_seconds is not None:
            fields["gracePeriodSeconds"] = self.grace_period_seconds
        if self.propagation_policy:
            fields["propagationPolicy"] = self.propagation_policy
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        if any(preconditions.values()):
            fields["preconditions"] = {name: value for name, value in preconditions.items() if value}
        return fields
