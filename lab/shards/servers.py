"""Server of a run: the embedded server, or a real kube-apiserver with or without sharded lists (KEP-5866)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import deltaloop as dl
from deltaloop.api.kinds import CONFIG_MAP
from deltaloop.apiserver import ApiServer, Manifest, ServerOptions
from deltaloop.client import load_kubeconfig
from deltaloop.testing.servers.control_plane import ControlPlane, find_assets

SERVERS = ("embedded", "real", "real-without-selector")
_SLICE = 1000
_WRITERS = 32


@dataclass
class Server:
    client: dl.Client
    url: str
    kubeconfig: dict[str, Any]
    embedded: ApiServer | None

    async def load(self, config_maps: Iterable[dict[str, Any]]) -> None:
        """Create objects, in the embedded server without requests."""
        left = iter(config_maps)
        if self.embedded is None:
            async with asyncio.TaskGroup() as group:
                for _ in range(_WRITERS):
                    group.create_task(self._create(left))
            return
        while some := [Manifest("", 0, fields) for fields in islice(left, _SLICE)]:
            self.embedded.load(some)
            await asyncio.sleep(0)

    async def _create(self, left: Iterator[dict[str, Any]]) -> None:
        for fields in left:
            await self.client.create(CONFIG_MAP, fields)


@contextlib.asynccontextmanager
async def started(name: str) -> AsyncGenerator[Server, None]:
    async with contextlib.AsyncExitStack() as stack:
        embedded = None
        if name == "embedded":
            options = ServerOptions(insecure_http=True, controllers=frozenset())
            embedded = await stack.enter_async_context(ApiServer(options))
            url, kubeconfig = embedded.url, embedded.kubeconfig()
        else:
            assets = find_assets()
            if assets is None:
                raise SystemExit("no kube-apiserver: run make -C lab kube")
            gate = f"--feature-gates=ShardedListAndWatch={str(name == 'real').lower()}"
            plane = stack.enter_context(ControlPlane(assets, start_timeout=120, extra_arguments=[gate]))
            url, kubeconfig = plane.url, plane.kubeconfig()
        client = await stack.enter_async_context(dl.Client(load_kubeconfig(kubeconfig, namespace="default")))
        yield Server(client, url, kubeconfig, embedded)
