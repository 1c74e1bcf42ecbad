"""Effects that the reflector's state machine requests from its driver, and its verdicts on events.

The server serves a real version with a limit from etcd, and without a limit from its watch cache. So lists have pages
only if any state is acceptable, if the server pages anyway, or if ``page_size`` is set.

Source: client-go tools/cache/reflector.go; Kubernetes API concepts, "Semantics for get and list".
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from deltaloop._internal.pacing import Wait
from deltaloop.api.list_options import DEFAULT_PAGE_SIZE, ListOptions
from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import NOTHING_UNREAD, Unread

ANY_STATE: Final = ("", "0")
"""Versions that mean the newest state and any state."""

PROBE: Final = ListOptions(limit=1)
"""Smallest request that returns the newest version."""

_MIN_WATCH_TIMEOUT: Final = 300.0


def first_page(version: str, *, page_size: int, server_pages: bool) -> ListOptions:
    if page_size:
        limit = page_size
    elif version in ANY_STATE or server_pages:
        limit = DEFAULT_PAGE_SIZE
    else:
        limit = 0
    return ListOptions(resource_version=version, limit=limit)


def watch_from(version: str, *, timeout_seconds: int) -> ListOptions:
    return ListOptions(resource_version=version, allow_watch_bookmarks=True, timeout_seconds=timeout_seconds)


def watch_list(version: str, *, timeout_seconds: int) -> ListOptions:
    """Return the options of a watch that begins with the complete state at a version or newer."""
    return ListOptions(
        resource_version=version,
        resource_version_match="NotOlderThan",
        send_initial_events=True,
        allow_watch_bookmarks=True,
        timeout_seconds=timeout_seconds,
    )


def watch_timeout(min_watch_timeout: float, random: float) -> int:
    """Return a watch timeout in seconds, randomly up to twice the minimum, to spread the ends of watches."""
    return int(max(min_watch_timeout, _MIN_WATCH_TIMEOUT) * (1.0 + random))


class ListPage(msgspec.Struct, frozen=True):
    """Request one page of a list, then feed ``listed`` or ``list_failed``."""

    options: ListOptions


class OpenWatch(msgspec.Struct, frozen=True):
    """Open a watch and read it. Feed ``watch_opened`` and the events, or ``watch_failed``."""

    options: ListOptions


class OpenWatchList(msgspec.Struct, frozen=True):
    """Open a watch that begins with the complete state; feed ``watch_list_opened`` or ``watch_list_failed``.

    Then feed ``initial_event`` until it returns ``CompleteList``, and continue as for a watch, until ``give_up_at``.
    """

    options: ListOptions


class Probe(msgspec.Struct, frozen=True):
    """Request a list of one object to get the newest version. Feed ``probed`` or ``probe_failed``."""

    options: ListOptions


Effect: TypeAlias = "ListPage | OpenWatchList | OpenWatch | Probe | Wait"


class CompleteList(msgspec.Struct, frozen=True):
    """A complete list, which replaces the content of the store.

    Attributes:
        skipped: Number of omitted objects, which are unreadable or have no name.
        unread: Unreadable objects. They exist and must not be treated as deleted.
    """

    items: tuple[Resource, ...]
    resource_version: str
    skipped: int
    first_error: Exception | None = None
    unread: Unread = NOTHING_UNREAD


Verdict: TypeAlias = "Literal['apply', 'bookmark', 'skip', 'hold']"
