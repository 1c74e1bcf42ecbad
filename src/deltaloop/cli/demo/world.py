"""State that the demo checks, from its own informers and the logs of the replicas."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeVar, final

from deltaloop.api import kinds
from deltaloop.api.errors import DeltaloopError
from deltaloop.api.path import field_path
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache import HandlerFuncs, InformerFactory, Lister
from deltaloop.cli.demo.replicas import DemoReplica, LogLine
from deltaloop.client import Client

T = TypeVar("T")

FOO: ResourceType[Resource] = ResourceType("samples.deltaloop.dev", "v1alpha1", "Foo", "foos")
LEASE_NAME = "sample-controller"

_holder = field_path("spec.holderIdentity")


class StepFailedError(DeltaloopError):
    """An expected result of the demo did not happen in time."""

    def __init__(self, awaited: str, why: str) -> None:
        super().__init__(f"expected: {awaited} ({why})")
        self.awaited = awaited


@final
class World:
    """State that the demo checks, updated by informers and log lines."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.replicas: dict[str, DemoReplica] = {}
        self.reconciles: int = 0
        self.triggers: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self._on_change: list[Callable[[str, Resource], None]] = []

    async def start(self, informers: InformerFactory) -> None:
        self.foos: Lister[Resource] = self._watch(informers, FOO)
        self.deployments: Lister[Resource] = self._watch(informers, kinds.DEPLOYMENT)
        self.leases: Lister[Resource] = self._watch(informers, kinds.LEASE)
        self.events: Lister[Resource] = self._watch(informers, kinds.EVENT)
        await informers.wait_for_sync(timeout=10)

    def on_change(self, callback: Callable[[str, Resource], None]) -> None:
        """Register a callback that is called with a verb and an object for each change of a Foo or a Deployment."""
        self._on_change.append(callback)

    def saw_line(self, line: LogLine) -> None:
        if line.message == "reconciling":
            self.reconciles += 1
            self.triggers.update(" ".join(str(text).split(" ")[:3]) for text in line.fields.get("triggers", ()))
        self._changed.set()

    def saw_end(self) -> None:
        self._changed.set()

    @property
    def leader(self) -> str:
        lease = self.leases.find(f"default/{LEASE_NAME}")
        return (_holder.get(lease) or "") if lease is not None else ""

    def deployment_of(self, foo_key: str) -> Resource | None:
        foo = self.foos.find(foo_key)
        if foo is None:
            return None
        found = self.deployments.find(f"{foo.namespace}/{foo['spec']['deploymentName']}")
        if found is None or found.controller_owner is None or found.controller_owner.uid != foo.uid:
            return None
        return found

    def events_about(self, foo_key: str) -> list[Resource]:
        return [event for event in self.events.list() if event["involvedObject"].get("name") == foo_key.split("/")[1]]

    async def until(self, awaited: str, look: Callable[[], T | None], *, timeout: float = 12.0) -> T:
        """Wait until ``look`` returns a true value, and return it, or raise StepFailedError."""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    self._changed.clear()
                    found = look()
                    if found:
                        return found
                    for replica in self.replicas.values():
                        if replica.died:
                            raise StepFailedError(awaited, replica.died)
                    await self._changed.wait()
        except TimeoutError:
            raise StepFailedError(awaited, f"waited {timeout:g} seconds") from None

    def _watch(self, informers: InformerFactory, resource_type: ResourceType[Resource]) -> Lister[Resource]:
        informer = informers.informer(resource_type)
        shown = resource_type in (FOO, kinds.DEPLOYMENT)

        def changed(verb: str, obj: Resource) -> None:
            self._changed.set()
            if shown:
                for callback in self._on_change:
                    callback(verb, obj)

        informer.add_event_handler(
            HandlerFuncs(
                on_add=lambda obj: changed("added", obj),
                on_update=lambda _, new: changed("changed", new),
                on_delete=lambda obj: changed("deleted", obj),
            )
        )
        return informer.lister()
