"""What a polling function found, and which keys are new, changed or gone since it found something last.

It names keys and, for each, something to compare: a version, an etag, a hash, or the whole thing. The first answer is
all new: what changed while nobody polled is not known. An answer that cannot be read changes nothing here, so that the
next one is compared with the last good one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import cast, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.runtime.core.requests import Request


@final
class Polled:
    """The last answer of one polling function."""

    def __init__(self) -> None:
        """Begin without an answer."""
        self._found: dict[str, object] = {}

    def changes(self, answer: object) -> list[tuple[str, str]]:
        """Take an answer; return the keys that differ from the last one, and how: ``new``, ``changed`` or ``gone``.

        Args:
            answer: A mapping from keys or requests to what is compared by ``==``.

        Raises:
            InvalidArgumentError: If it is no such mapping.
            InvalidKeyError: If a text in it is no key.
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
            f"the polling function of Periodic(..., changed_only=True) returned a {type(answer).__name__}; return a "
            "dict from each key to what is compared, such as {'default/main': etag}"
        )
    for key, value in cast("Mapping[object, object]", answer).items():
        if isinstance(key, Request):
            yield key.key, value
        elif isinstance(key, str):
            yield Request.from_key(key).key, value
        else:
            raise InvalidArgumentError(
                f"a polled key is {key!r}; a Request is needed, or a text such as 'default/main'"
            )


def _same(old: object, new: object) -> bool:
    return old is new or bool(old == new)


def _kept(value: object) -> object:
    """Return what a later answer is compared with: a copy of what may change in place, such as a dict."""
    try:
        hash(value)
    except TypeError:
        return deepcopy(value)
    return value
