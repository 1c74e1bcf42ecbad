"""Merge patches for status changes of a reconcile.

Fields are set as a whole, conditions one by one. Two kinds of differences are included in patches but do not cause one,
because they would cause one each time:

* values that the server dropped or restored after an earlier write, as its schema requires (``Kept``);
* an ``observedGeneration`` where there was none, because the schema may lack it.

Results for an older generation than that of the present status are not written.

Invariants: after the patch, the status contains all changes. A second patch for the same changes is empty.
``lastTransitionTime`` changes exactly when a condition's status changes.

Source: apimachinery pkg/api/meta ``SetStatusCondition``; JSON merge patch (RFC 7386).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, final

import msgspec

from deltaloop._internal.tracebacks import leaves_of
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import copied, integer, is_mapping, items, mapping, text, type_of
from deltaloop.api.json_writing import write_json
from deltaloop.api.redaction import redact

Fields: TypeAlias = dict[str, object]
FieldPath: TypeAlias = tuple[str, ...]

_CONDITIONS: Final = "conditions"
_OBSERVED: Final = "observedGeneration"
_EACH: Final = "*"
"""Path part that stands for each item of a list."""
_OBSERVING: Final = frozenset[FieldPath]({(_OBSERVED,), (_CONDITIONS, _EACH, _OBSERVED)})
_OURS: Final = {
    _CONDITIONS: "use set_condition and remove_condition",
    _OBSERVED: "deltaloop sets it to the generation of the object",
}
_LONGEST_ERROR: Final = 500
_CONTAINERS: Final = (dict, list)


@final
class Kept:
    """The server's handling of the statuses of one kind, learned from its responses."""

    __slots__ = ("_dropped", "_filled")

    def __init__(self) -> None:
        self._dropped: set[FieldPath] = set()
        self._filled: set[FieldPath] = set()

    def learn(self, sent: Mapping[str, object], stored: Mapping[str, object]) -> list[str]:
        """Learn from the result of a patch, and return the user's fields that were dropped, each once."""
        if not self._dropped and {**stored, **sent} == stored:
            return []  # common case: the server kept all values
        found: list[FieldPath] = []
        self._learn(sent, stored, (), found)
        return [".".join(("status", *path)).replace(".*", "[]") for path in found if path not in _OBSERVING]

    def _learn(self, sent: object, stored: object, path: FieldPath, found: list[FieldPath]) -> None:
        if is_mapping(sent):
            there = mapping(stored)
            for name, value in sent.items():
                inner = (*path, name)
                if value is None:
                    if name in there:
                        self._filled.add(inner)
                elif name in there:
                    self._dropped.discard(inner)
                    if type(value) in _CONTAINERS:
                        self._learn(value, there[name], inner, found)
                elif inner not in self._dropped:
                    self._dropped.add(inner)
                    found.append(inner)
        else:
            for each, other in zip(items(sent), items(stored), strict=False):
                self._learn(each, other, (*path, _EACH), found)

    def difference(self, wanted: object, present: object, path: FieldPath) -> tuple[object, bool] | None:
        """Return the merge patch from ``present`` to ``wanted`` and whether it must be sent; None if they are equal."""
        kind = type(wanted)
        if kind is not type(present) or kind not in _CONTAINERS:
            same = (kind is bool) == (type(present) is bool) and wanted == present
            return None if same else (wanted, True)
        if kind is dict:
            return self._difference_of_fields(mapping(wanted), mapping(present), path)
        new, old = items(wanted), items(present)
        if len(new) != len(old):
            return wanted, True
        found = [self.difference(each, other, (*path, _EACH)) for each, other in zip(new, old, strict=True)]
        return (wanted, any(each[1] for each in found if each)) if any(found) else None

    def _difference_of_fields(self, wanted: Fields, present: Fields, path: FieldPath) -> tuple[Fields, bool] | None:
        patch: Fields = {}
        due = False
        for name, value in wanted.items():
            found = self.difference_of_field(value, present, (*path, name))
            if found is not None:
                patch[name] = found[0]
                due |= found[1]
        for name in present.keys() - wanted.keys():
            patch[name] = None
            due |= (*path, name) not in self._filled
        return (patch, due) if patch else None

    def difference_of_field(self, value: object, present: Fields, path: FieldPath) -> tuple[object, bool] | None:
        name = path[-1]
        if value is None:
            return (None, path not in self._filled) if name in present else None
        if name not in present:
            return value, path not in self._dropped and path not in _OBSERVING
        return self.difference(value, present[name], path)


