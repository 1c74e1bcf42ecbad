"""Harness for controllers under test: programs on one loop that crash, restart and lose the server."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar, final

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.status import NotFoundError
from deltaloop.api.times import utc_now
from deltaloop.apiserver import ApiServer, Manifest, ServerOptions, read_manifests
from deltaloop.apiserver.embedding import FaultBook, in_order, manifests_of
from deltaloop.client import Client, ClientConfig
from deltaloop.client.connecting import load_config
from deltaloop.client.core.wait_conditions import established
from deltaloop.client.transport.http_transport import HttpTransport
from deltaloop.crds import generate_crd
from deltaloop.crds.declaring import by_kind
from deltaloop.events import EventDraft
from deltaloop.leaderelection import LeaderElectionConfig
from deltaloop.runtime import Controller, ManagerOptions
from deltaloop.runtime.controller import require_controllers
from deltaloop.runtime.core.declared_access import UndeclaredAccess
from deltaloop.runtime.program.access import Program, granting, restricted, rules_of
from deltaloop.testing.cluster_models.core.models import ModelName
from deltaloop.testing.cluster_models.driver import ClusterEnvironment
from deltaloop.testing.deterministic_loop.virtual_loop import VirtualLoop
from deltaloop.testing.injected_faults.core.program_writes import CrashMoment, ProgramWrite, failing_share
from deltaloop.testing.programs.core.settling import NotSettledError, ReplicaState, Settling, left_to_do
from deltaloop.testing.programs.harness_state import HarnessState
from deltaloop.testing.programs.noting_transport import NotingTransport
from deltaloop.testing.programs.replica import MANAGER, Controllers, Main, Replica
from deltaloop.testing.servers.cluster import Cluster, closing_in_time, default_server_options
from deltaloop.testing.servers.direct_transport import DirectTransport

if TYPE_CHECKING:
    from deltaloop.webhooks.declaring import Webhook

_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 1.0
_MOST_PAUSES: Final = 100  # number of the longest pauses in one wait
_DEFAULTS: Final = ManagerOptions(preflight=False, undeclared_access=UndeclaredAccess.REJECT)

Check = TypeVar("Check", bound=Callable[[Client], Awaitable[object]])


@final
class Harness:
    """Programs under test on one event loop; an async context manager that stops running programs at the end.

    Attributes:
        client: Client of the test, which faults of ``faults`` do not affect.
        server: Embedded server of this harness alone; None if the server is shared or real.
        namespace: The only namespace that programs watch; None for all.
        replicas: All programs that were started.
        writes: Writes of objects by programs, oldest first, including failed writes, without Leases and Events.
        events: Events that programs recorded, oldest first, including repeats.
    """

    def __init__(self, cluster: Cluster, client: Client, *, seed: int = 0, server: ApiServer | None = None) -> None:
        """Make a harness; the pytest fixture ``deltaloop_harness`` and ``embedded_harness`` do this for you.

        Args:
            cluster: Cluster to which the programs connect.
            client: Client of the test, in the test's namespace; the caller closes it.
            seed: Random seed of faults and waits.
            server: Embedded server, if it belongs to this harness alone.
        """
        self.client = client
        self.server: ApiServer | None = server
        self.namespace: str | None = client.namespace if cluster.shared else None
        self.replicas: list[Replica] = []
        self._state = HarnessState(client, seed=seed, server=server)
        self._state.programs = self.replicas
        self.writes: list[ProgramWrite] = self._state.writes
        self.events: list[EventDraft] = self._state.events
        self._cluster = cluster
        self._seed = seed
        self._environment: ClusterEnvironment | None = None
        self._installed: list[tuple[str, str, str]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.faults.clear()
        try:
            for replica in self.replicas:
                replica.reconnect()
                if exc_type is None:
                    await replica.stop()
                else:
                    await replica.crash()
        except BaseException:
            for replica in self.replicas:
                await replica.crash()
            raise
        finally:
            if self._environment is not None:
                await self._environment.stop()
            await self._state.close()
            for kind, name, namespace in reversed(self._installed):
                with suppress(NotFoundError):
                    await self.client.delete(kind, name, namespace=namespace)

    # -- objects on the server

    async def install(self, *paths: str | os.PathLike[str] | Mapping[str, object] | type) -> None:
        """Apply manifests, custom resource definitions first, and wait until their kinds are served.

        Existing objects are updated. On a shared server, new objects are deleted at the end.

        Args:
            paths: YAML or JSON files, folders, patterns such as ``config/crd/*.yaml``, objects, or classes of
                ``custom_resource``. Pass all versions of a kind in one call.

        Raises:
            InvalidArgumentError: If a path names no file with an object.
            ManifestError: If a file cannot be read.
            ApiError: If the server rejects an object.
            InvalidKindError: If the classes of a kind do not fit together.
        """
        classes = [path for path in paths if isinstance(path, type)]
        definitions = [generate_crd(*versions) for versions in by_kind(classes)]
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
        """Run models of other cluster components: for example, Pods get nodes and volumes, start, and end.

        The seed determines the duration of each step. Models are not programs under test: they never crash, their
        writes are not among ``writes``, and ``settled`` waits for their work::

            await harness.environment("deployments")

        Args:
            models: ``pods`` (scheduler and kubelets), ``volumes``, ``replicasets``, ``deployments``, ``statefulsets``,
                ``jobs``, ``endpoints``. Each adds the models that it needs. By default, all are run. A second call adds
                more.
            failing: Function that decides whether a Pod fails, which means that it never becomes ready or fails for its
            Job.

        Raises:
            InvalidArgumentError: If a model does not exist, or the cluster is real and has its own controllers.
        """
        if not self._cluster.embedded:
            raise InvalidArgumentError(
                "must not run on this cluster, because it has its own controllers.", argument="environment()"
            )
        if self._environment is None:
            transport = NotingTransport(self._state.open_transport(self.client.config), self._state.others_wrote)
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
        shards: bool = False,
        as_role: bool = False,
        webhooks: Sequence[Webhook] = (),
    ) -> Replica:
        """Start a program that runs controllers; when this returns, it watches, and leads or is a standby.

        To run two replicas, call it twice with ``leader_election=True``.

        Args:
            controllers: Controllers of the program.
            options: Options of its manager. By default it watches the test's namespace if the server is shared, and
                skips the check of its permissions at the start.
            leader_election: Whether programs contend for a Lease, or the configuration of the election.
            shards: Whether programs share the objects instead of electing a leader. ``leader_election`` can set the
                durations.
            as_role: Whether the program has only the permissions that ``deltaloop generate rbac`` prints. The server
                needs ``authorization_mode="RBAC"``, and the test's client permission to impersonate.
            webhooks: Webhooks that the program serves. The server calls the first program that serves them. Install
                definitions with conversions before.

        Raises:
            InvalidArgumentError: If no controllers or webhooks are given, if the server does not check roles, or if
                webhooks are given without an embedded server of this harness alone.
            Exception: Error of its manager's start, such as ``UnknownResourceError`` for a kind that is not installed.
        """
        if not controllers and not webhooks:
            raise InvalidArgumentError(
                "must contain controllers, got none. Use start(reconcile).", argument="controllers"
            )
        require_controllers(controllers, "start")
        served = None
        if webhooks:
            from deltaloop.webhooks import WebhookSet

            served = WebhookSet(webhooks)  # validates the types
        options = options or _DEFAULTS.replace(namespace=self.namespace, random=self._state.random)
        election = leader_election if isinstance(leader_election, LeaderElectionConfig) else None
        if election is None and (leader_election or shards):
            election = LeaderElectionConfig()
        config = self.client.config
        if as_role:
            program = Program(
                namespace=options.namespace,
                lease_namespace=None if election is None else self.client.namespace,
                shards=shards,
                reads=() if served is None else served.reads,
            )
            rules, _ = rules_of(controllers, program=program)
            name = f"{self.client.namespace}-{controllers[0].name if controllers else 'webhooks'}"
            if self._cluster.shared:
                self._installed += [(str(kind), called, place) for kind, called, place in granting(rules, name=name)]
            config = await restricted(self.client, rules, name=name)
        if webhooks:
            await self._register(webhooks)
        runs = Controllers(
            controllers=controllers, options=options, election=election, webhooks=tuple(webhooks), shards=shards
        )
        return await self._started(runs, config)

    async def _register(self, webhooks: Sequence[Webhook]) -> None:
        if self._state.webhook_service is None:
            if self.server is None:
                raise InvalidArgumentError(
                    "must be empty, because only a separate embedded server can call them.", argument="webhooks"
                )
            from deltaloop.testing.programs.webhook_service import WebhookService

            self._state.webhook_service = WebhookService(self.server, self.client)
        await self._state.webhook_service.register(webhooks)

    async def run(self, function: Callable[[Client], Awaitable[object]], *, quiet_after: float = 60.0) -> Replica:
        """Start a program without controllers: a function that uses a client until it is canceled.

        If the function raises, it is restarted a second later, like by a kubelet. The program can crash, restart and
        lose the server like any other. Its queues and caches are unknown, so ``settled`` waits until it has been quiet
        for a while.

        Args:
            function: Main function, called with the program's client, again after each crash.
            quiet_after: Seconds without a write after which it counts as settled. Must exceed its longest backoff.

        Raises:
            InvalidArgumentError: If the argument is not a function, or is a controller.
        """
        given: object = function
        if isinstance(given, Controller) or not callable(given):
            got = f"a {type(given).__name__}"
            raise InvalidArgumentError(
                f"must be a function of a client, got {got}. Start controllers with start().", argument="function"
            )
        return await self._started(Main(function=function, quiet_after=quiet_after), self.client.config)

    async def _started(self, runs: Controllers | Main, config: ClientConfig) -> Replica:
        replica = Replica(self._state, f"replica-{len(self.replicas) + 1}", runs, config)
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
        """Replica that leads, or the first one that works without an election; None if no replica leads."""
        return next((replica for replica in self.replicas if replica.leads), None)

    async def crash(self) -> None:
        """Crash all running replicas, as ``Replica.crash``."""
        for replica in self.replicas:
            if replica.alive:
                await replica.crash()

    async def restart(self, *, crash: bool = False) -> None:
        """Restart all replicas, as ``Replica.restart``; also start those that have ended."""
        for replica in self.replicas:
            await replica.restart(crash=crash)

    @contextmanager
    def partition(self, *, refuse: bool = False) -> Generator[None, None, None]:
        """Disconnect all replicas, but not the test's client, in this block; see ``Replica.disconnect``."""
        with ExitStack() as stack:
            for replica in self.replicas:
                stack.enter_context(replica.partition(refuse=refuse))
            yield

    # -- faults

    @property
    def faults(self) -> FaultBook:
        """Faults for requests of programs: ``faults.add(Fault(do="refuse", resources=("secrets",)))``.

        Supported are ``refuse``, ``delay``, ``drop`` and ``lose``. The users of a fault are names of replicas. For
        faults of watches, of the server's history, and of requests by all clients, use ``server.faults``.
        """
        return self._state.plan.faults

    @contextmanager
    def fail_writes(self, share: float, *, seed: int = 0) -> Generator[None, None, None]:
        """Let a share of the writes of objects fail in this block.

        The failures are equally divided: rejection with 500, conflict (409), lost request, lost response.

        Args:
            share: Share of the writes, from 0 to 1.
            seed: Random seed. The same seed affects the same writes if they come in the same order.
        """
        self._state.plan.draw = random.Random(seed).random
        numbers = [self.faults.add(fault) for fault in failing_share(share)]
        try:
            yield
        finally:
            for number in numbers:
                self.faults.remove(number)

    def crash_at_write(self, number: int, moment: CrashMoment = CrashMoment.AFTER) -> None:
        """Crash a program at one of its writes; it restarts a second later.

        Args:
            number: Number of the write among the writes of objects by all programs, from 1.
            moment: Moment of the crash, before or after the write.
        """
        self._state.plan.crash = (number, moment)

    # -- time

    async def advance(self, seconds: float) -> None:
        """Advance virtual time, and let timers fire.

        Args:
            seconds: Seconds to advance; 0 runs only ready tasks.

        Raises:
            InvalidArgumentError: On the real clock.
            NotSettledError: If time cannot pass, because a program sends the same write again and again.
        """
        if not isinstance(asyncio.get_running_loop(), VirtualLoop):
            raise InvalidArgumentError(
                "requires virtual time, but the test has a shared or real server, or the marker real_time.",
                argument="advance()",
            )
        await asyncio.sleep(seconds)
        await self._state.idle()
        if self._state.hot:
            raise NotSettledError(self._state.hot, left=(self._state.hot,))

    async def settled(self, timeout: float | None = None) -> None:
        """Wait until the programs have no pending work.

        This means that all queues are empty, all reconciles and retries are done, caches are up to date, Events are
        sent, and the models of ``environment`` are idle. Reconciles delayed by ``requeue_after`` do not count: use
        ``advance`` to reach them.

        Args:
            timeout: Timeout in seconds, in virtual time if the test uses it; None is 60 s, in a simulation 600 s.

        Raises:
            NotSettledError: If work is left after that time; the message lists it, with the busiest keys.
            Exception: Error of an invariant or of a program's manager, or a mistake of a reconciler that parks its key.
        """
        state, clock = self._state, asyncio.get_running_loop().time
        within = state.settles_within if timeout is None else timeout
        settling = Settling(now=clock(), timeout=within)
        written, pause, longest_pause = len(self.writes), _FIRST_PAUSE, max(_LONGEST_PAUSE, within / _MOST_PAUSES)
        state.begin_wait()
        while not state.ends_early():
            idle = await state.idle()
            if state.violation is not None:
                raise state.violation
            if state.is_early and not state.hot:
                continue
            states, left = self._look()
            if state.hot:
                left = (state.hot,)
            elif idle and not left:
                left = await self._behind()
                idle = await state.idle()
                states, more = self._look()
                left = (*left, *more)
                if idle and not left:
                    state.rests.append(len(self.writes))
                    return
            if not left:
                left = ("the event loop is not idle",)
            if settling.look(states, left, now=clock()) or state.hot:
                raise NotSettledError(settling.report(map(str, self.writes[written:])), left=left)
            if idle:
                await asyncio.sleep(pause)
                pause = min(longest_pause, pause * 2)

    def invariant(self, check: Check) -> Check:
        """Decorator that checks an invariant after every write of every program.

        The check receives the test's client and reads the state of the server before the program gets its response.
        ``settled`` raises the error of the first check that fails, and no further check runs::

            @world.invariant
            async def there_is_a_volume(client: dl.Client) -> None:
                assert await client.find(CLAIM, "volume") is not None

        Args:
            check: Function that raises if the invariant is violated, for example with ``assert``.
        """
        self._state.check_always(check)
        return check

    def _look(self) -> tuple[list[ReplicaState], tuple[str, ...]]:
        found = [replica.state() for replica in self.replicas]
        states = [state for state in found if state is not None]
        left = () if self._environment is None else self._environment.left()
        service = self._state.webhook_service
        fail = ("webhooks fail temporarily",) if service is not None and service.fails else ()
        return states, (*left_to_do(states), *left, *fail)

    async def _behind(self) -> tuple[str, ...]:
        return tuple([text for replica in self.replicas if replica.alive for text in await replica.behind()])

    def __repr__(self) -> str:
        return f"<Harness of {', '.join(map(repr, self.replicas)) or 'nothing'}>"


def state_of(harness: Harness) -> HarnessState:
    return harness._state  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _manifests(path: str | os.PathLike[str]) -> list[Manifest]:
    given = Path(path)
    magic = any(sign in str(given) for sign in "*?[")
    files = sorted(Path(given.anchor or ".").glob(str(given.relative_to(given.anchor)))) if magic else [given]
    found = [manifest for file in files for manifest in read_manifests(file)]
    if not found:
        raise InvalidArgumentError(f"must be YAML or JSON files with objects, got {str(path)!r}.", argument="paths")
    return found


async def _is_missing(client: Client, kind: str, name: str, namespace: str | None) -> bool:
    try:
        await client.get(kind, name, namespace=namespace)
    except NotFoundError:
        return True
    return False


@asynccontextmanager
async def embedded_harness(options: ServerOptions | None = None, *, seed: int = 0) -> AsyncGenerator[Harness, None]:
    """Run an embedded server with a harness on the running loop.

    Args:
        options: Server options; None uses plain HTTP, garbage collection and namespace clean-up.
        seed: Random seed of faults and waits.
    """
    async with running_harness(ApiServer(options or default_server_options()), seed=seed) as harness:
        yield harness


@asynccontextmanager
async def running_harness(server: ApiServer, *, seed: int = 0, direct: bool = False) -> AsyncGenerator[Harness, None]:
    """Run a server and a harness; without TLS, ``direct`` clients send requests without a network."""
    async with server:
        cluster = Cluster(server.kubeconfig(), embedded=True, shared=False)
        direct = direct and server.options.insecure_http
        config = load_config(kubeconfig=cluster.kubeconfig)
        noting = NotingTransport(DirectTransport(config, server) if direct else HttpTransport(config))
        async with (
            closing_in_time(Client(config, transport=noting)) as client,
            Harness(cluster, client, seed=seed, server=server) as harness,
        ):
            state = state_of(harness)
            state.direct = direct
            noting.writes, noting.wrote = state.user_writes, state.others_wrote
            yield harness
