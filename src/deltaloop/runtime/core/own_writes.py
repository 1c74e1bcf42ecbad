"""Own writes of reconciles and the fields that they changed.

Lists of the same length are compared item by item (``spec.containers[0].image``), other lists as one value. Changes
that each write causes (version, generation, ``managedFields``) are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec

from deltaloop.api.redaction import redact
from deltaloop.api.resource import DECODE_ERRORS, Resource

MOST_PATHS: Final = 20
_VALUE_LENGTH: Final = 60
_DEEPEST: Final = 50
_PATHS: Final = 5
_BY_ITSELF: Final = ("resourceVersion", "generation", "managedFields")
_MISSING: Final = object()

PathParts: TypeAlias = "tuple[str | int, ...]"


class _WithStatus(msgspec.Struct, gc=False):
    status: Any = None


_decode_status: Final = msgspec.json.Decoder(_WithStatus).decode


class OwnWrite(msgspec.Struct, gc=False):
    """A successful write; ``version`` is empty if the object is gone.

    ``before`` is None if unknown, ``after`` if the object is gone. Both are ``forgotten`` to save memory.
    """

    verb: str
    kind: str
    key: str
    uid: str
    subresource: str = ""
    version: str = ""
    before: Resource | None = None
    after: Resource | None = None
    forgotten: bool = False

    @property
    def effective(self) -> bool:
        """Return whether the write may have changed the object, because only changes produce a new version."""
        return self.before is None or self.before.resource_version != self.version

    @property
    def is_known_change(self) -> bool:
        """Return whether the write certainly changed the object, which is unknown if no cache has it."""
        before = self.before
        return self.verb in ("create", "delete") if before is None else before.resource_version != self.version

    @property
    def paths(self) -> tuple[str, ...] | None:
        """Return the changed fields, at most a few; None if the objects were forgotten."""
        if self.forgotten:
            return None
        return tuple(map(path_text, changed_paths(self.before, self.after, limit=_PATHS))) if self.effective else ()

    @property
    def subject(self) -> tuple[str, str]:
        if self.verb == "create" and self.after is not None and b'"generateName"' in self.after.raw:
            metadata: Mapping[str, Any] = self.after.get("metadata") or {}
            prefix = metadata.get("generateName")
            if prefix:
                return self.kind, f"{self.after.namespace}/{prefix}*"
        return self.kind, self.key


def changed_paths(before: Resource | None, after: Resource | None, *, limit: int = MOST_PATHS) -> tuple[PathParts, ...]:
    """Return the paths of differing fields, at most ``limit``; empty if an object is missing."""
    if before is None or after is None:
        return ()
    return _changed(_fields(before), _fields(after), limit)


def changed_by_both(after_last: Resource | None, before: Resource, after: Resource | None) -> tuple[PathParts, ...]:
    """Return the paths of fields that changed before a write and by the write; empty if an object is missing."""
    if after_last is None or after is None:
        return ()
    first, second, third = _fields(after_last), _fields(before), _fields(after)
    for path, value in tuple(second.items()):
        if value in (first.get(path), third.get(path)):  # most writers change different fields
            del second[path]
            first.pop(path, None)
            third.pop(path, None)
    theirs = _changed(first, second, MOST_PATHS)
    return tuple(path for path in _changed(second, third, MOST_PATHS) if path in theirs) if theirs else ()


def is_same_status(before: Resource | None, after: Resource) -> bool:
    """Return whether both states have the same status; False if a state is missing or invalid."""
    try:
        return before is not None and status_of(before) == status_of(after)
    except DECODE_ERRORS:
        return False


def status_of(obj: Resource) -> object:
    """Return the status without decoding other fields, or raise one of ``DECODE_ERRORS``."""
    fields = obj._fields
    if fields is not None:  # most reconciles have read a field
        return fields["status"] if "status" in fields else None  # noqa: SIM401 - without a call
    stored = obj.stored
    return _decode_status(stored if type(stored) is bytes else obj.raw).status


def _fields(obj: Resource) -> dict[PathParts, object]:
    """Return the top-level fields and those of the metadata, except fields that each write changes."""
    fields: dict[PathParts, object] = {}
    for name, value in obj.to_dict().items():
        if name != "metadata":
            fields[(name,)] = value
            continue
        for inner, item in value.items():
            if inner not in _BY_ITSELF:
                fields[name, inner] = item
    return fields


def _changed(
    before: Mapping[PathParts, object], after: Mapping[PathParts, object], limit: int
) -> tuple[PathParts, ...]:
    found: list[PathParts] = []
    for path in dict.fromkeys((*before, *after)):
        _compare(before.get(path, _MISSING), after.get(path, _MISSING), path, found, limit)
    return tuple(found)


def path_text(path: PathParts) -> str:
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif "." in part or "[" in part:
            text += f"[{part!r}]"
        else:
            text += f".{part}" if text else part
    return text


def show_changes(before: Resource | None, after: Resource | None, paths: Sequence[PathParts]) -> tuple[str, ...]:
    """Describe changes, for example ``spec.replicas: 3 -> 5``. Values are redacted, and those of Secrets omitted."""
    if before is None or after is None or _is_secret(before) or _is_secret(after):
        return tuple(map(path_text, paths))
    # Redact the whole object, because neighboring fields can show that a value is secret.
    old, new = redact(before.to_dict()), redact(after.to_dict())
    return tuple(f"{path_text(path)}: {_short(_at(old, path))} -> {_short(_at(new, path))}" for path in paths)


def _is_secret(obj: Resource) -> bool:
    kind = obj.resource_type.kind if obj.resource_type is not None else obj.kind
    return kind == "Secret"


def _compare(before: object, after: object, path: PathParts, found: list[PathParts], limit: int) -> None:
    if len(found) >= limit or before == after:
        return
    if len(path) < _DEEPEST and isinstance(before, Mapping) and isinstance(after, Mapping):
        old, new = cast("Mapping[str, object]", before), cast("Mapping[str, object]", after)
        for name in dict.fromkeys((*old, *new)):
            _compare(old.get(name, _MISSING), new.get(name, _MISSING), (*path, name), found, limit)
        return
    if isinstance(before, list) and isinstance(after, list):
        items, others = cast("list[object]", before), cast("list[object]", after)
        if len(path) < _DEEPEST and len(items) == len(others):
            for index, (item, other) in enumerate(zip(items, others, strict=True)):
                _compare(item, other, (*path, index), found, limit)
            return
    found.append(path)


def _at(value: object, path: PathParts) -> object:
    for part in path:
        if isinstance(value, str):
            return value  # an ancestor is redacted
        try:
            value = cast("Any", value)[part]
        except (KeyError, IndexError, TypeError):
            return _MISSING
    return value


def _short(value: object) -> str:
    if value is _MISSING:
        return "nothing"
    text = str(value)
    return text if len(text) <= _VALUE_LENGTH else f"{text[: _VALUE_LENGTH - 3]}..."
