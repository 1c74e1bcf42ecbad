"""Manager, which runs controllers as one program.

    health, metrics, webhooks ──▶ lifespans ──▶ preflight ──▶ caches ──▶ leadership ──▶ workers
                                                                 ▲            ▲           │ lost: workers end, then
                                                                 │            └───────────┘ the lock is released
                                              standbys wait here with warm caches

The shutdown happens in reverse order.

Source: controller-runtime pkg/manager/internal.go.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.cache.errors import CacheSyncError
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.informer import Informer
from deltaloop.client.client import Client
from deltaloop.runtime.controller import Controller, require_controllers
from deltaloop.runtime.core.access import rules_for, rules_of_access
from deltaloop.runtime.core.attribution import Attribution
from deltaloop.runtime.core.history import History
from deltaloop.runtime.core.shutdown import Abandon, Cancel, Continue, Drain, End, Heard, Linger, Shutdown
from deltaloop.runtime.errors import InvalidControllerError
from deltaloop.runtime.objects.cached_views import Views
from deltaloop.runtime.program.access import check_access
from deltaloop.runtime.program.manager_options import ManagerOptions
from deltaloop.runtime.program.served_webhooks import ServedWebhooks
from deltaloop.runtime.program.watchdog import LoopWatchdog
from deltaloop.runtime.program.wiring import CACHE_VERBS, connect_caches, connect_tracker, look_up, wires_of
from deltaloop.runtime.reconcile.access_guard import AccessGuard
from deltaloop.runtime.reconcile.loop import ReconcileLoop
from deltaloop.runtime.reconcile.metrics import ControllerMetrics
from deltaloop.runtime.reconcile.tracing import Tracing
from deltaloop.runtime.sources import Source, is_cancelled_from_outside

if TYPE_CHECKING:
    from deltaloop.events import ComponentRecorder, EventRecorder
    from deltaloop.leaderelection import LeaderElector, Term
    from deltaloop.runtime.core.readiness import Check, Leadership
    from deltaloop.runtime.enqueue import AcceptsKeys
    from deltaloop.runtime.program.doctor import Doctor
    from deltaloop.runtime.program.health_server import HealthServer
    from deltaloop.runtime.program.lifespans import Lifespan
    from deltaloop.runtime.program.pages import Action, Route
    from deltaloop.runtime.program.shards import MemberWork
    from deltaloop.sharding import ShardMember, ShardState
    from deltaloop.webhooks import WebhookMetrics, WebhookServer
    from deltaloop.webhooks.certificates.sources import CertificateSource
    from deltaloop.webhooks.core.certificates.targets import WebhookTarget
    from deltaloop.webhooks.declaring import Webhook

_logger: Final = logging.getLogger("deltaloop.runtime")

_STANDBY_PERIOD: Final = 300.0
"""Seconds between two cleanups of a standby's queues."""

_SIGNALLED: Final[Mapping[Heard, tuple[int, str]]] = {
    "begins": (logging.INFO, "received signal, shutting down gracefully"),
    "repeated": (logging.DEBUG, "ignoring repeated signal"),
    "at once": (logging.INFO, "received second signal, ending immediately"),
    "too late": (logging.DEBUG, "ignoring signal during shutdown"),
}


