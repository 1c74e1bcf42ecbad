"""What a user can do about an error that comes from outside: added to it as a note, with the controller that it meets.

The server and the caches say what is wrong, and do not know which controller wanted it. Logs and ``deltaloop run`` show
notes beside the error's text.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from deltaloop._internal.tracebacks import leaves_of, notes_of
from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.status import ForbiddenError, NotFoundError
from deltaloop.cache.errors import CacheSyncError


def note_unknown_kind(error: UnknownResourceError, places: Sequence[str]) -> None:
    """Say where a kind is named that the server does not know, such as ``owns= of controller 'foo'``."""
    error.add_note(f"it is named in {' and '.join(places)}")


def note_empty_caches(error: CacheSyncError, users: Mapping[str, Collection[str]]) -> None:
    """Say which controllers need the caches that cannot fill, and how they would.

    Args:
        error: Why caches are not full.
        users: Names of controllers, by the name of the cache.
    """
    for failure in error.failures:
        who = " and ".join(map(repr, sorted(users.get(failure.resource, ()))))
        remedy = ""
        if isinstance(failure.last_error, NotFoundError):
            remedy = ": install its CustomResourceDefinition, or mend the kind's name"
        elif isinstance(failure.last_error, ForbiddenError):
            remedy = ": grant the role that `deltaloop generate rbac MODULE` prints"
        if who:
            error.add_note(f"{failure.resource} is needed by controller {who}{remedy}")


def note_missing_right(error: BaseException, controller: str) -> None:
    """Name the remedy for each request that RBAC denied. Admission also answers 403, but no role helps there."""
    note = (
        f"if controller {controller!r} lacks a right: declare what it does (writes=[...]) and grant the role "
        "that `deltaloop generate rbac MODULE` prints"
    )
    for leaf in leaves_of(error):
        if isinstance(leaf, ForbiddenError) and _is_of_authorizer(str(leaf)) and note not in notes_of(leaf):
            leaf.add_note(note)


def _is_of_authorizer(message: str) -> bool:
    """Return whether a message has the form `User "x" cannot list resource "pods" in API group ""`."""
    return '" cannot ' in message.partition('User "')[2]
