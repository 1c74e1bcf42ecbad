"""Compute the merge patch for an edit of a typed object.

The class can have fewer fields than the server's object, so the patch contains only the differences of the edit. A
merge patch replaces lists, so lists are combined from the server's items and the edited items.

Source: https://www.rfc-editor.org/rfc/rfc7386.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeGuard, cast

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_comparing import same_json
from deltaloop.api.resource_type import ResourceType, definition_of

_MISSING: Final = object()
_NAMES: Final = ("name", "key", "type", "id", "kind", "port", "path", "host", "ip")
"""Fields that identify list items, if all items have a distinct value."""


def edit_patch(stored: Any, before: Any, after: Any, given: Any) -> dict[str, Any]:
    """Return the merge patch that repeats an edit on the stored object, or an empty dict without changes."""
    return _patch(stored, edited_object(stored, before, after, given))


def edited_object(stored: Any, before: Any, after: Any, given: Any) -> dict[str, Any]:
    """Return the stored object after the edit. The arguments are the same as for ``edit_patch``."""
    result: dict[str, Any] = _edited(stored, before, after, given)
    return result


def refuse_what_no_edit_changes(kind: ResourceType[Any], patch: dict[str, Any]) -> None:
    """Reject edits of the identity, and of a status that is a subresource, by InvalidArgumentError."""
    named = cast("dict[str, Any]", patch.get("metadata") or {})
    if wrong := [name for name in ("name", "namespace", "uid", "resourceVersion") if name in named]:
        raise InvalidArgumentError(f"must not change in an edit of {kind}.", argument=f"metadata.{wrong[0]}")
    if "status" in patch and kind.model is not None and definition_of(kind.model) is not None:
        raise InvalidArgumentError(
            f"must not change in an edit of {kind}. Use ctx.status in a reconcile, or update_status.", argument="status"
        )


def _edited(stored: Any, before: Any, after: Any, given: Any) -> Any:
    if same_json(before, after):
        return stored
    if _is_object(after) and _is_object(before) and _is_object(stored):
        return _edited_fields(stored, before, after, given)
    if _is_list(after) and _is_list(before) and _is_list(stored):
        return list(_edited_items(stored, before, after, given))
    return given


def _edited_fields(
    stored: dict[str, Any], before: dict[str, Any], after: dict[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    result = dict(stored)
    for name in dict.fromkeys([*before, *after]):
        was, now = before.get(name, _MISSING), after.get(name, _MISSING)
        if same_json(was, now):
            continue
        if now is _MISSING or now is None:
            result.pop(name, None)
        else:
            # A field that was reset to its default must be written explicitly.
            result[name] = _edited(stored.get(name, _MISSING), was, now, given.get(name, now))
    return result


def _edited_items(stored: list[Any], before: list[Any], after: list[Any], given: list[Any]) -> Iterator[Any]:
    free = dict.fromkeys(range(min(len(stored), len(before))))
    name = next((each for each in _NAMES if _tells_apart(before, each) and _tells_apart(after, each)), "")
    named = {before[each][name]: each for each in free} if name else {}
    for place, item in enumerate(after):
        if name:
            same = named.get(item[name])
        else:
            same = next((each for each in free if same_json(before[each], item)), None)
            if same is None and len(before) == len(after) and place in free:
                same = place
        if same is None:
            yield given[place]
        else:
            del free[same]
            yield _edited(stored[same], before[same], item, given[place])


def _tells_apart(listed: list[Any], name: str) -> bool:
    values = [item.get(name) for item in listed if _is_object(item)]
    found = [value for value in values if isinstance(value, str | int)]
    return len(found) == len(listed) == len(set(found))


def _patch(stored: Any, wanted: Any) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name in dict.fromkeys([*stored, *wanted]):
        was, now = stored.get(name, _MISSING), wanted.get(name, _MISSING)
        if now is _MISSING:
            result[name] = None
        elif was is _MISSING:
            result[name] = now
        elif not same_json(was, now):
            result[name] = _patch(was, now) if _is_object(was) and _is_object(now) else now
    return result


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
