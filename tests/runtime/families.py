"""An owner and its children on an embedded server, as one process sees them, without a manager."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache import InformerFactory, InformerOptions
from deltaloop.client import Client, ClientConfig, ClientOptions
from deltaloop.runtime import Children, Context, Controller, Request, controller
from deltaloop.runtime.core.attribution import Attribution
from deltaloop.runtime.core.history import History
from deltaloop.runtime.objects.cached_views import Views
from deltaloop.runtime.objects.children import DeclaredChildren
from deltaloop.runtime.program.wiring import connect_caches, look_up, wires_of
from deltaloop.runtime.reconcile.context import Surroundings
from deltaloop.runtime.reconcile.loop import ReconcileLoop
from deltaloop.runtime.reconcile.tracing import Tracing
from tests.runtime.worlds import CM, World, client_of_reconcile, now

KINDS = ("v1/ConfigMap", "v1/Secret", "v1/Service", "apps/v1/Deployment")


def nothing(request: Request, ctx: Context) -> None: ...


class CrashedError(BaseException):
    """The process is gone."""


@dataclass
class Process:
    """One process: its caches, and the writes, and paths of reads, that it sent."""

    client: Client
    declared: DeclaredChildren
    views: Views
    controller: str
    freeze: Callable[[], Awaitable[None]]
    writes_until_crash: int | None = None
    sent: list[str] = field(default_factory=list[str])
    read: list[str] = field(default_factory=list[str])
    during_write: Callable[[int], object] = id

    def note(self, method: str, path: str, query: Mapping[str, str], content_type: str) -> None:
        if method != "GET":
            self.sent.append(f"{method} {path}")
            self.during_write(len(self.sent))
        else:
            self.read.append(path)

    def children(self, name: str = "owner", namespace: str = "default") -> Children:
        """Return the children as one reconcile has them."""

        def check(_: str) -> None:
            if self.writes_until_crash is not None and len(self.sent) > self.writes_until_crash:
                self.sent.pop()  # it is noted before it is sent
                raise CrashedError

        client = client_of_reconcile(self.client.with_write_check(check), self.views, "c")
        context = Context(
            Request(namespace, name),
            self.controller,
            1,
            client,
            (),
            0,
            1,
            client._not_awaited,
            Surroundings(controller=self.controller, loop=asyncio.get_running_loop(), children=self.declared),
            f"{namespace}/{name}",
            None,
            check,
        )
        return context.children

    def writes(self) -> int:
        """Return how many writes there were since the last call."""
        count = len(self.sent)
        self.sent.clear()
        return count


@asynccontextmanager
async def process(
    w: World,
    *kinds: str | ResourceType[Any],
    owner: ResourceType[Resource] | str = "v1/ConfigMap",
    name: str = "maps",
    writes_until_crash: int | None = None,
    namespace: str | None = None,
) -> AsyncGenerator[Process]:
    """Start one with caches that are full."""
    made: Controller = controller(owner, name=name, children=kinds or KINDS)(nothing)
    views = Views()
    made_of: list[Process] = []

    def note(*request: Any) -> None:
        for each in made_of:
            each.note(*request)

    config = ClientConfig(server=w.server.url, namespace="default")
    async with (
        Client(config, options=ClientOptions(on_request=note)) as client,
        InformerFactory(client, namespace=namespace) as factory,
    ):
        loop = ReconcileLoop(
            made,
            views,
            attribution=Attribution(),
            history=History(),
            tracing=Tracing(),
            recorder=None,
            metrics=None,
            clock=now,
        )
        wires = wires_of(made, await look_up(client, [made]))
        options = InformerOptions()
        connect_caches(loop, wires, factory, views, namespace=namespace, options=options, clock=now)
        await factory.wait_for_sync()
        assert loop.shared.children is not None
        made_of.append(Process(client, loop.shared.children, views, name, factory.shutdown, writes_until_crash))
        yield made_of[0]
        loop.close()


async def caught_up() -> None:
    await asyncio.sleep(1.0)


async def owner(w: World, name: str = "owner") -> Resource:
    return await w.client.create(CM, {"metadata": {"name": name, "namespace": "default"}})


def cm(name: str, **data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name: str, **data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    """Return a Deployment with quantities and zeros as people write them."""
    labels = {"app": name}
    container = {
        "name": "web",
        "image": "web:1",
        "ports": [{"containerPort": 80}],
        "env": [{"name": "A", "value": "1"}],
        "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5}},
    }
    pod = {
        "metadata": {"labels": labels, "creationTimestamp": None},
        "spec": {"containers": [container], "hostPID": False},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": pod, **spec},
    }


def service(name: str) -> dict[str, Any]:
    spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
