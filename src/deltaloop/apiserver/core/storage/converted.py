"""View of the store in one version of a resource whose objects a webhook converts.

If converted objects are missing, a read raises a question, and the reader repeats the read after the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar, final

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.codec import WebhookConversion
from deltaloop.apiserver.core.external_answers import QuestionError
from deltaloop.apiserver.core.storage.encoding import stored_version
from deltaloop.apiserver.core.storage.history import StoredChange
from deltaloop.apiserver.core.storage.store import Page, RevisionStore

T = TypeVar("T")

Found: TypeAlias = Mapping[bytes, Resource]
"""Converted objects by the bytes of the stored objects."""
_MOST_BYTES: Final = 32 * 1024 * 1024


class Timeline(Protocol):
    """Interface for lists and watches, implemented by ``RevisionStore`` and ``ConvertedStore``."""

    @property
    def revision(self) -> int: ...

    @property
    def compacted(self) -> int: ...

    @property
    def renumberings(self) -> int: ...

    def list(
        self,
        resource: str,
        *,
        prefix: str = "",
        matches: Callable[[Resource], bool] | None = None,
        limit: int = 0,
        start: str = "",
        at: int | None = None,
        in_namespace: Callable[[str], bool] | None = None,
    ) -> Page: ...

    def changes_after(self, revision: int, *, limit: int = 1000) -> tuple[StoredChange, ...]: ...

    def has_dropped(self, resource: str, *, after: int) -> bool: ...


@final
@dataclass(frozen=True, slots=True)
class ConversionQuestion:
    webhook: WebhookConversion
    api_version: str
    objects: tuple[Resource, ...]


@final
class ConvertedObjects:
    """Cache of converted objects of all resources; it drops the oldest objects."""

    def __init__(self, *, size: int = _MOST_BYTES) -> None:
        self._size = size
        self._kept = 0
        self._objects: dict[tuple[WebhookConversion, str, bytes], Resource] = {}

    def __repr__(self) -> str:
        return f"<ConvertedObjects {len(self._objects)}, {self._kept} bytes>"

    def find(self, webhook: WebhookConversion, api_version: str, obj: Resource) -> Resource | None:
        return self._objects.get((webhook, api_version, obj.raw))

    def keep(self, webhook: WebhookConversion, api_version: str, raw: bytes, converted: Resource) -> None:
        key = webhook, api_version, raw
        if key in self._objects:
            return
        self._objects[key] = converted
        self._kept += len(raw) + len(converted.raw)
        while self._kept > self._size:
            oldest = next(iter(self._objects))
            self._kept -= len(oldest[2]) + len(self._objects.pop(oldest).raw)


@final
class ConvertedStore:
    def __init__(
        self,
        store: RevisionStore,
        resource: str,
        webhook: WebhookConversion,
        api_version: str,
        common: ConvertedObjects,
        *,
        compares: bool = True,
    ) -> None:
        """Create a view of a store in one version; only changes of ``resource`` are converted."""
        self._store = store
        self._resource = resource
        self._webhook = webhook
        self._api_version = api_version
        self._common = common
        self._compares = compares
        self._held: dict[bytes, Resource] = {}

    @property
    def revision(self) -> int:
        return self._store.revision

    @property
    def compacted(self) -> int:
        return self._store.compacted

    @property
    def renumberings(self) -> int:
        return self._store.renumberings

    def hold(self, found: Found) -> None:
        """Keep converted objects until ``let_go``, even if the cache drops them."""
        self._held.update(found)

    def let_go(self) -> None:
        self._held.clear()

    def list(
        self,
        resource: str,
        *,
        prefix: str = "",
        matches: Callable[[Resource], bool] | None = None,
        limit: int = 0,
        start: str = "",
        at: int | None = None,
        in_namespace: Callable[[str], bool] | None = None,
    ) -> Page:
        """Return one page, with selectors applied to the converted objects; raises QuestionError and CompactedError."""
        shown: Callable[[Resource], bool] | None = None
        if matches is not None:
            self._converted(self._store.list(resource, prefix=prefix, start=start, at=at).items)
            shown = self._matching(matches)
        page = self._store.list(
            resource, prefix=prefix, matches=shown, limit=limit, start=start, at=at, in_namespace=in_namespace
        )
        return msgspec.structs.replace(page, items=self._converted(page.items))

    def changes_after(self, revision: int, *, limit: int = 1000) -> tuple[StoredChange, ...]:
        """Return the changes after a revision, or raise QuestionError or CompactedError."""
        changes = self._store.changes_after(revision, limit=limit)
        wanted = [obj for change in changes if change.resource == self._resource for obj in self._seen(change)]
        self._converted(wanted)
        return tuple([self._shown(change) if change.resource == self._resource else change for change in changes])

    def has_dropped(self, resource: str, *, after: int) -> bool:
        return self._store.has_dropped(resource, after=after)

    def _matching(self, matches: Callable[[Resource], bool]) -> Callable[[Resource], bool]:
        return lambda obj: matches(self._found(obj) or obj)

    def _seen(self, change: StoredChange) -> tuple[Resource, ...]:
        old = change.old if self._compares or change.new is None else None
        return tuple(obj for obj in (old, change.new) if obj is not None)

    def _shown(self, change: StoredChange) -> StoredChange:
        old, new = change.old, change.new
        return msgspec.structs.replace(
            change,
            old=(self._found(old) or old) if old is not None else None,
            new=(self._found(new) or new) if new is not None else None,
        )

    def _found(self, obj: Resource) -> Resource | None:
        """Return an object in the view's version, or None if it is not converted yet."""
        if (stored_version(obj) or self._webhook.oldest) == self._api_version:
            return obj
        return self._held.get(obj.raw) or self._common.find(self._webhook, self._api_version, obj)

    def _converted(self, objects: Iterable[Resource]) -> tuple[Resource, ...]:
        found: list[Resource] = []
        missing: dict[bytes, Resource] = {}
        for obj in objects:
            converted = self._found(obj)
            if converted is None:
                missing[obj.raw] = obj
            else:
                found.append(converted)
        if missing:
            raise QuestionError(ConversionQuestion(self._webhook, self._api_version, tuple(missing.values())))
        return tuple(found)
