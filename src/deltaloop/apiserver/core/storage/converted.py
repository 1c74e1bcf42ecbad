"""A store as a version of a resource shows it, where a webhook converts the objects.

Whatever is read is looked up among the objects that have been converted. What is missing there is a question, and the
reader reads again when it is answered: nothing has been read before, so nothing is read twice.

A real server converts a change once for each version, when it comes into the cache of that version, from which lists
and watches are served. Here ``ConvertedObjects`` is what they have in common. It knows an object by its bytes, and a
webhook by the definition that names it: one that has been changed begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias, TypeVar, final

from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.codec import WebhookConversion
from deltaloop.apiserver.core.external_answers import QuestionError
from deltaloop.apiserver.core.storage.encoding import stored_version
from deltaloop.apiserver.core.storage.history import StoredChange
from deltaloop.apiserver.core.storage.store import Page, RevisionStore

T = TypeVar("T")

Found: TypeAlias = Mapping[bytes, Resource]
"""Converted objects, by the bytes of those in the store."""
_MOST_BYTES: Final = 32 * 1024 * 1024


class Timeline(Protocol):
    """What lists and watches read: a store, or one as a version shows it. ``RevisionStore`` says more about each."""

    @property
    def revision(self) -> int:
        """Revision of the last write."""
        ...

    @property
    def compacted(self) -> int:
        """The oldest revision that can be read exactly and watched from."""
        ...

    @property
    def renumberings(self) -> int:
        """How often revisions were counted anew."""
        ...

    def list(
        self,
        resource: str,
        *,
        prefix: str = "",
        matches: Callable[[Resource], bool] | None = None,
        limit: int = 0,
        start: str = "",
        at: int | None = None,
    ) -> Page:
        """Return one page of a resource's objects."""
        ...

    def changes_after(self, revision: int, *, limit: int = 1000) -> tuple[StoredChange, ...]:
        """Return the changes after a revision, oldest first."""
        ...

    def has_dropped(self, resource: str, *, after: int) -> bool:
        """Tell whether a change of a resource after a revision has left the window."""
        ...


@final
@dataclass(frozen=True, slots=True)
class ConversionQuestion:
    """Objects that are wanted in another version; the answer is ``Found``."""

    webhook: WebhookConversion
    api_version: str
    objects: tuple[Resource, ...]


@final
class ConvertedObjects:
    """Objects that have been converted, of all resources of a server; the oldest go when there are too many."""

    def __init__(self, *, size: int = _MOST_BYTES) -> None:
        """Keep about so many bytes."""
        self._size = size
        self._kept = 0
        self._objects: dict[tuple[WebhookConversion, str, bytes], Resource] = {}

    def __repr__(self) -> str:
        return f"<ConvertedObjects {len(self._objects)}, {self._kept} bytes>"

    def find(self, webhook: WebhookConversion, api_version: str, obj: Resource) -> Resource | None:
        """Return an object of the store in a version, if it has been converted."""
        return self._objects.get((webhook, api_version, obj.raw))

    def keep(self, webhook: WebhookConversion, api_version: str, raw: bytes, converted: Resource) -> None:
        """Keep a converted object for others who want it."""
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
    """A ``Timeline`` of one resource in one version, for one reader."""

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
        """Show a store.

        Args:
            store: The store.
            resource: Plural and group; the changes of others are shown as they are.
            webhook: What converts the objects.
            api_version: The version in which they are shown.
            common: Objects that have been converted.
            compares: Whether the reader wants to know what an object was like before it was changed.
        """
        self._store = store
        self._resource = resource
        self._webhook = webhook
        self._api_version = api_version
        self._common = common
        self._compares = compares
        self._held: dict[bytes, Resource] = {}

    @property
    def revision(self) -> int:
        """Revision of the last write."""
        return self._store.revision

    @property
    def compacted(self) -> int:
        """The oldest revision that can be read exactly and watched from."""
        return self._store.compacted

    @property
    def renumberings(self) -> int:
        """How often revisions were counted anew."""
        return self._store.renumberings

    def hold(self, found: Found) -> None:
        """Keep answers until ``let_go``, whatever others ask meanwhile."""
        self._held.update(found)

    def let_go(self) -> None:
        """Forget the answers: they have been read."""
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
    ) -> Page:
        """Return one page of a resource's objects; a selector is about the version in which they are shown.

        Raises:
            QuestionError: If objects are missing.
            CompactedError: If ``at`` lies before the window.
        """
        shown: Callable[[Resource], bool] | None = None
        if matches is not None:
            self._converted(self._store.list(resource, prefix=prefix, start=start, at=at).items)
            shown = self._matching(matches)
        page = self._store.list(resource, prefix=prefix, matches=shown, limit=limit, start=start, at=at)
        return replace(page, items=self._converted(page.items))

    def changes_after(self, revision: int, *, limit: int = 1000) -> tuple[StoredChange, ...]:
        """Return the changes after a revision, oldest first.

        Raises:
            QuestionError: If objects are missing.
            CompactedError: If changes after it have been dropped.
        """
        changes = self._store.changes_after(revision, limit=limit)
        wanted = [obj for change in changes if change.resource == self._resource for obj in self._seen(change)]
        self._converted(wanted)
        return tuple([self._shown(change) if change.resource == self._resource else change for change in changes])

    def has_dropped(self, resource: str, *, after: int) -> bool:
        """Tell whether a change of a resource after a revision has left the window."""
        return self._store.has_dropped(resource, after=after)

    def _matching(self, matches: Callable[[Resource], bool]) -> Callable[[Resource], bool]:
        return lambda obj: matches(self._found(obj) or obj)

    def _seen(self, change: StoredChange) -> tuple[Resource, ...]:
        old = change.old if self._compares or change.new is None else None
        return tuple(obj for obj in (old, change.new) if obj is not None)

    def _shown(self, change: StoredChange) -> StoredChange:
        old, new = change.old, change.new
        return replace(
            change,
            old=(self._found(old) or old) if old is not None else None,
            new=(self._found(new) or new) if new is not None else None,
        )

    def _found(self, obj: Resource) -> Resource | None:
        """Return an object in the version; None if it is missing."""
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
