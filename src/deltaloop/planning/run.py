"""Run of a program on a snapshot in an embedded server, in virtual time and without a network."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Self, final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api import kinds
from deltaloop.api.errors import MissingExtraError, UnknownResourceError
from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.status import NotFoundError
from deltaloop.api.times import from_epoch
from deltaloop.apiserver import ApiServer, Manifest, ServerOptions
from deltaloop.apiserver.embedding import RestoredState, StoredObjects, StoreState
from deltaloop.client import Client
from deltaloop.client.connecting import load_config
from deltaloop.client.core.wait_conditions import established
from deltaloop.planning.changes import Changes, SecretValues, Tables
from deltaloop.planning.core.result import Numbers, ObjectChange, Plan, PlanProblem
from deltaloop.planning.network import DeniedAttempt, denied_network
from deltaloop.planning.program import ModelledCluster, PlannedProgram
from deltaloop.planning.reading import WEBHOOKS, PlanError, kinds_to_read
from deltaloop.planning.recording import FirstWrite, RecordingTransport
from deltaloop.runtime import Controller
from deltaloop.runtime.program.lifespans import STUBS
from deltaloop.simulation.determinism import deterministic, quiet
from deltaloop.testing.deterministic_loop.memory_network import MemoryNetwork
from deltaloop.testing.deterministic_loop.thread_turns import thread_turns
from deltaloop.testing.deterministic_loop.virtual_loop import StalledError, VirtualLoop, run_virtual
from deltaloop.testing.programs.webhook_service import WebhookService
from deltaloop.testing.servers.cluster import default_server_options
from deltaloop.testing.servers.direct_transport import DirectTransport
from deltaloop.webhooks import WebhookAddress, WebhookSet, registrations
from deltaloop.webhooks.declaring import Webhook

Progress = Callable[[str, int], object]
"""Function that is called with a stage and a count."""

_OWN_NAMESPACE: Final = "deltaloop-plan"
_WEBHOOK_KINDS: Final = frozenset(kind.kind for kind in WEBHOOKS)
_SEED: Final = 0
_CRDS: Final = kinds.CUSTOM_RESOURCE_DEFINITION
_real_time: Final = time.time


_OPERATIONS: Final = {"create": "CREATE", "update": "UPDATE", "delete": "DELETE", "replace": "CREATE"}


def own_paths(webhooks: Sequence[Webhook]) -> frozenset[str]:
    """Return the paths of the program's own webhooks, which run in the plan."""
    if not webhooks:
        return frozenset()
    made = registrations(WebhookSet(webhooks), WebhookAddress(namespace="plan", service="plan"), name="plan")
    found = [text(at(each, "clientConfig", "service", "path")) for one in made for each in items(one.get("webhooks"))]
    return frozenset(filter(None, found))


def webhooks_not_asked(
    configurations: Iterable[Mapping[str, object]],
    changes: Sequence[ObjectChange],
    stored: StoredObjects,
    own: frozenset[str],
) -> list[str]:
    """Return the webhooks with a rule that matches changes of the program, with the number of changes.

    Selectors and match conditions are ignored, so a webhook that would skip an object can be listed.
    """
    kinds = Counter((change.kind, _OPERATIONS[change.action]) for change in changes if change.controller)
    written = [(*stored.names_of(kind), operation, count) for (kind, operation), count in kinds.items()]
    found: list[str] = []
    for configuration in configurations:
        for webhook in map(mapping, items(configuration.get("webhooks"))):
            if text(at(webhook, "clientConfig", "service", "path")) in own:
                continue
            count = sum(n for group, plural, operation, n in written if _matches(webhook, group, plural, operation))
            if count:
                name = f"{configuration['kind']} {text(at(configuration, 'metadata', 'name'))}"
                found.append(f"{name}: {text(webhook.get('name'))} ({count} changes)")
    return found


