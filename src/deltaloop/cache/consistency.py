"""Drives core/consistency.py: lists at exactly the version that a cache has come to, and compares.

It costs a full list, so nothing does it by itself. Kubernetes keeps old versions for some minutes only; a server that
has lost this one, or does not answer, is no finding.
"""

from __future__ import annotations

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.cache.core.consistency import ConsistencyReport, State, compare, state_of
from deltaloop.cache.listwatch import ListerWatcher
from deltaloop.client.resource_list import ResourceList

_PAGE_SIZE = 500


async def check_consistency(lister_watcher: ListerWatcher, cached: State, resource_version: str) -> ConsistencyReport:
    """Compare what was cached at a version with what the server had then.

    Args:
        lister_watcher: Whom to ask.
        cached: What was cached, by key; see ``state_of``.
        resource_version: At which version.

    Raises:
        GoneError: If the server does not have that version any more.
        ApiError, TransportError: If it does not answer.
    """
    first = ListOptions(resource_version=resource_version, resource_version_match="Exact", limit=_PAGE_SIZE)
    options, objects = first, list[Resource]()
    while True:
        page: ResourceList[Resource] = await lister_watcher.list(options)
        objects.extend(page.items)
        if not page.continue_ or page.continue_ == options.continue_:
            return compare(cached, state_of(objects), resource_version=resource_version)
        options = ListOptions(continue_=page.continue_, limit=_PAGE_SIZE)
