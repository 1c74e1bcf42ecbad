"""What can be waited for: an object's existence, how far it has come, a status condition, or the value of a field.

A condition says whether an object fulfils it, what it is called, and what an object shows instead: for messages, so
without the object's data. The value of a field is data, the status of a status condition is not.

Source: kubectl pkg/cmd/wait/condition.go (generations), json.go; apiextensions ``Established``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, final

from deltaloop.api.conditions import STATUSES, Condition, conditions_of, is_outdated
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.kstatus import object_status
from deltaloop.api.path import Path
from deltaloop.api.resource import Resource


class WaitCondition(Protocol):
    """Something about an object that exists; anything with these three methods can be waited for."""

    def is_met(self, obj: Resource) -> bool:
        """Tell whether an object fulfils it."""
        ...

    def describe(self) -> str:
        """Return what is waited for, as a part of a sentence."""
        ...

    def shows(self, obj: Resource) -> str:
        """Return what an object shows instead, without its data."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Deleted:
    """The object is gone, or another one has its name.

    Attributes:
        uid: The object that has to go; empty means the one that is there when waiting begins.
    """

    uid: str = ""

    def describe(self) -> str:
        """Return what is waited for."""
        return "deletion"

    def shows(self, obj: Resource) -> str:
        """Return what an object shows instead."""
        if obj.deletion_timestamp is None:
            return "it is there, and nobody has asked for its deletion"
        return f"it is being deleted, held by {len(obj.finalizers)} finalizers"


@final
@dataclass(frozen=True, slots=True)
class Created:
    """The object exists."""

    def is_met(self, obj: Resource) -> bool:
        """Tell whether an object fulfils it: it does by being there."""
        return bool(obj.name)

    def describe(self) -> str:
        """Return what is waited for."""
        return "creation"

    def shows(self, obj: Resource) -> str:
        """Return what an object shows instead."""
        return f"it is there as {obj.name}"


@final
@dataclass(frozen=True, slots=True)
class StatusCondition:
    """An entry of ``status.conditions`` has a status; one about an older generation of the object does not count.

    Attributes:
        type: Such as ``Ready``; without regard to case, as in kubectl.
        status: ``True``, ``False`` or ``Unknown``.
    """

    type: str
    status: str = "True"

    def is_met(self, obj: Resource) -> bool:
        """Tell whether an object fulfils it."""
        found = self._find(obj)
        if found is None or is_outdated(obj, found):
            return False
        return _text(found.get("status")).lower() == self.status.lower()

    def describe(self) -> str:
        """Return what is waited for."""
        return f"condition {self.type}={self.status}"

    def shows(self, obj: Resource) -> str:
        """Return what an object shows instead."""
        found = self._find(obj)
        if found is None:
            return f"it has no condition {self.type}"
        status = _text(found.get("status"))
        known = status if status in STATUSES else "something else"
        old = ", of an older generation of the object" if is_outdated(obj, found) else ""
        return f"its condition {self.type} is {known}{old}"

    def _find(self, obj: Resource) -> Condition | None:
        wanted = self.type.lower()
        return next((each for each in conditions_of(obj) if _text(each.get("type")).lower() == wanted), None)


@final
@dataclass(frozen=True, slots=True)
class Current:
    """The object is as its spec asks for it, by the rules of kstatus for its kind."""

    def is_met(self, obj: Resource) -> bool:
        """Tell whether an object fulfils it."""
        return object_status(obj).is_current

    def describe(self) -> str:
        """Return what is waited for."""
        return "being current"

    def shows(self, obj: Resource) -> str:
        """Return what an object shows instead."""
        return f"it is {object_status(obj).status}"


@final
@dataclass(frozen=True, slots=True)
class FieldValue:
    """A field has a value; an object whose path leads nowhere does not have it.

    Attributes:
        path: Where the field is.
        value: What it has to be, compared as JSON: 1 is not "1"; None means any value at all.
    """

    path: Path
    value: Any = None

    def is_met(self, obj: Resource) -> bool:
        """Tell whether an object fulfils it."""
        found = self._get(obj)
        if self.value is None:
            return found is not None
        return isinstance(found, bool) == isinstance(self.value, bool) and bool(found == self.value)

    def describe(self) -> str:
        """Return what is waited for."""
        return f"a value of {self.path.text}" if self.value is None else f"a certain value of {self.path.text}"

    def shows(self, obj: Resource) -> str:
        """Return what an object shows instead."""
        return f"it has {'no' if self._get(obj) is None else 'another'} {self.path.text}"

    def _get(self, obj: Resource) -> Any:
        try:
            return self.path.get(obj)
        except MalformedObjectError:
            return None


def deleted(*, uid: str = "") -> Deleted:
    """Wait until an object is gone; one that was never there is gone, and so is one whose successor has its name.

    Args:
        uid: The object that has to go; by default the one that is there when waiting begins.
    """
    return Deleted(uid)


def created() -> Created:
    """Wait until an object exists."""
    return Created()


def status_condition(type: str, status: str = "True") -> StatusCondition:  # noqa: A002 - the wire name
    """Wait until an entry of ``status.conditions`` has a status, such as ``status_condition("Available")``."""
    return StatusCondition(type, status)


def ready() -> StatusCondition:
    """Wait for the status condition ``Ready``."""
    return StatusCondition("Ready")


def current() -> Current:
    """Wait until an object is as its spec asks for it, by the rules of kstatus: all replicas of a Deployment are there.

    What has no status yet and no rule of its own, such as a custom resource that no controller has seen, is current.
    """
    return Current()


def established() -> StatusCondition:
    """Wait until a CustomResourceDefinition is served: its status condition ``Established``."""
    return StatusCondition("Established")


def field_value(path: str, value: Any = None) -> FieldValue:
    """Wait until a field has a value, or any value at all, such as ``field_value("status.phase", "Running")``.

    Raises:
        InvalidPathError: If the text is not a path.
    """
    return FieldValue(Path(path), value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
