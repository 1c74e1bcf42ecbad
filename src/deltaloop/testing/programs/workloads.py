"""Workloads of programs under test: controllers, or a function that settles after a while without writes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, TypeAlias, final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.list_options import ListOptions
from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.apiserver import ApiServer
from deltaloop.cache import Informer
from deltaloop.cache.core.consistency import compare, state_of
from deltaloop.client import Client
from deltaloop.events import EventRecorder
from deltaloop.runtime import Manager
from deltaloop.runtime.core.outcomes import InvalidResultError, NotAwaitedError
from deltaloop.runtime.core.readiness import Leadership
from deltaloop.runtime.reconcile.errors import UndeclaredAccessError, WaitOnLoopError
from deltaloop.runtime.reconcile.execution import running_reconcile
from deltaloop.runtime.reconcile.loop import ReconcileLoop
from deltaloop.testing.injected_faults.core.program_writes import ProgramWrite, WriteReason, made
from deltaloop.testing.programs.core.settling import QueueState
from deltaloop.workqueue.shown_items import DelayedItem

_FLUSH: Final = 5.0
_MISTAKES: Final = (InvalidArgumentError, InvalidResultError, NotAwaitedError, UndeclaredAccessError, WaitOnLoopError)


@final
class ManagedControllers:
    def __init__(
        self, name: str, client: Client, recorder: EventRecorder, manager: Manager, *, server: ApiServer | None = None
    ) -> None:
        """Wrap a manager; with ``server``, unchanged resources are not listed for comparison."""
        self.manager = manager
        self._name = name
        self._server = server
        self._client = client
        self._recorder = recorder

    @property
    def is_up(self) -> bool:
        return all(check.ok for check in self.manager.readiness())

    @property
    def leads(self) -> bool:
        """Whether its controllers work, because it leads or runs without an election."""
        return self.manager.leadership is not Leadership.STANDBY

    @property
    def cached(self) -> tuple[str, ...]:
        return tuple(informer.resource_type.group_resource for informer in self.manager.informers)

    def reason(self, own: Sequence[ProgramWrite], *, life: int) -> WriteReason | None:
        """Return the reconcile of the caller, its triggers, and unseen changes except the program's ``own`` writes."""
        running = running_reconcile()
        if running is None:
            return None
        told = f"{running.controller} {running.request}, reconcile {running.number}"
        told += f", attempt {running.attempts}" if running.attempts > 1 else ""
        return WriteReason(
            reconcile=told + (", clean-up" if running.cleanup else ""),
            triggers=tuple(map(str, running.triggers)),
            unseen=tuple(self._unseen(own)),
            controller=running.controller,
            number=running.number,
            life=life,
        )

    def _unseen(self, own: Sequence[ProgramWrite]) -> Iterator[str]:
        for informer in self.manager.informers:
            version, resource = informer.resource_version, informer.resource_type.group_resource
            if self._server is None or not version or not self._server.has_changed(resource, after=int(version)):
                continue
            found: dict[str, list[str]] = {}
            for change in self._server.changes_of(resource, after=int(version)):
                if not any(made(write, resource, change.key, change.revision) for write in own):
                    how = "deleted " if change.new is None else ""
                    found.setdefault(change.key, []).append(f"{how}{change.revision}")
            for key, versions in found.items():
                yield f"{resource} {key} ({', '.join(versions)})"

    def queues(self) -> tuple[QueueState, ...]:
        """Return its work queues; raise a mistake of a reconciler that parked its key."""
        letters = [letter for loop in self.manager.loops for letter in loop.queue.dead_letters()]
        for mistake in (letter.error for letter in letters if isinstance(letter.error, _MISTAKES)):
            raise mistake
        return queue_states(self.manager)

    async def behind(self) -> tuple[str, ...]:
        """Return descriptions of outdated caches and of Events that are not sent."""
        shared = [loop.shared.tracker for loop in self.manager.loops]
        trackers = [tracker for tracker in shared if tracker is not None]
        tracked = [informer for tracker in trackers for informer in tracker.informers]
        left = [text for informer in (*self.manager.informers, *tracked) for text in await self._compared(informer)]
        if not await self._recorder.flush(_FLUSH):
            left.append(f"{self._name}: Events are not sent yet")
        return tuple(left)

    async def _compared(self, informer: Informer[Resource]) -> tuple[str, ...]:
        version, resource = informer.resource_version, informer.resource_type.group_resource
        if self._server is not None and version and not self._server.has_changed(resource, after=int(version)):
            return ()
        try:
            served = await informer.lister_watcher.list(ListOptions())
        except DeltaloopError as error:
            return (f"{self._name}: its cache of {informer.name} cannot be compared: {type(error).__name__}",)
        cached, kept = state_of(informer.indexer.list()), state_of(served.items)
        report = compare(cached, kept, resource_version=served.resource_version)
        keys = (*report.missing, *report.left_over, *report.different)
        return (f"{self._name}: its cache of {informer.name} is behind: {', '.join(keys[:5])}",) if keys else ()

    async def run(self) -> None:
        async with self._client, self._recorder:
            await self.manager.run()

    def stop(self) -> None:
        self.manager.stop()


