"""Asks a server which resources it serves. Core: ``core/resource_index.py``.

Everything is asked at once, on first use, and kept; again when a name is not found, because a CRD may have been
installed meanwhile. A group that cannot be asked (an aggregated API server that is down) does not hide the others.

Source: client-go discovery/discovery_client.go (legacy discovery).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, final

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import NotFoundError
from deltaloop.client.core.resource_index import (
    DiscoveredResource,
    ResourceIndex,
    decode_core_versions,
    decode_groups,
    decode_resources,
)
from deltaloop.client.sender import RequestSender

_log = logging.getLogger("deltaloop.client")

_AT_ONCE: Final = 16


@final
class Discovery:
    """The resources of one server."""

    def __init__(self, sender: RequestSender) -> None:
        """Ask through ``sender``, when something is asked for."""
        self._sender = sender
        self._index: ResourceIndex | None = None
        self._lock = asyncio.Lock()

    async def find(self, name: str, *, timeout: float | None = None) -> ResourceType[Resource]:
        """Find a resource by any of its names.

        Args:
            name: Plural, singular, kind, short name, ``deployments.apps``, ``apps/v1/Deployment``, in any case.
            timeout: Seconds for each request.

        Raises:
            UnknownResourceError: If the server has none of that name; the message lists names like it.
            ApiError: The server refused.
            TransportError: There was no answer.
        """
        before = self._index
        if before is not None and (found := before.find(name)) is not None:
            return found
        index = await self._refreshed(before, timeout)
        found = index.find(name)
        if found is None:
            raise index.unknown(name)
        return found

    async def resources(self, *, timeout: float | None = None) -> ResourceIndex:
        """Return everything that is known, asking the server if nothing is."""
        return self._index or await self._refreshed(None, timeout)

    async def _refreshed(self, before: ResourceIndex | None, timeout: float | None) -> ResourceIndex:
        async with self._lock:
            if self._index is None or self._index is before:  # else another caller has just asked
                self._index = await self._ask(timeout)
            return self._index

    async def _ask(self, timeout: float | None) -> ResourceIndex:
        core = await self._body("/api", timeout)
        named = await self._body("/apis", timeout)
        paths = [(version, f"/api/{version}") for version in (decode_core_versions(core) if core else ())]
        paths += [
            (group_version, f"/apis/{group_version}") for group_version in (decode_groups(named) if named else ())
        ]
        at_once = asyncio.Semaphore(_AT_ONCE)
        async with asyncio.TaskGroup() as tasks:
            asked = [
                (group_version, tasks.create_task(self._ask_group(group_version, path, at_once, timeout)))
                for group_version, path in paths
            ]
        resources: list[DiscoveredResource] = []
        failed: list[str] = []
        for group_version, task in asked:
            found = task.result()
            if found is None:
                failed.append(group_version)
            else:
                resources.extend(found)
        _log.debug("discovery", extra={"resources": len(resources), "failed_groups": failed})
        return ResourceIndex(resources, failed_groups=failed)

    async def _ask_group(
        self, group_version: str, path: str, at_once: asyncio.Semaphore, timeout: float | None
    ) -> list[DiscoveredResource] | None:
        async with at_once:
            try:
                return decode_resources(group_version, (await self._sender.send("GET", path, timeout=timeout)).body)
            except NotFoundError:
                return []  # the group went away between the two requests
            except DeltaloopError as error:
                _log.warning(
                    "discovery of an API group failed",
                    extra={"group_version": group_version, "error_type": type(error).__name__},
                )
                return None

    async def _body(self, path: str, timeout: float | None) -> bytes | None:
        try:
            return (await self._sender.send("GET", path, timeout=timeout)).body
        except NotFoundError:
            return None  # a server without a core group, or with nothing else
