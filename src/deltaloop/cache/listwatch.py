"""Interface between the cache and a client: one page of a list, and a watch.

Source: client-go tools/cache/listwatch.go.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol, cast, final

import msgspec

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.watch_event import WatchEvent

if TYPE_CHECKING:
    from deltaloop.api.shard_selector import ShardSelector
    from deltaloop.cache.interfaces import ListWatchClient
    from deltaloop.client.verbs.resource_list import ResourceList


class ListerWatcher(Protocol):
    """Source of the objects of one kind."""

    async def list(self, options: ListOptions) -> ResourceList[Resource]:
        """Return one page of the list."""
        ...

    def watch(self, options: ListOptions) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch.

        The iteration ends when the server ends the stream.
        """
        ...


def drops_managed_fields(source: object) -> bool:
    """Return whether the source removes ``metadata.managedFields`` from all objects; otherwise the cache does."""
    return bool(getattr(source, "drops_managed_fields", False))


def shard_selector_of(source: object) -> ShardSelector | None:
    """Return the shard of a ``ListWatch``, or None for other sources."""
    return source.shard_selector if isinstance(source, ListWatch) else None


@final
class ListWatch:
    """Lists and watches of one kind through a client, optionally limited by namespace and selectors.

    Objects are always raw ``Resource`` instances, because the cache stores them in this form.
    """

    def __init__(
        self,
        client: ListWatchClient,
        resource_type: ResourceType[Any],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        shard_selector: ShardSelector | None = None,
        tweak: Callable[[ListOptions], ListOptions] | None = None,
        metadata_only: bool = False,
        drop_managed_fields: bool = False,
    ) -> None:
        """Create a source of objects.

        Args:
            client: Client for the requests, usually a ``Client``.
            resource_type: Kind to list and watch.
            namespace: Namespace, or None for all. It must be None for cluster-scoped kinds.
            label_selector: Label selector, such as ``app=web``.
            field_selector: Field selector, such as ``spec.nodeName=a``. Servers support only a few fields.
            shard_selector: Ranges of hashes (KEP-5866, alpha in Kubernetes 1.36), by default all. The cache
                applies it again, because servers without this feature send all objects.
            tweak: Function that changes the options of each list and watch. It must change both in the same way, and
                must not change versions or bookmarks.
            metadata_only: Whether to request only the metadata of objects (``PartialObjectMetadata``), which needs a
                fraction of the bandwidth.
            drop_managed_fields: Whether to request objects without ``metadata.managedFields``. Servers without this
                feature (before Kubernetes 1.37, or behind a feature gate) send them, and ``Client`` removes them.
        """
        self.resource_type = resource_type
        self.namespace = namespace
        self.label_selector = label_selector
        self.field_selector = field_selector
        self.shard_selector = shard_selector
        self.metadata_only = metadata_only
        self._drop_managed_fields = drop_managed_fields
        self._tweak = tweak
        self._client = client
        self._raw_type = cast("ResourceType[Resource]", msgspec.structs.replace(resource_type, model=None))

    @property
    def drops_managed_fields(self) -> bool:
        """Whether ``metadata.managedFields`` is removed from all objects, independent of the server."""
        if not self._drop_managed_fields or self._tweak is not None:  # a tweak may request them again
            return False
        return drops_managed_fields(self._client)

    async def list(self, options: ListOptions) -> ResourceList[Resource]:
        """Return one page of the list.

        Items that cannot be decoded are in its ``unreadable``.
        """
        from deltaloop.client.verbs.resource_list import UnreadableItemsError

        asked = self._with_selectors(options)
        try:
            return await self._client.list(
                self._raw_type, namespace=self.namespace, options=asked, metadata_only=self.metadata_only
            )
        except UnreadableItemsError as error:
            return error.page  # one bad object must not block the others

    def watch(self, options: ListOptions) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch."""
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
            shard_selector="" if self.shard_selector is None else str(self.shard_selector),
            drop_managed_fields=self._drop_managed_fields,
        )
        return asked if self._tweak is None else self._tweak(asked)

    def __str__(self) -> str:
        parts = [f"metadata of {self.resource_type}" if self.metadata_only else str(self.resource_type)]
        parts += [f"in namespace {self.namespace}"] if self.namespace else []
        selectors = ",".join(part for part in (self.label_selector, self.field_selector) if part)
        parts += [f"where {selectors}"] if selectors else []
        parts += [f"in a shard by {self.shard_selector.field}"] if self.shard_selector is not None else []
        return " ".join(parts)

    def __repr__(self) -> str:
        return f"<ListWatch {self}>"
