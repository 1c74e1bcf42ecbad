"""An embedded server, a client and a manager on the test's own loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.client import Client, ClientConfig
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.runtime import Controller, Manager, ManagerOptions

CM = kinds.CONFIG_MAP


def now() -> float:
    return asyncio.get_running_loop().time()


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
        settings = LeaderElectionConfig(own_thread=False, **config)
        return LeaderElector(lock, settings, client=client, clock=now, chance=lambda: 0.0)

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
    async with ApiServer(options) as server, Client(ClientConfig(server=server.url, namespace="default")) as client:
        yield World(server, client)


async def until(condition: Callable[[], object], timeout: float = 60.0) -> None:
    """Wait until something holds; looks every twentieth of a second."""
    async with asyncio.timeout(timeout):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.05)
