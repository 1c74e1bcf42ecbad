"""The soak in real time: a server, two replicas that contend for one lease, changes, and one trouble after the other.

Time goes in rounds. In each there are changes, and in their midst a trouble; then the changes pause until everything
has converged, and each process is asked what it holds. So all samples are of the same moment of life, at rest.

    round = changes ─────────────▶ rest: converged? ─▶ samples
                 └── trouble ──┘

The server's process is restarted in the first part only: what its memory does is told by one process.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, final

from deltaloop.client import connect
from deltaloop.testing.injected_faults.core.relay import Reset, Stall
from deltaloop.testing.injected_faults.relay import Relay
from lab.soak.load import Load
from lab.soak.orders import Servant

REPLICAS: Final = ("one", "two")


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a soak goes.

    Attributes:
        seconds: How long it takes.
        round: Seconds of one round.
        pause: Seconds between two changes.
        first_pause: The same in the first part: what is remembered up to a limit is to be full before memory is judged.
        first_part: How long that is, as a share of the time.
        plans: How many objects there are.
        lease: Duration, deadline and retry period of the election.
        period: Seconds of the controllers' timers.
        settle: Seconds that converging may take.
        process_restarts: The share of the time, from the beginning, in which the server's process is restarted.
        leak: What the replicas leave behind on purpose.
        troubles: The names of the troubles, in their order; all by default.
        seed: Of chance.
    """

    seconds: float = 7200.0
    round: float = 30.0
    pause: float = 0.25
    first_pause: float = 0.08
    first_part: float = 0.45
    plans: int = 40
    lease: tuple[float, float, float] = (6.0, 4.0, 1.0)
    period: float = 20.0
    settle: float = 60.0
    process_restarts: float = 0.4
    leak: str = ""
    troubles: tuple[str, ...] = ()
    seed: int = 1


@dataclass(slots=True)
class Outcome:
    """What came of it: samples, their times in seconds, and what went wrong."""

    times: list[float] = field(default_factory=list[float])
    samples: list[dict[str, dict[str, float]]] = field(default_factory=list[dict[str, dict[str, float]]])
    rounds: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    changes: int = 0
    cpu_seconds: float = 0.0
    types: dict[str, Any] = field(default_factory=dict[str, Any])
    missing: list[str] = field(default_factory=list[str])


