"""One program under test: a manager with everything of its own, in a simulated process that may crash.

Its requests go by a transport that can fail and writes down what was written (``program_transport.py``). Cores:
``core/program_writes.py`` (writes, faults, crashes), ``core/settling.py`` (whether anything is left to do).
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.list_options import ListOptions
from deltaloop.api.references import Trigger
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.fault_rules import Fault
from deltaloop.cache import Informer
from deltaloop.cache.core.consistency import compare, state_of
from deltaloop.client import Client, ClientConfig
from deltaloop.client.opening import open_transport
from deltaloop.events import EventRecorder
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.root_error import DeltaloopError
from deltaloop.runtime import Controller, Manager, ManagerOptions
from deltaloop.runtime.core.outcomes import InvalidResultError, NotAwaitedError
from deltaloop.runtime.core.readiness import Leadership
from deltaloop.runtime.errors import InvalidChildrenError, UndeclaredAccessError
from deltaloop.runtime.reconcile_loop import ReconcileLoop
from deltaloop.testing.core.program_writes import StaleRestart
from deltaloop.testing.core.settling import QueueState, ReplicaState
from deltaloop.testing.processes import Process
from deltaloop.testing.program_transport import ProgramTransport
from deltaloop.workqueue.delaying import DelayedItem

if TYPE_CHECKING:
    from deltaloop.testing.harness import Harness

_RESTART_AFTER: Final = 1.0
_FIRST_PAUSE: Final = 0.01
_FLUSH: Final = 5.0
MANAGER: Final = "deltaloop-harness"
"""Field manager of what a harness installs, and name of the lease that its replicas contend for."""

_MISTAKES: Final = (InvalidChildrenError, InvalidResultError, NotAwaitedError, UndeclaredAccessError)


@final
class Replica:
    """One program that runs controllers; made by ``Harness.start``.

    Attributes:
        name: What it is called, over restarts.
        identity: What it calls itself: another one after each restart.
        manager: Its manager.
    """

    def __init__(
        self,
        harness: Harness,
        name: str,
        controllers: Sequence[Controller],
        options: ManagerOptions,
        election: LeaderElectionConfig | None,
        config: ClientConfig,
    ) -> None:
        """Made by a harness; nothing runs yet."""
        self.name = name
        self.identity: str = name
        self._harness = harness
        self._controllers = tuple(controllers)
        self._options = options
        self._election = election
        self._config = config
        self._starts = 0
        self._restart: asyncio.Task[None] | None = None
        self._parted = self._refuses = False

    # -- state

    @property
    def manager(self) -> Manager:
        """The manager of its present life, or the last one."""
        return self._manager

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """What it runs."""
        return self._controllers

    @property
    def alive(self) -> bool:
        """Whether it runs, or is about to."""
        return not self._process.crashed and not self._task.done()

    @property
    def leads(self) -> bool:
        """Whether its controllers work: it leads, or there is no election."""
        return self.alive and self._manager.leadership is not Leadership.STANDBY

    @property
    def held_up(self) -> bool:
        """Whether it is parted from the server, or stands still: it does nothing until that is over."""
        return self.alive and (self._transport.parted or self._process.paused)

    def state(self) -> ReplicaState | None:
        """Return what it has to do; None if it is gone for good.

        Raises:
            Exception: What its manager raised, if that has ended by itself; or a mistake of a reconciler, which parks
                its key: ``InvalidChildrenError``, ``InvalidResultError``, ``NotAwaitedError``,
                ``UndeclaredAccessError``.
        """
        if self._restart is not None and not self._restart.done():
            return ReplicaState(name=self.name, starting=True)
        if self._process.crashed:
            return None
        if self._task.done():
            self._task.result()
            return None
        letters = [letter for loop in self._manager.loops for letter in loop.queue.dead_letters()]
        for mistake in (letter.error for letter in letters if isinstance(letter.error, _MISTAKES)):
            raise mistake
        return ReplicaState(
            name=self.name,
            starting=not self._is_up(),
            stands_by=not self.leads,
            parted=self._transport.parted,
            paused=self._process.paused,
            queues=tuple(map(_queue_state, self._manager.loops)),
        )

    def _is_up(self) -> bool:
        return all(check.ok for check in self._manager.readiness())

    async def behind(self) -> tuple[str, ...]:
        """Return where its caches, or the Events that it records, are behind; for people."""
        if self.held_up:
            return ()
        trackers = [loop.tracker for loop in self._manager.loops if loop.tracker is not None]
        tracked = [informer for tracker in trackers for informer in tracker.informers]
        left = [text for informer in (*self._manager.informers, *tracked) for text in await self._compared(informer)]
        if not await self._recorder.flush(_FLUSH):
            left.append(f"{self.name}: Events wait to be sent")
        return tuple(left)

    async def _compared(self, informer: Informer[Resource]) -> tuple[str, ...]:
        try:
            served = await informer.lister_watcher.list(ListOptions())
        except DeltaloopError as error:
            return (f"{self.name}: its cache of {informer.name} cannot be compared: {type(error).__name__}",)
        version = served.resource_version
        report = compare(state_of(informer.indexer.list()), state_of(served.items), resource_version=version)
        keys = (*report.missing, *report.left_over, *report.different)
        return (f"{self.name}: its cache of {informer.name} is behind: {', '.join(keys[:5])}",) if keys else ()

    # -- life

    async def start(self, stale: StaleRestart | None = None) -> None:
        """Start it, anew after an end: with empty caches, and another identity.

        Args:
            stale: How far behind what it is shown first is; None is not at all.

        Raises:
            Exception: What its manager raises before it works.
        """
        self._starts += 1
        if self._starts > 1:
            self.identity = f"{self.name}-{self._starts}"
        self._process = process = Process(self.name)
        harness = self._harness
        self._inner = open_transport(self._config, harness.client.options.http)
        self._transport = ProgramTransport(
            self._inner,
            process=process,
            plan=harness.plan,
            recorder=harness,
            crash=self.crash_and_restart,
            lags_until=0.0 if stale is None else self._show_the_past(stale),
        )
        if self._parted:
            self._transport.part(refuse=self._refuses)
        client = Client(self._config, transport=self._transport, options=harness.client.options)
        clock = asyncio.get_running_loop().time
        self._recorder = EventRecorder(
            client,
            component=self._controllers[0].name,
            instance=self.identity,
            watchers=[harness.events.append],
            clock=clock,
            chance=harness.chance,
        )
        self._manager = Manager(
            client, self._controllers, elector=self._elector(client), recorder=self._recorder, options=self._options
        )
        self._task = process.start(self._run(client, self._recorder, self._manager), name=self.identity)
        while not process.crashed and not self._task.done() and not self._is_up():
            await asyncio.wait({self._task}, timeout=_FIRST_PAUSE)
        if self._task.done():
            self._task.result()

    async def _run(self, client: Client, recorder: EventRecorder, manager: Manager) -> None:
        async with client, recorder:
            await manager.run()

    def _elector(self, client: Client) -> LeaderElector | None:
        if self._election is None:
            return None
        lock = LeaseLock(client, namespace=client.namespace, name=MANAGER, identity=self.identity)
        config = replace(self._election, own_thread=False)  # it would live on, when this program crashes
        clock, chance = asyncio.get_running_loop().time, self._harness.chance
        return LeaderElector(lock, config, client=client, clock=clock, chance=chance, end_process=self._process.crash)

    async def stop(self) -> None:
        """End it in good order, as SIGTERM does; if it does not run, do nothing.

        Raises:
            Exception: What its manager raises.
        """
        if self._restart is not None:
            self._restart.cancel()
        if not self._process.crashed:
            self._process.resume()
            self._manager.stop()
            await self._task

    async def crash(self) -> None:
        """Have it be gone, now, between two awaits: no clean-up runs, no request is sent, its connections are cut.

        It stays away until ``restart``.
        """
        if self._restart is not None:
            self._restart.cancel()
        self._bury()
        await self._harness.idle()  # the server notices

    def crash_and_restart(self, stale: StaleRestart | None = None) -> None:
        """Crash, and start again a second later, as a kubelet does it; for planned crashes.

        Args:
            stale: How far behind what it is shown then is; None is not at all.
        """
        self._bury()
        later = self._start_later(stale)
        self._restart = asyncio.get_running_loop().create_task(later, name=self.name, context=contextvars.Context())

    def _bury(self) -> None:
        if not self._process.crashed:
            self._process.crash()
            self._harness.buried.append((self._process, self._inner))

    async def _start_later(self, stale: StaleRestart | None) -> None:
        await asyncio.sleep(_RESTART_AFTER)
        await self.start(stale)

    def _show_the_past(self, stale: StaleRestart) -> float:
        """Have each list and watch of its caches begin in the past; return until when they stay there."""
        server = self._harness.server
        if server is None:
            raise InvalidArgumentError("a stale restart needs an embedded server of the harness's own")
        # One list or watch of each kind that it caches. The server cannot tell its requests from those of others, so
        # who lists such a kind while it starts may be shown the past in its place.
        for informer in self._manager.informers:
            kind = informer.resource_type.group_resource
            server.faults.add(
                Fault(do="stale", verbs=("list", "watch"), resources=(kind,), behind=stale.behind, count=1)
            )
        return asyncio.get_running_loop().time() + stale.seconds

    async def restart(self, *, crash: bool = False) -> None:
        """End it and start it anew, with empty caches and another identity; one that is gone is only started.

        Args:
            crash: Whether it crashes, if it runs, instead of ending in good order.
        """
        await (self.crash() if crash else self.stop())
        await self.start()

    def pause(self) -> None:
        """Have it stand still, as by SIGSTOP or a long garbage collection, until ``resume``; its connections stay."""
        self._process.pause()

    def resume(self) -> None:
        """Have it go on as if nothing had been."""
        self._process.resume()

    # -- network

    @contextmanager
    def partition(self, *, refuse: bool = False) -> Generator[None, None, None]:
        """Let it not reach the server in this block; ``part`` and ``heal`` do the same without one."""
        self.part(refuse=refuse)
        try:
            yield
        finally:
            self.heal()

    def part(self, *, refuse: bool = False) -> None:
        """Let it not reach the server, from now on until ``heal``; after a restart neither.

        Args:
            refuse: Whether its connections are cut and new ones refused. By default nothing arrives and nobody is told,
                as by a network that has lost its way; what was on its way comes when it heals.
        """
        self._parted, self._refuses = True, refuse
        self._transport.part(refuse=refuse)

    def heal(self) -> None:
        """Let it reach the server again."""
        self._parted = False
        self._transport.heal()

    def __repr__(self) -> str:
        return f"<Replica {self.identity}, {'alive' if self.alive else 'gone'}>"


def _queue_state(loop: ReconcileLoop) -> QueueState:
    queue = loop.queue
    numbers = queue.statistics()
    failing = [(each.item, each.delay) for each in queue.delayed() if queue.num_requeues(each.item) or not _asked(each)]
    return QueueState(
        controller=loop.controller.name,
        waiting=numbers.queued,
        running=tuple(each.item for each in queue.processing()),
        failing=tuple(failing),
        runs=numbers.taken,
    )


def _asked(delayed: DelayedItem[str]) -> bool:
    """Tell whether a reconcile asked for a delay, with ``requeue_after``; other reasons may have come since."""
    return any(isinstance(each, Trigger) and each.source == "requeue" for each in delayed.triggers)
