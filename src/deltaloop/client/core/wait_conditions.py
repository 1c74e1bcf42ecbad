"""Conditions for ``wait_for``.

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
    """Condition of an existing object.

    You can implement this protocol for your own conditions.
    """

    def is_met(self, obj: Resource) -> bool:
        """Return whether an object fulfills the condition."""
        ...

    def describe(self) -> str:
        """Return the name of the condition for messages."""
        ...

    def shows(self, obj: Resource) -> str:
        """Return the state of an object for messages, without the object's data."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Deleted:
    """Condition that an object was deleted, or replaced by an object of the same name.

    Attributes:
        uid: UID of the object. Empty means the object that exists when the wait begins.
    """

    uid: str = ""

    def describe(self) -> str:
        """Return the name of the condition."""
        return "deletion"

    def shows(self, obj: Resource) -> str:
        """Return the state of an object."""
        if obj.deletion_timestamp is None:
            return "it exists and is not being deleted"
        return f"it is being deleted and has {len(obj.finalizers)} finalizers"


@final
@dataclass(frozen=True, slots=True)
class Created:
    """Condition that an object exists."""

    def is_met(self, obj: Resource) -> bool:
        """Return whether an object exists."""
        return bool(obj.name)

    def describe(self) -> str:
        """Return the name of the condition."""
        return "creation"

    def shows(self, obj: Resource) -> str:
        """Return the state of an object."""
        return f"it exists as {obj.name}"


@final
@dataclass(frozen=True, slots=True)
class StatusCondition:
    """Condition that an entry of ``status.conditions`` has a status.

    An entry that describes an older generation of the object does not count.

    Attributes:
        type: Condition type, such as ``Ready``, case-insensitive as in kubectl.
        status: ``True``, ``False`` or ``Unknown``.
    """

    type: str
    status: str = "True"

    def is_met(self, obj: Resource) -> bool:
        """Return whether an object fulfills the condition."""
        found = self._find(obj)
        if found is None or is_outdated(obj, found):
            return False
        return _text(found.get("status")).lower() == self.status.lower()

    def describe(self) -> str:
        """Return the name of the condition."""
        return f"condition {self.type}={self.status}"

    def shows(self, obj: Resource) -> str:
        """Return the state of an object."""
        found = self._find(obj)
        if found is None:
            return f"it has no condition {self.type}"
        status = _text(found.get("status"))
        known = status if status in STATUSES else "something else"
        old = ", for an older generation of the object" if is_outdated(obj, found) else ""
        return f"its condition {self.type} is {known}{old}"

    def _find(self, obj: Resource) -> Condition | None:
        wanted = self.type.lower()
        return next((each for each in conditions_of(obj) if _text(each.get("type")).lower() == wanted), None)


@final
@dataclass(frozen=True, slots=True)
class Current:
    """Condition that an object matches its spec by the kstatus rules for its kind."""

    def is_met(self, obj: Resource) -> bool:
        """Return whether an object is current."""
        return object_status(obj).is_current

    def describe(self) -> str:
        """Return the name of the condition."""
        return "being current"

    def shows(self, obj: Resource) -> str:
        """Return the state of an object."""
        return f"it is {object_status(obj).status}"


@final
@dataclass(frozen=True, slots=True)
class FieldValue:
    """Condition that a field has a value.

    An object without the field does not fulfill it.

    Attributes:
        path: Path of the field.
        value: Expected value, compared as JSON, so 1 is not "1". None accepts all values except null.
    """

    path: Path
    value: Any = None

    def is_met(self, obj: Resource) -> bool:
        """Return whether an object fulfills the condition."""
        found = self._get(obj)
        if self.value is None:
            return found is not None
        return isinstance(found, bool) == isinstance(self.value, bool) and bool(found == self.value)

    def describe(self) -> str:
        """Return the name of the condition."""
        return f"a value of {self.path.text}" if self.value is None else f"a matching value of {self.path.text}"

    def shows(self, obj: Resource) -> str:
        """Return the state of an object."""
        return f"it has {'no' if self._get(obj) is None else 'another'} {self.path.text}"

    def _get(self, obj: Resource) -> Any:
        try:
            return self.path.get(obj)
        except MalformedObjectError:
            return None


def deleted(*, uid: str = "") -> Deleted:
    """Wait until an object does not exist, or was replaced by an object of the same name.

    If the object does not exist at the beginning, the condition is fulfilled.

    Args:
        uid: UID of the object. By default, the object that exists when the wait begins.
    """
    return Deleted(uid)


def created() -> Created:
    """Wait until an object exists."""
    return Created()


def status_condition(type: str, status: str = "True") -> StatusCondition:  # noqa: A002 - the wire name
    """Wait until an entry of ``status.conditions`` has a status, for example ``status_condition("Available")``."""
    return StatusCondition(type, status)


def ready() -> StatusCondition:
    """Wait until the status condition ``Ready`` is true."""
    return StatusCondition("Ready")


def current() -> Current:
    """Wait until an object matches its spec by the rules of kstatus, for example until a Deployment is complete.

    An object without a status and without a rule for its kind is current, for example a new custom resource.
    """
    return Current()


def established() -> StatusCondition:
    """Wait until a CustomResourceDefinition is served (status condition ``Established``)."""
    return StatusCondition("Established")


def field_value(path: str, value: Any = None) -> FieldValue:
    """Wait until a field has a value, for example ``field_value("status.phase", "Running")``.

    Without ``value``, wait until the field has any value except null.

    Raises:
        InvalidPathError: If the path cannot be parsed.
    """
    return FieldValue(Path(path), value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