@final
class OtherProgram:
    def __init__(
        self,
        name: str,
        client: Client,
        main: Callable[[Client], Awaitable[object]],
        *,
        quiet_after: float,
        last_write_at: Callable[[], float],
    ) -> None:
        """Wrap a function, which counts as settled after ``quiet_after`` seconds without a write."""
        self._name = name
        self._client = client
        self._main = main
        self._quiet_after = quiet_after
        self._last_write_at = last_write_at
        self._began_at = asyncio.get_running_loop().time()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_up(self) -> bool:
        return self._task is not None

    @property
    def leads(self) -> bool:
        """True, because its leadership is unknown."""
        return True

    @property
    def cached(self) -> None:
        """None, because its caches are unknown."""
        return None

    def reason(self, own: Sequence[ProgramWrite], *, life: int) -> None:  # noqa: ARG002 - like ManagedControllers
        """Return None, because its reconciles are unknown."""
        return

    def queues(self) -> tuple[QueueState, ...]:
        """Return no queues, because they are unknown."""
        return ()

    async def behind(self) -> tuple[str, ...]:
        """Return a description while the program has not been quiet for long enough."""
        now = asyncio.get_running_loop().time()
        left = max(self._began_at, self._last_write_at()) + self._quiet_after - now
        return (f"{self._name} wrote within the last {self._quiet_after:g} s",) if left > 0 else ()

    async def run(self) -> None:
        self._task = asyncio.current_task()
        async with self._client:
            await self._main(self._client)

    def stop(self) -> None:
        """Cancel the function, like most programs do on SIGTERM."""
        if self._task is not None:
            self._task.cancel()


Workload: TypeAlias = ManagedControllers | OtherProgram


def queue_states(manager: Manager) -> tuple[QueueState, ...]:
    """Return the work queues of a manager, also if a mistake parked a key."""
    return tuple(map(_queue_state, manager.loops))


def _queue_state(loop: ReconcileLoop) -> QueueState:
    queue = loop.queue
    numbers = queue.statistics()
    failed = [each for each in queue.delayed() if _is_left(loop, each)]
    return QueueState(
        controller=loop.controller.name,
        waiting=numbers.queued,
        running=tuple(each.item for each in queue.processing()),
        failing=tuple((each.item, each.delay, loop.last_error(each.item)) for each in failed),
        runs=numbers.taken,
    )


def _is_left(loop: ReconcileLoop, delayed: DelayedItem[str]) -> bool:
    """Return whether a delayed key is pending work, unless ``requeue_after`` or a later success explains it."""
    if loop.queue.num_requeues(delayed.item) or loop.last_error(delayed.item):
        return True
    return not (delayed.rate_limited or _asked(delayed))


def _asked(delayed: DelayedItem[str]) -> bool:
    """Return whether a reconcile requested the delay with ``requeue_after``; other triggers may have been added."""
    return any(isinstance(each, Trigger) and each.source == "requeue" for each in delayed.triggers)
