"""What a step of the scenario is given: a cluster, the programs that use it, and a place to record what came of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import deltaloop as dl
from lab.world import build
from lab.world.events import kinds_of_events
from lab.world.normal import normal_lines, normal_object, normal_table, random_names
from lab.world.programs import Place
from lab.world.settled import is_settled

MANIFESTS = Path(__file__).with_name("manifests")
COMMAND_SECONDS = 120.0
WAIT_SECONDS = 90.0
_POLL = 0.2
_NODES = {f"node-{number}": "<node>" for number in range(10)}


class StepError(Exception):
    """A step cannot go on: something did not happen in time, or a command failed that must not."""


@dataclass(frozen=True)
class Output:
    """What a command printed, and its exit code."""

    code: int
    stdout: str
    stderr: str


@dataclass
class World:
    """One cluster.

    Attributes:
        place: Where its server is.
        client: An administrator's, of our own library: what waits uses it, what is recorded comes by kubectl.
        namespace: The present step's own namespace.
        records: What the present step recorded, by name, in normal form.
        names: Words of this run that stand for others.
    """

    place: Place
    client: dl.Client = field(repr=False)
    namespace: str = "default"
    records: dict[str, Any] = field(default_factory=dict[str, Any])
    names: dict[str, str] = field(default_factory=dict[str, str])

    async def run(
        self,
        command: Sequence[str | Path],
        *,
        text: str | None = None,
        fails: bool | None = False,
        secret: bool = False,
        seconds: float = COMMAND_SECONDS,
    ) -> Output:
        """Run a command to its end.

        Args:
            command: Program and arguments.
            text: Its standard input.
            fails: Whether it is meant to fail; None if that is to be recorded.
            secret: Whether its arguments or what it prints are to stay out of the log.
            seconds: How long it may take.

        Raises:
            StepError: If it fails and is not meant to, or the other way round, or takes too long.
        """
        process = await asyncio.create_subprocess_exec(
            *map(str, command),
            stdin=asyncio.subprocess.PIPE if text is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.place.environment(),
        )
        shown = " ".join([Path(command[0]).name, *map(str, command[1 : 5 if secret else None])])
        try:
            async with asyncio.timeout(seconds):
                stdout, stderr = await process.communicate(text.encode() if text is not None else None)
        except TimeoutError:
            raise StepError(f"{shown} did not end within {seconds:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        output = Output(process.returncode or 0, stdout.decode(), stderr.decode())
        with (self.place.logs / "commands.log").open("a") as log:
            printed = "..." if secret else output.stdout + output.stderr
            log.write(f"$ {shown}\n{printed}[{output.code}]\n")
        if fails is not None and bool(output.code) != fails:
            raise StepError(f"{shown} ended with {output.code}: {output.stderr.strip() or output.stdout.strip()}")
        return output

    async def kubectl(
        self, *arguments: str, text: str | None = None, fails: bool | None = False, secret: bool = False
    ) -> Output:
        """Run kubectl in the step's namespace."""
        command: list[str | Path] = [build.KUBECTL.path, "-n", self.namespace, *arguments]
        return await self.run(command, text=text, fails=fails, secret=secret)

    async def apply(self, manifest: str) -> None:
        """Apply a file of ``manifests`` and record what kubectl said."""
        done = await self.kubectl("apply", "-f", str(MANIFESTS / f"{manifest}.yaml"))
        self.record_text(f"apply {manifest}", done)

    async def objects(self, kind: str, *, cluster: bool = False) -> list[dl.Resource]:
        """List the objects of a kind in the step's namespace, or in the cluster."""
        return list(await self.client.list_all(kind, namespace=None if cluster else self.namespace))

    async def until(
        self, what: str, condition: Callable[[], Awaitable[object]], *, seconds: float = WAIT_SECONDS
    ) -> None:
        """Wait until something holds.

        Raises:
            StepError: If it does not in time.
        """
        until = time.monotonic() + seconds
        while True:
            if await condition():
                return
            if time.monotonic() > until:
                raise StepError(f"did not happen within {seconds:g} s: {what}")
            await asyncio.sleep(_POLL)

    async def until_all(
        self,
        kind: str,
        condition: Callable[[dl.Resource], object],
        *,
        count: int | None = None,
        cluster: bool = False,
        seconds: float = WAIT_SECONDS,
    ) -> None:
        """Wait until there are ``count`` objects (any number but none by default), and something holds of each."""

        async def hold() -> bool:
            found = await self.objects(kind, cluster=cluster)
            right = bool(found) if count is None else len(found) == count
            return right and all(condition(each) for each in found)

        await self.until(f"{count or 'all'} {kind} in {self.namespace} are as wanted", hold, seconds=seconds)

    def record(self, name: str, value: Any) -> None:
        """Record something that has to be the same on both servers."""
        assert name not in self.records, name
        self.records[name] = normal_object(value, self.names)

    def record_text(self, name: str, output: Output, *, table: bool = False, last: bool = False) -> None:
        """Record what a command printed and how it ended; ``last`` keeps the last line alone."""
        if last:
            output = replace(output, stdout=output.stdout.strip().rpartition("\n")[2])
        form = normal_table if table else normal_lines
        printed = {"stdout": form(output.stdout, self.names), "stderr": form(output.stderr, self.names)}
        self.record(name, {"code": output.code, **printed})

    async def record_objects(self, name: str, *kinds: str, cluster: bool = False) -> None:
        """Record all objects of some kinds in the step's namespace, by kind and name, once they are settled."""
        for kind in kinds:
            items = await self._settled(kind, cluster=cluster)
            # Where a Pod that may run anywhere does run is left to chance.
            names = self.names | ({} if kind == "nodes" or cluster else _NODES)
            found: dict[str, list[Any]] = {}
            for item in items:
                normal = normal_object(item, names)
                if kind == "endpointslices":
                    normal["metadata"].pop("generation", None)  # how many changes the controller wrote at once
                found.setdefault(normal["metadata"]["name"], []).append(normal)
            # Random names become the same.
            self.records[f"{name}: {kind}"] = {each: sorted(those, key=json.dumps) for each, those in found.items()}

    async def _settled(self, kinds: str, *, cluster: bool = False) -> list[dict[str, Any]]:
        """Return the objects of some kinds as they were when all of them were settled."""
        found: list[dict[str, Any]] = []

        async def are_settled() -> bool:
            found[:] = await self._items(kinds, cluster=cluster)
            pods = [pod.to_dict() for pod in await self.objects("pods")]
            return all(is_settled(each, pods) for each in found)

        await self.until(f"{kinds} in {self.namespace} are settled", are_settled)
        return found

    async def _items(self, kind: str, *, cluster: bool = False) -> list[dict[str, Any]]:
        done = await self.kubectl("get", kind, "-o", "json", "--show-managed-fields")
        found: list[dict[str, Any]] = json.loads(done.stdout)["items"]
        items = [item for item in found if cluster or item["metadata"].get("namespace") == self.namespace]
        self.names |= random_names(items)
        return items

    async def record_table(self, name: str, kinds: str, *arguments: str) -> None:
        """Record a table that kubectl prints, once what it shows is settled."""
        await self._settled(kinds)
        self.record_text(name, await self.kubectl("get", kinds, *arguments), table=True)

    async def record_events(self, awaited: Iterable[str]) -> None:
        """Record which events there are, once those that are awaited are there."""
        found: list[str] = []

        async def are_there() -> bool:
            found[:] = kinds_of_events([event.to_dict() for event in await self.objects("events")])
            return set(awaited) <= set(found)

        await self.until(f"the events {', '.join(awaited)}", are_there)
        self.record("events", found)