def _matches(webhook: Mapping[str, object], group: str, plural: str, operation: str) -> bool:
    def has(rule: object, field: str, *wanted: str) -> bool:
        return bool({*texts(at(rule, field))} & {"*", *wanted})

    return any(
        has(rule, "apiGroups", group)
        and has(rule, "resources", plural, f"{plural}/*", f"{plural}/status", "*/*")
        and has(rule, "operations", operation)
        for rule in items(webhook.get("rules"))
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedVersion:
    """Version of a program: controllers, webhooks, and the CRDs of its classes."""

    name: str
    controllers: tuple[Controller, ...]
    webhooks: tuple[Webhook, ...] = ()
    definitions: tuple[Mapping[str, Any], ...] = ()
    namespace: str | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOutcome:
    """Plan, with the first write of each object, and the changed objects before and afterwards, if they are kept."""

    plan: Plan
    first_writes: Mapping[tuple[str, str], FirstWrite]
    changed: Mapping[tuple[str, str], tuple[Mapping[str, object] | None, Mapping[str, object] | None]]


@final
class LoadedSnapshot:
    """Objects of a snapshot for any number of plans: the state of a server, and the cluster's webhooks."""

    def __init__(
        self,
        *,
        taken_at: float | None = None,
        definitions: Iterable[Mapping[str, Any]] = (),
        progress: Progress | None = None,
    ) -> None:
        """Begin without objects."""
        self._definitions = [*definitions]
        self.epoch: float = _real_time() if taken_at is None else taken_at
        self.webhooks: list[Mapping[str, object]] = []
        self.count: int = 0
        self._progress = progress
        self._restored: RestoredState | None = RestoredState(self.options())
        self._state: StoreState | None = None

    def load(self, objects: Iterable[Manifest]) -> Self:
        """Add objects, definitions first; raises PlanError or ManifestError."""
        for manifest in objects:
            self.add(manifest)
        return self

    def add(self, manifest: Manifest) -> None:
        """Add an object."""
        self.count += 1
        if self._progress is not None and not self.count % 1000:
            self._progress("objects loaded", self.count)
        fields = manifest.fields
        if fields["kind"] in _WEBHOOK_KINDS and str(fields["apiVersion"]).startswith("admissionregistration."):
            self.webhooks.append(fields)
            return
        assert self._restored is not None, "the snapshot is already in use"
        if not self._restored.serves(fields) and (missing := self._definition_of(fields)) is not None:
            self._restored.add(Manifest("the classes of the program", 1, missing))
        if not self._restored.serves(fields):
            place = f"{manifest.source}, document {manifest.number}"
            kind = f"{fields['apiVersion']}/{fields['kind']}"
            remedy = "Add its CustomResourceDefinition to the folder, or remove the object."
            raise PlanError(f"{place}: kind {kind} has no CRD. {remedy}", place=place)
        self._restored.add(manifest)

    def _definition_of(self, fields: Mapping[str, object]) -> dict[str, object] | None:
        group, kind = text(fields["apiVersion"]).rpartition("/")[0], fields["kind"]
        for each in self._definitions:
            if at(each, "spec", "group") == group and at(each, "spec", "names", "kind") == kind:
                return dict(each)
        return None

    @property
    def state(self) -> StoreState:
        """State of a server with the objects; no objects can be added afterwards."""
        if self._state is None:
            assert self._restored is not None
            self._state, self._restored = self._restored.finished(), None
        return self._state

    def options(self) -> ServerOptions:
        """Return the options of a server with a clock that always shows the time of the snapshot."""
        begins = from_epoch(self.epoch)
        return replace(default_server_options(), wall_clock=lambda: begins, port=6443)


def run_plan(
    version: PlannedVersion,
    snapshot: LoadedSnapshot,
    *,
    keep_requests: bool = False,
    keep_objects: bool = False,
    progress: Progress | None = None,
) -> PlanOutcome:
    """Plan a version on a snapshot; must not be called on an event loop."""
    if version.webhooks:
        from deltaloop.testing.programs.webhook_service import authority

        with suppress(MissingExtraError):
            authority()  # before the clock is replaced
    run = _Run(
        version,
        snapshot,
        keep_requests=keep_requests,
        keep_objects=keep_objects,
        progress=progress or (lambda _, __: None),
    )
    with quiet(), deterministic(_SEED, clock=run.time, epoch=snapshot.epoch):
        try:
            return run_virtual(run.live(), network=MemoryNetwork())
        except StalledError as error:
            raise PlanError(f"the program waits forever: {error}. It must not wait for other systems.") from error


@final
class _Run:
    def __init__(
        self,
        version: PlannedVersion,
        snapshot: LoadedSnapshot,
        *,
        keep_requests: bool,
        keep_objects: bool,
        progress: Progress,
    ) -> None:
        self._version = version
        self._snapshot = snapshot
        self._keeps = keep_requests
        self._keeps_objects = keep_objects
        self._progress = progress
        self._loop: VirtualLoop | None = None

    def time(self) -> float:
        """Return the virtual time; called by all threads."""
        return 0.0 if self._loop is None else self._loop.time()

    async def live(self) -> PlanOutcome:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._loop = loop
        epoch = self._snapshot.epoch
        options = replace(self._snapshot.options(), wall_clock=lambda: from_epoch(epoch + loop.time()))
        with thread_turns(loop) as loop.turns:
            async with ApiServer(options, begins_with=self._snapshot.state) as server, AsyncExitStack() as stack:
                return await self._planned(server, stack)

    async def _planned(self, server: ApiServer, stack: AsyncExitStack) -> PlanOutcome:
        version, stored = self._version, StoredObjects(server)
        config = load_config(kubeconfig=server.kubeconfig())
        before = stored.tables()
        admin = await stack.enter_async_context(Client(config, transport=DirectTransport(config, server)))
        problems = await self._define(admin, stored)
        await self._require_kinds(admin)
        service = None
        if version.webhooks:
            own = config.replace(namespace=_OWN_NAMESPACE)
            service = WebhookService(server, Client(own, transport=DirectTransport(own, server)))
            stack.callback(service.close)
            await service.register(version.webhooks)
        recorded = RecordingTransport(DirectTransport(config, server), before, keep_requests=self._keeps)
        models = Client(config, transport=DirectTransport(config, server))
        cluster = ModelledCluster(models, server, before)
        random_source = random.Random(_SEED).random
        STUBS.set(True)
        with denied_network() as attempts:
            program = PlannedProgram(
                server,
                Client(config, transport=recorded),
                version.controllers,
                version.webhooks,
                namespace=version.namespace,
                service=service,
                random=random_source,
            )
            try:
                await program.start()
                found = await program.settle(recorded, cluster, lambda count: self._progress("reconciles", count))
            except DeltaloopError as error:
                if not attempts:
                    raise
                found = [PlanProblem(reason="failed", subject=version.name, message=f"cannot start: {error}")]
            finally:
                rested_at = self.time()
                await cluster.stop()
                await program.stop()
        problems += [*found, *_rejected_and_denied(recorded, attempts)]
        told = {each.subject for each in problems if each.reason in ("rejected", "hot-loop")}
        problems += [
            PlanProblem(reason="failed", subject=subject, message=failure.message, place=failure.place)
            for place, failure in program.failures.items()
            if (subject := " ".join(place)) not in told
        ]
        numbers = Numbers(
            objects=self._snapshot.count,
            reconciles=program.reconciles,
            retries=program.retries,
            writes=recorded.writes,
            events=program.events,
            seconds=round(rested_at, 3),
        )
        changes = Changes(stored, before, recorded.notes, self._defined)
        return PlanOutcome(
            plan=self._plan(stored, before, changes, problems, numbers),
            first_writes=recorded.first,
            changed=changes.objects() if self._keeps_objects else {},
        )

    def _plan(
        self,
        stored: StoredObjects,
        before: Tables,
        changes: Changes,
        problems: Sequence[PlanProblem],
        numbers: Numbers,
    ) -> Plan:
        secrets, found = SecretValues(before, stored.tables()), changes.all()
        own = own_paths(self._version.webhooks)
        plan = Plan(
            changes=tuple(found),
            restarts=tuple(changes.restarts()),
            problems=tuple(msgspec.structs.replace(each, message=secrets.hide(each.message)) for each in problems),
            webhooks_not_asked=tuple(webhooks_not_asked(self._snapshot.webhooks, found, stored, own)),
            numbers=numbers,
        )
        return secrets.hidden(plan)

    async def _define(self, admin: Client, stored: StoredObjects) -> list[PlanProblem]:
        """Apply the CRDs of the version before the program starts, and return the stored objects that they reject."""
        self._defined: dict[tuple[str, str], str] = {}
        problems: list[PlanProblem] = []
        for definition in self._version.definitions:
            name = text(at(definition, "metadata", "name"))
            try:
                current = await admin.get(_CRDS, name)
            except NotFoundError:
                await admin.create(_CRDS, definition)
            else:
                changed = await admin.update(_CRDS, _upgraded(current, definition))
                if changed.resource_version == current.resource_version:
                    continue
                problems += [
                    PlanProblem(
                        reason="does-not-fit",
                        subject=f"{name} {key}",
                        message=f"the new CRD rejects the stored object: {errors}. Change the object or the CRD.",
                    )
                    for key, errors in stored.unfit(name)
                ]
            self._defined[_CRDS.group_resource, name] = "the CRD of the new version is applied first"
            await admin.wait_for(_CRDS, name, established())
        return problems

    async def _require_kinds(self, admin: Client) -> None:
        """Raise PlanError if a kind of the program has no CRD."""
        for kind in kinds_to_read(self._version.controllers, self._version.webhooks):
            try:
                await admin.list(kind, options=ListOptions(limit=1))
            except (UnknownResourceError, NotFoundError):
                raise PlanError(
                    f"kind {kind} of {self._version.name} has no CRD. Add its CustomResourceDefinition to the "
                    "snapshot, or declare the class of the kind in the module.",
                    place=str(kind),
                ) from None


def _upgraded(current: Resource, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a CRD with the new spec, and with the cluster's conversion unless the new spec defines a conversion."""
    fields = current.to_dict()
    spec = dict(definition["spec"])
    if "conversion" not in spec and "conversion" in fields["spec"]:
        spec["conversion"] = fields["spec"]["conversion"]
    return {**fields, "spec": spec}


def _rejected_and_denied(recorded: RecordingTransport, attempts: Mapping[DeniedAttempt, int]) -> Iterator[PlanProblem]:
    for each in recorded.rejections.values():
        yield PlanProblem(reason="rejected", subject=each.subject, message=f"{each.write}: {each.message}")
    for attempt, count in attempts.items():
        message = f"denied {count} times. Declare a stub for the lifespan that connects."
        yield PlanProblem(reason="network", subject=attempt.target, message=message, place=attempt.place)
