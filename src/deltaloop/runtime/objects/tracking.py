"""Watches of foreign objects for as long as reconciled objects need them: ``ctx.track``.

Each watch is an informer with a cache of its own, and ends with the last key that tracks its object, or with the term
of the workers. What this program writes to a tracked object lies over that cache as over any other. What was written
before is not known there, so an object's first state is read from the server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, final

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.keys import join_key
from deltaloop.api.resource import Resource, decoder, untyped
from deltaloop.api.resource_type import ResourceType, as_kind
from deltaloop.api.selectors import FieldRequirement
from deltaloop.cache.errors import CacheSyncError
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.listwatch import ListWatch, ListWatchClient
from deltaloop.client import Client
from deltaloop.client.verbs.request_keywords import Kind
from deltaloop.runtime.core.predicates import Change, When
from deltaloop.runtime.core.tracking import Tracked, Tracking
from deltaloop.runtime.enqueue import AcceptsKeys, Enqueue
from deltaloop.runtime.errors import InvalidControllerError
from deltaloop.runtime.objects.cached_views import CacheView, Views

_logger: Final = logging.getLogger("deltaloop.runtime")


@final
class _Watch(msgspec.Struct, frozen=True):
    """A watch that runs, and what is to be undone when it ends."""

    kind: ResourceType[Any]
    informer: Informer[Any]
    view: CacheView
    task: asyncio.Task[None]
    confirmed: set[str] = msgspec.field(default_factory=set[str])


@final
class Tracker:
    """What the reconciles of one controller track; made by a manager, used on its event loop."""

    def __init__(
        self,
        controller: str,
        kinds: Mapping[str, ResourceType[Any]],
        *,
        client: ListWatchClient,
        queue: AcceptsKeys,
        on_trigger: Callable[[str, str], object] | None,
        views: Views,
        namespace: str | None,
        sync_timeout: float,
        options: InformerOptions,
        transform: Callable[[Resource], Resource] | None,
        clock: Callable[[], float],
    ) -> None:
        """Begin without watches.

        Args:
            controller: Name of the controller.
            kinds: What may be tracked, by name.
            client: Lists and watches.
            queue: Gets the keys that a change concerns.
            on_trigger: Told source and verb for each of them.
            views: Gets the caches, for own writes.
            namespace: The only one in which the controller may track; None for all.
            sync_timeout: Seconds that the first list of a watch may take.
            options: Of the informers. Metrics are left out: their names would be as many as objects were ever tracked.
            transform: What informers make of objects before they cache them, taking managed fields off included.
            clock: Seconds of the event loop.
        """
        self._controller = controller
        self._kinds = kinds
        self._client = client
        self._queue = queue
        self._on_trigger = on_trigger
        self._views = views
        self._namespace = namespace
        self._sync_timeout = sync_timeout
        self._options = options.replace(metrics=None)
        self._transform = transform
        self._clock = clock
        self._tracking = Tracking()
        self._watches: dict[Tracked, _Watch] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return how many objects are tracked."""
        return len(self._tracking)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """The informers of the watches that run."""
        return tuple(watch.informer for watch in self._watches.values())

    async def track(
        self, kind: Kind, name: str, namespace: str, *, key: str, client: Client, check: Callable[[str], None]
    ) -> Any:
        """Track an object for a key, and return it as it is now; None if there is none.

        Args:
            kind: What kind of object.
            name: Its name.
            namespace: Its namespace; not looked at for kinds without.
            key: Whose run tracks it.
            client: Asks the server, in the manner of that run.
            check: Raises if that run is to stop; given what it wants to do.

        Raises:
            InvalidControllerError: If the controller does not declare the kind.
            InvalidArgumentError: If there is no name, or the namespace is missing or not the controller's.
            CacheSyncError: If the first list takes too long, or the server refuses it.
            ApiError, TransportError: If the object's first state cannot be read.
        """
        kind = as_kind(kind)
        tracked = self._tracked(kind, name, namespace)
        check(f"tracking of {tracked.kind} {name}")
        watched = self._tracking.track(key, tracked)
        watch = self._watches.get(watched) or self._start(watched)
        try:
            if not watch.informer.has_synced:
                await watch.informer.wait_for_sync(self._sync_timeout)
        except CacheSyncError as error:
            check(f"tracking of {tracked.kind} {name}")
            named = [
                msgspec.structs.replace(failure, resource=f"{failure.resource} (to track {name})")
                for failure in error.failures
            ]
            raise CacheSyncError(named) from None
        found = await self._newest(watch, join_key(tracked.namespace, name), name, tracked.namespace, client)
        check(f"tracking of {tracked.kind} {name}")
        return None if found is None else decoder(kind if isinstance(kind, ResourceType) else watch.kind)(found)

    def ended(self, key: str, *, succeeded: bool, exists: bool) -> None:
        """Take the end of a key's run; ``exists`` is whether the key's own object is there."""
        self._stop(self._tracking.ended(key, succeeded=succeeded, exists=exists))

    def gone(self, key: str) -> None:
        """Take that the key's own object is gone, or another one."""
        self._stop(self._tracking.gone(key))

    async def close(self) -> None:
        """End all watches, and wait for their end; the next runs begin anew."""
        self._stop([*self._watches])
        self._tracking = Tracking()
        cancelled: asyncio.CancelledError | None = None
        while self._ending:
            try:
                await asyncio.wait([*self._ending])
            except asyncio.CancelledError as error:  # they end at once; nothing else would wait for them
                cancelled = error
        if cancelled is not None:
            raise cancelled

    # -- what is asked for

    def _tracked(self, kind: Kind, name: str, namespace: str) -> Tracked:
        known = self._kinds.get(str(kind))
        if known is None:
            declared = ", ".join(repr(name) for name in [*dict.fromkeys([*map(str, self._kinds.values()), str(kind)])])
            problem = f"it tracks a {kind}, which it does not declare: @dl.controller(..., tracks=[{declared}])"
            raise InvalidControllerError(self._controller, problem)
        if not name:
            raise InvalidArgumentError(f"a {known} without a name cannot be tracked")
        if not known.namespaced:
            return Tracked(str(known), "", name)
        if not namespace:
            raise InvalidArgumentError(f"{known} lives in namespaces: give one for {name!r}")
        if self._namespace not in (None, namespace):
            problem = f"it tracks {known} {name!r} in namespace {namespace}, and works in {self._namespace} only"
            raise InvalidControllerError(self._controller, problem)
        return Tracked(str(known), namespace, name)

    async def _newest(self, watch: _Watch, key: str, name: str, namespace: str, client: Client) -> Resource | None:
        view = watch.view
        if key in watch.confirmed and not view.is_uncertain(key):
            return view.get(key)
        before = view.get(key)
        live = await client.find(untyped(watch.kind), name, namespace=namespace or None)
        watch.confirmed.add(key)
        if view.is_uncertain(key):
            return view.settle(key, live)
        if live is not None:
            view.wrote(live)
        elif before is not None:
            view.deleted(key, uid=before.uid, version=before.resource_version)
        return view.get(key)

    # -- watches

    def _start(self, watched: Tracked) -> _Watch:
        kind, namespace = untyped(self._kinds[watched.kind]), watched.namespace or None
        lister_watcher = ListWatch(
            self._client,
            kind,
            namespace=namespace,
            field_selector=str(FieldRequirement("metadata.name", watched.name)) if watched.name else "",
            drop_managed_fields=not self._options.keep_managed_fields,
        )
        informer = Informer(lister_watcher, kind, options=self._options)
        handler = Enqueue(
            self._queue,
            lambda obj: self._tracking.keys_of(Tracked(watched.kind, obj.namespace, obj.name)),
            source="track",
            name=f"{self._controller}: track {watched.kind}",
            predicates=[When(_is_news)],
            on_trigger=self._on_trigger,
            clock=self._clock,
        )
        informer.add_event_handler(handler, name=f"{self._controller}: track")
        view = CacheView(informer, namespace=namespace, name=watched.name, transform=self._transform, clock=self._clock)
        self._views.of(kind).tracked.append(view)
        task = asyncio.create_task(_run(informer), name=f"informer of {informer.name}")
        watch = self._watches[watched] = _Watch(kind, informer, view, task)
        return watch

    def _stop(self, ending: Iterable[Tracked]) -> None:
        for watched in ending:
            watch = self._watches.pop(watched)
            self._views.of(watch.kind).tracked.remove(watch.view)
            watch.task.cancel()
            self._ending.add(watch.task)
            watch.task.add_done_callback(self._ending.discard)


async def _run(informer: Informer[Any]) -> None:
    try:
        await informer.run()
    except Exception:
        # Nothing that a server or a handler does comes here; it would be a fault of ours, and must not stay silent.
        _logger.exception("the watch of a tracked object has failed", extra={"resource": informer.name})


def _is_news(change: Change) -> bool:
    """Tell whether a change is not only what the first list brought: who tracks the object waits for that."""
    return change.verb != "initial"
