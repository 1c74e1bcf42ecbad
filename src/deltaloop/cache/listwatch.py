"""Where a reflector gets its objects from: the seam between the cache and a client.

``ListerWatcher`` is all that the cache asks of the world: one page of a list, and a watch. ``ListWatch`` is the one
that asks an API server; tests bring their own.

Source: client-go tools/cache/listwatch.go.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, cast, final, runtime_checkable

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.watch_event import WatchEvent
from deltaloop.client.verbs.resource_list import ResourceList, UnreadableItemsError


class ListerWatcher(Protocol):
    """Lists and watches the objects of one kind."""

    async def list(self, options: ListOptions) -> ResourceList[Resource]:
        """Return one page of the list."""
        ...

    def watch(self, options: ListOptions) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch: entering it connects, iterating ends when the server ends the stream."""
        ...


class ListWatchClient(Protocol):
    """The two verbs of a ``Client`` that caches need."""

    async def list(
        self,
        kind: ResourceType[Resource],
        /,
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        metadata_only: bool = ...,
    ) -> ResourceList[Resource]:
        """Return one page of a list; no namespace means all.

        With ``metadata_only``, of ``PartialObjectMetadata``.
        """
        ...

    def watch(
        self,
        kind: ResourceType[Resource],
        /,
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        metadata_only: bool = ...,
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch; no namespace means all.

        With ``metadata_only``, of ``PartialObjectMetadata``.
        """
        ...


@runtime_checkable
class ByteStream(Protocol):
    """Events of a watch that also know about bytes; what ``Client.watch`` gives does.

    A stream that has gone quiet in the middle of an object shows here and nowhere else.
    """

    @property
    def last_byte_at(self) -> float:
        """When the last byte came; on the event loop's clock."""
        ...

    @property
    def pending_bytes(self) -> int:
        """How much has come of an event that is not complete."""
        ...


@runtime_checkable
class BatchStream(Protocol):
    """Events of a watch that can be read in batches; what ``Client.watch`` gives can."""

    async def batch(self) -> Sequence[WatchEvent]:
        """Wait for the next event, and return it with those that have come behind it; none at the end."""
        ...


def drops_managed_fields(source: object) -> bool:
    """Tell whether the objects of a client, or of another source, come without ``metadata.managedFields``.

    For a client: if they are not wanted (``ListOptions.drop_managed_fields``). ``Client`` and ``ListWatch`` say so by a
    property of this name; from others a cache takes them off itself.
    """
    return bool(getattr(source, "drops_managed_fields", False))


@final
class ListWatch:
    """Lists and watches one kind through a client, in one namespace or all, by selectors.

    Objects are asked for raw, whatever class the kind decodes to: a cache keeps them so.
    """

    def __init__(
        self,
        client: ListWatchClient,
        resource_type: ResourceType[Any],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        tweak: Callable[[ListOptions], ListOptions] | None = None,
        metadata_only: bool = False,
        drop_managed_fields: bool = False,
    ) -> None:
        """Ask ``client`` for objects of ``resource_type``.

        Args:
            client: Sends the requests, usually a ``Client``.
            resource_type: The kind to list and watch.
            namespace: Namespace; None means all. Has to be None for kinds without namespaces.
            label_selector: Only objects with such labels, such as ``app=web``.
            field_selector: Only objects with such fields, such as ``spec.nodeName=a``; the server knows a few of them.
            tweak: Called with the options of each list and watch, selectors included; what it returns is asked for.
                What it changes must be the same for lists and watches, and versions and bookmarks are not its affair.
            metadata_only: Whether the server is asked for the metadata of objects and nothing else
                (``PartialObjectMetadata``): a fraction of the bytes, where only names, labels or owners matter.
            drop_managed_fields: Whether objects are asked for without ``metadata.managedFields``. A server that does
                not know this (before Kubernetes 1.37, or by its feature gate) sends them; ``Client`` takes them off.
        """
        self.resource_type = resource_type
        self.namespace = namespace
        self.label_selector = label_selector
        self.field_selector = field_selector
        self.metadata_only = metadata_only
        self._drop_managed_fields = drop_managed_fields
        self._tweak = tweak
        self._client = client
        self._raw_type = cast("ResourceType[Resource]", dataclasses.replace(resource_type, model=None))

    @property
    def drops_managed_fields(self) -> bool:
        """Whether no object has ``metadata.managedFields``, whatever the server sends."""
        if not self._drop_managed_fields or self._tweak is not None:  # a tweak may ask for them again
            return False
        return drops_managed_fields(self._client)

    async def list(self, options: ListOptions) -> ResourceList[Resource]:
        """Return one page of the list, by the selectors; items that cannot be read are in its ``unreadable``."""
        asked = self._with_selectors(options)
        try:
            return await self._client.list(
                self._raw_type, namespace=self.namespace, options=asked, metadata_only=self.metadata_only
            )
        except UnreadableItemsError as error:
            return error.page  # one bad object must not keep all others from the cache

    def watch(self, options: ListOptions) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch, by the selectors."""
        return self._client.watch(
            self._raw_type,
            namespace=self.namespace,
            options=self._with_selectors(options),
            metadata_only=self.metadata_only,
        )

    def _with_selectors(self, options: ListOptions) -> ListOptions:
        asked = options.replace(
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            drop_managed_fields=self._drop_managed_fields,
        )
        return asked if self._tweak is None else self._tweak(asked)

    def __str__(self) -> str:
        parts = [f"metadata of {self.resource_type}" if self.metadata_only else str(self.resource_type)]
        parts += [f"in namespace {self.namespace}"] if self.namespace else []
        selectors = ",".join(part for part in (self.label_selector, self.field_selector) if part)
        parts += [f"where {selectors}"] if selectors else []
        return " ".join(parts)

    def __repr__(self) -> str:
        return f"<ListWatch {self}>"
