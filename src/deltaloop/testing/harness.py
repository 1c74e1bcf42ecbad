"""Controllers under test: programs that run beside each other on one loop, crash, restart, are parted from the server.

Cores: ``core/program_writes.py`` (writes, faults, crashes), ``core/settling.py`` (whether anything is left to do).

A *replica* is one program: a manager with a client, caches, a recorder of Events and, if asked for, an elector of its
own, in a simulated process (``processes.py``). Its requests go by a transport that can fail and writes down what was
written (``program_transport.py``). The test's own client goes by another way, which nothing disturbs.

The pytest fixture ``deltaloop_harness`` is one; ``embedded_harness`` is one without pytest.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar, final

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.status import NotFoundError
from deltaloop.api.times import utc_now
from deltaloop.apiserver import ApiServer, ServerOptions, read_manifests
from deltaloop.apiserver.core.controllers.manifests import Manifest, in_order, manifests_of
from deltaloop.apiserver.core.fault_rules import FaultBook
from deltaloop.apiserver.core.storage.store import StoreState
from deltaloop.client import Client, ClientConfig
from deltaloop.client.connecting import load_config
from deltaloop.client.core.wait_conditions import established
from deltaloop.client.transport.opening import open_transport
from deltaloop.client.transport.protocol import HttpRequest, Transport
from deltaloop.crds import crd_of
from deltaloop.crds.declaring import by_kind
from deltaloop.events import EventDraft
from deltaloop.leaderelection import LeaderElectionConfig
from deltaloop.runtime import Controller, ManagerOptions
from deltaloop.runtime.controller import require_controllers
from deltaloop.runtime.core.declared_access import UndeclaredAccess
from deltaloop.runtime.program.access import Program, granting, restricted, rules_of
from deltaloop.testing.cluster import Cluster, close_in_time, closing_in_time, default_server_options
from deltaloop.testing.core.program_writes import (
    CrashAt,
    CrashLater,
    CrashMoment,
    ProgramWrite,
    UserStep,
    WebhooksFail,
    WriteName,
    WritePlan,
    failing_share,
)
from deltaloop.testing.core.settling import NotSettledError, ReplicaState, Settling, left_to_do
from deltaloop.testing.direct_transport import DirectTransport
from deltaloop.testing.environment.core.models import ModelName
from deltaloop.testing.environment.driver import ClusterEnvironment
from deltaloop.testing.noting_transport import NotingTransport, in_foreground
from deltaloop.testing.processes import Process, outside
from deltaloop.testing.program_transport import text_of
from deltaloop.testing.replica import MANAGER, Controllers, Main, Replica
from deltaloop.testing.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from deltaloop.testing.webhook_service import WebhookService
    from deltaloop.webhooks.declaring import Webhook

_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 1.0
_MOST_PAUSES: Final = 100  # of that length, before it is given up
_TURNS: Final = 500
_REAL_PAUSE: Final = 0.05
_HURRIED_FOR: Final = 30.0
_HOT_AT_ONCE: Final = 200  # so often the same write while no time passed
_DEFAULTS: Final = ManagerOptions(preflight=False, undeclared=UndeclaredAccess.REFUSE)


Check = TypeVar("Check", bound=Callable[[Client], Awaitable[object]])


@final
class Harness:
    """Runs controllers under test; an async context manager, which ends what still runs.

    Attributes:
        client: The test's own client; nothing disturbs it.
        namespace: The only namespace that programs watch; None for all.
        replicas: All programs that were started.
        writes: What they wrote, oldest first: objects, and not Leases or Events; also what failed.
        steps: What the test's own client wrote, where the harness has made it.
        rests: How many writes there were each time that ``settled`` returned.
        pasts: For each stale restart, how many revisions behind it has to be to be shown another state of what it
            caches than by one revision less, ascending.
        others: For each change of others, the user and the environment, how many writes of programs there were before.
        hurries: How often it returned in the middle, since that was planned.
        patience: How many seconds ``settled`` waits where it is not said.
        events: Events that they recorded, oldest first, repeats too.
        plan: Faults and crashes that are planned.
        chance: Draws what chance decides in programs.
        server: The embedded server, if it is this harness's own.
        webhook_service: Leads the server to programs with webhooks; None before the first.
        after_writes: Called, in order, after each write that the server has carried out, before its program hears of
            it; what they raise, the program would see.
    """

    def __init__(
        self,
        cluster: Cluster,
        client: Client,
        *,
        seed: int = 0,
        server: ApiServer | None = None,
        direct: bool = False,
    ) -> None:
        """Make a harness.

        Args:
            cluster: Where the server is.
            client: The test's client, in the test's namespace; whoever made it closes it.
            seed: Of what chance decides: faults, waits.
            server: The embedded server, if it is this harness's own.
            direct: Whether programs hand their requests to it, in place of a network.
        """
        self._direct = direct
        self.server: ApiServer | None = server
        self.client = client
        self.webhook_service: WebhookService | None = None
        self.namespace: str | None = client.namespace if cluster.shared else None
        self.replicas: list[Replica] = []
        self.writes: list[ProgramWrite] = []
        self.steps: list[UserStep] = []
        self.rests: list[int] = []
        self.pasts: list[tuple[int, ...]] = []
        self.others: list[int] = []
        self._crashes_later: list[tuple[int, WriteName, Callable[[], object]]] = []  # once so many others have written
        self.patience: float = 60.0
        self.events: list[EventDraft] = []
        numbers = random.Random(seed)
        self.chance: Callable[[], float] = numbers.random
        self.plan: WritePlan = WritePlan(numbers.random)
        self.buried: list[tuple[Process, Transport]] = []
        self.hurries: int = 0
        self._cluster = cluster
        self._seed = seed
        self._environment: ClusterEnvironment | None = None
        self._installed: list[tuple[str, str, str]] = []
        self.after_writes: list[Callable[[ProgramWrite], Awaitable[object]]] = []
        self._always: list[Callable[[Client], Awaitable[object]]] = []
        self._outside = contextvars.Context()  # in which they run
        self._checking: set[asyncio.Task[None]] = set()
        self._broken: BaseException | None = None
        self._instant = 0.0
        self._at_once: Counter[str] = Counter()  # equal writes at that instant
        self._hot = ""  # which write it was that never came to an end
        self._others_wrote = (0, 0)  # at which revision, after how many writes of programs
        self._foreground = False  # whether the user deletes so
        self._hurried: Process | None = None  # for whom the test is to go on
        self._waits_for: Process | None = None  # who stands still until it has

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.plan.faults.clear()
        try:
            for replica in self.replicas:
                replica.heal()
                if exc_type is None:
                    await replica.stop()
                else:
                    await replica.crash()
        except BaseException:
            for replica in self.replicas:
                await replica.crash()
            raise
        finally:
            for checking in tuple(self._checking):
                checking.cancel()
            await asyncio.gather(*self._checking, return_exceptions=True)
            if self._environment is not None:
                await self._environment.stop()
            if self.webhook_service is not None:
                self.webhook_service.close()
            for process, transport in self.buried:
                # Before the program's own clean-up would, and get stuck half way.
                await close_in_time(transport.close(), _FIRST_PAUSE)
                process.dispose()
            for kind, name, namespace in reversed(self._installed):
                with suppress(NotFoundError):
                    await self.client.delete(kind, name, namespace=namespace)

    # -- what the server has

    async def install(self, *paths: str | os.PathLike[str] | Mapping[str, object] | type) -> None:
        """Create what files define, custom resource definitions first; their kinds are served when this returns.

        Objects that are there already are changed to what the files say. On a server that others use, too, what was
        not there before is deleted at the end.

        Args:
            paths: YAML or JSON files, folders of them, or patterns such as ``config/crd/*.yaml``; or objects; or
                classes of ``custom_resource``: their definitions, the versions of a kind together.

        Raises:
            InvalidArgumentError: If a path names no file with an object.
            ManifestError: If a file cannot be read.
            ApiError: If the server refuses an object.
            InvalidKindError: If the classes of a kind do not fit together.
        """
        classes = [path for path in paths if isinstance(path, type)]
        definitions = [crd_of(*versions) for versions in by_kind(classes)]
        manifests = [*manifests_of(definitions, source="a class of install()")]
        for number, path in enumerate(paths, start=1):
            if isinstance(path, type):
                continue
            if isinstance(path, Mapping):
                manifests += manifests_of([path], source=f"install(), argument {number}")
            else:
                manifests += _manifests(path)
        for manifest in in_order(manifests):
            await self._install(manifest)

    async def _install(self, manifest: Manifest) -> None:
        fields = manifest.fields
        kind = f"{text(fields.get('apiVersion'))}/{text(fields.get('kind'))}"
        metadata = mapping(fields.get("metadata"))
        name, namespace = text(metadata.get("name")), text(metadata.get("namespace"))
        place = namespace or None
        if self._cluster.shared and await _is_missing(self.client, kind, name, place):
            self._installed.append((kind, name, namespace))
        await self.client.with_field_manager(MANAGER).apply(kind, fields, namespace=place, force=True)
        if kind == str(kinds.CUSTOM_RESOURCE_DEFINITION):
            await self.client.wait_for(kinds.CUSTOM_RESOURCE_DEFINITION, name, established())

    async def environment(self, *models: ModelName, failing: Callable[[Resource], bool] | None = None) -> None:
        """Have small models do what else a cluster does: Pods are made, get nodes and volumes, start, end.

        How long each step takes is drawn by the seed. They are no programs under test: they never crash, what they
        write is not among ``writes``, and ``settled`` waits for what they have to do::

            await world.environment("deployments")

        Args:
            models: ``pods`` (scheduler and kubelets), ``volumes``, ``replicasets``, ``deployments``, ``statefulsets``,
                ``jobs``, ``endpoints``; each brings those that it needs. None is all of them. A second call adds more.
            failing: Tells of a Pod whether its program ends by an error: it never becomes ready, a Job's has failed.

        Raises:
            InvalidArgumentError: If there is no such model; or on a cluster that is not the embedded server, and has
                its own.
        """
        if not self._cluster.embedded:
            raise InvalidArgumentError("environment() stands in for a cluster's own controllers, and this one has them")
        if self._environment is None:
            transport = NotingTransport(self.open_transport(self.client.config), self.others_wrote)
            self._environment = ClusterEnvironment(
                Client(self.client.config, transport=transport, options=self.client.options),
                namespace=self.namespace,
                seed=self._seed,
                wall_clock=utc_now if self.server is None else self.server.options.wall_clock,
                server=self.server,
            )
        if failing is not None:
            self._environment.failing = failing
        await self._environment.run(*models)

    # -- programs

    async def start(
        self,
        *controllers: Controller,
        options: ManagerOptions | None = None,
        leader_election: LeaderElectionConfig | bool = False,
        as_role: bool = False,
        webhooks: Sequence[Webhook] = (),
    ) -> Replica:
        """Start a program that runs controllers; it watches when this returns, and works or stands by.

        Start it twice, with ``leader_election=True``, for two replicas of which one leads.

        Args:
            controllers: What it runs.
            options: Of its manager. By default it watches the test's namespace, if the server is not the test's own,
                and does not ask first what it may do.
            leader_election: Whether programs contend for a Lease, and by which times.
            as_role: Whether it may do what ``deltaloop generate rbac`` prints for the controllers, and no more. The
                server has to ask roles (``authorization_mode="RBAC"``), and the test's client must be able to
                impersonate.
            webhooks: What it serves. The server is sent to the first program that serves, and to nobody if none does;
                definitions whose objects are converted have to be installed before.

        Raises:
            InvalidArgumentError: If there is nothing to run, or roles mean nothing on the server; or if there are
                webhooks, and the server is not an embedded one of the harness's own.
            Exception: What its manager raises before it works, such as ``UnknownResourceError`` for a kind that was not
                installed.
        """
        if not controllers and not webhooks:
            raise InvalidArgumentError("start() needs controllers: start(reconcile)")
        require_controllers(controllers, "start")
        served = None
        if webhooks:
            from deltaloop.webhooks import WebhookSet

            served = WebhookSet(webhooks)  # rejects other objects
        options = options or replace(_DEFAULTS, namespace=self.namespace, chance=self.chance)
        election = LeaderElectionConfig() if leader_election is True else leader_election or None
        config = self.client.config
        if as_role:
            program = Program(
                namespace=options.namespace,
                lease_namespace=None if election is None else self.client.namespace,
                reads=() if served is None else served.reads,
            )
            rules, _ = rules_of(controllers, program=program)
            name = f"{self.client.namespace}-{controllers[0].name if controllers else 'webhooks'}"
            if self._cluster.shared:
                self._installed += [(str(kind), called, place) for kind, called, place in granting(rules, name=name)]
            config = await restricted(self.client, rules, name=name)
        if webhooks:
            await self._webhook_service().register(webhooks)
        runs = Controllers(controllers=controllers, options=options, election=election, webhooks=tuple(webhooks))
        return await self._started(runs, config)

    def _webhook_service(self) -> WebhookService:
        if self.webhook_service is None:
            if self.server is None:
                raise InvalidArgumentError("webhooks are called by an embedded server of the test's own")
            from deltaloop.testing.webhook_service import WebhookService

            self.webhook_service = WebhookService(self.server, self.client)
        return self.webhook_service

    def lead_webhooks(self) -> None:
        """Send the server to a program that serves webhooks now; called when one comes or goes."""
        if self.webhook_service is not None:
            self.webhook_service.lead_to(self.replicas)

    async def run(self, function: Callable[[Client], Awaitable[object]], *, quiet_after: float = 60.0) -> Replica:
        """Start a program of another kind: whatever a function does with a client, until it is cancelled.

        If it ends by an error, it is started again a second later, as a kubelet does it. It may crash, restart and be
        parted from the server as controllers do. What is in its queues and caches nobody knows, so ``settled`` takes it
        for settled once it has written nothing for a while.

        Args:
            function: Takes the program's client; called anew after each crash.
            quiet_after: How many seconds; longer than its longest wait before it tries again.

        Raises:
            InvalidArgumentError: If the argument is not a function, or is a controller.
        """
        given: object = function
        if isinstance(given, Controller) or not callable(given):
            got = f"a {type(given).__name__}"
            raise InvalidArgumentError(
                f"run() takes a function of a client, got {got}. Start controllers with start()."
            )
        return await self._started(Main(function=function, quiet_after=quiet_after), self.client.config)

    async def _started(self, runs: Controllers | Main, config: ClientConfig) -> Replica:
        replica = Replica(self, f"replica-{len(self.replicas) + 1}", runs, config)
        self.replicas.append(replica)
        try:
            await replica.start()
        except BaseException:
            self.replicas.remove(replica)
            replica.bury()
            raise
        return replica

    @property
    def leader(self) -> Replica | None:
        """The replica that works; None if none does."""
        return next((replica for replica in self.replicas if replica.leads), None)

    async def crash(self) -> None:
        """Crash all replicas that run, as ``Replica.crash``."""
        for replica in self.replicas:
            if replica.alive:
                await replica.crash()

    async def restart(self, *, crash: bool = False) -> None:
        """Restart all replicas, as ``Replica.restart``; those that are gone are started."""
        for replica in self.replicas:
            await replica.restart(crash=crash)

    @contextmanager
    def partition(self, *, refuse: bool = False) -> Generator[None, None, None]:
        """Let no replica reach the server in this block, as ``Replica.partition``; the test's client does."""
        with ExitStack() as stack:
            for replica in self.replicas:
                stack.enter_context(replica.partition(refuse=refuse))
            yield

    # -- faults

    @property
    def faults(self) -> FaultBook:
        """Faults that strike requests of programs: ``faults.add(Fault(do="refuse", resources=("secrets",)))``.

        ``refuse``, ``delay``, ``drop`` and ``lose``; a fault's users are names of replicas. What happens to watches, to
        the server's history and to requests of everybody is in ``server.faults``.
        """
        return self.plan.faults

    @contextmanager
    def fail_writes(self, share: float, *, seed: int = 0) -> Generator[None, None, None]:
        """Have a share of the writes of objects fail in this block.

        A quarter of these is refused by 500, one by 409 (Conflict), one never arrives, and of one the answer is lost.

        Args:
            share: From 0 to 1.
            seed: Which ones: the same seed strikes the same writes, if they come in the same order.
        """
        self.plan.draw = random.Random(seed).random
        numbers = [self.plan.faults.add(fault) for fault in failing_share(share)]
        try:
            yield
        finally:
            for number in numbers:
                self.plan.faults.remove(number)

    def crash_at_write(self, number: int, moment: CrashMoment = CrashMoment.AFTER) -> None:
        """Have the program crash that sends the write of this number, and start again a second later.

        Args:
            number: Which write of an object, by whichever program: 1 is the first one of all.
            moment: On which side of the write.
        """
        self.plan.crash = CrashAt(number=number, moment=moment)

    # -- time

    async def idle(self) -> bool:
        """Wait until nothing happens any more before the next timer; False if that does not come for long.

        On the real clock: wait for a moment.
        """
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop):
            return await loop.idle(turns=_TURNS)
        await asyncio.sleep(_REAL_PAUSE)
        return True

    async def advance(self, seconds: float) -> None:
        """Let virtual time pass, and what is due in it happen.

        Raises:
            InvalidArgumentError: On the real clock.
            NotSettledError: If no time passes, since a program sends the same write again and again.
        """
        if not isinstance(asyncio.get_running_loop(), VirtualLoop):
            raise InvalidArgumentError(
                "advance() needs virtual time, and this test runs on the real clock: its server is a shared or a real "
                "one, or it is marked real_time"
            )
        await asyncio.sleep(seconds)
        await self.idle()
        if self._hot:
            raise NotSettledError(self._hot, left=(self._hot,))

    async def settled(self, timeout: float | None = None) -> None:
        """Wait until the programs have nothing left to do.

        No key waits, is reconciled, or is to be tried again; the caches hold what the server has; the Events are sent;
        and the models of ``environment`` have done what there was to do. What a reconcile asked for with
        ``requeue_after`` may still be due: ``advance`` brings it on.

        Args:
            timeout: Seconds that it may take, in virtual time if the test is; None is ``patience``.

        Raises:
            NotSettledError: If it does not come to that; it says what is left, and which keys are busy all the time.
            Exception: What the manager of a program raised, if one has ended by itself; or a mistake of a reconciler,
                which parks its key (``Replica.state`` lists them); or what a check of ``always`` raised.
        """
        clock = asyncio.get_running_loop().time
        within = self.patience if timeout is None else timeout
        settling = Settling(now=clock(), timeout=within)
        written, pause, longest_pause = len(self.writes), _FIRST_PAUSE, max(_LONGEST_PAUSE, within / _MOST_PAUSES)
        if self._waits_for is not None:
            self._waits_for.resume()
        while not self._hurries_on():
            idle = await self.idle()
            if self._broken is not None:
                raise self._broken
            if self._hurried is not None and not self._hot:
                continue
            states, left = self._look()
            if self._hot:
                settling.look(states, (self._hot,), now=clock())
                raise NotSettledError(settling.report(map(str, self.writes[written:])), left=(self._hot,))
            if idle and not left:
                left = await self._behind()
                idle = await self.idle()
                states, more = self._look()
                left = (*left, *more)
                if idle and not left:
                    self.rests.append(len(self.writes))
                    return
            if not left:
                left = ("the event loop does not come to rest",)
            if settling.look(states, left, now=clock()):
                raise NotSettledError(settling.report(map(str, self.writes[written:])), left=left)
            if idle:
                await asyncio.sleep(pause)
                pause = min(longest_pause, pause * 2)

    def always(self, check: Check) -> Check:
        """Have something be true after every write of every program; a decorator.

        The check is given the test's client, and looks at what the server has before the program hears of its write.
        What the first one raises that fails, ``settled`` raises; no other is made after it::

            @world.always
            async def there_is_a_volume(client: dl.Client) -> None:
                assert await client.find(CLAIM, "volume") is not None

        Args:
            check: Raises, by ``assert`` for instance, if it is not true.
        """
        self._always.append(check)
        self._outside = outside(contextvars.copy_context())
        return check

    @property
    def broken(self) -> BaseException | None:
        """What the first check of ``always`` raised that failed; None if all hold."""
        return self._broken

    def _look(self) -> tuple[list[ReplicaState], tuple[str, ...]]:
        found = [replica.state() for replica in self.replicas]
        states = [state for state in found if state is not None]
        left = () if self._environment is None else self._environment.left()
        fail = ("webhooks fail for a while",) if self.webhook_service is not None and self.webhook_service.fails else ()
        return states, (*left_to_do(states), *left, *fail)

    async def _behind(self) -> tuple[str, ...]:
        return tuple([text for replica in self.replicas if replica.alive for text in await replica.behind()])

    # -- called by programs and their transports

    def open_transport(self, config: ClientConfig) -> Transport:
        """Make a way to the server."""
        if self._direct and self.server is not None:
            return DirectTransport(config, self.server)
        return open_transport(config, self.client.options.http)

    def wrote(self, write: ProgramWrite) -> None:
        """Take a write of a program."""
        self.writes.append(write)
        if write.at != self._instant:
            self._instant = write.at
            self._at_once.clear()
        self._at_once[str(write)] += 1
        if self._at_once[str(write)] == _HOT_AT_ONCE and not self._hot:
            # On a virtual clock no time would ever pass again: its program stands still, so that the test goes on.
            self._hot = f"{write.replica}: {write} was sent {_HOT_AT_ONCE} times while no time passed"
            for replica in self.replicas:
                if replica.name == write.replica:
                    replica.pause()

    async def carried_out(self, write: ProgramWrite) -> None:
        """Check what always has to be true."""
        for look in self.after_writes:
            await look(write)
        if not self._always or self._broken is not None:
            return
        # A task of the test: connections that the checks open must not end with the program, and a crash does not end
        # the checks.
        checking = asyncio.get_running_loop().create_task(self._check(write), context=self._outside.copy())
        self._checking.add(checking)
        checking.add_done_callback(self._checking.discard, context=contextvars.Context())
        await checking

    async def _check(self, write: ProgramWrite) -> None:
        for check in self._always:
            if self._broken is not None:
                return
            try:
                await check(self.client)
            except Exception as error:  # noqa: BLE001 - `settled` raises it, the program has nothing to do with it
                error.add_note(f"after {write}")
                self._broken = error

    async def webhooks_fail(self, planned: WebhooksFail) -> None:
        """Have the webhooks of all programs fail for a while; nothing happens where there are none."""
        if self.webhook_service is None:
            return
        loop, outside = asyncio.get_running_loop(), contextvars.Context()  # what a program does not take along
        await loop.create_task(self.webhook_service.fail(planned.how), context=outside)
        loop.call_later(planned.seconds, self._webhooks_recover, context=outside)

    def _webhooks_recover(self) -> None:
        if self.webhook_service is not None:
            self.webhook_service.recover()
            self.lead_webhooks()

    def user_writes(self, request: HttpRequest) -> HttpRequest | None:
        """Note what the test's client is about to write, in ``steps``; return what it sends instead, if any."""
        text = text_of(request)
        if text:
            now = asyncio.get_running_loop().time()
            self.steps.append(UserStep(at=now, text=text, after=len(self.writes)))
        return in_foreground(request) if self._foreground and request.method == "DELETE" else None

    def others_wrote(self, _: HttpRequest) -> None:
        """Note that something was written just now, perhaps, that was no program's."""
        if self.server is not None:
            self._others_wrote = (self.server.revision, len(self.writes))
        self.others.append(len(self.writes))
        due = [crash for at, _, crash in self._crashes_later if at == len(self.others)]
        self._crashes_later = [each for each in self._crashes_later if each[0] > len(self.others)]
        for crash in due:
            crash()

    def crash_later(self, planned: CrashLater, write: ProgramWrite, crash: Callable[[], object]) -> None:
        """Crash a program after some changes that others make, if it has not ended by then.

        Args:
            planned: After how many.
            write: What it follows.
            crash: Crashes the program.
        """
        self._crashes_later.append((len(self.others) + planned.changes, write.name, crash))

    @property
    def to_come(self) -> tuple[WriteName, ...]:
        """Writes for which something is planned that has not happened."""
        return (*self.plan.planned, *(name for _, name, _ in self._crashes_later))

    def restore_backup(self) -> None:
        """Restore the server from a backup that was made right after the last change that was not a program's.

        What programs have written since is marked as undone in ``writes``.

        Raises:
            InvalidArgumentError: If the server is not an embedded one of the harness's own.
        """
        if self.server is None:
            raise InvalidArgumentError("a backup needs an embedded server of the harness's own")
        revision, written = self._others_wrote
        self.server.faults.restore_backup(revision)
        self.writes[written:] = [replace(write, undone=True) for write in self.writes[written:]]

    def delete_in_foreground(self) -> None:
        """Have ``client`` delete in the foreground from now on, unless a deletion has another policy.

        The garbage collector then deletes dependents while the owner waits for its finalizers.
        """
        self._foreground = True

    def hurry(self, process: Process) -> None:
        """Have ``settled`` return, or its next call; a program stands still until the next, for half a minute."""
        self.hurries += 1
        self._hurried = process
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop):
            loop.not_idle()
        loop.call_later(_HURRIED_FOR, process.resume, context=contextvars.Context())

    def _hurries_on(self) -> bool:
        """Tell whether the test goes on at once, with programs that stand still until it has done something."""
        if self._hurried is None:
            return False
        self._waits_for, self._hurried = self._hurried, None
        self.rests.append(len(self.writes))
        return True

    def __repr__(self) -> str:
        return f"<Harness of {', '.join(map(repr, self.replicas)) or 'nothing'}>"


def _manifests(path: str | os.PathLike[str]) -> list[Manifest]:
    given = Path(path)
    magic = any(sign in str(given) for sign in "*?[")
    files = sorted(Path(given.anchor or ".").glob(str(given.relative_to(given.anchor)))) if magic else [given]
    found = [manifest for file in files for manifest in read_manifests(file)]
    if not found:
        raise InvalidArgumentError(f"install({str(path)!r}): there is no YAML or JSON file with an object there")
    return found


async def _is_missing(client: Client, kind: str, name: str, namespace: str | None) -> bool:
    try:
        await client.get(kind, name, namespace=namespace)
    except NotFoundError:
        return True
    return False


@asynccontextmanager
async def embedded_harness(
    options: ServerOptions | None = None,
    *,
    seed: int = 0,
    begins_with: StoreState | None = None,
    direct: bool = False,
) -> AsyncGenerator[Harness, None]:
    """Run an embedded server and a harness on it, on the running loop: a world of its own.

    Args:
        options: Of the server; plain HTTP and what a cluster cleans up by default.
        seed: Of what chance decides.
        begins_with: What the server has from the start, of one with the same options (``ApiServer.first_objects``).
        direct: Whether clients hand their requests to the server, in place of a network; a server with TLS has one.
    """
    async with ApiServer(options or default_server_options(), begins_with=begins_with) as server:
        cluster = Cluster(server.kubeconfig(), embedded=True, shared=False)
        direct = direct and server.options.insecure_http
        config = load_config(kubeconfig=cluster.kubeconfig)
        way = DirectTransport(config, server) if direct else open_transport(config)
        noting = NotingTransport(way)
        async with (
            closing_in_time(Client(config, transport=noting)) as client,
            Harness(cluster, client, seed=seed, server=server, direct=direct) as harness,
        ):
            noting.writes, noting.wrote = harness.user_writes, harness.others_wrote
            yield harness
