"""The soak in virtual time: server, replicas and changes on one loop, and a year takes minutes.

    month = days of changes, each with a trouble ─▶ rest ─▶ everything is counted

What is there at the end of each month is compared with what was there at the end of the first.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, final

from deltaloop.apiserver import ApiServer, Fault, ServerOptions
from deltaloop.cache import InformerFactory
from deltaloop.cache.informer_options import InformerOptions
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.client import Client, ClientConfig, connect
from deltaloop.client.connecting import load_config
from deltaloop.client.core.exec_credential import ExecPlugin, PluginCall, PluginOutcome
from deltaloop.client.credentials.exec_plugin import ExecCredentials
from deltaloop.events import EventRecorder
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.runtime import Manager, ManagerOptions
from lab.soak.counts import counts, disk
from lab.soak.load import Load
from lab.soak.visits import Visits
from lab.soak.work import EVENTS, Work

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
MONTH: Final = 30 * DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """How a virtual soak goes; times in seconds.

    Attributes:
        length: How long it takes.
        month: How often everything is counted.
        pause: Between two changes.
        trouble: Between two troubles.
        lease: Duration of the election's lease.
        plans: How many objects there are.
        period: Of the controllers' timers.
        looks: How often everything is counted at a month's end, half an hour apart; the least of each counts.
        leak: What the replicas leave behind on purpose.
        troubles: The names of the troubles, in their order; all by default.
    """

    length: float = 365 * DAY
    month: float = MONTH
    pause: float = 2 * HOUR
    trouble: float = DAY
    lease: float = 12 * HOUR
    plans: int = 10
    period: float = 6 * HOUR
    looks: int = 12
    leak: str = ""
    troubles: tuple[str, ...] = ()


@dataclass(slots=True)
class Year:
    """What came of it: what was there at each month's end, and what went on until then."""

    times: list[float] = field(default_factory=list[float])
    samples: list[dict[str, dict[str, float]]] = field(default_factory=list[dict[str, dict[str, float]]])
    happened: dict[str, int] = field(default_factory=dict[str, int])
    missing: list[str] = field(default_factory=list[str])
    cpu_seconds: float = 0.0


def virtual_now() -> datetime:
    """Return the wall clock of the virtual time."""
    return START + timedelta(seconds=asyncio.get_running_loop().time())


