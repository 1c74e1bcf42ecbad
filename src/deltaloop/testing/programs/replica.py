"""Program under test: a workload in a simulated process that may crash, with a transport that can fail."""

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
from deltaloop.apiserver import ApiServer, Fault
from deltaloop.client import Client, ClientConfig
from deltaloop.events import EventRecorder
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.runtime import Controller, Manager, ManagerOptions
from deltaloop.testing.deterministic_loop.processes import Process
from deltaloop.testing.injected_faults.core.program_writes import LASTS, WriteReason
from deltaloop.testing.programs.core.settling import ReplicaState
from deltaloop.testing.programs.harness_state import HarnessState
from deltaloop.testing.programs.program_transport import ProgramTransport
from deltaloop.testing.programs.workloads import ManagedControllers, OtherProgram, Workload

if TYPE_CHECKING:
    from deltaloop.sharding import ShardMember
    from deltaloop.webhooks.declaring import Webhook

_RESTART_AFTER: Final = 1.0
_FIRST_PAUSE: Final = 0.01
_log: Final = logging.getLogger("deltaloop.testing")
_STARTS_WITHIN: Final = 1.0
MANAGER: Final = "deltaloop-harness"
"""Field manager of objects that a harness installs, and name of the Lease for which its replicas contend."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Controllers:
    """Controllers and webhooks for ``Harness.start``; ``election`` None disables leader election and shards."""

    controllers: tuple[Controller, ...]
    options: ManagerOptions
    election: LeaderElectionConfig | None
    webhooks: tuple[Webhook, ...] = ()
    shards: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Main:
    """Function for ``Harness.run``, settled after ``quiet_after`` seconds without a write."""

    function: Callable[[Client], Awaitable[object]]
    quiet_after: float


@final
class Replica:
    """Program under test, started by ``Harness.start`` or ``Harness.run``.

    Attributes:
        name: Name of the program, kept over restarts.
        identity: Identity of its current life, which changes with each restart.
    """

    def __init__(
        self,
        state: HarnessState,
        name: str,
        runs: Controllers | Main,
        config: ClientConfig,
    ) -> None:
        self.name = name
        self.identity: str = name
        self._state = state
        self._runs = runs
        self._config = config
        self._starts = 0
        self._first_write = 0
        self._restart: asyncio.Task[None] | None = None
        self._crashes = asyncio.Event()
        self._ended_by = ""
        self._errors = ErrorSummaries()
        self._disconnected = self._refuses = False

    # -- state

    @property
    def manager(self) -> Manager:
        """Manager of its current or last life.

        Raises:
            InvalidArgumentError: If the program was started by ``Harness.run``.
        """
        if not isinstance(self._workload, ManagedControllers):
            raise InvalidArgumentError(f"{self.name} has no manager, because run() started it")
        return self._workload.manager

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """Controllers of the program; empty if it was started by ``Harness.run``."""
        return self._runs.controllers if isinstance(self._runs, Controllers) else ()

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return not self._process.crashed and not self._task.done()

    @property
    def webhook_port(self) -> int:
        """Port of its webhooks; 0 if they are unreachable."""
        if self._disconnected or not self.alive or not isinstance(self._workload, ManagedControllers):
            return 0
        server = self._workload.manager.webhook_server
        return 0 if server is None or server.not_ready() else server.port

    @property
    def leads(self) -> bool:
        """Whether its controllers work, because it leads or runs without an election."""
        return self.alive and self._process.view(lambda: self._workload.leads)

    @property
    def held_up(self) -> bool:
        """Whether it cannot work because it is disconnected or paused."""
        return self.alive and (self._transport.disconnected or self._process.paused)

    def state(self) -> ReplicaState | None:
        """Return its pending work; None if the program has ended.

        Raises:
            Exception: Error of its manager, or a mistake of a reconciler that parks its key: ``InvalidArgumentError``,
                ``InvalidResultError``, ``NotAwaitedError``, ``UndeclaredAccessError``, ``WaitOnLoopError``.
        """
        if self._restart is not None and not self._restart.done():
            return ReplicaState(name=self.name, starting=True, ended_by=self._ended_by)
        if self._process.crashed:
            return None
        if self._task.done():
            self._task.result()
            return None
        queues, is_up = self._process.view(lambda: (self._workload.queues(), self._workload.is_up))
        return ReplicaState(
            name=self.name,
            starting=not is_up,
            stands_by=not self.leads,
            disconnected=self._transport.disconnected,
            paused=self._process.paused,
            ranges_move=self._ranges_move(),
            does=", ".join(controller.name for controller in self.controllers) or self.name,
            queues=queues,
        )

    def _ranges_move(self) -> bool:
        state = self._workload.manager.shard_state if isinstance(self._workload, ManagedControllers) else None
        if state is None:
            return False
        alive = {program.identity for program in self._state.programs if isinstance(program, Replica) and program.alive}
        return not state.ranges or any(
            each.owner not in alive or each.successor or (each.is_own and not each.is_working) for each in state.ranges
        )

    async def behind(self) -> tuple[str, ...]:
        """Return descriptions of changes that it has not seen, and of Events that it has not sent."""
        return () if self.held_up else await self._workload.behind()

    # -- life

    async def start(self, behind: int = 0) -> None:
        """Start the program with empty caches; a restart gets a new identity.

        Args:
            behind: Number of revisions by which its caches are behind at first.

        Raises:
            Exception: Error of its manager's start.
        """
        self._starts += 1
        self._first_write = len(self._state.writes)
        if self._starts > 1:
            self.identity = f"{self.name}-{self._starts}"
        self._inner = self._state.open_transport(self._config)
        self._process = process = Process(self.name)
        try:
            self._begin(process, behind)
        except BaseException:
            self.bury()  # no task exists that could end the process
            raise
        while not process.crashed and not self._task.done() and not self._workload.is_up:
            await asyncio.wait({self._task}, timeout=_FIRST_PAUSE)
        if self._task.done() and isinstance(self._runs, Controllers):
            self._task.result()
        self._state.lead_webhooks()

    def _begin(self, process: Process, behind: int) -> None:
        self._crashes = asyncio.Event()
        self._transport = ProgramTransport(
            self._inner,
            state=self._state,
            process=process,
            crash=self.crash_and_restart,
            reason=self._reason,
            lags_until=asyncio.get_running_loop().time() + LASTS if behind else 0.0,
        )
        if behind:
            self._show_the_past(behind, self._transport)
        if self._disconnected:
            self._transport.disconnect(refuse=self._refuses)
        client = Client(self._config, transport=self._transport, options=self._state.client.options)
        self._workload = self._made(client, process)
        self._task = process.start(self._workload.run(), name=self.identity)
        if isinstance(self._runs, Main):
            self._task.add_done_callback(partial(self._ended, process), context=contextvars.Context())

    def _made(self, client: Client, process: Process) -> Workload:
        runs, state = self._runs, self._state
        if not isinstance(runs, Controllers):
            return OtherProgram(
                self.name, client, runs.function, quiet_after=runs.quiet_after, last_write_at=self._last_write_at
            )
        clock = asyncio.get_running_loop().time
        recorder = EventRecorder(
            client,
            component=runs.controllers[0].name if runs.controllers else "webhooks",
            instance=self.identity,
            watchers=[state.events.append],
            clock=clock,
            random=state.random,
        )
        elector = None if runs.shards else self._elector(client, runs.election, process)
        options, service = runs.options, state.webhook_service
        if service is not None and runs.webhooks:
            from deltaloop.testing.programs.webhook_service import LISTEN

            options = options.replace(webhooks=LISTEN)
        manager = Manager(
            client,
            runs.controllers,
            elector=elector,
            shards=self._member(client, runs.election) if runs.shards and runs.election is not None else None,
            recorder=recorder,
            webhooks=runs.webhooks,
            certificates=None if service is None else service.certificate,
            options=options,
        )
        return ManagedControllers(self.name, client, recorder, manager, server=state.server)

    def _reason(self) -> WriteReason | None:
        own = [write for write in self._state.writes[self._first_write :] if write.replica == self.name]
        return self._workload.reason(own, life=self._starts)

    def _last_write_at(self) -> float:
        return next((write.at for write in reversed(self._state.writes) if write.replica == self.name), 0.0)

    def _elector(self, client: Client, election: LeaderElectionConfig | None, process: Process) -> LeaderElector | None:
        if election is None:
            return None
        lock = LeaseLock(client, namespace=client.namespace, name=MANAGER, identity=self.identity)
        config = replace(election, renew_in_thread=False)  # a thread would survive a crash of this program
        clock, random = asyncio.get_running_loop().time, self._state.random
        return LeaderElector(lock, config, client=client, clock=clock, random=random, end_process=process.crash)

    def _member(self, client: Client, election: LeaderElectionConfig) -> ShardMember:
        from deltaloop.sharding import ShardMember, ShardOptions

        config = replace(election, renew_in_thread=False)
        options = ShardOptions(name=MANAGER, namespace=client.namespace, election=config)
        clock, random = asyncio.get_running_loop().time, self._state.random
        return ShardMember(client, options, identity=self.identity, clock=clock, random=random)

    async def stop(self) -> None:
        """Stop the program gracefully, like SIGTERM, unless it has ended.

        Raises:
            Exception: Error of its manager.
        """
        if self._restart is not None:
            self._restart.cancel()
        if not self._process.crashed:
            self._process.resume()
            self._workload.stop()
            crashes = asyncio.ensure_future(self._crashes.wait())
            await asyncio.wait({self._task, crashes}, return_when=asyncio.FIRST_COMPLETED)
            crashes.cancel()
            self._state.lead_webhooks()
            if self._crashes.is_set():
                if self._restart is not None:
                    self._restart.cancel()  # like a deleted Pod
            elif not self._task.cancelled():
                self._task.result()

    async def crash(self) -> None:
        """Crash the program between two awaits: its clean-up does not run, and its connections are cut.

        It stays down until ``restart``.
        """
        if self._restart is not None:
            self._restart.cancel()
        self.bury()
        await self._state.idle()  # lets the server notice the cut connections

    def crash_and_restart(self, behind: int = 0) -> None:
        """Crash, and restart a second later, like a kubelet; for planned crashes.

        Args:
            behind: Number of revisions by which its caches are behind at first.
        """
        self.bury()
        later = self._start_later(behind)
        self._restart = asyncio.get_running_loop().create_task(later, name=self.name, context=contextvars.Context())

    def _ended(self, process: Process, task: asyncio.Task[None]) -> None:
        error = None if process.crashed or task.cancelled() else task.exception()
        if error is None:
            return
        self._ended_by = type(error).__name__
        message, now = "program raised an error, restarting it", asyncio.get_running_loop().time()
        self._errors.log(_log, logging.WARNING, message, error, now=now, extra={"replica": self.identity})
        self.crash_and_restart()

    def bury(self) -> None:
        """Crash its process, unless it has crashed already."""
        if not self._process.crashed:
            self._process.crash()
            self._crashes.set()
            self._state.buried.append((self._process, self._inner))
            self._state.lead_webhooks()

    async def _start_later(self, behind: int) -> None:
        await asyncio.sleep(_RESTART_AFTER)
        await self.start(behind)

    def _show_the_past(self, behind: int, transport: ProgramTransport) -> None:
        server, cached = self._state.server, self._workload.cached
        if server is None:
            raise InvalidArgumentError("a stale restart requires a separate embedded server of the harness")
        # The server cannot distinguish its requests from others, so another client that lists such a kind during the
        # start may receive the old state instead.
        for kind in cached or ():
            server.faults.add(Fault(do="stale", verbs=("list", "watch"), resources=(kind,), behind=behind, count=1))
        if cached is not None:
            self._note_pasts(server, server.revision, cached)
            return
        number = server.faults.add(Fault(do="stale", verbs=("list", "watch"), behind=behind))
        started = partial(self._has_started, server, number, server.revision, transport)
        asyncio.get_running_loop().call_later(_STARTS_WITHIN, started, context=contextvars.Context())

    def _has_started(self, server: ApiServer, fault: int, revision: int, transport: ProgramTransport) -> None:
        server.faults.remove(fault)
        self._note_pasts(server, revision, transport.listed)

    def _note_pasts(self, server: ApiServer, revision: int, kinds: Collection[str]) -> None:
        found = [revision - changed + 1 for changed in server.revisions_of(kinds) if changed <= revision]
        self._state.pasts.append(tuple(sorted(found)))

    async def restart(self, *, crash: bool = False) -> None:
        """Restart the program, with empty caches and another identity.

        Args:
            crash: Whether to crash it instead of stopping it gracefully.
        """
        await (self.crash() if crash else self.stop())
        await self.start()

    def pause(self) -> None:
        """Pause the program until ``resume``, like SIGSTOP or a long garbage collection; its connections stay open."""
        self._process.pause()

    def resume(self) -> None:
        """Continue after ``pause``."""
        self._process.resume()

    def slow_down(self, rate: float) -> None:
        """Slow its clock down until the program ends; a restart resets the clock.

        Args:
            rate: Seconds of its clock for each second of the server's, greater than 0 and at most 1.

        Raises:
            InvalidArgumentError: If the rate is out of range.
        """
        if not 0 < rate <= 1:
            raise InvalidArgumentError(f"must be > 0 and <= 1, got {rate}.", argument="rate")
        self._process.slow_down(rate)

    # -- network

    @contextmanager
    def partition(self, *, refuse: bool = False) -> Generator[None, None, None]:
        """Disconnect it from the server in this block; see ``disconnect``."""
        self.disconnect(refuse=refuse)
        try:
            yield
        finally:
            self.reconnect()

    def disconnect(self, *, refuse: bool = False) -> None:
        """Disconnect it from the server until ``reconnect``, even after a restart.

        Args:
            refuse: Whether to cut its connections and reject new connections. By default, traffic is held silently
                until then.
        """
        self._disconnected, self._refuses = True, refuse
        self._transport.disconnect(refuse=refuse)
        self._state.lead_webhooks()

    def reconnect(self) -> None:
        """Reconnect it to the server."""
        self._disconnected = False
        self._transport.reconnect()
        self._state.lead_webhooks()

    def __repr__(self) -> str:
        return f"<Replica {self.identity}, {'alive' if self.alive else 'gone'}>"
