"""The client of a term: every write asks the guard (guard.py) first."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypedDict, TypeVar, Unpack, final, overload

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.watch_event import WatchEvent
from deltaloop.client.conditions import Deleted, WaitCondition
from deltaloop.client.core.resource_index import ResourceIndex
from deltaloop.client.logs import LogStream
from deltaloop.client.options import DeleteOptions, LogOptions, PatchType, WriteOptions
from deltaloop.client.resource_list import ResourceList
from deltaloop.leaderelection.guard import LeadershipGuard

T = TypeVar("T")


class _Timed(TypedDict, total=False):
    timeout: float | None


class _Placed(_Timed, total=False):
    namespace: str | None


class _Get(_Placed, total=False):
    subresource: str | None


class _List(_Placed, total=False):
    options: ListOptions


class _ListAll(_List, total=False):
    page_size: int


class _EachItem(_ListAll, total=False):
    page_buffer: int


class _Logs(_Placed, total=False):
    options: LogOptions


class _Write(_Placed, total=False):
    options: WriteOptions | None


class _Apply(_Write, total=False):
    subresource: str | None
    force: bool


class _Patch(_Apply, total=False):
    type: PatchType


class _Scale(_Write, total=False):
    resource_version: str


class _Delete(_Placed, total=False):
    options: DeleteOptions | None


class _DeleteCollection(_Delete, total=False):
    selection: ListOptions


class WorkClient(Protocol):
    """What ``GuardedClient`` needs of a client: its verbs; ``deltaloop.client.Client`` fits.

    Only the names stand here; what each verb takes and gives is said once, in the client.
    """

    @property
    def namespace(self) -> str:
        """Default namespace."""
        ...

    async def get(self, *args: Any, **options: Any) -> Any:
        """Read one object."""
        ...

    async def get_scale(self, *args: Any, **options: Any) -> Any:
        """Read an object's scale."""
        ...

    async def list(self, *args: Any, **options: Any) -> ResourceList[Any]:
        """Read one page."""
        ...

    async def list_all(self, *args: Any, **options: Any) -> ResourceList[Any]:
        """Read all pages."""
        ...

    def each_list_item(self, *args: Any, **options: Any) -> AsyncGenerator[Any, None]:
        """Go through all objects."""
        ...

    def watch(self, *args: Any, **options: Any) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch."""
        ...

    async def wait_for(self, *args: Any, **options: Any) -> Any:
        """Wait for a condition."""
        ...

    def logs(self, *args: Any, **options: Any) -> AbstractAsyncContextManager[LogStream]:
        """Open a container's log."""
        ...

    async def resource(self, *args: Any, **options: Any) -> ResourceType[Resource]:
        """Find a resource type by discovery."""
        ...

    async def resources(self, *args: Any, **options: Any) -> ResourceIndex:
        """Return everything that the server serves."""
        ...

    async def create(self, *args: Any, **options: Any) -> Any:
        """Create one object."""
        ...

    async def create_subresource(self, *args: Any, **options: Any) -> Any:
        """Create something below an object."""
        ...

    async def update(self, *args: Any, **options: Any) -> Any:
        """Replace one object."""
        ...

    async def update_status(self, *args: Any, **options: Any) -> Any:
        """Replace one object's status."""
        ...

    async def patch(self, *args: Any, **options: Any) -> Any:
        """Patch one object."""
        ...

    async def apply(self, *args: Any, **options: Any) -> Any:
        """Apply one object."""
        ...

    async def scale(self, *args: Any, **options: Any) -> Any:
        """Set an object's replicas."""
        ...

    async def delete(self, *args: Any, **options: Any) -> Any:
        """Delete one object."""
        ...

    async def delete_collection(self, *args: Any, **options: Any) -> Any:
        """Delete many objects."""
        ...

    async def evict(self, *args: Any, **options: Any) -> None:
        """Evict a pod."""
        ...


