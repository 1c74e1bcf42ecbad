"""Asks a server which resources it serves.

Everything is asked at once, on first use, and kept; again when a name is not found, because a CRD may have been
installed meanwhile: three times in a row, then once in five seconds, so that a name that exists nowhere does not become
a load. A 404 about a path, not about an object, makes it ask again as well: a version may have been removed from a CRD,
or a CRD may have been created again with another plural or scope.

``/api`` and ``/apis`` are asked for in the aggregated form, which says everything in one answer. Where a server answers
in the legacy form, each group version is asked for its resources. The same is done for a version that the aggregated
answer calls stale, and for ``/api`` or ``/apis`` alone if its aggregated answer cannot be read. A group that cannot be
asked (an aggregated API server that is down) does not hide the others: it is named in a warning and in errors about
unknown names, and what was known of it before stays.

Source: client-go discovery/discovery_client.go, discovery/aggregated_discovery.go; restmapper (``deferredDiscovery``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final

from deltaloop._internal.pacing import TokenBucket
from deltaloop.api.errors import DeltaloopError, MalformedObjectError, UnknownResourceError
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.resource import Resource, decoder, untyped
from deltaloop.api.resource_type import ResourceType, TypedKind, as_kind
from deltaloop.api.status import NotAcceptableError, NotFoundError
from deltaloop.client.transport.protocol import HttpResponse
from deltaloop.client.transport.sender import RequestSender

if TYPE_CHECKING:  # the cores are imported when a server is first asked: most programs name kinds that are known
    from deltaloop.client.core.aggregated_discovery import DiscoveredVersion
    from deltaloop.client.core.resource_index import DiscoveredResource, ResourceIndex

T = TypeVar("T")

_log = logging.getLogger("deltaloop.client")

_AT_ONCE: Final = 16
_MOST_KINDS: Final = 1000
_REFRESHES: Final = 3
_REFRESH_INTERVAL: Final = 5.0
_LEGACY: Final = "application/json"


@final
class BoundKind:
    """A kind as verbs use it: found out once, and from then on looked up by the very object that names it.

    Attributes:
        given: What names it in a call of a verb; it is kept, so that nothing else gets its ``id``.
        type: The kind as the server serves it.
        untyped: The same kind, whose objects come as they are.
        namespaced: Whether its objects live in a namespace.
        text: Such as ``apps/v1/Deployment``.
        decode: Makes what a verb returns of an object; None if that is the object itself.
    """

    __slots__ = ("decode", "given", "namespaced", "text", "type", "untyped")

    def __init__(self, given: TypedKind[Any] | str, type: ResourceType[Any]) -> None:  # noqa: A002 - what it is
        """Bind ``given`` to the kind that it names."""
        self.given: TypedKind[Any] | str = given
        self.type: ResourceType[Any] = type
        self.untyped: ResourceType[Resource] = untyped(type)
        self.namespaced: bool = type.namespaced
        self.text: str = str(type)
        self.decode: Callable[[Resource], Any] | None = None if type.model in (None, Resource) else decoder(type)


@final
class Discovery:
    """The resources of one server.

    Attributes:
        kinds: The kinds that verbs have met, by the ``id`` of what names them.
    """

    def __init__(self, sender: RequestSender) -> None:
        """Ask through ``sender``, when something is asked for."""
        self._sender = sender
        self.kinds: dict[int, BoundKind] = {}
        self._index: ResourceIndex | None = None
        self._lock = asyncio.Lock()
        self._found: dict[ResourceType[Any], tuple[ResourceType[Any], str]] = {}
        self._moved: dict[ResourceType[Any], ResourceType[Any]] = {}
        self._refreshes = TokenBucket(rate=1 / _REFRESH_INTERVAL, burst=_REFRESHES)

    async def bind(self, given: TypedKind[Any] | str, *, timeout: float | None = None) -> BoundKind:
        """Return a kind, by whatever names it: of classes and built-in kinds without a question."""
        kind = as_kind(given)
        if isinstance(kind, ResourceType):
            return self.bound(given, self.current(kind))
        try:
            return self.bound(given, parse_resource_type(kind))
        except UnknownResourceError:
            found = await self.find(kind, timeout=timeout)
        return self.kinds.get(id(found)) or self.bound(found, found)

    def bound(self, given: TypedKind[Any] | str, kind: ResourceType[Any]) -> BoundKind:
        """Remember a kind, so that verbs find it by what names it."""
        if len(self.kinds) >= _MOST_KINDS:
            self.kinds.clear()
        known = self.kinds[id(given)] = BoundKind(given, kind)
        return known

    async def find(self, name: str, *, timeout: float | None = None) -> ResourceType[Resource]:
        """Find a resource by any of its names.

        Args:
            name: Plural, singular, kind, short name, ``deployments.apps``, ``deployments.v1.apps``,
                ``apps/v1/Deployment``, in any case.
            timeout: Seconds for each request.

        Raises:
            UnknownResourceError: If the server has none of that name; the message lists names like it.
            ApiError: The server refused.
            TransportError: There was no answer.
        """
        before = self._index
        found = before.find(name) if before is not None else None
        if found is None:
            index = await self._refreshed(before, timeout)
            found = index.find(name)
            if found is None:
                raise index.unknown(name)
        self._found[found] = (found, name)
        return found

    def current(self, known: ResourceType[T]) -> ResourceType[T]:
        """Return the resource type that took the place of another one; the same one if none did."""
        if not self._moved or (moved := self._moved.get(known)) is None:
            return known
        return moved if known.model is moved.model else replace(moved, model=known.model)

    def is_moved(self, known: ResourceType[Any]) -> bool:
        """Return whether a resource type took the place of another one."""
        return known in self._moved.values()

    async def moved(self, known: ResourceType[T], *, timeout: float | None = None) -> ResourceType[T] | None:
        """Find a resource again whose path the server does not serve.

        A resource that was found by a name is looked up by that name, any other by its group, version and kind.

        Args:
            known: The resource as it was.
            timeout: Timeout of each request in seconds.

        Returns:
            The resource as it is served now; None if nothing has changed, or the server does not serve it.

        Raises:
            UnknownResourceError: If it was found by a name that no longer exists.
        """
        before, name = self._found.get(known, (None, ""))
        by_name = before is known
        if not by_name and "." not in known.group:
            return None  # built-in kinds do not move: groups of CRDs have a dot
        try:
            index = await self._refreshed(self._index, timeout)
        except DeltaloopError as error:
            _log.debug("discovery failed", extra={"error_type": type(error).__name__})
            return None
        found = index.find(name if by_name else f"{known.api_version}/{known.kind}")
        if found is None and by_name:
            raise index.unknown(name)
        if found is None or found == known:
            return None
        if by_name:
            self._found[found] = (found, name)
        for old in [known, *(old for old, now in self._moved.items() if now == known)]:
            self._moved[old] = found
        self._moved.pop(found, None)
        self.kinds.clear()
        return replace(cast("ResourceType[Any]", found), model=known.model)

    async def resources(self, *, timeout: float | None = None) -> ResourceIndex:
        """Return everything that is known, asking the server if nothing is."""
        return await self._refreshed(None, timeout)

    async def _refreshed(self, before: ResourceIndex | None, timeout: float | None) -> ResourceIndex:
        async with self._lock:
            if self._index is not None and self._index is not before:
                return self._index  # another caller has just asked
            now = asyncio.get_running_loop().time()
            if self._index is None or self._refreshes.try_take(now):
                self._index = await self._ask(self._index, timeout)
            return self._index

    async def _ask(self, before: ResourceIndex | None, timeout: float | None) -> ResourceIndex:
        from deltaloop.client.core.resource_index import index_of

        at_once = asyncio.Semaphore(_AT_ONCE)
        versions = [*await self._listed("/api", timeout), *await self._listed("/apis", timeout)]
        async with asyncio.TaskGroup() as tasks:
            asked = {
                version.group_version: tasks.create_task(self._resources_of(version, at_once, timeout))
                for version in versions
                if version.stale
            }
        resources: list[DiscoveredResource] = []
        failed: list[str] = []
        for version in versions:
            found = asked[version.group_version].result() if version.stale else list(version.resources)
            if found is None:
                failed.append(version.group_version)
                found = list(version.resources) or _known_before(before, version.group_version)
            resources.extend(found)
        _log.debug("discovery", extra={"resources": len(resources), "failed_groups": failed})
        return index_of(tuple(resources), tuple(failed))

    async def _listed(self, path: str, timeout: float | None) -> list[DiscoveredVersion]:
        """Return the versions below a path; in the legacy form, and if they are stale, their resources are missing."""
        from deltaloop.client.core.aggregated_discovery import (
            AGGREGATED_ACCEPT,
            DiscoveredVersion,
            decode_aggregated,
            is_aggregated,
        )
        from deltaloop.client.core.resource_index import decode_core_versions, decode_groups

        answer = await self._answer(path, AGGREGATED_ACCEPT, timeout)
        if answer is not None and is_aggregated(answer.headers.get("content-type")):
            try:
                return [*decode_aggregated(path, answer.body)]
            except MalformedObjectError:
                _log.warning("aggregated discovery cannot be read; the legacy form is asked for", extra={"path": path})
                answer = await self._answer(path, _LEGACY, timeout)
        if answer is None:
            return []  # a server without a core group, or with nothing else
        names = decode_core_versions(answer.body) if path == "/api" else decode_groups(answer.body)
        return [DiscoveredVersion(name, (), stale=True) for name in names]

    async def _resources_of(
        self, version: DiscoveredVersion, at_once: asyncio.Semaphore, timeout: float | None
    ) -> list[DiscoveredResource] | None:
        from deltaloop.client.core.resource_index import decode_resources

        name = version.group_version
        path = f"/apis/{name}" if "/" in name else f"/api/{name}"
        async with at_once:
            try:
                return decode_resources(name, (await self._sender.send("GET", path, timeout=timeout)).body)
            except NotFoundError:
                return []  # the group went away between the two requests
            except DeltaloopError as error:
                _log.warning(
                    "discovery of an API group failed",
                    extra={"group_version": name, "error_type": type(error).__name__},
                )
                return None

    async def _answer(self, path: str, accept: str, timeout: float | None) -> HttpResponse | None:
        try:
            return await self._sender.send("GET", path, accept=accept, timeout=timeout)
        except NotFoundError:
            return None
        except NotAcceptableError:
            if accept == _LEGACY:
                raise
            return await self._answer(path, _LEGACY, timeout)


def _known_before(index: ResourceIndex | None, group_version: str) -> list[DiscoveredResource]:
    known = index.resources if index is not None else ()
    return [resource for resource in known if resource.resource_type.api_version == group_version]
