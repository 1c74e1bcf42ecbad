"""Differences between two versions of an object, field by field and redacted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import is_mapping, items, mapping, text, value_type
from deltaloop.api.redaction import REDACTED, redact
from deltaloop.planning.core.result import FieldChange
from deltaloop.runtime.core.children import APPLIED_HASH

_OF_THE_SERVER: Final = frozenset({"resourceVersion", "generation", "managedFields", "selfLink", "uid"})
_HASH: Final = f'"{APPLIED_HASH}"'
_KEYS: Final = ("name", "type", "uid", "key", "containerPort", "port", "ip")


def field_changes(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[FieldChange, ...]:
    """Return the changed fields of an object with its kind, except for fields that the server maintains."""
    one, other = _without_own(before), _without_own(after)
    if one == other:
        return ()
    found = [*_changes("", one, other, redact(one), redact(other))]
    # The hash of applied fields changes with each applied field, so show the hash only if it changes alone.
    return tuple([change for change in found if not change.path.endswith(_HASH)] or found)


def _without_own(fields: Mapping[str, object]) -> dict[str, object]:
    metadata = {name: value for name, value in mapping(fields.get("metadata")).items() if name not in _OF_THE_SERVER}
    return {**fields, "metadata": metadata}


def _changes(path: str, before: object, after: object, shown: object, shown_after: object) -> Iterator[FieldChange]:
    if before == after:
        return
    if is_mapping(before) and is_mapping(after):
        for name in sorted({*before, *after}):
            below = f"{path}.{_step(name)}" if path else _step(name)
            parts = (mapping(shown).get(name), mapping(shown_after).get(name))
            yield from _changes(below, before.get(name), after.get(name), *parts)
        return
    if value_type(before) == value_type(after) == "array":
        one, other = _keyed(items(before)), _keyed(items(after))
        if one is not None and other is not None:
            hidden, hidden_after = _beside(one, shown), _beside(other, shown_after)
            for key in dict.fromkeys((*one, *other)):
                yield from _changes(
                    f"{path}[{key}]", one.get(key), other.get(key), hidden.get(key), hidden_after.get(key)
                )
            return
    same = shown == shown_after
    yield FieldChange(path=path, before=shown, after=shown_after, redacted=same or REDACTED in (shown, shown_after))


def _step(name: str) -> str:
    return f'"{name}"' if "." in name else name


def _keyed(found: list[object]) -> dict[str, object] | None:
    """Return the items of a list by name or type; None if the items have neither."""
    if not all(is_mapping(each) for each in found):
        return None
    for key in _KEYS:
        names = [text(mapping(each).get(key)) or str(mapping(each).get(key, "")) for each in found]
        if all(names) and len({*names}) == len(names):
            return {f"{key}={name}": each for name, each in zip(names, found, strict=True)}
    return None


def _beside(keyed: Mapping[str, object], shown: object) -> dict[str, object]:
    return dict(zip(keyed, items(shown), strict=False))