@final
class GuardedClient:
    """A client whose writes are refused once the term's leadership may have ended. Reads always pass.

    Every write verb raises ``LeadershipLostError`` without sending anything from the start of the last successful
    renewal + ``renew_deadline`` on. A write that was sent before is not called back; it ends with the body's
    cancellation. Everything else, each verb's arguments included, is as in the client that it wraps.
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
    async def get(self, rt: str, name: str, **options: Unpack[_Get]) -> Resource: ...
    @overload
    async def get(self, rt: ResourceType[T], name: str, **options: Unpack[_Get]) -> T: ...
    async def get(self, rt: ResourceType[Any] | str, name: str, **options: Unpack[_Get]) -> Any:
        """Read one object."""
        return await self._client.get(rt, name, **options)

    async def get_scale(self, rt: ResourceType[Any] | str, name: str, **options: Unpack[_Placed]) -> Resource:
        """Read the ``Scale`` of an object."""
        scale: Resource = await self._client.get_scale(rt, name, **options)
        return scale

    @overload
    async def list(self, rt: str, **options: Unpack[_List]) -> ResourceList[Resource]: ...
    @overload
    async def list(self, rt: ResourceType[T], **options: Unpack[_List]) -> ResourceList[T]: ...
    async def list(self, rt: ResourceType[Any] | str, **options: Unpack[_List]) -> ResourceList[Any]:
        """Read one page."""
        return await self._client.list(rt, **options)

    @overload
    async def list_all(self, rt: str, **options: Unpack[_ListAll]) -> ResourceList[Resource]: ...
    @overload
    async def list_all(self, rt: ResourceType[T], **options: Unpack[_ListAll]) -> ResourceList[T]: ...
    async def list_all(self, rt: ResourceType[Any] | str, **options: Unpack[_ListAll]) -> ResourceList[Any]:
        """Read all pages."""
        return await self._client.list_all(rt, **options)

    @overload
    def each_list_item(self, rt: str, **options: Unpack[_EachItem]) -> AsyncGenerator[Resource, None]: ...
    @overload
    def each_list_item(self, rt: ResourceType[T], **options: Unpack[_EachItem]) -> AsyncGenerator[T, None]: ...
    def each_list_item(self, rt: ResourceType[Any] | str, **options: Unpack[_EachItem]) -> AsyncGenerator[Any, None]:
        """Go through all objects, page by page."""
        return self._client.each_list_item(rt, **options)

    def watch(
        self, rt: ResourceType[Any] | str, **options: Unpack[_List]
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch."""
        return self._client.watch(rt, **options)

    @overload
    async def wait_for(
        self, rt: ResourceType[Any] | str, name: str, condition: Deleted, **options: Unpack[_Placed]
    ) -> None: ...
    @overload
    async def wait_for(self, rt: str, name: str, condition: WaitCondition, **options: Unpack[_Placed]) -> Resource: ...
    @overload
    async def wait_for(
        self, rt: ResourceType[T], name: str, condition: WaitCondition, **options: Unpack[_Placed]
    ) -> T: ...
    async def wait_for(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        condition: WaitCondition | Deleted,
        **options: Unpack[_Placed],
    ) -> Any:
        """Wait until an object fulfils a condition."""
        return await self._client.wait_for(rt, name, condition, **options)

    def logs(self, name: str, **options: Unpack[_Logs]) -> AbstractAsyncContextManager[LogStream]:
        """Open a container's log."""
        return self._client.logs(name, **options)

    async def resource(self, name: str, **options: Unpack[_Timed]) -> ResourceType[Resource]:
        """Find a resource type by discovery."""
        return await self._client.resource(name, **options)

    async def resources(self, **options: Unpack[_Timed]) -> ResourceIndex:
        """Return everything that the server serves."""
        return await self._client.resources(**options)

    @overload
    async def create(self, rt: str, obj: object, **options: Unpack[_Write]) -> Resource: ...
    @overload
    async def create(self, rt: ResourceType[T], obj: object, **options: Unpack[_Write]) -> T: ...
    async def create(self, rt: ResourceType[Any] | str, obj: object, **options: Unpack[_Write]) -> Any:
        """Create one object; refused after the term."""
        self._guard.check("create")
        return await self._client.create(rt, obj, **options)

    async def create_subresource(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        subresource: str,
        obj: Mapping[str, Any] | Resource,
        **options: Unpack[_Write],
    ) -> Resource:
        """Create something below an object; refused after the term."""
        self._guard.check("create_subresource")
        made: Resource = await self._client.create_subresource(rt, name, subresource, obj, **options)
        return made

    @overload
    async def update(self, rt: str, obj: object, **options: Unpack[_Write]) -> Resource: ...
    @overload
    async def update(self, rt: ResourceType[T], obj: object, **options: Unpack[_Write]) -> T: ...
    async def update(self, rt: ResourceType[Any] | str, obj: object, **options: Unpack[_Write]) -> Any:
        """Replace one object; refused after the term."""
        self._guard.check("update")
        return await self._client.update(rt, obj, **options)

    @overload
    async def update_status(self, rt: str, obj: object, **options: Unpack[_Write]) -> Resource: ...
    @overload
    async def update_status(self, rt: ResourceType[T], obj: object, **options: Unpack[_Write]) -> T: ...
    async def update_status(self, rt: ResourceType[Any] | str, obj: object, **options: Unpack[_Write]) -> Any:
        """Replace one object's status; refused after the term."""
        self._guard.check("update_status")
        return await self._client.update_status(rt, obj, **options)

    @overload
    async def patch(
        self, rt: str, name: str, patch: Mapping[str, Any] | Sequence[Mapping[str, Any]], **options: Unpack[_Patch]
    ) -> Resource: ...
    @overload
    async def patch(
        self,
        rt: ResourceType[T],
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        **options: Unpack[_Patch],
    ) -> T: ...
    async def patch(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        **options: Unpack[_Patch],
    ) -> Any:
        """Patch one object; refused after the term."""
        self._guard.check("patch")
        return await self._client.patch(rt, name, patch, **options)

    @overload
    async def apply(self, rt: str, obj: object, **options: Unpack[_Apply]) -> Resource: ...
    @overload
    async def apply(self, rt: ResourceType[T], obj: object, **options: Unpack[_Apply]) -> T: ...
    async def apply(self, rt: ResourceType[Any] | str, obj: object, **options: Unpack[_Apply]) -> Any:
        """Apply one object; refused after the term."""
        self._guard.check("apply")
        return await self._client.apply(rt, obj, **options)

    async def scale(self, rt: ResourceType[Any] | str, name: str, replicas: int, **options: Unpack[_Scale]) -> Resource:
        """Set how many replicas are wanted; refused after the term."""
        self._guard.check("scale")
        scale: Resource = await self._client.scale(rt, name, replicas, **options)
        return scale

    async def delete(self, rt: ResourceType[Any] | str, name: str, **options: Unpack[_Delete]) -> Any:
        """Delete one object; refused after the term."""
        self._guard.check("delete")
        return await self._client.delete(rt, name, **options)

    async def delete_collection(self, rt: ResourceType[Any] | str, **options: Unpack[_DeleteCollection]) -> Any:
        """Delete many objects; refused after the term."""
        self._guard.check("delete_collection")
        return await self._client.delete_collection(rt, **options)

    async def evict(self, name: str, **options: Unpack[_Delete]) -> None:
        """Evict a pod; refused after the term."""
        self._guard.check("evict")
        await self._client.evict(name, **options)

    def __repr__(self) -> str:
        return f"<GuardedClient for {self._guard.identity}, {'open' if self._guard.is_open else 'closed'}>"
