"""One program under test, with everything of its own, in a simulated process that may crash.

What it does there is a workload (``workloads.py``). Its requests go by a transport that can fail and writes down what
was written (``program_transport.py``). Core: ``core/program_writes.py`` (writes, faults, crashes).
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, final

from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.apiserver.core.fault_rules import Fault
from deltaloop.client import Client, ClientConfig
from deltaloop.events import EventRecorder
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.runtime import Controller, Manager, ManagerOptions
from deltaloop.testing.core.program_writes import StaleRestart, WriteReason
from deltaloop.testing.core.settling import ReplicaState
from deltaloop.testing.processes import Process
from deltaloop.testing.program_transport import ProgramTransport
from deltaloop.testing.workloads import ManagedControllers, OtherProgram, Workload

if TYPE_CHECKING:
    from deltaloop.apiserver import ApiServer
    from deltaloop.testing.harness import Harness
    from deltaloop.webhooks.declaring import Webhook

_RESTART_AFTER: Final = 1.0
_FIRST_PAUSE: Final = 0.01
_log: Final = logging.getLogger("deltaloop.testing")
_STARTS_WITHIN: Final = 1.0
MANAGER: Final = "deltaloop-harness"
"""Field manager of what a harness installs, and name of the lease that its replicas contend for."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Controllers:
    """What ``Harness.start`` starts.

    Attributes:
        controllers: What the manager runs.
        options: Of the manager.
        election: By which times programs contend for a Lease; None is not at all.
        webhooks: What it serves.
    """

    controllers: tuple[Controller, ...]
    options: ManagerOptions
    election: LeaderElectionConfig | None
    webhooks: tuple[Webhook, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Main:
    """What ``Harness.run`` starts.

    Attributes:
        function: Runs with a client until it is cancelled.
        quiet_after: Seconds without a write after which nothing more is expected of it.
    """

    function: Callable[[Client], Awaitable[object]]
    quiet_after: float


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
        runs: Controllers | Main,
        config: ClientConfig,
    ) -> None:
        """Made by a harness; nothing runs yet."""
        self.name = name
        self.identity: str = name
        self._harness = harness
        self._runs = runs
        self._config = config
        self._starts = 0
        self._first_write = 0
        self._restart: asyncio.Task[None] | None = None
        self._ended_by = ""
        self._errors = ErrorSummaries()
        self._parted = self._refuses = False

    # -- state

    @property
    def manager(self) -> Manager:
        """The manager of its present life, or the last one.

        Raises:
            InvalidArgumentError: If it runs no controllers, but a function.
        """
        if not isinstance(self._workload, ManagedControllers):
            raise InvalidArgumentError(f"{self.name} was started by run(), so that it has no manager")
        return self._workload.manager

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """What it runs; none if that is a function."""
        return self._runs.controllers if isinstance(self._runs, Controllers) else ()

    @property
    def alive(self) -> bool:
        """Whether it runs, or is about to."""
        return not self._process.crashed and not self._task.done()

    @property
    def webhook_port(self) -> int:
        """Where its webhooks answer, for those who can reach it; 0 if they do not."""
        if self._parted or not self.alive or not isinstance(self._workload, ManagedControllers):
            return 0
        server = self._workload.manager.webhook_server
        return 0 if server is None or server.not_ready() else server.port

    @property
    def leads(self) -> bool:
        """Whether its controllers work: it leads, or there is no election."""
        return self.alive and self._workload.leads

    @property
    def held_up(self) -> bool:
        """Whether it is parted from the server, or stands still: it does nothing until that is over."""
        return self.alive and (self._transport.parted or self._process.paused)

    def state(self) -> ReplicaState | None:
        """Return what it has to do; None if it is gone for good.

        Raises:
            Exception: What its manager raised, if that has ended by itself; or a mistake of a reconciler, which parks
                its key: ``InvalidArgumentError``, ``InvalidResultError``, ``NotAwaitedError``,
                ``UndeclaredAccessError``, ``WaitOnLoopError``.
        """
        if self._restart is not None and not self._restart.done():
            return ReplicaState(name=self.name, starting=True, ended_by=self._ended_by)
        if self._process.crashed:
            return None
        if self._task.done():
            self._task.result()
            return None
        queues = self._workload.queues()
        return ReplicaState(
            name=self.name,
            starting=not self._workload.is_up,
            stands_by=not self.leads,
            parted=self._transport.parted,
            paused=self._process.paused,
            does=", ".join(controller.name for controller in self.controllers) or self.name,
            queues=queues,
        )

    async def behind(self) -> tuple[str, ...]:
        """Return what it has not seen, or not sent, yet; for people."""
        return () if self.held_up else await self._workload.behind()

    # -- life

    async def start(self, stale: StaleRestart | None = None) -> None:
        """Start it, anew after an end: with empty caches, and another identity.

        Args:
            stale: How far behind what it is shown first is; None is not at all.

        Raises:
            Exception: What its manager raises before it works.
        """
        self._starts += 1
        self._first_write = len(self._harness.writes)
        if self._starts > 1:
            self.identity = f"{self.name}-{self._starts}"
        harness = self._harness
        self._inner = harness.open_transport(self._config)
        self._process = process = Process(self.name)
        try:
            self._begin(process, stale)
        except BaseException:
            self.bury()  # there is no task that would end
            raise
        while not process.crashed and not self._task.done() and not self._workload.is_up:
            await asyncio.wait({self._task}, timeout=_FIRST_PAUSE)
        if self._task.done() and isinstance(self._runs, Controllers):
            self._task.result()
        harness.lead_webhooks()

    def _begin(self, process: Process, stale: StaleRestart | None) -> None:
        harness = self._harness
        self._transport = ProgramTransport(
            self._inner,
            process=process,
            plan=harness.plan,
            recorder=harness,
            crash=self.crash_and_restart,
            reason=self._reason,
            lags_until=0.0 if stale is None else asyncio.get_running_loop().time() + stale.seconds,
        )
        if stale is not None:
            self._show_the_past(stale, self._transport)
        if self._parted:
            self._transport.part(refuse=self._refuses)
        client = Client(self._config, transport=self._transport, options=harness.client.options)
        self._workload = self._made(client, process)
        self._task = process.start(self._workload.run(), name=self.identity)
        if isinstance(self._runs, Main):
            self._task.add_done_callback(partial(self._ended, process), context=contextvars.Context())

    def _made(self, client: Client, process: Process) -> Workload:
        runs, harness = self._runs, self._harness
        if not isinstance(runs, Controllers):
            return OtherProgram(
                self.name, client, runs.function, quiet_after=runs.quiet_after, last_write_at=self._last_write_at
            )
        clock = asyncio.get_running_loop().time
        recorder = EventRecorder(
            client,
            component=runs.controllers[0].name if runs.controllers else "webhooks",
            instance=self.identity,
            watchers=[harness.events.append],
            clock=clock,
            chance=harness.chance,
        )
        elector = self._elector(client, runs.election, process)
        options, service = runs.options, harness.webhook_service
        if service is not None and runs.webhooks:
            from deltaloop.testing.webhook_service import LISTEN

            options = replace(options, webhooks=LISTEN)
        manager = Manager(
            client,
            runs.controllers,
            elector=elector,
            recorder=recorder,
            webhooks=runs.webhooks,
            certificates=None if service is None else service.certificate,
            options=options,
        )
        return ManagedControllers(self.name, client, recorder, manager, server=harness.server)

    def _reason(self) -> WriteReason | None:
        own = [write for write in self._harness.writes[self._first_write :] if write.replica == self.name]
        reason = self._workload.reason(own)
        return None if reason is None else replace(reason, life=self._starts)

    def _last_write_at(self) -> float:
        return next((write.at for write in reversed(self._harness.writes) if write.replica == self.name), 0.0)

    def _elector(self, client: Client, election: LeaderElectionConfig | None, process: Process) -> LeaderElector | None:
        if election is None:
            return None
        lock = LeaseLock(client, namespace=client.namespace, name=MANAGER, identity=self.identity)
        config = replace(election, own_thread=False)  # it would live on, when this program crashes
        clock, chance = asyncio.get_running_loop().time, self._harness.chance
        return LeaderElector(lock, config, client=client, clock=clock, chance=chance, end_process=process.crash)

    async def stop(self) -> None:
        """End it in good order, as SIGTERM does; if it does not run, do nothing.

        Raises:
            Exception: What its manager raises.
        """
        if self._restart is not None:
            self._restart.cancel()
        if not self._process.crashed:
            self._process.resume()
            self._workload.stop()
            await asyncio.wait({self._task})
            self._harness.lead_webhooks()
            if not self._task.cancelled():
                self._task.result()

    async def crash(self) -> None:
        """Have it be gone, now, between two awaits: no clean-up runs, no request is sent, its connections are cut.

        It stays away until ``restart``.
        """
        if self._restart is not None:
            self._restart.cancel()
        self.bury()
        await self._harness.idle()  # the server notices

    def crash_and_restart(self, stale: StaleRestart | None = None) -> None:
        """Crash, and start again a second later, as a kubelet does it; for planned crashes.

        Args:
            stale: How far behind what it is shown then is; None is not at all.
        """
        self.bury()
        later = self._start_later(stale)
        self._restart = asyncio.get_running_loop().create_task(later, name=self.name, context=contextvars.Context())

    def _ended(self, process: Process, task: asyncio.Task[None]) -> None:
        """Start a program again that has ended by an error."""
        error = None if process.crashed or task.cancelled() else task.exception()
        if error is None:
            return
        self._ended_by = type(error).__name__
        message, now = "a program has ended by an error and is started again", asyncio.get_running_loop().time()
        self._errors.log(_log, logging.WARNING, message, error, now=now, extra={"replica": self.identity})
        self.crash_and_restart()

    def bury(self) -> None:
        """Crash its process, if there is one that has not crashed."""
        if not self._process.crashed:
            self._process.crash()
            self._harness.buried.append((self._process, self._inner))
            self._harness.lead_webhooks()

    async def _start_later(self, stale: StaleRestart | None) -> None:
        await asyncio.sleep(_RESTART_AFTER)
        await self.start(stale)

    def _show_the_past(self, stale: StaleRestart, transport: ProgramTransport) -> None:
        """Have each list and watch of its caches begin in the past."""
        server, cached = self._harness.server, self._workload.cached
        if server is None:
            raise InvalidArgumentError("a stale restart needs an embedded server of the harness's own")
        # The server cannot tell its requests from those of others, so who lists such a kind while it starts may be
        # shown the past in its place.
        for kind in cached or ():
            server.faults.add(
                Fault(do="stale", verbs=("list", "watch"), resources=(kind,), behind=stale.behind, count=1)
            )
        if cached is not None:
            self._note_pasts(server, server.revision, cached)
            return
        number = server.faults.add(Fault(do="stale", verbs=("list", "watch"), behind=stale.behind))
        started = partial(self._has_started, server, number, server.revision, transport)
        asyncio.get_running_loop().call_later(_STARTS_WITHIN, started, context=contextvars.Context())

    def _has_started(self, server: ApiServer, fault: int, revision: int, transport: ProgramTransport) -> None:
        server.faults.remove(fault)
        self._note_pasts(server, revision, transport.listed)

    def _note_pasts(self, server: ApiServer, revision: int, kinds: Collection[str]) -> None:
        found = [revision - changed + 1 for changed in server.revisions_of(kinds) if changed <= revision]
        self._harness.pasts.append(tuple(sorted(found)))

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

    def slow_down(self, rate: float) -> None:
        """Have its clock run slower than the server's, from now on until it ends; after a restart it is right again.

        Args:
            rate: Seconds of its clock for each of the server's, above 0 and at most 1.

        Raises:
            InvalidArgumentError: If the rate is none.
        """
        if not 0 < rate <= 1:
            raise InvalidArgumentError(f"the rate of a clock is above 0 and at most 1, not {rate}")
        self._process.slow_down(rate)

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
        self._harness.lead_webhooks()

    def heal(self) -> None:
        """Let it reach the server again."""
        self._parted = False
        self._transport.heal()
        self._harness.lead_webhooks()

    def __repr__(self) -> str:
        return f"<Replica {self.identity}, {'alive' if self.alive else 'gone'}>"