@final
class VirtualSoak:
    """One soak on the running, virtual loop."""

    def __init__(self, calendar: Calendar, folder: Path) -> None:
        """Keep what is to be done; ``folder`` is for the server's data."""
        self.calendar = calendar
        self.folder = folder
        self.outcome = Year()
        self._random = random.Random(1)
        self._server: ApiServer
        self._load: Load
        self._replicas: dict[str, tuple[AsyncExitStack, Manager]] = {}
        self._works: dict[str, Work] = {}
        self._visits: dict[str, Visits] = {}
        self._reconciles = 0
        self._token = ""
        self._token_until = 0.0
        self._rotation = asyncio.Lock()
        self._left: list[object] = []

    def count(self, what: str) -> None:
        """Count something that happened."""
        self.outcome.happened[what] = self.outcome.happened.get(what, 0) + 1

    # -- server

    def _options(self, port: int) -> ServerOptions:
        return ServerOptions(
            data_dir=self.folder,
            port=port,
            controllers=frozenset({"gc", "namespace"}),
            window=500,
            bookmark_interval=6 * HOUR,
            wall_clock=virtual_now,
        )

    async def _start_server(self, port: int = 0) -> None:
        self._server = ApiServer(self._options(port))
        await self._server.__aenter__()

    async def restart_server(self) -> None:
        """End the server, and start another one on its data a minute later."""
        port = int(self._server.url.rpartition(":")[2])
        await self._server.__aexit__(None, None, None)
        await asyncio.sleep(60.0)
        await self._start_server(port)

    # -- replicas

    async def _plugin(self, call: PluginCall) -> PluginOutcome:
        """Give what a credential plugin would: a token for a day, until a minute before it expires."""
        del call
        async with self._rotation:
            if asyncio.get_running_loop().time() >= self._token_until - 60.0:
                await self._new_token()
        expires = (START + timedelta(seconds=self._token_until)).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = {"token": self._token, "expirationTimestamp": expires}
        answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
        return PluginOutcome(output=json.dumps(answer).encode())

    async def rotate(self) -> None:
        """Take a new token; those before it are worthless from now on."""
        async with self._rotation:
            await self._new_token()

    async def _new_token(self) -> None:
        self.count("tokens")
        self._token = await self._load.new_token(seconds=DAY)
        self._token_until = asyncio.get_running_loop().time() + DAY

    def _config(self) -> ClientConfig:
        config = load_config(kubeconfig=self._server.kubeconfig())
        plugin = ExecPlugin(command="soak", api_version="client.authentication.k8s.io/v1")
        credentials = ExecCredentials(
            plugin, run=self._plugin, is_terminal=lambda: False, wall_clock=lambda: virtual_now().timestamp()
        )
        return config.replace(credentials=credentials)

    @asynccontextmanager
    async def _replica(self, name: str) -> AsyncGenerator[Manager]:
        lease = self.calendar.lease
        loop = asyncio.get_running_loop()
        async with Client(self._config()) as client:
            recorder = EventRecorder(client, component="soak", options=EVENTS, clock=loop.time, wall_clock=virtual_now)
            config = LeaderElectionConfig(
                lease_duration=lease,
                renew_deadline=lease * 2 / 3,
                retry_period=lease / 4,
                renew_in_thread=False,
                on_started_leading=lambda: self.count("terms"),
            )
            lock = LeaseLock(client, namespace="default", name="soak", identity=name)
            elector = LeaderElector(lock, config, client=client, clock=loop.time, wall_clock=virtual_now)
            reflector = ReflectorOptions(min_watch_timeout=DAY / 2)
            options = ManagerOptions(informers=InformerOptions(reflector=reflector), loop_block_threshold=None)
            work = Work(period=self.calendar.period, failing=0.02, leak=self.calendar.leak)
            manager = Manager(client, work.controllers(), elector=elector, recorder=recorder, options=options)
            self._works[name] = work
            factory = InformerFactory(client, options=options.informers)
            visits = Visits(factory, connect=lambda: Client(self._config()), leak=self.calendar.leak)
            self._visits[name] = visits
            async with recorder, factory:
                running = asyncio.create_task(manager.run())
                try:
                    yield manager
                finally:
                    manager.stop()
                    await running
                    self._reconciles += self._works.pop(name).reconciles
                    self._left += work.kept

    async def _start(self, name: str) -> None:
        stack = AsyncExitStack()
        self._replicas[name] = (stack, await stack.enter_async_context(self._replica(name)))

    async def _stop(self, name: str) -> None:
        stack, _ = self._replicas.pop(name)
        await stack.aclose()

    async def restart_leader(self) -> None:
        """End the replica that leads, and start it again an hour later; the other one takes over."""
        for name in self._leaders():
            await self._stop(name)
            await asyncio.sleep(HOUR)
            await self._start(name)

    def _leaders(self) -> list[str]:
        return [name for name, (_, manager) in self._replicas.items() if manager.leadership.value == "leading"]

    async def _tidy(self) -> None:
        """End what was left behind on purpose: the next soak of this process begins without it."""
        for each in self._left:
            if isinstance(each, asyncio.Task):
                each.cancel()

    # -- time

    async def run(self) -> Year:
        """Run the whole time."""
        began = time.process_time()
        await self._start_server()
        try:
            async with connect(kubeconfig=self._server.kubeconfig()) as client:
                self._load = Load(client, plans=self.calendar.plans, seed=1)
                await self._load.prepare()
                await self.rotate()
                try:
                    for name in ("one", "two"):
                        await self._start(name)
                    await self._months()
                finally:
                    for name in [*self._replicas]:
                        await self._stop(name)
                    await self._tidy()
        finally:
            await self._server.__aexit__(None, None, None)
        self.outcome.happened["changes"] = self._load.changes
        self.outcome.cpu_seconds = time.process_time() - began
        return self.outcome

    async def _months(self) -> None:
        loop = asyncio.get_running_loop()
        troubles, names = self._troubles(), self.calendar.troubles
        trouble_at, number = loop.time() + self.calendar.trouble, 0
        month_at = loop.time() + self.calendar.month
        end = loop.time() + self.calendar.length
        while loop.time() < end:
            await self._load.change()
            await asyncio.sleep(self.calendar.pause)
            if loop.time() >= trouble_at:
                name = (names or (*troubles,))[number % len(names or troubles)]
                self.count(name)
                await troubles[name]()
                number, trouble_at = number + 1, trouble_at + self.calendar.trouble
            if loop.time() >= month_at:
                await self._rest()
                month_at += self.calendar.month

    async def _rest(self) -> None:
        """Wait until everything has converged, and count: the least of some hours, for connections come and go."""
        loop = asyncio.get_running_loop()
        end = loop.time() + 2 * self.calendar.lease
        while (behind := await self._behind()) and loop.time() < end:  # noqa: ASYNC110
            await asyncio.sleep(60.0)
        if behind:
            self.outcome.missing.append(f"day {loop.time() / DAY:.0f}: {', '.join(behind)}")
        await asyncio.sleep(2 * HOUR)
        least = self._count(tidy=True)
        for _ in range(self.calendar.looks - 1):
            await asyncio.sleep(HOUR / 2)
            now = self._count(tidy=False)
            least = {quantity: min(value, now.get(quantity, value)) for quantity, value in least.items()}
        self.outcome.times.append(loop.time())
        self.outcome.samples.append({"all": least})

    def _count(self, *, tidy: bool) -> dict[str, float]:
        queues = [each.queue.statistics() for _, manager in self._replicas.values() for each in manager.loops]
        return {
            **counts(asyncio.get_running_loop(), tidy=tidy),
            "queued": sum(each.queued for each in queues),
            "delayed": sum(each.delayed for each in queues),
            "parked": sum(each.parked for each in queues),
            "disk": disk(self.folder),
            "watches": self._server.faults.open_watches,
            "revision": self._server.revision,
            "changes": self._load.changes,
            "reconciles": self._reconciles + sum(work.reconciles for work in self._works.values()),
        }

    async def _behind(self) -> list[str]:
        behind = await self._load.behind()
        leaders = self._leaders()
        if len(leaders) != 1 or len(self._replicas) != 2:
            return [*behind, f"{len(leaders)} leaders"]
        _, leader = self._replicas[leaders[0]]
        busy = [each.queue.name for each in leader.loops if len(each.queue) or len(each.runs)]
        return [*behind, *busy]

    def _troubles(self) -> dict[str, Callable[[], Awaitable[object]]]:
        async def compact() -> None:
            self._server.compact()
            self._server.faults.strike_watches(Fault(do="expire"))

        async def end() -> None:
            self._server.faults.strike_watches(Fault(do="end"))

        async def visit() -> None:
            for visits in self._visits.values():
                await visits.visit()

        async def away() -> None:
            await self._server.faults.restart(600.0)

        async def locked_out() -> None:
            """Nobody can write the lease for longer than it lasts: the leader gives up, and one is elected anew."""
            refused = Fault(do="refuse", verbs=("create", "update", "patch"), resources=("leases.coordination.k8s.io",))
            number = self._server.faults.add(refused)
            await asyncio.sleep(1.5 * self.calendar.lease)
            self._server.faults.remove(number)

        async def overload() -> None:
            number = self._server.faults.add(Fault(do="refuse", code=429, probability=0.3, retry_after=10))
            await asyncio.sleep(HOUR)
            self._server.faults.remove(number)

        return {
            "tokens revoked": self.rotate,
            "watches ended": end,
            "visits": visit,
            "namespaces": self._load.next_namespace,
            "410s": compact,
            "server restarted": self.restart_server,
            "leader restarted": self.restart_leader,
            "server away": away,
            "overloads": overload,
            "leases refused": locked_out,
        }


async def virtual_soak(calendar: Calendar, folder: Path) -> Year:
    """Run one on the running loop."""
    return await VirtualSoak(calendar, folder).run()
