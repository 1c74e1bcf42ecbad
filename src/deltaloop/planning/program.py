"""Planned program: controllers and webhooks that run in virtual time until they rest."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, final

import msgspec

from deltaloop._internal.function_signatures import is_coroutine_function
from deltaloop._internal.tracebacks import own_frames
from deltaloop.api import kinds
from deltaloop.api.keys import join_key
from deltaloop.api.resource import Resource
from deltaloop.apiserver import ApiServer
from deltaloop.apiserver.embedding import StoredObjects
from deltaloop.client import Client
from deltaloop.events import EventDraft, EventRecorder
from deltaloop.planning.core.result import PlanProblem
from deltaloop.planning.recording import RecordingTransport
from deltaloop.runtime import Controller, Manager, ManagerOptions
from deltaloop.runtime.core.declared_access import UndeclaredAccess
from deltaloop.testing.cluster_models.core.models import NAMES, kinds_of
from deltaloop.testing.cluster_models.driver import ClusterEnvironment
from deltaloop.testing.deterministic_loop.virtual_loop import VirtualLoop
from deltaloop.testing.programs.core.settling import QueueState, ReplicaState, left_to_do
from deltaloop.testing.programs.webhook_service import LISTEN, WebhookService
from deltaloop.testing.programs.workloads import ManagedControllers, queue_states
from deltaloop.webhooks.declaring import Webhook

_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 5.0
_TURNS: Final = 2000
_HOT: Final = 50
"""Changes of one object by the program after which it does not come to rest."""
_MOST_IDLE_LOOKS: Final = 1000
_GIVES_UP_AFTER: Final = 300.0
"""Virtual seconds without a change after which pending retries are reported."""
_WEBHOOK_PORT: Final = 9443  # in the memory network of the plan
_LIMIT: Final = 24 * 3600.0


class ReconcileFailure(msgspec.Struct, frozen=True):
    """Error of a reconcile: its message, the places in the program, and its cause in a denied network."""

    message: str
    place: str


_MODELLED: Final = frozenset(kind.group_resource for kind in kinds_of(NAMES))
_OWNERS: Final = {
    "Deployment": kinds.DEPLOYMENT.group_resource,
    "Job": kinds.JOB.group_resource,
    "ReplicaSet": kinds.REPLICA_SET.group_resource,
    "StatefulSet": kinds.STATEFUL_SET.group_resource,
}
_ALWAYS_SEEN: Final = frozenset({"Node", "PersistentVolume", "PersistentVolumeClaim", "StorageClass"})


@final
class ModelledCluster:
    """Models of other controllers, which begin with the first change of an object that they read.

    They see only objects that have changed since the snapshot, and the objects below them, because the other
    controllers have finished their work on the rest.
    """

    def __init__(self, client: Client, server: ApiServer, before: Mapping[str, Mapping[str, Resource]]) -> None:
        self._client = client
        self._server = server
        self._before = before
        self._stored = StoredObjects(server)
        self._environment: ClusterEnvironment | None = None

    async def begin(self, changed: Iterable[tuple[str, str]]) -> None:
        """Start the models if the program has changed an object that they read."""
        if self._environment is None and any(resource in _MODELLED for resource, _ in changed):
            self._environment = ClusterEnvironment(
                self._client,
                namespace=None,
                seed=0,
                wall_clock=self._server.options.wall_clock,
                server=self._server,
                concerns=self._concerns,
            )
            await self._environment.run()

    def left(self) -> tuple[str, ...]:
        return () if self._environment is None else self._environment.left()

    async def stop(self) -> None:
        if self._environment is not None:
            await self._environment.stop()

    def _concerns(self, obj: Resource) -> bool:
        kind = obj.resource_type
        if kind is None or kind.kind in _ALWAYS_SEEN or self._is_changed(kind.group_resource, obj):
            return True
        owner = obj.controller_owner
        resource = "" if owner is None else _OWNERS.get(owner.kind, "")
        found = self._stored.get(resource, join_key(obj.namespace, owner.name)) if owner is not None else None
        return found is not None and self._is_changed(resource, found)

    def _is_changed(self, resource: str, obj: Resource) -> bool:
        before = self._before.get(resource, {}).get(obj.key)
        return before is None or before.resource_version != obj.resource_version


@final
class PlannedProgram:
    """Program with its manager, on the event loop of a plan."""

    name = "plan"

    def __init__(
        self,
        server: ApiServer,
        client: Client,
        controllers: Sequence[Controller],
        webhooks: Sequence[Webhook],
        *,
        namespace: str | None,
        service: WebhookService | None,
        random: Callable[[], float],
    ) -> None:
        self.events: int = 0
        self.failures: dict[tuple[str, str], ReconcileFailure] = {}
        self.retries = 0
        self._server = server
        self._service = service
        recorder = EventRecorder(
            client,
            component=controllers[0].name if controllers else "webhooks",
            instance=self.name,
            watchers=[self._count],
            clock=asyncio.get_running_loop().time,
            random=random,
        )
        options = ManagerOptions(
            preflight=False,
            undeclared_access=UndeclaredAccess.REJECT,
            namespace=namespace,
            random=random,
            sync_timeout=_LIMIT,
            loop_block_threshold=None,
        )
        if service is not None:
            options = options.replace(webhooks=LISTEN.replace(port=_WEBHOOK_PORT))
        manager = Manager(
            client,
            [self._observed(each) for each in controllers],
            recorder=recorder,
            webhooks=webhooks,
            certificates=None if service is None else service.certificate,
            options=options,
        )
        self._workload = ManagedControllers(self.name, client, recorder, manager, server=server)
        self._task: asyncio.Task[None] | None = None

    @property
    def webhook_port(self) -> int:
        return _WEBHOOK_PORT

    @property
    def reconciles(self) -> int:
        return sum(queue.runs for queue in self._queues())

    def pause(self) -> None:
        """Continue, because ``settle`` ends a busy program."""

    async def start(self) -> None:
        """Start the program, and wait until its caches have synced; raises the error of its start."""
        if self._service is not None:
            self._service.lead_to([self])  # the webhooks are served before the first reconcile
        self._task = asyncio.create_task(self._workload.run(), name="planned program")
        while not self._task.done() and not self._workload.is_up:
            await asyncio.wait({self._task}, timeout=_FIRST_PAUSE)
        if self._task.done():
            self._task.result()

    async def stop(self) -> None:
        if self._task is not None:
            self._workload.stop()
            await asyncio.wait({self._task}, timeout=_LIMIT)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def settle(
        self, recorded: RecordingTransport, cluster: ModelledCluster, progress: Callable[[int], object]
    ) -> list[PlanProblem]:
        """Run until the program rests or never will, and return why it does not."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        pause, changed_at, revision, looks = _FIRST_PAUSE, loop.time(), -1, 0
        while True:
            idle = await loop.idle(turns=_TURNS)
            progress(self.reconciles)
            if self._task is not None and self._task.done():
                self._task.result()
            if self._server.revision != revision:
                revision, changed_at, looks, pause = self._server.revision, loop.time(), 0, _FIRST_PAUSE
            await cluster.begin(recorded.effects)
            hot = [place for place, count in recorded.effects.items() if count >= _HOT]
            if hot:
                return [self._hot_loop(place, recorded) for place in hot]
            looks += 1
            left = self._left(cluster) if idle else ("the program is busy without a change",)
            if idle and not left:
                left = await self._workload.behind()
                if await loop.idle(turns=_TURNS) and not left and not self._left(cluster):
                    return []
            late = loop.time() - changed_at >= _GIVES_UP_AFTER or loop.time() >= _LIMIT
            if late or looks >= _MOST_IDLE_LOOKS:
                return self._pending(left)
            if idle:
                await asyncio.sleep(pause)
                pause = min(_LONGEST_PAUSE, pause * 2)

    def _left(self, cluster: ModelledCluster) -> tuple[str, ...]:
        state = ReplicaState(name=self.name, queues=self._queues())
        return (*left_to_do([state]), *cluster.left())

    def _queues(self) -> tuple[QueueState, ...]:
        return queue_states(self._workload.manager)

    def _hot_loop(self, place: tuple[str, str], recorded: RecordingTransport) -> PlanProblem:
        resource, key = place
        writer = recorded.writers[place]
        changes = [each for each in self._server.changes_of(resource, after=0) if each.key == key][-2:]
        paths = sorted({path for each in changes for path in _paths_of(each.old, each.new)})
        said = f" ({', '.join(paths[:5])})" if paths else ""
        return PlanProblem(
            reason="hot-loop",
            subject=f"{writer.controller} {writer.reconcile}",
            message=f"changes {resource} {key} again and again{said}. Two reconciles, or a reconcile and a default of "
            "the server, do not agree. Write only values that do not change by themselves.",
        )

    def _pending(self, left: Sequence[str]) -> list[PlanProblem]:
        if self.failures:
            return []  # reported separately
        return [
            PlanProblem(reason="not-at-rest", subject=self.name, message=f"{each}. It must end without outside help.")
            for each in left[:10]
        ]

    def _count(self, _: EventDraft) -> None:
        self.events += 1

    def _observed(self, controller: Controller) -> Controller:
        """Return a controller that records the errors of its functions."""
        changed: dict[str, Any] = {"function": self._recording(controller.name, controller.function)}
        cleanup = controller.declared_cleanup
        if cleanup is not None:
            function = self._recording(controller.name, cleanup.function)
            changed["declared_cleanup"] = msgspec.structs.replace(cleanup, function=function)
        return msgspec.structs.replace(controller, **changed)

    def _recording(self, name: str, function: Callable[..., Any]) -> Any:
        @contextmanager
        def watched(request: object) -> Generator[None]:
            place = (name, str(request))
            try:
                yield
            except Exception as error:
                self.retries += 1
                frames = own_frames(error)
                told = f"{type(error).__name__}: {error}"
                self.failures[place] = ReconcileFailure(told, str(frames[-1]) if frames else "")
                raise
            self.failures.pop(place, None)

        if is_coroutine_function(function):

            @functools.wraps(function)
            async def observed(request: Any, ctx: Any) -> Any:
                with watched(request):
                    return await function(request, ctx)

            return observed

        @functools.wraps(function)
        def plain(request: Any, ctx: Any) -> Any:
            with watched(request):
                return function(request, ctx)

        return plain


def _paths_of(old: Any, new: Any) -> list[str]:
    from deltaloop.planning.core.differences import field_changes

    if old is None or new is None:
        return []
    return [change.path for change in field_changes(old.to_dict(), new.to_dict())]
