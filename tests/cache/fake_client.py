"""A client whose every kind, namespace and selector is a scripted server of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.watch_event import WatchEvent
from deltaloop.client.verbs.resource_list import ResourceList
from tests.cache.fake_source import FakeSource

NO_OPTIONS = ListOptions()


class FakeClient:
    """Has the two verbs that caches need."""

    def __init__(self) -> None:
        self.sources: dict[tuple[str, str | None, str, str], FakeSource] = {}
        self.asked_for_metadata: list[bool] = []

    def source(self, kind: str, *, namespace: str | None = None, labels: str = "", fields: str = "") -> FakeSource:
        """Return the server behind a kind, such as ``v1/Pod``."""
        return self.sources.setdefault((kind, namespace, labels, fields), FakeSource())

    def _source(self, kind: ResourceType[Resource], namespace: str | None, options: ListOptions) -> FakeSource:
        assert kind.model is None, "caches ask for raw objects"
        return self.source(str(kind), namespace=namespace, labels=options.label_selector, fields=options.field_selector)

    async def list(
        self,
        kind: ResourceType[Resource],
        /,
        *,
        namespace: str | None = None,
        options: ListOptions = NO_OPTIONS,
        metadata_only: bool = False,
    ) -> ResourceList[Resource]:
        """Return one page."""
        self.asked_for_metadata.append(metadata_only)
        return await self._source(kind, namespace, options).list(options)

    def watch(
        self,
        kind: ResourceType[Resource],
        /,
        *,
        namespace: str | None = None,
        options: ListOptions = NO_OPTIONS,
        metadata_only: bool = False,
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Open a watch."""
        self.asked_for_metadata.append(metadata_only)
        return self._source(kind, namespace, options).watch(options)
