"""Notes that add the affected controller and a remedy to errors of the server and the caches."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from deltaloop._internal.tracebacks import leaves_of, notes_of
from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.status import ForbiddenError, NotFoundError
from deltaloop.cache.errors import CacheSyncError


def note_unknown_kind(error: UnknownResourceError, places: Sequence[str]) -> None:
    """Add the places that name the unknown kind, such as ``owns= of controller 'foo'``."""
    error.add_note(f"it is named in {' and '.join(places)}")


def note_empty_caches(error: CacheSyncError, users: Mapping[str, Collection[str]]) -> None:
    """Add the controllers that need the unfilled caches, and the remedy."""
    for failure in error.failures:
        who = " and ".join(map(repr, sorted(users.get(failure.resource, ()))))
        remedy = ""
        if isinstance(failure.last_error, NotFoundError):
            remedy = ": install its CustomResourceDefinition, or correct the name of the kind"
        elif isinstance(failure.last_error, ForbiddenError):
            remedy = ": grant the role of `deltaloop generate rbac MODULE`"
        if who:
            error.add_note(f"{failure.resource} is needed by controller {who}{remedy}")


def note_missing_right(error: BaseException, controller: str) -> None:
    """Add the remedy to each RBAC denial. Admission also returns 403, but roles do not help there."""
    note = (
        f"if controller {controller!r} lacks a permission, declare the access (writes=[...]) and grant the role "
        "of `deltaloop generate rbac MODULE`"
    )
    for leaf in leaves_of(error):
        if isinstance(leaf, ForbiddenError) and _is_of_authorizer(str(leaf)) and note not in notes_of(leaf):
            leaf.add_note(note)


def _is_of_authorizer(message: str) -> bool:
    """Return whether a message has the form `User "x" cannot list resource "pods" in API group ""`."""
    return '" cannot ' in message.partition('User "')[2]
