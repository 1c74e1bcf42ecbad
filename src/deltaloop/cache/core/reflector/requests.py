"""What a reflector asks a server for, in the terms of the API.

A real version with a limit is served from etcd, without one from the watch cache: so a list pages if any state will do,
if the server has shown that it pages in any case, or if ``ReflectorOptions.page_size`` is set.

Source: client-go tools/cache/reflector.go; Kubernetes API concepts, "Semantics for get and list".
"""

from __future__ import annotations

from typing import Final

from deltaloop.api.list_options import ListOptions

ANY_STATE: Final = ("", "0")
"""Versions that name no state: the newest one, and any one."""

PROBE: Final = ListOptions(limit=1)
"""Asks for the newest version, and as little else as possible."""

_DEFAULT_PAGE_SIZE: Final = 500
_MIN_WATCH_TIMEOUT: Final = 300.0


def first_page(version: str, *, page_size: int, server_pages: bool) -> ListOptions:
    """Return the beginning of a list.

    Args:
        version: The state must not be older than this.
        page_size: ``ReflectorOptions.page_size``; 0 lets the rules decide.
        server_pages: Whether the server answered a list at "0" in pages: it has no watch cache then.
    """
    if page_size:
        limit = page_size
    elif version in ANY_STATE or server_pages:
        limit = _DEFAULT_PAGE_SIZE
    else:
        limit = 0
    return ListOptions(resource_version=version, limit=limit)


def watch_from(version: str, *, timeout_seconds: int) -> ListOptions:
    """Return a watch that goes on from a version."""
    return ListOptions(resource_version=version, allow_watch_bookmarks=True, timeout_seconds=timeout_seconds)


def watch_list(version: str, *, timeout_seconds: int) -> ListOptions:
    """Return a watch that begins with the whole state, not older than a version."""
    return ListOptions(
        resource_version=version,
        resource_version_match="NotOlderThan",
        send_initial_events=True,
        allow_watch_bookmarks=True,
        timeout_seconds=timeout_seconds,
    )


def watch_timeout(min_watch_timeout: float, random: float) -> int:
    """Return for how many seconds to watch: from the least up to twice that, so that watches do not end together."""
    return int(max(min_watch_timeout, _MIN_WATCH_TIMEOUT) * (1.0 + random))