@final
class Manager:
    """Run controllers until the manager is stopped.

    A manager can be used once, on one event loop.
    """

    def __init__(
        self,
        client: Client,
        controllers: Sequence[Controller],
        *,
        elector: LeaderElector | None = None,
        recorder: EventRecorder | None = None,
        metrics: ControllerMetrics | None = None,
        metrics_page: Callable[[], tuple[bytes, str]] | None = None,
        webhooks: Sequence[Webhook] = (),
        certificates: CertificateSource | None = None,
        webhook_metrics: WebhookMetrics | None = None,
        shards: ShardMember | None = None,
        webhook_targets: Sequence[WebhookTarget] = (),
        options: ManagerOptions | None = None,
    ) -> None:
        """Create a manager that is not running yet.

        Args:
            client: Client of the cluster. The manager does not close it.
            controllers: Controllers to run.
            elector: Elector whose leadership the workers need. None means that the workers start without an election.
                Its lock must be in the same cluster. If it does not contend again after a loss, the manager ends then.
            recorder: Recorder for ``ctx.recorder``, which reports as the reconciling controller. The caller opens and
                closes it.
            metrics: Metrics of controllers and queues.
            metrics_page: Function that returns the body of ``/metrics`` and its content type.
            webhooks: Webhooks to serve on every replica, from the start on.
            certificates: Source of the webhook server's certificate.
            webhook_metrics: Metrics of the webhook server.
            shards: Member of a sharded program, which reconciles only its share of the objects. None means all objects.
                It replaces ``elector``, and must be in the same cluster.
            webhook_targets: Configurations that call the webhooks, for ``doctor``.
            options: Manager options, such as timeouts and addresses.

        Raises:
            InvalidControllerError: If two controllers have the same name, or if no controller or several controllers
                remove a finalizer.
            InvalidArgumentError: If ``options.metrics`` is set without ``metrics_page``, if webhooks are served without
                ``certificates``, or if a controller's name cannot be the component of Events.
            InvalidWebhookError: If the webhooks do not fit together.
        """
        if isinstance(controllers, Controller):
            raise InvalidArgumentError("must be a list, got one. Write Manager(client, [...]).", argument="controllers")
        self.options: ManagerOptions = options or ManagerOptions()
        self.controllers: tuple[Controller, ...] = tuple(controllers)
        require_controllers(self.controllers, "Manager")
        seen: set[str] = set()
        for controller in self.controllers:
            if controller.name in seen:
                raise InvalidControllerError(
                    controller.name, "must be unique. Pass name=... to one of them.", argument="name"
                )
            seen.add(controller.name)
        if any(controller.finalizer for controller in self.controllers):
            from deltaloop.runtime.reconcile.finalizing import refuse_finalizers

            refuse_finalizers(self.controllers)
        self._client = client
        self._shards = shards
        if shards is not None:
            if elector is not None:
                raise InvalidArgumentError("must not be combined with elector. Omit elector.", argument="shards")
            elector = shards.elector
        self._elector = elector
        self._recorder = recorder
        self._recorders: dict[str, ComponentRecorder] = {}
        if recorder is not None:
            self._recorders = {name: recorder.for_component(name) for name in seen}
        self._metrics = metrics
        if self.options.metrics is not None and metrics_page is None:
            raise InvalidArgumentError(
                "must be set together with Manager(metrics_page=...).", argument="ManagerOptions.metrics"
            )
        self._metrics_page = metrics_page
        self._webhooks = ServedWebhooks(
            webhooks, self.options.webhooks, certificates=certificates, metrics=webhook_metrics
        )
        if self._webhooks.reads and not self.options.warm_standbys:
            raise InvalidArgumentError(
                "must be True, because webhooks on standbys read caches.", argument="ManagerOptions.warm_standbys"
            )
        self._servers: dict[str, HealthServer] = {}
        self._shutdown = Shutdown(
            drain_timeout=self.options.drain_timeout,
            timeout=self.options.shutdown_timeout,
            duplicate_signal_window=self.options.duplicate_signal_window,
            grace=self._webhooks.grace,
        )
        self._changed = asyncio.Event()
        self._over = asyncio.Event()
        self._lingers = False
        self._loops: list[ReconcileLoop] = []
        self._informers: list[Informer[Any]] = []
        self._users: dict[str, set[str]] = {}
        self._factory: InformerFactory | None = None
        self._term: Term | None = None
        self._member_work: MemberWork | None = None
        self._leave_until: float | None = None
        self._synced = False
        self._clock: Callable[[], float] = lambda: asyncio.get_running_loop().time()
        self._used = False
        self._left_behind: list[str] = []
        self._history = History()
        self._lifespans: dict[Lifespan[Any], Any] = {}
        self._watchdog = LoopWatchdog(self.options.loop_block_threshold)
        self._webhook_targets = tuple(webhook_targets)
        self._doctor: Doctor | None = None
        self._began_at = 0.0

    # -- state

    @property
    def doctor(self) -> Doctor:
        """Return the snapshots of this manager, which must be running, for ``diagnose``."""
        if self._doctor is None:
            from deltaloop.runtime.program.doctor import Doctor

            self._doctor = Doctor(
                client=self._client,
                loops=self._loops,
                informers=self._informers,
                elector=self._elector,
                watchdog=self._watchdog,
                webhook_server=lambda: self._webhooks.server,
                webhook_targets=self._webhook_targets,
                max_staleness=self.options.max_staleness,
                clock=self._clock,
                began_at=self._began_at,
                shard_state=lambda: self.shard_state,
            )
        return self._doctor

    @property
    def leadership(self) -> Leadership:
        """Return whether this process leads, stands by, or needs no election."""
        from deltaloop.runtime.core.readiness import Leadership  # for health pages

        if self._elector is None:
            return Leadership.NONE
        return Leadership.LEADING if self._elector.is_leader else Leadership.STANDBY

    @property
    def loops(self) -> tuple[ReconcileLoop, ...]:
        """Return the reconcile loops of the controllers, with their queues; empty before the start."""
        return tuple(self._loops)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """Return the informers, each once even if controllers share it; empty before the start."""
        return tuple(self._informers)

    @property
    def webhook_server(self) -> WebhookServer | None:
        """Return the running webhook server; None if there is none."""
        return self._webhooks.server

    @property
    def servers(self) -> Mapping[str, HealthServer]:
        """Return the running HTTP servers under the names ``health`` and ``metrics``."""
        return MappingProxyType(self._servers)

    @property
    def shard_state(self) -> ShardState | None:
        """Return the ranges and members of a sharded program; None if this process has all objects."""
        return None if self._shards is None else self._shards.state

    def readiness(self) -> tuple[Check, ...]:
        """Return the checks of ``/readyz``.

        Call it on the event loop.
        """
        from deltaloop.runtime.core.readiness import CacheState, readiness, shard_check

        caches = [
            CacheState(
                name=informer.name,
                synced=informer.has_synced,
                last_confirmed_at=informer.statistics().last_confirmed_at,
            )
            for informer in self._informers
        ]
        checks = readiness(
            caches,
            self.leadership,
            started=self._synced,
            stopping=self._shutdown.stopping,
            now=self._clock(),
            max_staleness=self.options.max_staleness,
            require_leadership=self.options.require_leadership,
        )
        if self._shards is not None:
            checks = (*checks, shard_check(self._shards.state))
        return (*checks, *self._webhooks.checks())

    def health(self) -> tuple[Check, ...]:
        """Return the checks of ``/healthz``, which fail if a restart would help.

        Call it on the event loop.
        """
        from deltaloop.runtime.core.readiness import Check

        message = ""
        if self._elector is not None:
            from deltaloop.leaderelection.guard import LeadershipLostError

            try:
                self._elector.check(self._elector.config.lease_duration)
            except LeadershipLostError as error:
                message = str(error)
        return (Check(name="ping", ok=True), Check(name="leader-election", ok=not message, message=message))

    # -- running

    def stop(self) -> None:
        """Begin a graceful shutdown; a second call ends immediately and abandons running reconciles.

        Call it on the event loop.
        """
        self._shutdown.stop(self._clock())
        self._changed.set()

    async def run(self, *, handle_signals: bool = False) -> None:
        """Run until ``stop`` is called or an unrecoverable error occurs.

        Cancellation starts the same graceful shutdown as ``stop``, and is raised again at the end. A second
        cancellation ends immediately.

        Args:
            handle_signals: Whether SIGINT and SIGTERM call ``stop``. A second signal ends immediately. The same signal
                within ``duplicate_signal_window`` does not count, because ``timeout`` and terminals send it twice.

        Raises:
            LifespanError: If a lifespan fails to begin or to end.
            HealthServerError: If an address for health or metrics cannot be used.
            PreflightError: If the account lacks permissions.
            CacheSyncError: If the caches do not fill in time. The error names kinds and reasons.
            UnknownResourceError: If the server does not know a kind.
            ShutdownTimeoutError: If reconciles did not end in time and were abandoned.
            LeadershipLostError: If leadership was lost and the elector does not contend again.
        """
        if self._used:
            raise RuntimeError("a manager can run only once. Create a new manager.")
        self._used = True
        running = asyncio.get_running_loop()
        # Use asyncio's own clock without an intermediate call.
        self._clock = time.monotonic if type(running).time is asyncio.BaseEventLoop.time else running.time
        self._began_at = self._clock()
        async with self._signals(enabled=handle_signals), self._watchdog, self._recording():
            life = asyncio.create_task(self._live(), name="manager")
            cancelled = await self._supervise(life)
        for loop in self._loops:
            loop.close()
        if self._left_behind:
            from deltaloop.runtime.program.errors import ShutdownTimeoutError

            raise ShutdownTimeoutError(self._left_behind)
        if not life.cancelled():
            life.result()
        if cancelled is not None:
            raise cancelled

    @asynccontextmanager
    async def _recording(self) -> AsyncGenerator[None, None]:
        if self.options.record is None:
            yield
            return
        from deltaloop.runtime.program.recording import Recording

        name = ", ".join(controller.name for controller in self.controllers)
        with Recording(self.options.record, self._history, name=name, clock=self._clock):
            yield

    @asynccontextmanager
    async def _signals(self, *, enabled: bool) -> AsyncGenerator[None, None]:
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM) if enabled else ()
        for number in numbers:
            loop.add_signal_handler(number, self._signalled, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _signalled(self, number: int) -> None:
        name = signal.Signals(number).name
        heard = self._shutdown.stop(self._clock(), source=name)
        _logger.log(*_SIGNALLED[heard], extra={"signal": name})
        self._changed.set()

    async def _supervise(self, life: asyncio.Task[None]) -> asyncio.CancelledError | None:
        """Apply the shutdown's decisions until the manager has ended, and return a cancellation that arrived."""
        cancelled: asyncio.CancelledError | None = None
        cancelled_life = False
        until: float | None
        while not life.done():
            leaving = self._is_leaving()
            running = sum(len(loop.runs) for loop in self._loops) or int(leaving)
            match self._shutdown.ask(self._clock(), running=running):
                case Continue():
                    until = None
                case Drain(until) if leaving:
                    until = min(until, self._leave_until or until)
                case Drain(until):
                    for loop in self._loops:
                        loop.stop_taking()
                case Cancel(until):
                    if not cancelled_life:
                        cancelled_life = True
                        _logger.warning("canceling reconciles that did not end in time", extra=self._running())
                        life.cancel()
                case Abandon():
                    self._abandon()
                    until = self._clock()
                case Linger(until):
                    if not cancelled_life and not self._lingers:
                        cancelled_life = True
                        life.cancel()
                case End():
                    self._over.set()
                    if not cancelled_life and not self._lingers:
                        cancelled_life = True
                        life.cancel()
                    until = None
            self._changed.clear()
            try:
                await self._wait(life, until)
            except asyncio.CancelledError as error:
                cancelled = error
                self.stop()
        return cancelled

    def _is_leaving(self) -> bool:
        """Return whether a member of a sharded program still works until other members have its ranges."""
        if self._shards is None or self._term is None or not self._shutdown.stopping:
            return False
        now = self._clock()
        if self._leave_until is None:
            self._leave_until = now + self.options.drain_timeout / 2
            self._shards.on_left = self._changed.set
            self._shards.leave()
        return not self._shards.has_left and now < self._leave_until

    async def _wait(self, life: asyncio.Task[None], until: float | None) -> None:
        changed = asyncio.create_task(self._changed.wait(), name="manager: change")
        try:
            timeout = None if until is None else max(0.0, until - self._clock())
            await asyncio.wait((life, changed), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()

    def _abandon(self) -> None:
        for loop in self._loops:
            self._left_behind += [f"{loop.controller.name}: {key}" for key in loop.abandon()]
        if self._left_behind:
            _logger.error("abandoning reconciles that do not end", extra={"keys": self._left_behind})
            if self._term is not None:
                self._term.keep_lock()

    def _running(self) -> dict[str, object]:
        keys = [f"{loop.controller.name}: {run.key}" for loop in self._loops for run in loop.runs.present()]
        return {"keys": keys}

    async def _live(self) -> None:
        _logger.info("starting manager", extra={"controllers": [controller.name for controller in self.controllers]})
        try:
            async with AsyncExitStack() as stack:
                await self._start_servers(stack)
                await self._webhooks.start(stack)  # before the caches, whose lists can require conversion webhooks
                await self._begin_lifespans(stack)
                try:
                    if self.options.warm_standbys or self._elector is None:
                        await self._start_caches(stack)
                    await self._lead(stack)
                finally:
                    await self._linger()
        finally:
            _logger.info("manager stopped")

    async def _linger(self) -> None:
        """Serve webhooks until the API server stops sending reviews here, even after a failure."""
        if not self._webhooks.grace or not self._synced or not all(each.ok for each in self._webhooks.checks()):
            return  # no endpoint of a Service leads to this process
        self._lingers = True
        if not self._shutdown.stopping:
            self.stop()  # the manager failed, so it must not be ready any more
        self._changed.set()
        _logger.info("serving webhooks until endpoints change", extra={"grace": self._webhooks.grace})
        await self._over.wait()

    async def _begin_lifespans(self, stack: AsyncExitStack) -> None:
        """Enter each declared lifespan once. Standbys enter them as well, so that mistakes appear at the start."""
        for controller in self.controllers:
            declared = controller.lifespan
            if declared is not None and declared not in self._lifespans:
                entered = declared.entered(self.options.shutdown_timeout)
                self._lifespans[declared] = await stack.enter_async_context(entered)

    def _standby_of(self) -> str | None:
        """Return the leader's identity ("" if unknown), or None if this replica leads or there is no election."""
        if self._elector is None or self._shards is not None or self._elector.is_leader:
            return None
        leader = self._elector.leader
        return leader if leader != self._elector.identity else ""

    def _shard_of(self, key: str) -> dict[str, object] | None:
        """Return the range of a key with its owner for ``deltaloop why``; None without shards."""
        found = None if self._shards is None else self._shards.range_of(key)
        if self._shards is None or found is None:
            return None
        return {
            "range": found.name,
            "owner": found.owner,
            "member": self._shards.identity,
            "unownedSeconds": found.unowned_for,
            "rangesWithoutOwner": len(self._shards.state.unowned),
            "waits": not self._shards.share.may_begin(key),
        }

    async def _start_servers(self, stack: AsyncExitStack) -> None:
        options = self.options
        if options.health is None and options.metrics is None:
            return
        from deltaloop.runtime.program.health_pages import (
            DOCTOR_PATH,
            EXPLAIN_PATH,
            diagnosis_page,
            explanation,
            metrics_page,
            probe,
        )
        from deltaloop.runtime.program.health_server import HealthServer
        from deltaloop.runtime.program.pages import LocalRoute
        from deltaloop.runtime.program.token_reviews import review_tokens, review_users

        may_get, may_ask, doctor = review_tokens(self._client), review_users(self._client), self.doctor
        if options.health is not None:
            routes: dict[str, Route] = {
                "/healthz": probe(self.health),
                "/readyz": probe(self.readiness),
                EXPLAIN_PATH: LocalRoute(
                    explanation(self._history, clock=self._clock, standby_of=self._standby_of, shard_of=self._shard_of)
                ),
                DOCTOR_PATH: LocalRoute(diagnosis_page(doctor.document), post=self._actions()),
                **self._page_routes(),
            }
            self._servers["health"] = HealthServer(options.health, routes, may_get=may_get, may_ask=may_ask)
        if options.metrics is not None and self._metrics_page is not None:
            routes = {"/metrics": metrics_page(self._metrics_page)}
            self._servers["metrics"] = HealthServer(options.metrics, routes, may_get=may_get)
        for server in self._servers.values():
            await stack.enter_async_context(server)
        if "health" in self._servers and self._watchdog.is_watching:
            from deltaloop.runtime.program.blocked_answers import BlockedAnswers

            answers = BlockedAnswers(self._servers["health"], doctor.blocked_document)
            self._watchdog.while_blocked = answers.serve
            stack.callback(answers.close)
            stack.callback(setattr, self._watchdog, "while_blocked", None)

    def _actions(self) -> Action | None:
        """Return the function for POST requests; None if actions are not allowed."""
        self.doctor.actions = self.options.doctor_actions
        if not self.options.doctor_actions:
            return None
        from deltaloop.runtime.program.doctor_actions import DoctorActions

        namespace = self._client.namespace
        return DoctorActions(self._loops, self._recorders, namespace=namespace, clock=self._clock).answer

    def _page_routes(self) -> dict[str, Route]:
        from deltaloop.runtime.program.live_page import DATA_PATH, LIVE_PATH, PAGE_PATH, LivePage
        from deltaloop.runtime.program.pages import LocalRoute, StreamRoute

        page = LivePage(self.doctor, self._history, self._loops, clock=self._clock)
        if self._recorder is not None:
            self._recorder.watch(page.saw_event)
        return {
            PAGE_PATH: LocalRoute(page.html),
            LIVE_PATH: LocalRoute(StreamRoute(page.live)),
            DATA_PATH: LocalRoute(page.data),
        }

    async def _start_caches(self, stack: AsyncExitStack) -> None:
        """Create the caches and wait until they are filled.

        A lost lease can cancel this method at any await; a call in the next term continues with the existing caches.
        """
        if self._factory is None:
            await self._make_caches(stack)
        assert self._factory is not None
        try:
            await self._factory.wait_for_sync(self.options.sync_timeout)
        except CacheSyncError as error:
            from deltaloop.runtime.reconcile.remedies import note_empty_caches

            note_empty_caches(error, self._users)
            raise
        # As in controller-runtime, workers start when all listed objects are queued, so that each key runs once.
        for registration in [each for loop in self._loops for each in loop.registrations]:
            while not registration.has_synced:  # noqa: ASYNC110 - some turns of the event loop
                await asyncio.sleep(0)
        self._synced = True
        _logger.info("caches are in sync", extra={"informers": len(self._informers)})

    async def _make_caches(self, stack: AsyncExitStack) -> None:
        options, clock = self.options, self._clock
        known = await look_up(self._client, self.controllers)
        plans = [wires_of(controller, known) for controller in self.controllers]
        if options.preflight:
            rules = [rule for plan in plans for rule in plan.rules(options.namespace, read_verbs=CACHE_VERBS)]
            rules += [rule for access in options.permissions for rule in rules_of_access(access)]
            for kind in self._webhooks.reads:
                rules += rules_for(kind, CACHE_VERBS, namespace=options.namespace)
            await check_access(self._client, rules)
        # No await follows until all caches are made, so a cancellation leaves either all of them or none.
        self._factory = factory = InformerFactory(self._client, namespace=options.namespace, options=options.informers)
        views, attribution, tracing = Views(), Attribution(), Tracing()
        work: MemberWork | None = None
        if self._shards is not None:
            from deltaloop.runtime.program.shards import MemberWork, require_sharded_by_label

            require_sharded_by_label(plans, self._shards.share)
            work = self._member_work = MemberWork(self._shards.share, clock)
            attribution.range_of = self._shards.share.range_name
        for plan in plans:
            loop = ReconcileLoop(
                plan.controller,
                views,
                attribution=attribution,
                history=self._history,
                tracing=tracing,
                recorder=self._recorders.get(plan.controller.name),
                metrics=self._metrics,
                clock=clock,
                random=options.random,
                lifespans=self._lifespans,
                access=AccessGuard(plan.controller.name, plan.declared(options.namespace), options.undeclared_access),
                share=None if self._shards is None else self._shards.share,
            )
            self._loops.append(loop)
            informers = connect_caches(
                loop,
                plan,
                factory,
                views,
                namespace=options.namespace,
                options=options.informers,
                clock=clock,
                wall_clock=options.wall_clock,
                work=work,
            )
            connect_tracker(
                loop,
                plan,
                self._client,
                views,
                namespace=options.namespace,
                sync_timeout=options.sync_timeout,
                options=options.informers,
                clock=clock,
            )
            for informer in informers:
                self._users.setdefault(informer.name, set()).add(plan.controller.name)
            self._informers += informers
        for informer in self._webhooks.connect(factory):
            self._users.setdefault(informer.name, set()).add("webhooks")
            self._informers.append(informer)
        self._informers[:] = dict.fromkeys(self._informers)
        if work is not None:
            work.loops = self._loops
        await stack.enter_async_context(factory)
        await stack.enter_async_context(self._sources())

    @asynccontextmanager
    async def _sources(self) -> AsyncGenerator[None, None]:
        work = self._member_work
        tasks = [
            asyncio.create_task(
                _run_source(source, loop, loop.queue if work is None else work.of_source(loop.queue)),
                name=f"source {source.name}",
            )
            for loop in self._loops
            for source in loop.controller.sources
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _lead(self, stack: AsyncExitStack) -> None:
        if self._elector is None:
            await self._work(self._client)
            return
        await stack.enter_async_context(self._standing_by())
        if self._shards is not None:
            await stack.enter_async_context(self._shards)
        async for term in self._elector.terms():
            async with term:
                self._term = term
                if not self._synced:
                    await self._start_caches(stack)
                if self._shards is None or self._member_work is None:
                    await self._work(term.client)
                else:
                    async with self._shards.joined(term, self._member_work):
                        await self._work(term.client)
            self._term = None
            if self._shutdown.stopping:
                return
        from deltaloop.leaderelection.guard import LeadershipLostError

        raise LeadershipLostError(
            "leadership is lost, and the elector does not contend again",
            lock=self._elector.lock.describe(),
            identity=self._elector.identity,
        )

    @asynccontextmanager
    async def _standing_by(self) -> AsyncGenerator[None, None]:
        """Periodically drop keys of deleted objects from a standby's queues, which would otherwise keep growing."""

        async def tend() -> None:
            while True:
                await asyncio.sleep(_STANDBY_PERIOD)
                for loop in self._loops if self._term is None else ():
                    await loop.shed()

        task = asyncio.create_task(tend(), name="manager: standby")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _work(self, client: Client) -> None:
        async with asyncio.TaskGroup() as group:
            for loop in self._loops:
                group.create_task(loop.run(client), name=f"controller {loop.controller.name}")
            if not self._loops and self._webhooks.server is not None:  # a program can consist of webhooks only
                await asyncio.Event().wait()

    def __repr__(self) -> str:
        names = ", ".join(controller.name for controller in self.controllers)
        return f"<Manager of {names or 'nothing'}, {self._shutdown.phase}, {self.leadership.value}>"


async def _run_source(source: Source, loop: ReconcileLoop, queue: AcceptsKeys) -> None:
    try:
        await source.run(queue, loop.metrics.triggered)
    except (Exception, asyncio.CancelledError) as error:
        if is_cancelled_from_outside(error):
            raise
        extra = {"controller": loop.controller.name, "source": f"source {source.name}"}
        _logger.exception("source failed and stopped", extra=extra)
