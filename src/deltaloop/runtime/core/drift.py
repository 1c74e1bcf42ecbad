"""Whether an object still is as it was applied: the fields that were applied, compared with what is there.

Fields that were not applied do not count: others own them. What the server makes of a field is taken into account as
far as the type tells (``deltaloop.schemas``): defaults, zeros that are left out, quantities, times, and which lists are
compared item by item. For a kind without a type, objects are compared field by field, but for label selectors, and all
else as it is.

What still differs in the server's answer to an apply is no drift: a webhook or a default wanted it so. Such differences
are remembered, and only others count.

Source: structured-merge-diff typed/merge.go, what an apply of the same object would change.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, final

from deltaloop.api.json_values import copied, is_list, is_mapping
from deltaloop.runtime.core.own_writes import PathParts
from deltaloop.schemas.completing import complete_object
from deltaloop.schemas.reading import read_object
from deltaloop.schemas.types import FREE, TypeNode

MISSING: Final = object()
_LIMIT: Final = 10_000
_SELECTOR: Final = frozenset({"matchLabels", "matchExpressions"})
"""The fields of a label selector: one value wherever it stands, so that it is taken for one in custom kinds, too."""


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """A field that is not as it was applied.

    Attributes:
        path: Where, such as ``("spec", "containers", 0, "image")``.
        live: What is there; ``MISSING`` if nothing is.
    """

    path: PathParts
    live: object

    def __repr__(self) -> str:
        return f"Difference({self.path})"  # without the value, which may be a secret


Differences = tuple[Difference, ...]


def differences(node: TypeNode, sent: dict[str, object], live: dict[str, object]) -> Differences:
    """Return where an object is not as it was applied.

    Args:
        node: The type of its kind.
        sent: What was applied.
        live: The object as it is.
    """
    found: list[Difference] = []
    _compare(node, sent, _as_stored(node, sent), live, (), found)
    return tuple(found)


def _as_stored(node: TypeNode, sent: dict[str, object]) -> dict[str, object]:
    """Return what the server makes of an object, as far as its type tells; what no server reads stays as it is."""
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
        return  # the server does not keep what is empty, and nothing in it was applied
    if is_mapping(sent) and is_mapping(stored) and is_mapping(live) and not is_whole:
        for name, value in sent.items():
            if value is not None:
                below = node.merge_fields.get(name) or node.element or FREE
                _compare(below, value, stored.get(name, MISSING), live.get(name, MISSING), (*path, name), found)
    elif node.merging == "keyed" and is_list(sent) and is_list(stored) and is_list(live):
        there = {_identity(node, item): item for item in live}
        for index, (item, kept) in enumerate(zip(sent, stored, strict=True)):
            other = there.get(_identity(node, kept), MISSING)
            _compare(node.element or FREE, item, kept, other, (*path, index), found)
    elif not (node.merging == "set" and is_list(stored) and is_list(live) and all(item in live for item in stored)):
        found.append(Difference(path, live))


def _identity(node: TypeNode, item: object) -> tuple[str, ...]:
    """Return what tells an item of a list from the others."""
    fields = item if is_mapping(item) else {}
    return tuple(repr(fields.get(key)) for key in node.keys)


def _same(one: object, other: object) -> bool:
    """Tell whether two values are the same JSON; 1 and 1.0 are, 1 and true are not."""
    if type(one) is str:
        return one == other
    if is_mapping(one) and is_mapping(other):
        return one.keys() == other.keys() and all(map(_same, one.values(), map(other.__getitem__, one)))
    if is_list(one) and is_list(other):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


@final
@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a child since it was applied or compared.

    Attributes:
        fingerprint: Of what was applied.
        version: Its version then.
        differences: Which fields the server keeps otherwise than they were applied.
    """

    fingerprint: str
    version: str
    differences: Differences


@final
class KnownChildren:
    """What is known of the children that were applied or compared last, by their uids."""

    def __init__(self, limit: int = _LIMIT) -> None:
        """Begin with none.

        Args:
            limit: How many are remembered. One that was forgotten is compared again, and applied once more if the
                server keeps it otherwise.
        """
        self._limit = limit
        self._known: OrderedDict[str, Known] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, uid: str, fingerprint: str) -> Known | None:
        """Return what is known of a child of which this was applied last."""
        known = self._known.get(uid)
        if known is None or known.fingerprint != fingerprint:
            return None
        self._known.move_to_end(uid)
        return known

    def remember(self, uid: str, known: Known) -> None:
        """Take what was found."""
        self._known[uid] = known
        self._known.move_to_end(uid)
        if len(self._known) > self._limit:
            self._known.popitem(last=False)

    def forget(self, uid: str) -> None:
        """Forget a child that is gone."""
        self._known.pop(uid, None)