@final
class Soak:
    """One soak, with its processes."""

    def __init__(self, course: Course, folder: Path) -> None:
        self.course = course
        self.folder = folder
        self.outcome = Outcome()
        self.server: Servant
        self.replicas: dict[str, Servant] = {}
        self.relays: dict[str, Relay] = {}
        self.load: Load
        self._access: dict[str, str] = {}
        self._began_at = 0.0

    # -- the processes

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Start everything, and end it."""
        log = self.folder / "log"
        (self.folder / "data").mkdir(mode=0o700)
        async with AsyncExitStack() as stack:
            await self._start_server(0)
            stack.push_async_callback(self._end_server)
            client = await stack.enter_async_context(connect(kubeconfig=self._kubeconfig(self._access["url"])))
            for name in REPLICAS:
                self.relays[name] = await stack.enter_async_context(Relay(self._access["url"]))
            self.load = Load(client, plans=self.course.plans, seed=self.course.seed)
            await self.load.prepare()
            await self.rotate()
            for name in REPLICAS:
                place = self._write(f"{name}.kubeconfig", self._kubeconfig(self.relays[name].url, name))
                visitor = self._write(f"{name}.visitor", self._kubeconfig(self._access["url"], "visitor"))
                lease = ",".join(str(each) for each in self.course.lease)
                arguments = (str(place), str(visitor), name, lease, str(self.course.period), self.course.leak)
                self.replicas[name] = await Servant.start("lab.soak.replica", *arguments, log=log)
                stack.push_async_callback(self.replicas[name].end)
            yield

    async def _start_server(self, port: int) -> None:
        data, log = self.folder / "data", self.folder / "log"
        self.server = await Servant.start("lab.soak.server", str(data), str(port), log=log)
        self._access = await self.server.ask("access")

    async def _end_server(self) -> None:
        await self.server.end()

    async def restart_server(self, *, kill: bool) -> None:
        """End the server's process, and start another one on the same folder and port."""
        port = int(self._access["url"].rpartition(":")[2])
        await self.server.end(kill=kill)
        await asyncio.sleep(0.5)
        await self._start_server(port)

    def _kubeconfig(self, url: str, name: str = "") -> dict[str, Any]:
        files = {end: str(self.folder / f"{name}.{end}") for end in ("token", "exec", "crt", "key")}
        users: dict[str, dict[str, object]] = {
            "": {"token": self._access["token"]},
            "one": {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "cat",
                    "args": [files["exec"]],
                    "interactiveMode": "Never",
                }
            },
            "two": {"client-certificate": files["crt"], "client-key": files["key"]},
            "visitor": {"tokenFile": files["token"]},
        }
        ca = self._write("ca.crt", self._access["ca"])
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "soak",
            "clusters": [{"name": "soak", "cluster": {"server": url, "certificate-authority": str(ca)}}],
            "users": [{"name": "soak", "user": users[name]}],
            "contexts": [{"name": "soak", "context": {"cluster": "soak", "user": "soak", "namespace": "default"}}],
        }

    def _write(self, name: str, what: object) -> Path:
        place = self.folder / name
        fresh = place.with_name(f"{place.name}.new")
        fresh.touch(mode=0o600)
        fresh.write_text(what if isinstance(what, str) else json.dumps(what))
        fresh.replace(place)
        return place

    async def rotate(self) -> None:
        """Give everybody new credentials, and make the tokens before them worthless."""
        token = await self.load.new_token(seconds=2.5 * self.course.round)
        expires = datetime.now(UTC) + timedelta(seconds=2.5 * self.course.round)
        status = {"token": token, "expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}
        plugin = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
        self._write("one.exec", plugin)
        self._write("visitor.token", token)
        made = await self.server.ask("certificate", user="soak")
        self._write("two.key", made["key"])
        self._write("two.crt", made["certificate"])

    async def behind(self) -> str:
        """Say what is not as it is wanted, or which replica has something to do; or nothing."""
        behind = await self.load.behind()
        leaders = [name for name, servant in self.replicas.items() if await servant.ask("leading")]
        busy = [f"{name} is busy" for name, servant in self.replicas.items() if not await servant.ask("idle")]
        return ", ".join([*behind, *busy, *([] if len(leaders) == 1 else [f"{len(leaders)} leaders"])])

    # -- troubles

    def _troubles(self) -> dict[str, Callable[[], Awaitable[object]]]:
        ask = self.server.ask
        duration = self.course.lease[0]

        async def stall() -> None:
            """The leader hears nothing for longer than its lease lasts."""
            for name, servant in self.replicas.items():
                if await servant.ask("leading"):
                    self.relays[name].inject(Stall(duration=duration + 2))
                    self.relays[name].plan(Stall(duration=duration + 2), connections=None)
                    await asyncio.sleep(duration + 2)
                    self.relays[name].plan(connections=None)
                    self.relays[name].clear()
                    return

        async def reset() -> None:
            for relay in self.relays.values():
                relay.inject(Reset())

        async def refuse() -> None:
            for relay in self.relays.values():
                relay.refuse()
                relay.inject(Reset())
            await asyncio.sleep(duration / 2)
            for relay in self.relays.values():
                await relay.accept()

        async def expire() -> None:
            await ask("compact")
            await ask("strike", do="expire")

        async def overload() -> None:
            await ask("fault", do="refuse", code=429, probability=0.3, retry_after=1)
            await asyncio.sleep(duration / 2)
            await ask("calm")

        async def visit() -> None:
            for name, servant in self.replicas.items():
                problem = await servant.ask("visit")
                if problem:
                    self.outcome.rounds[-1][f"visit {name}"] = problem

        return {
            "rotate": self.rotate,
            "visit": visit,
            "end of watches": lambda: ask("strike", do="end"),
            "410": expire,
            "restart": lambda: ask("restart", seconds=1.0),
            "stall": stall,
            "reset": reset,
            "namespace": self.load.next_namespace,
            "rotate again": self.rotate,
            "visit again": visit,
            "overload": overload,
            "refuse": refuse,
            "kill": lambda: self.restart_server(kill=True),
            "end": lambda: self.restart_server(kill=False),
        }

    # -- rounds

    async def run(self) -> Outcome:
        """Run all rounds."""
        self._began_at = time.monotonic()
        end = self._began_at + self.course.seconds
        number = 0
        while time.monotonic() < end:
            started_at = time.monotonic()
            await self._round(number)
            number += 1
            await asyncio.sleep(max(0.0, started_at + self.course.round - time.monotonic()))
        unsettled = sum(not each["settled"] for each in self.outcome.rounds)
        if unsettled > 0.02 * number or not self.outcome.rounds[-1]["settled"]:
            self.outcome.missing.append(
                f"{unsettled} of {number} rounds had not converged after {self.course.settle:g} s"
            )
        self.outcome.changes = self.load.changes
        return self.outcome

    def _next_trouble(self, number: int) -> str:
        troubles = self._troubles()
        names = [*(self.course.troubles or troubles)]
        late = time.monotonic() - self._began_at > self.course.process_restarts * self.course.seconds
        if late:
            names = [name for name in names if name not in {"kill", "end"}]
        return names[number % len(names)] if names else ""

    async def _round(self, number: int) -> None:
        name = self._next_trouble(number)
        now: dict[str, Any] = {"number": number, "at": time.monotonic() - self._began_at, "trouble": name}
        self.outcome.rounds.append(now)
        ends_at = time.monotonic() + 0.7 * self.course.round
        first = now["at"] < self.course.first_part * self.course.seconds
        pause = self.course.first_pause if first else self.course.pause

        async def trouble() -> None:
            await asyncio.sleep(0.15 * self.course.round)
            if name:
                await self._troubles()[name]()

        async def changes() -> None:
            while time.monotonic() < ends_at:
                await self.load.change()
                await asyncio.sleep(pause)

        async with asyncio.TaskGroup() as group:
            group.create_task(trouble())
            group.create_task(changes())
        rest_at = time.monotonic()
        while (behind := await self.behind()) and time.monotonic() < rest_at + self.course.settle:  # noqa: ASYNC110
            await asyncio.sleep(0.1 + 0.005 * self.course.round)
        now["settled"], now["behind"] = not behind, behind
        now["took"] = time.monotonic() - rest_at
        await asyncio.sleep(0.05 * self.course.round)
        await self._sample(now)

    async def _sample(self, now: dict[str, Any]) -> None:
        servants = {"server": self.server, **self.replicas}
        sample = {name: await servant.ask("sample") for name, servant in servants.items()}
        self.outcome.times.append(time.monotonic() - self._began_at)
        self.outcome.samples.append(sample)
        if now["number"] % 20 == 0:
            self.outcome.types[str(now["number"])] = {
                name: await servant.ask("types") for name, servant in servants.items()
            }
        with (self.folder / "samples.jsonl").open("a") as file:
            file.write(json.dumps({**now, "sampled_at": self.outcome.times[-1], **sample}) + "\n")


async def soak(course: Course, folder: Path) -> Outcome:
    """Run one soak in a new folder."""
    run = Soak(course, folder)
    async with run.running():
        return await run.run()
