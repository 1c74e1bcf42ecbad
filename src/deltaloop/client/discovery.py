"""Discovery of the resources that a server supports.

It is repeated when a name is unknown: three times in a row, then once every five seconds. A 404 about a path also
repeats it, because a CRD may have lost a version, or have been recreated with another plural or scope.

If a server returns the legacy form, the resources of each group version are requested separately, also for stale
versions. A group that fails does not affect other groups: it is named in a warning and in errors about unknown names,
and its previously known resources are kept.

Source: client-go discovery/discovery_client.go, discovery/aggregated_discovery.go; restmapper (``deferredDiscovery``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final

from msgspec.structs import replace

from deltaloop._internal.pacing import TokenBucket
from deltaloop.api.errors import DeltaloopError, MalformedObjectError, UnknownResourceError
from deltaloop.api.kinds import BUILT_IN, parse_resource_type
from deltaloop.api.resource import Resource, decoder, untyped
from deltaloop.api.resource_type import ResourceType, TypedKind, as_kind
from deltaloop.api.status import NotAcceptableError, NotFoundError
from deltaloop.client.transport.protocol import HttpResponse
from deltaloop.client.transport.sender import RequestSender

if TYPE_CHECKING:  # imported on the first discovery, because most programs only use known kinds
    from deltaloop.client.core.aggregated_discovery import DiscoveredVersion
    from deltaloop.client.core.resource_index import DiscoveredResource, ResourceIndex

T = TypeVar("T")

_log = logging.getLogger("deltaloop.client")

_AT_ONCE: Final = 16
_MOST_KINDS: Final = 1000
_REFRESHES: Final = 3
_REFRESH_INTERVAL: Final = 5.0
_LEGACY: Final = "application/json"
_BUILT_IN_GROUPS: Final = {kind.group for kind in BUILT_IN} | {"authentication.k8s.io", "authorization.k8s.io"}


@final
class BoundKind:
    """Resolved kind, which verbs look up by the identity of the object that names it.

    Attributes:
        given: Kind or name that the caller passed. The reference keeps its ``id`` from being reused.
        untyped: Same kind without a class, so that objects are returned as ``Resource``.
        decode: Function that converts a ``Resource`` to the result of a verb, or None if no conversion is needed.
    """

    __slots__ = ("decode", "given", "namespaced", "text", "type", "untyped")

    def __init__(self, given: TypedKind[Any] | str, type: ResourceType[Any]) -> None:  # noqa: A002 - attribute name
        self.given: TypedKind[Any] | str = given
        self.type: ResourceType[Any] = type
        self.untyped: ResourceType[Resource] = untyped(type)
        self.namespaced: bool = type.namespaced
        self.text: str = str(type)
        self.decode: Callable[[Resource], Any] | None = None if type.model in (None, Resource) else decoder(type)


@final
class Discovery:
    """Resources of one server; ``kinds`` are the known kinds by the ``id`` of the kind or name that was passed."""

    def __init__(self, sender: RequestSender) -> None:
        self._sender = sender
        self.kinds: dict[int, BoundKind] = {}
        self._index: ResourceIndex | None = None
        self._lock = asyncio.Lock()
        self._found: dict[ResourceType[Any], tuple[ResourceType[Any], str]] = {}
        self._moved: dict[ResourceType[Any], ResourceType[Any]] = {}
        self._refreshes = TokenBucket(rate=1 / _REFRESH_INTERVAL, burst=_REFRESHES)

    @property
    def failed_groups(self) -> tuple[str, ...]:
        return () if self._index is None else self._index.failed_groups

    async def bind(self, given: TypedKind[Any] | str, *, timeout: float | None = None) -> BoundKind:
        """Resolve a kind. Classes and built-in kinds need no request."""
        kind = as_kind(given)
        if isinstance(kind, ResourceType):
            return self.bound(given, self.current(kind))
        try:
            return self.bound(given, parse_resource_type(kind))
        except UnknownResourceError:
            found = await self.find(kind, timeout=timeout)
        return self.kinds.get(id(found)) or self.bound(found, found)

    def bound(self, given: TypedKind[Any] | str, kind: ResourceType[Any]) -> BoundKind:
        if len(self.kinds) >= _MOST_KINDS:
            self.kinds.clear()
        known = self.kinds[id(given)] = BoundKind(given, kind)
        return known

    async def find(self, name: str, *, timeout: float | None = None) -> ResourceType[Resource]:
        """Find a resource by any of its names (see ``core/resource_index.py``); the timeout in seconds is per request.

        Raises:
            UnknownResourceError: If the resource does not exist. The message lists similar names.
            ApiError: If the server rejects the request.
            TransportError: If no response arrives.
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
        if not self._moved or (moved := self._moved.get(known)) is None:
            return known
        return moved if known.model is moved.model else replace(moved, model=known.model)

    def is_moved(self, known: ResourceType[Any]) -> bool:
        return known in self._moved.values()

    async def moved(self, known: ResourceType[T], *, timeout: float | None = None) -> ResourceType[T] | None:
        """Find a resource again after a 404 for its path; return None if it is unchanged or no longer served.

        Raises UnknownResourceError if it was found by a name that no longer exists.
        """
        before, name = self._found.get(known, (None, ""))
        by_name = before is known
        if not by_name and ("." not in known.group or known.group in _BUILT_IN_GROUPS):
            return None  # built-in kinds do not change, and groups of CRDs contain a dot
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
        """Return the cached resources, or run discovery on first use."""
        return await self._refreshed(None, timeout)

    async def _refreshed(self, before: ResourceIndex | None, timeout: float | None) -> ResourceIndex:
        async with self._lock:
            if self._index is not None and self._index is not before:
                return self._index  # another caller has just refreshed it
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
        """Return the versions below a path. Versions from the legacy form and stale versions have no resources."""
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
                _log.warning("cannot read aggregated discovery, requesting the legacy form", extra={"path": path})
                answer = await self._answer(path, _LEGACY, timeout)
        if answer is None:
            return []  # a server with only the core group, or without it
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
                return []  # the group was removed between the two requests
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
