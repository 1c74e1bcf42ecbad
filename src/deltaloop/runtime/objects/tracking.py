"""Temporary watches of single objects for ``ctx.track``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.keys import join_key
from deltaloop.api.resource import Resource, decoder, untyped
from deltaloop.api.resource_type import Kind, ResourceType, as_kind
from deltaloop.api.selectors import FieldRequirement
from deltaloop.cache.errors import CacheSyncError
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.listwatch import ListWatch
from deltaloop.client import Client
from deltaloop.runtime.core.changes import Change
from deltaloop.runtime.core.predicates import When
from deltaloop.runtime.core.tracking import Tracked, Tracking
from deltaloop.runtime.enqueue import Enqueue
from deltaloop.runtime.errors import InvalidControllerError
from deltaloop.runtime.objects.cached_views import CacheView, Views

if TYPE_CHECKING:
    from deltaloop.cache.interfaces import ListWatchClient
    from deltaloop.runtime.enqueue import AcceptsKeys

_logger: Final = logging.getLogger("deltaloop.runtime")


@final
class _Watch(msgspec.Struct, frozen=True):
    kind: ResourceType[Any]
    informer: Informer[Any]
    view: CacheView
    task: asyncio.Task[None]
    confirmed: set[str] = msgspec.field(default_factory=set[str])


@final
class Tracker:
    """Tracked objects of one controller; a manager creates it and uses it on its event loop."""

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
        """Create a tracker without watches.

        ``namespace`` is the only one in which objects can be tracked; None means all. ``sync_timeout`` is in seconds.
        Metrics are disabled, because each tracked object would add labels.
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
        return len(self._tracking)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        return tuple(watch.informer for watch in self._watches.values())

    async def track(
        self, kind: Kind, name: str, namespace: str, *, key: str, client: Client, check: Callable[[str], None]
    ) -> Any:
        """Track an object for a key, and return its current state; None if it does not exist.

        ``check`` is called with a description of the action, and raises if the reconcile must stop. Raises
        InvalidControllerError for an undeclared kind or another namespace, InvalidArgumentError for a missing name or
        namespace, CacheSyncError, ApiError and TransportError.
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
        """Record the end of a key's reconcile; ``exists`` is whether the key's own object exists."""
        self._stop(self._tracking.ended(key, succeeded=succeeded, exists=exists))

    def gone(self, key: str) -> None:
        self._stop(self._tracking.gone(key))

    async def close(self) -> None:
        """End all watches and wait for them. Later reconciles start without tracked objects."""
        self._stop([*self._watches])
        self._tracking = Tracking()
        cancelled: asyncio.CancelledError | None = None
        while self._ending:
            try:
                await asyncio.wait([*self._ending])
            except asyncio.CancelledError as error:  # the watches end soon, and nothing else would wait for them
                cancelled = error
        if cancelled is not None:
            raise cancelled

    # -- tracked objects

    def _tracked(self, kind: Kind, name: str, namespace: str) -> Tracked:
        known = self._kinds.get(str(kind))
        if known is None:
            declared = ", ".join(repr(name) for name in [*dict.fromkeys([*map(str, self._kinds.values()), str(kind)])])
            problem = f"must contain {kind}: @dl.controller(..., tracks=[{declared}])"
            raise InvalidControllerError(self._controller, problem, argument="tracks")
        if not name:
            raise InvalidArgumentError(f"must be the name of a {known}, got none.", argument="name")
        if not known.namespaced:
            return Tracked(str(known), "", name)
        if not namespace:
            raise InvalidArgumentError(f"must be set for {known} {name!r}.", argument="namespace")
        if self._namespace not in (None, namespace):
            problem = f"of the tracked {known} {name!r} must be {self._namespace}, got {namespace}."
            raise InvalidControllerError(self._controller, problem, argument="namespace")
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
        # Server and handler errors do not arrive here, so this is a bug that must be logged.
        _logger.exception("watch of a tracked object failed", extra={"resource": informer.name})


def _is_news(change: Change) -> bool:
    """Ignore the first list, because the reconcile that tracks the object waits for it."""
    return change.verb != "initial"
