"""Comparison of the results of a polling function: keys, each with a value such as a version or a hash.

Invalid results are ignored, so the next result is compared with the last valid result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import cast, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.runtime.core.requests import Request


@final
class Polled:
    def __init__(self) -> None:
        self._found: dict[str, object] = {}

    def changes(self, answer: object) -> list[tuple[str, str]]:
        """Store a result, and return the keys that differ from the last one as ``new``, ``changed`` or ``gone``.

        Raises InvalidArgumentError if it is not a mapping, and InvalidKeyError if a string in it is not a key.
        """
        found = dict(_items(answer))
        changes = [
            (key, "new" if key not in self._found else "changed")
            for key, value in found.items()
            if key not in self._found or not _same(self._found[key], value)
        ]
        changes += [(key, "gone") for key in self._found if key not in found]
        self._found = {key: _kept(value) for key, value in found.items()}
        return changes


def _items(answer: object) -> Iterator[tuple[str, object]]:
    if not isinstance(answer, Mapping):
        raise InvalidArgumentError(
            f"of Periodic(..., changed_only=True) must return a dict of keys and values to compare, such as "
            f"{{'default/main': etag}}, got {type(answer).__name__}.",
            argument="polling function",
        )
    for key, value in cast("Mapping[object, object]", answer).items():
        if isinstance(key, Request):
            yield key.key, value
        elif isinstance(key, str):
            yield Request.from_key(key).key, value
        else:
            raise InvalidArgumentError(
                f"must be a Request or a string such as 'default/main', got {key!r}.", argument="polled key"
            )


def _same(old: object, new: object) -> bool:
    return old is new or bool(old == new)


def _kept(value: object) -> object:
    """Return the value to compare with later: a copy if it can change in place, for example a dict."""
    try:
        hash(value)
    except TypeError:
        return deepcopy(value)
    return value
