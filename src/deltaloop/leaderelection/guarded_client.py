"""The client of a term: every write asks the guard (guard.py) first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol, TypeVar, final, overload

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.watch_event import WatchEvent
from deltaloop.client.resource_list import ResourceList
from deltaloop.leaderelection.guard import LeadershipGuard

T = TypeVar("T")

_NO_OPTIONS: Final = ListOptions()


class WorkClient(Protocol):
    """What ``GuardedClient`` needs of a client: its verbs; ``deltaloop.client.Client`` fits."""

    @property
    def namespace(self) -> str:
        """Default namespace."""
        ...

    async def get(
        self,
        rt: Any,
        name: str,
        /,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Read one object."""
        ...

    async def list(
        self,
        rt: Any,
        /,
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        timeout: float | None = None,
    ) -> ResourceList[Any]:
        """Read one page."""
        ...

    async def list_all(
        self,
        rt: Any,
        /,
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        page_size: int = ...,
        timeout: float | None = None,
    ) -> ResourceList[Any]:
        """Read all pages."""
        ...

    def watch(
        self,
        rt: Any,
        /,
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch."""
        ...

    async def create(
        self,
        rt: Any,
        obj: Any,
        /,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Create one object."""
        ...

    async def update(self, rt: Any, obj: Any, /, *, namespace: str | None = None, timeout: float | None = None) -> Any:
        """Replace one object."""
        ...

    async def update_status(
        self, rt: Any, obj: Any, /, *, namespace: str | None = None, timeout: float | None = None
    ) -> Any:
        """Replace one object's status."""
        ...

    async def patch(
        self,
        rt: Any,
        name: str,
        patch: Mapping[str, Any],
        /,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Apply a merge patch."""
        ...

    async def delete(
        self,
        rt: Any,
        name: str,
        /,
        *,
        namespace: str | None = None,
        options: Any = None,
        timeout: float | None = None,
    ) -> Any:
        """Delete one object."""
        ...

    async def resource(self, name: str, /, *, timeout: float | None = None) -> ResourceType[Resource]:
        """Find a resource type by discovery."""
        ...


@final
class GuardedClient:
    """A client whose writes are refused once the term's leadership may have ended. Reads always pass.

    Every write verb raises ``LeadershipLostError`` without sending anything from the start of the last successful
    renewal + ``renew_deadline`` on. A write that was sent before is not called back; it ends with the body's
    cancellation. Everything else is as in the client that it wraps.
    """

    def __init__(self, client: WorkClient, guard: LeadershipGuard) -> None:
        """Wrap a client."""
        self._client = client
        self._guard = guard

    @property
    def namespace(self) -> str:
        """Default namespace of the client."""
        return self._client.namespace

    @overload
    async def get(
        self, rt: str, name: str, *, namespace: str | None = None, timeout: float | None = None
    ) -> Resource: ...
    @overload
    async def get(
        self, rt: ResourceType[T], name: str, *, namespace: str | None = None, timeout: float | None = None
    ) -> T: ...
    async def get(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Read one object."""
        return await self._client.get(rt, name, namespace=namespace, timeout=timeout)

    @overload
    async def list(
        self,
        rt: str,
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        timeout: float | None = None,
    ) -> ResourceList[Resource]: ...
    @overload
    async def list(
        self,
        rt: ResourceType[T],
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        timeout: float | None = None,
    ) -> ResourceList[T]: ...
    async def list(
        self,
        rt: ResourceType[Any] | str,
        *,
        namespace: str | None = None,
        options: ListOptions = _NO_OPTIONS,
        timeout: float | None = None,
    ) -> ResourceList[Any]:
        """Read one page."""
        return await self._client.list(rt, namespace=namespace, options=options, timeout=timeout)

    @overload
    async def list_all(
        self,
        rt: str,
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        page_size: int = 500,
        timeout: float | None = None,
    ) -> ResourceList[Resource]: ...
    @overload
    async def list_all(
        self,
        rt: ResourceType[T],
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        page_size: int = 500,
        timeout: float | None = None,
    ) -> ResourceList[T]: ...
    async def list_all(
        self,
        rt: ResourceType[Any] | str,
        *,
        namespace: str | None = None,
        options: ListOptions = _NO_OPTIONS,
        page_size: int = 500,
        timeout: float | None = None,
    ) -> ResourceList[Any]:
        """Read all pages."""
        return await self._client.list_all(
            rt, namespace=namespace, options=options, page_size=page_size, timeout=timeout
        )

    def watch(
        self,
        rt: ResourceType[Any] | str,
        *,
        namespace: str | None = None,
        options: ListOptions = _NO_OPTIONS,
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch."""
        return self._client.watch(rt, namespace=namespace, options=options, timeout=timeout)

    async def resource(self, name: str, *, timeout: float | None = None) -> ResourceType[Resource]:
        """Find a resource type by discovery."""
        return await self._client.resource(name, timeout=timeout)

    @overload
    async def create(
        self, rt: str, obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> Resource: ...
    @overload
    async def create(
        self, rt: ResourceType[T], obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> T: ...
    async def create(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Create one object; refused after the term."""
        self._guard.check("create")
        return await self._client.create(rt, obj, namespace=namespace, timeout=timeout)

    @overload
    async def update(
        self, rt: str, obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> Resource: ...
    @overload
    async def update(
        self, rt: ResourceType[T], obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> T: ...
    async def update(
        self, rt: ResourceType[Any] | str, obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> Any:
        """Replace one object; refused after the term."""
        self._guard.check("update")
        return await self._client.update(rt, obj, namespace=namespace, timeout=timeout)

    @overload
    async def update_status(
        self, rt: str, obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> Resource: ...
    @overload
    async def update_status(self, rt: ResourceType[T], obj: object, *, timeout: float | None = None) -> T: ...
    async def update_status(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Replace one object's status; refused after the term."""
        self._guard.check("update_status")
        return await self._client.update_status(rt, obj, namespace=namespace, timeout=timeout)

    @overload
    async def patch(
        self,
        rt: str,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> Resource: ...
    @overload
    async def patch(
        self,
        rt: ResourceType[T],
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> T: ...
    async def patch(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Apply a merge patch; refused after the term."""
        self._guard.check("patch")
        return await self._client.patch(rt, name, patch, namespace=namespace, subresource=subresource, timeout=timeout)

    async def delete(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        *,
        namespace: str | None = None,
        options: Any = None,
        timeout: float | None = None,
    ) -> Any:
        """Delete one object; refused after the term."""
        self._guard.check("delete")
        return await self._client.delete(rt, name, namespace=namespace, options=options, timeout=timeout)

    def __repr__(self) -> str:
        return f"<GuardedClient for {self._guard.identity}, {'open' if self._guard.is_open else 'closed'}>"
