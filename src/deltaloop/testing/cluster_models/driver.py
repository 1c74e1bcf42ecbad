"""Driver of the cluster models, which faults of a harness do not affect, and which outlives crashes of programs."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from typing import Any, Final, final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.json_values import mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ConflictError, NotFoundError
from deltaloop.api.times import format_time
from deltaloop.apiserver import ApiServer
from deltaloop.cache import HandlerFuncs, Informer, InformerFactory
from deltaloop.cache.errors import NotFreshError
from deltaloop.client import Client, DeleteOptions
from deltaloop.testing.cluster_models.core.cluster_view import (
    NAME_SIGNS,
    Agenda,
    ClusterObject,
    ClusterView,
    EnvironmentStep,
    EnvironmentVerb,
    EnvironmentWrite,
)
from deltaloop.testing.cluster_models.core.models import ModelName, kinds_of, steps_of, with_what_they_need

MANAGER: Final = "deltaloop-environment"

_CATCHES_UP_WITHIN: Final = 30.0


@final
class ClusterEnvironment:
    """Models that run next to the programs under test; made by ``Harness.environment``."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str | None,
        seed: int,
        wall_clock: Callable[[], datetime],
        server: ApiServer | None = None,
        concerns: Callable[[Resource], bool] | None = None,
    ) -> None:
        """Prepare without watching; ``stop`` closes the client, and ``namespace`` None means all namespaces.

        With ``concerns``, models see only objects for which it is true, and equal steps take equally long, so that
        they are carried out together.
        """
        self.failing: Callable[[Resource], bool] = lambda _: False
        self._client = client.with_field_manager(MANAGER)
        self._factory = InformerFactory(client, namespace=namespace)
        self._stack = AsyncExitStack()
        self._seed = seed
        self._wall_clock = wall_clock
        self._server = server
        self._concerns = concerns
        self._agenda = Agenda(self._draw if concerns is None else lambda _: 0.5)
        self._models: tuple[ModelName, ...] = ()
        self._informers: dict[ResourceType[Any], Informer[Any]] = {}
        self._objects: dict[str, ClusterObject] = {}
        self._changed = asyncio.Event()
        self._made: Counter[str] = Counter()
        self._task: asyncio.Task[None] | None = None

    async def run(self, *models: str) -> None:
        """Add models; their caches have synced when this returns."""
        wanted = with_what_they_need([*models, *self._models] if models else [])
        if self._task is None:
            await self._stack.enter_async_context(self._client)
            await self._stack.enter_async_context(self._factory)

        def wake(*_: object) -> None:
            self._changed.set()

        for kind in kinds_of(wanted):
            if kind not in self._informers:
                informer = self._informers[kind] = self._factory.informer(kind)
                informer.add_event_handler(HandlerFuncs(on_add=wake, on_update=wake, on_delete=wake))
        await self._factory.wait_for_sync()
        self._models = wanted
        self._changed.set()
        if self._task is None:
            work = self._work()
            self._task = asyncio.create_task(work, name="environment", context=contextvars.Context())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._stack.aclose()

    def left(self) -> tuple[str, ...]:
        """Return descriptions of pending steps and unseen changes; raise the error that stopped the models."""
        if self._task is not None and self._task.done():
            self._task.result()
        unseen = [kind for kind, informer in self._informers.items() if self._is_behind(kind, informer)]
        behind = tuple(f"the environment has not seen all {kind.group_resource}" for kind in unseen)
        return (*behind, *self._agenda.left(now=asyncio.get_running_loop().time()))

    def _is_behind(self, kind: ResourceType[Any], informer: Informer[Any]) -> bool:
        version = informer.resource_version
        if self._server is None or not version.isdecimal():
            return False
        return self._server.has_changed(kind.group_resource, after=int(version))

    async def _work(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            self._changed.clear()
            due = self._agenda.plan(steps_of(self._models, self._view()), now=clock())
            for step in due:
                if step.write is not None:
                    await self._carry_out(step, step.write)
            if not due:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(self._agenda.next_at):
                        await self._changed.wait()

    def _view(self) -> ClusterView:
        before, self._objects = self._objects, {}
        objects = {kind: self._seen(kind, informer, before) for kind, informer in self._informers.items()}
        return ClusterView(
            objects,
            instant=format_time(self._wall_clock()),
            passed=self._agenda.passed,
            fails=lambda pod: self.failing(pod.resource),
            draw=self._draw,
        )

    def _seen(
        self, kind: ResourceType[Any], informer: Informer[Any], before: dict[str, ClusterObject]
    ) -> Sequence[ClusterObject]:
        found: list[ClusterObject] = []
        seen = informer.indexer.list()
        if self._concerns is not None:
            seen = [obj for obj in seen if self._concerns(obj)]
        for obj in sorted(seen, key=lambda obj: obj.key):
            known = before.get(obj.uid)
            if known is None or known.version != obj.resource_version:
                known = ClusterObject(kind, obj)
            self._objects[obj.uid] = known
            found.append(known)
        return found

    def _draw(self, what: str) -> float:
        return random.Random(f"{self._seed}: {what}").random()

    async def _carry_out(self, step: EnvironmentStep, write: EnvironmentWrite) -> None:
        try:
            stored = await self._write(write, name=write.name or self._made_up(step, write))
        except (ConflictError, NotFoundError):
            self._agenda.done(step)  # another writer was faster; the next plan starts from the current state
            return
        except DeltaloopError as error:
            now = asyncio.get_running_loop().time()
            self._agenda.failed(step, f"{type(error).__name__}: {error}", now=now)
            return
        self._agenda.done(step)
        if stored is not None and write.kind in self._informers:
            with suppress(NotFreshError):  # server faults can affect the watches
                await self._informers[write.kind].wait_for_resource_version(
                    stored.resource_version, timeout=_CATCHES_UP_WITHIN
                )

    def _made_up(self, step: EnvironmentStep, write: EnvironmentWrite) -> str:
        """Generate a name like the server, but from the seed, because durations are drawn by names."""
        self._made[step.told] += 1
        drawn = int(self._draw(f"name: {step.told}, {self._made[step.told]}") * len(NAME_SIGNS) ** 5)
        signs = [NAME_SIGNS[drawn // len(NAME_SIGNS) ** place % len(NAME_SIGNS)] for place in range(5)]
        return text(mapping(write.body.get("metadata")).get("generateName")) + "".join(signs)

    async def _write(self, write: EnvironmentWrite, *, name: str) -> Resource | None:
        client, kind, place = self._client, write.kind, write.namespace or None
        match write.verb:
            case EnvironmentVerb.CREATE:
                body = {**write.body, "metadata": {**mapping(write.body.get("metadata")), "name": name}}
                return await client.create(kind, body, namespace=place)
            case EnvironmentVerb.PATCH:
                return await client.patch(kind, name, dict(write.body), namespace=place)
            case EnvironmentVerb.STATUS:
                return await client.patch(kind, name, dict(write.body), namespace=place, subresource="status")
            case EnvironmentVerb.BIND:
                binding = {"apiVersion": "v1", "kind": "Binding", **write.body}
                await client.create_subresource(kind, name, "binding", binding, namespace=place)
            case EnvironmentVerb.DELETE:
                options = DeleteOptions(uid=write.uid, grace_period_seconds=write.grace)
                await client.delete(kind, name, namespace=place, options=options)
        return None
