"""Comparison of applied fields with the present object.

Fields that were not applied do not count. The comparison accounts for the server's changes as far as the type describes
them (``deltaloop.schemas``).

Differences in the response to an apply are not drift, because a webhook or a default caused them. They are remembered,
and only other differences count.

Source: structured-merge-diff typed/merge.go, what an apply of the same object would change.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, final

import msgspec

from deltaloop.api.json_values import copied, is_list, is_mapping
from deltaloop.runtime.core.own_writes import PathParts
from deltaloop.schemas.completing import complete_object
from deltaloop.schemas.reading import read_object
from deltaloop.schemas.types import FREE, TypeNode

MISSING: Final = object()
_LIMIT: Final = 10_000
_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_SELECTOR: Final = frozenset({"matchLabels", "matchExpressions"})
"""Fields of a label selector, which is compared as a whole in custom kinds as well."""


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """A field that differs from the applied value; ``live`` is ``MISSING`` if the field is missing."""

    path: PathParts
    live: object

    def __repr__(self) -> str:
        return f"Difference({self.path})"  # without the value, which can be secret


Differences = tuple[Difference, ...]


def differences(node: TypeNode, sent: dict[str, object], live: dict[str, object]) -> Differences:
    """Return the fields that differ from the applied configuration."""
    found: list[Difference] = []
    _compare(node, sent, _as_stored(node, sent), live, (), found)
    return tuple(found)


def _as_stored(node: TypeNode, sent: dict[str, object]) -> dict[str, object]:
    """Return the object as the server stores it, as far as its type describes this; unreadable ones unchanged."""
    stored = copied(sent)
    if read_object(node, stored) is not None:
        return copied(sent)
    complete_object(node, stored)
    return stored


def _compare(
    node: TypeNode, sent: object, stored: object, live: object, path: PathParts, found: list[Difference]
) -> None:
    if _same(stored, live):
        return
    is_whole = node.merging == "scalar" or (node.merging == "free" and is_mapping(sent) and sent.keys() <= _SELECTOR)
    if not is_whole and stored is MISSING and sent in ({}, []):
        return  # the server drops empty values, and this value has no applied parts
    if is_mapping(sent) and is_mapping(stored) and is_mapping(live) and not is_whole:
        for name, value in sent.items():
            kept, other = stored.get(name, MISSING), live.get(name, MISSING)
            if value is not None and not (type(kept) is str and kept == other):
                below = node.merge_fields.get(name) or node.element or FREE
                _compare(below, value, kept, other, (*path, name), found)
    elif node.merging == "keyed" and is_list(sent) and is_list(stored) and is_list(live):
        there = {_identity(node, item): item for item in live}
        for index, (item, kept) in enumerate(zip(sent, stored, strict=True)):
            other = there.get(_identity(node, kept), MISSING)
            _compare(node.element or FREE, item, kept, other, (*path, index), found)
    elif not (node.merging == "set" and is_list(stored) and is_list(live) and all(item in live for item in stored)):
        found.append(Difference(path, live))


def _identity(node: TypeNode, item: object) -> tuple[str, ...]:
    fields = item if is_mapping(item) else {}
    return tuple(repr(fields.get(key)) for key in node.keys)


def _same(one: object, other: object) -> bool:
    """Return whether two values are the same JSON. 1 and 1.0 are equal, 1 and true are not."""
    if one != other:
        return False
    if one is other or type(one) is str or _encode(one) == _encode(other):
        return True
    if is_mapping(one) and is_mapping(other):
        return one.keys() == other.keys() and all(map(_same, one.values(), map(other.__getitem__, one)))
    if is_list(one) and is_list(other):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


@final
@dataclass(frozen=True, slots=True)
class Known:
    """Result of the last apply or comparison of a child."""

    fingerprint: str
    version: str
    differences: Differences


@final
class KnownChildren:
    """Latest results of applies and comparisons, by UID of the child."""

    def __init__(self, limit: int = _LIMIT) -> None:
        """Create an empty record.

        A forgotten child is compared again, and applied again if the server keeps other values.
        """
        self._limit = limit
        self._known: OrderedDict[str, Known] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, uid: str, fingerprint: str) -> Known | None:
        """Return the result for a child, if this configuration was applied last."""
        known = self._known.get(uid)
        if known is None or known.fingerprint != fingerprint:
            return None
        self._known.move_to_end(uid)
        return known

    def remember(self, uid: str, known: Known) -> None:
        self._known[uid] = known
        self._known.move_to_end(uid)
        if len(self._known) > self._limit:
            self._known.popitem(last=False)

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)