@final
class StatusChange(msgspec.Struct, eq=False):
    """Status changes of a reconcile for one object; a condition of None is removed.

    ``generation`` is 0 for kinds without generations.
    """

    generation: int
    _fields: Fields = {}
    conditions: dict[str, Fields | None] = {}

    def set_field(self, name: str, value: Any) -> None:
        """Set a field, replacing its whole value; None removes it.

        Raises InvalidArgumentError if it must be set in another way, and MalformedObjectError if JSON cannot represent
        it.
        """
        if name in _OURS:
            raise InvalidArgumentError(f"must not be set: {_OURS[name]}.", argument=f"status.{name}")
        kind = type_of(value)
        if kind is bool or value is None or (kind is str and value.isascii()):
            self._fields[name] = value
        else:
            self._fields[name] = _without_nulls(msgspec.json.decode(write_json(value, f"status.{name}")))

    def set_condition(self, type_name: str, status: str | bool, *, reason: str, message: str) -> None:
        """Set a condition, or raise InvalidArgumentError if Kubernetes does not allow it."""
        from deltaloop.api.conditions import check_condition

        said = str(status) if isinstance(status, bool) else status
        check_condition(type_name, said, reason=reason, message=message)
        entry: Fields = {"type": type_name, "status": said, "reason": reason, "message": message}
        self.conditions[type_name] = entry | ({_OBSERVED: self.generation} if self.generation else {})

    def remove_condition(self, type_name: str) -> None:
        """Remove a condition, or raise InvalidArgumentError if its type is invalid."""
        from deltaloop.api.conditions import check_condition_type

        check_condition_type(type_name)
        self.conditions[type_name] = None

    def of_error(self, type_name: str, error: Exception) -> StatusChange:
        reason, message = describe_error(error)
        change = StatusChange(self.generation)
        change.set_condition(type_name, "False", reason=reason, message=message)
        return change

    def shown(self, present: Fields) -> Fields:
        """Return the pending fields of a status, with the conditions of ``present``."""
        there = {**present, **self._fields}
        return {name: value for name, value in there.items() if value is not None}

    def shown_condition(self, type_name: str, present: Fields) -> Mapping[str, object] | None:
        """Return a pending condition without its times; None if there is none."""
        if type_name in self.conditions:
            return self.conditions[type_name]
        entries = map(mapping, items(present.get(_CONDITIONS)))
        return next((entry for entry in entries if entry.get("type") == type_name), None)

    def is_outdated(self, present: Fields, *, generation: int, observing: bool) -> bool:
        """Return whether the present status already reports the same for a newer generation.

        Generations higher than the object's are ignored, because they can come from a backup.
        """
        if not 0 < self.generation < generation:
            return False
        conditions = [mapping(entry) for entry in items(present.get(_CONDITIONS))]
        said = [integer(each.get(_OBSERVED)) for each in conditions if text(each.get("type")) in self.conditions]
        said += [integer(present.get(_OBSERVED))] if observing else []
        return self.generation < max(said, default=0) <= generation

    def patch(self, present: Fields, kept: Kept, now: str, observing: bool) -> Fields | None:
        """Return the status part of a merge patch; None if nothing changes.

        ``now`` is the time for conditions whose status changes. ``observing`` means that ``status.observedGeneration``
        belongs to this controller.
        """
        wanted = self._fields
        if self.conditions:
            conditions = self._merged_conditions(items(present.get(_CONDITIONS)), now)
            if conditions or _CONDITIONS in present:
                wanted = {**wanted, _CONDITIONS: conditions}
        if self.generation and observing:
            there = present[_OBSERVED] if _OBSERVED in present else None  # noqa: SIM401 - without a call
            if there != self.generation or type(there) is not int:
                wanted = {**wanted, _OBSERVED: self.generation}
        patch: Fields = {}
        due = False
        for name, value in wanted.items():
            there = present[name] if name in present else None  # noqa: SIM401 - same
            kind = type(value)
            if kind is type(there) and (kind is str or kind is int or kind is bool):
                if value != there:
                    patch[name], due = value, True
                continue
            found = kept.difference_of_field(value, present, (name,))
            if found is not None:
                patch[name] = found[0]
                due |= found[1]
        return patch if due else None

    def _merged_conditions(self, present: list[object], now: str) -> list[object]:
        """Return all conditions in their order: others unchanged, own conditions updated, new conditions last."""
        merged: list[object] = []
        seen: set[str] = set()
        for entry in present:
            type_name = text(mapping(entry).get("type"))
            if type_name not in self.conditions:
                merged.append(entry)
                continue
            wanted = self.conditions[type_name]
            if wanted is not None and type_name not in seen:
                merged.append(_merged(mapping(entry), wanted, now))
            seen.add(type_name)
        new = [each for name, each in self.conditions.items() if each is not None and name not in seen]
        return copied(merged + [_merged({}, each, now) for each in new])


def _merged(present: Fields, wanted: Fields, now: str) -> Fields:
    since = text(present.get("lastTransitionTime"))
    is_same = bool(since) and present.get("status") == wanted["status"]
    return {**present, **wanted, "lastTransitionTime": since if is_same else now}


def describe_error(error: Exception) -> tuple[str, str]:
    """Return reason and message of a condition for an error: its type, and its redacted and shortened text.

    For groups, the message contains all errors.
    """
    from deltaloop.api.conditions import is_reason

    errors = [*leaves_of(error)]
    first = errors[0] if len(errors) == 1 else error
    reason = type(first).__name__.lstrip("_")
    texts = [str(each) if len(errors) == 1 else f"{type(each).__name__}: {each}" for each in errors]
    message = " ".join(str(redact("; ".join(texts))).split())
    if len(message) > _LONGEST_ERROR:
        message = message[: _LONGEST_ERROR - 1] + "…"
    return (reason if is_reason(reason) else "Error"), message


def _without_nulls(value: object) -> object:
    if is_mapping(value):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in items(value)] if type_of(value) is list else value
