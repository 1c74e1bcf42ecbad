"""An embedded server, a client and a manager on the test's own loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import deltaloop as dl
from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.cache import Informer, InformerFactory
from deltaloop.client import Client, ClientConfig
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.runtime import Controller, Manager, ManagerOptions, ReconcileClient
from deltaloop.runtime.core.attribution import Attribution
from deltaloop.runtime.objects.cached_views import CacheView, Views
from deltaloop.runtime.reconcile.client import CachedWay
from tests.servers import api_server

CM = kinds.CONFIG_MAP


def now() -> float:
    return asyncio.get_running_loop().time()


def writer(attribution: Attribution, uid: str, version: str) -> tuple[str, int] | None:
    """Return the controller and the reconcile that wrote a version; an empty version means the deletion."""
    found = attribution._writers.get((uid, version))
    return None if found is None else (found.controller, found.number)


@dataclass
class World:
    server: ApiServer
    client: Client

    def another_client(self) -> Client:
        return Client(ClientConfig(server=self.server.url, namespace="default"))

    async def put(self, name: str, **data: str) -> Resource:
        """Create a ConfigMap in the namespace ``default``."""
        return await self.client.create(CM, {"metadata": {"name": name, "namespace": "default"}, "data": data})

    async def data_of(self, name: str) -> dict[str, str]:
        found = await self.client.get(CM, name, namespace="default")
        return dict(found.get("data") or {})

    def manager(self, *controllers: Controller, client: Client | None = None, **options: Any) -> Manager:
        of_manager = ("elector", "recorder", "metrics", "metrics_page")
        known = {name: options.pop(name) for name in of_manager if name in options}
        return Manager(client or self.client, controllers, options=ManagerOptions(**options), **known)

    def elector(self, client: Client, identity: str, **config: Any) -> LeaderElector:
        lock = LeaseLock(client, namespace="default", name="test", identity=identity)
        settings = LeaderElectionConfig(renew_in_thread=False, **config)
        return LeaderElector(lock, settings, client=client, clock=now, random=lambda: 0.0)

    @asynccontextmanager
    async def running(self, *controllers: Controller, **options: Any) -> AsyncGenerator[Manager, None]:
        """Run a manager, with its caches in sync inside; stop it in good order at the end."""
        manager = self.manager(*controllers, **options)
        task = asyncio.create_task(manager.run())
        try:
            await until(lambda: task.done() or all(check.ok for check in manager.readiness()))
            if task.done():
                task.result()
            yield manager
        finally:
            if not manager._shutdown.stopping:
                manager.stop()
            await task


@asynccontextmanager
async def world() -> AsyncGenerator[World, None]:
    options = ServerOptions(insecure_http=True, controllers=frozenset())
    async with api_server(options) as server, Client(ClientConfig(server=server.url, namespace="default")) as client:
        yield World(server, client)


@dataclass
class Held:
    """A reconcile's client over caches whose streams can be held up: one of all namespaces, or one of each of some."""

    w: World
    client: ReconcileClient
    informers: list[Informer[Any]]
    caches: list[CacheView]
    attribution: Attribution
    freeze: Callable[[], Awaitable[None]]

    @property
    def informer(self) -> Informer[Any]:
        return self.informers[0]

    @property
    def view(self) -> CacheView:
        return self.caches[0]

    async def catch_up(self) -> None:
        await asyncio.sleep(1.0)


def client_of_reconcile(
    client: Client,
    views: Views,
    controller: str,
    number: int = 1,
    attribution: Attribution | None = None,
    namespace: str | None = None,
) -> ReconcileClient:
    """Return a client as a loop makes it, without checks."""
    server = client._server
    kinds, by = server.discovery.kinds, (controller, number, "")
    home = server.home if namespace is None else namespace
    recorded = Attribution() if attribution is None else attribution
    way = CachedWay(server, kinds, server.write_query, views, recorded, by, home, None)
    return ReconcileClient(way, kinds, way, {}, client)


@asynccontextmanager
async def held(
    wrap: Callable[[Client], Client] = lambda client: client,
    *,
    kind: ResourceType[Any] = CM,
    namespaces: tuple[str | None, ...] = (None,),
) -> AsyncGenerator[Held, None]:
    async with world() as w, InformerFactory(w.client) as factory:
        views, attribution = Views(), Attribution()
        informers: list[Informer[Any]] = []
        caches: list[CacheView] = []
        for namespace in namespaces:
            informer = factory.informer(kind, namespace=namespace, indexers={"team": dl.field_path("data.team")})
            informers.append(informer)
            caches.append(CacheView(informer, namespace=namespace, transform=None, clock=now))
            views.add(kind, caches[-1])
        await factory.wait_for_sync()
        client = client_of_reconcile(wrap(w.client), views, "maps", 41, attribution)
        yield Held(w, client, informers, caches, attribution, factory.shutdown)


def cm(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


async def until(condition: Callable[[], object], timeout: float = 60.0) -> None:
    """Wait until something holds; looks every twentieth of a second."""
    async with asyncio.timeout(timeout):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.05)
