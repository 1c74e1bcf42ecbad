"""Informers over real foreign clients, against the embedded server; a client that is not installed is skipped.

Real time: blocking clients work in threads. ``make -C lab test-adapters`` installs them and runs this.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import deltaloop as dl
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ExpiredError, NotFoundError, UnauthorizedError
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.cache import InformerFactory, ListWatch
from deltaloop.cache.adapters import (
    AdaptedClient,
    from_kr8s,
    from_kubernetes,
    from_kubernetes_asyncio,
    from_lightkube,
)
from deltaloop.errors import StreamEndedError, TransportError
from deltaloop.testing import Cut, Relay, Reset

pytestmark = [
    pytest.mark.real_time,
    # What foreign packages leave behind is theirs.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning"),
]

CONFIG_MAP = dl.kinds.CONFIG_MAP
Config = dict[str, Any]


@dataclass
class Made:
    """A foreign client, ours over it, and how to close the former."""

    client: AdaptedClient
    close: Callable[[], Any]


async def over_kubernetes(config: Config, folder: Path) -> Made:
    package = importlib.import_module("kubernetes.config")
    api_client = package.new_client_from_config_dict(config)
    return Made(from_kubernetes(api_client, request_timeout=5), api_client.close)


async def over_kubernetes_asyncio(config: Config, folder: Path) -> Made:
    package = importlib.import_module("kubernetes_asyncio.config")
    api_client = package.new_client_from_config_dict(config)
    if inspect.isawaitable(api_client):
        api_client = await api_client
    return Made(from_kubernetes_asyncio(api_client, request_timeout=5), api_client.close)


async def over_kr8s(config: Config, folder: Path) -> Made:
    package = importlib.import_module("kr8s.asyncio")
    file = folder / "kubeconfig"
    file.write_text(yaml.dump(config))  # noqa: TID251 - its own text
    file.chmod(0o600)
    api = await package.api(kubeconfig=str(file))

    async def close() -> None:
        if api._session is not None:
            await api._session.aclose()

    return Made(from_kr8s(api, request_timeout=5), close)


async def over_lightkube(config: Config, folder: Path) -> Made:
    package = importlib.import_module("lightkube")
    client = package.Client(package.KubeConfig.from_dict(config))
    return Made(from_lightkube(client, request_timeout=5), getattr(client, "close", lambda: None))


async def over_lightkube_asyncio(config: Config, folder: Path) -> Made:
    package = importlib.import_module("lightkube")
    client = package.AsyncClient(package.KubeConfig.from_dict(config))
    return Made(from_lightkube(client, request_timeout=5), client.close)


# lightkube's models are a package of their own, below the same name.
MAKERS: dict[str, tuple[str, Callable[[Config, Path], Awaitable[Made]]]] = {
    "kubernetes": ("kubernetes", over_kubernetes),
    "kubernetes_asyncio": ("kubernetes_asyncio", over_kubernetes_asyncio),
    "kr8s": ("kr8s", over_kr8s),
    "lightkube": ("lightkube.core", over_lightkube),
    "lightkube-asyncio": ("lightkube.core", over_lightkube_asyncio),
}
packages = pytest.mark.parametrize("name", list(MAKERS))


@dataclass
class World:
    server: ApiServer
    relay: Relay
    ours: dl.Client
    adapted: AdaptedClient

    async def create(self, name: str, **data: str) -> Any:
        return await self.ours.create(CONFIG_MAP, {"metadata": {"name": name, "namespace": "default"}, "data": data})


@asynccontextmanager
async def world(name: str, folder: Path, *, token: str | None = None) -> AsyncGenerator[World, None]:
    package, make = MAKERS[name]
    pytest.importorskip(package)
    async with ApiServer(ServerOptions()) as server, Relay(server.url) as relay:
        config = relay.kubeconfig(server.kubeconfig())
        if token is not None:
            config["users"] = [{"name": entry["name"], "user": {"token": token}} for entry in config["users"]]
        made = await make(config, folder)
        try:
            async with dl.connect(kubeconfig=server.kubeconfig()) as ours:
                yield World(server, relay, ours, made.client)
        finally:
            closed = made.close()
            if inspect.isawaitable(closed):
                await closed
    await until(lambda: readers() == [])


def readers() -> list[str]:
    """The threads that read answers."""
    return [thread.name for thread in threading.enumerate() if " GET " in thread.name]


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about within 10 s")


@packages
async def test_informer_over_foreign_client_lists_watches_and_stops(name: str, tmp_path: Path) -> None:
    async with world(name, tmp_path) as here:
        await here.create("a", text="ä" * 10)
        async with InformerFactory(here.adapted, namespace="default") as factory:
            informer = factory.informer(CONFIG_MAP)
            await factory.wait_for_sync(timeout=10)
            maps = informer.lister()
            assert maps.get("default/a")["data"]["text"] == "ä" * 10
            await here.create("b")
            await until(lambda: maps.find("default/b") is not None)
            await here.ours.patch(CONFIG_MAP, "a", {"data": {"text": "new"}})
            await until(lambda: maps.get("default/a")["data"]["text"] == "new")
            await here.ours.delete(CONFIG_MAP, "a")
            await until(lambda: maps.find("default/a") is None)
            statistics = informer.statistics()
            assert statistics.lists == 1
            assert statistics.errors == 0


@packages
async def test_metadata_only_list_has_no_data(name: str, tmp_path: Path) -> None:
    async with world(name, tmp_path) as here:
        await here.create("a", text="x" * 5000)
        async with InformerFactory(here.adapted, namespace="default") as factory:
            informer = factory.informer(CONFIG_MAP, metadata_only=True)
            await factory.wait_for_sync(timeout=10)
            await here.create("b", text="y" * 5000)
            await until(lambda: informer.lister().find("default/b") is not None)
            assert {obj.kind for obj in informer.lister().list()} == {"PartialObjectMetadata"}
            assert informer.bytes_held() < 2000
            assert informer.statistics().errors == 0
        page = await ListWatch(here.adapted, CONFIG_MAP, metadata_only=True).list(ListOptions())
        assert ["data" in obj for obj in page] == [False, False]


@packages
async def test_selectors_and_pages_reach_the_server(name: str, tmp_path: Path) -> None:
    async with world(name, tmp_path) as here:
        for number in range(5):
            await here.ours.create(
                CONFIG_MAP,
                {"metadata": {"name": f"m{number}", "namespace": "default", "labels": {"odd": str(number % 2)}}},
            )
        source = ListWatch(here.adapted, CONFIG_MAP, namespace="default", label_selector="odd in (1)")
        page = await source.list(ListOptions(limit=1))
        assert [item.name for item in page] == ["m1"]
        rest = await source.list(ListOptions(limit=5, continue_=page.continue_))
        assert [item.name for item in rest] == ["m3"]


@packages
async def test_server_errors_are_raised_as_own_error_classes(name: str, tmp_path: Path) -> None:
    async with world(name, tmp_path) as here:
        unknown = ResourceType[dl.Resource]("nobody.example.com", "v1", "Nothing", "nothings")
        with pytest.raises(NotFoundError):
            await here.adapted.list(unknown)
        with pytest.raises(NotFoundError):
            async with here.adapted.watch(unknown):
                pass
        created = await here.create("a")
        await here.create("b")
        here.server.compact()
        with pytest.raises(ExpiredError):
            async with here.adapted.watch(
                CONFIG_MAP, options=ListOptions(resource_version=created.resource_version, timeout_seconds=5)
            ) as events:
                _ = [event async for event in events]


# kr8s asks the server when it is made, and fails there.
@pytest.mark.parametrize("name", [name for name in MAKERS if name != "kr8s"])
async def test_wrong_credentials_are_our_error(name: str, tmp_path: Path) -> None:
    async with world(name, tmp_path, token="wrong-token") as here:
        with pytest.raises(UnauthorizedError) as caught:
            await here.adapted.list(CONFIG_MAP)
        assert "wrong-token" not in str(caught.value)


@packages
async def test_unreachable_server_raises_connection_refused(name: str, tmp_path: Path) -> None:
    async with world(name, tmp_path) as here:
        here.relay.refuse()
        here.relay.inject(Cut())
        await asyncio.sleep(0.1)
        with pytest.raises(TransportError) as caught:
            await here.adapted.list(CONFIG_MAP)
        assert caught.value.refused
        with pytest.raises(TransportError) as caught:
            async with here.adapted.watch(CONFIG_MAP):
                pass
        assert caught.value.refused
        await here.relay.accept()
        assert len(await here.adapted.list(CONFIG_MAP)) == 0


@packages
@pytest.mark.parametrize("cut", [Cut(), Reset()])
async def test_cut_stream_raises_own_error_and_informer_continues(name: str, cut: Cut | Reset, tmp_path: Path) -> None:
    async with world(name, tmp_path) as here:
        options = ListOptions(resource_version="", timeout_seconds=60)
        async with here.adapted.watch(CONFIG_MAP, options=options) as events:
            here.relay.inject(cut)
            with pytest.raises(StreamEndedError):
                await anext(events)
        async with InformerFactory(here.adapted) as factory:
            informer = factory.informer(CONFIG_MAP)
            await factory.wait_for_sync(timeout=10)
            await asyncio.sleep(0.2)
            here.relay.inject(cut)
            await here.create("a")
            await until(lambda: informer.lister().find("default/a") is not None)


@packages
async def test_idle_watch_blocks_no_request_and_closes_quickly(name: str, tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with world(name, tmp_path) as here:
        version = (await here.adapted.list(CONFIG_MAP)).resource_version
        options = ListOptions(resource_version=version, timeout_seconds=60)

        async def watch() -> None:
            async with here.adapted.watch(CONFIG_MAP, options=options) as events:
                _ = [event async for event in events]

        watches = [asyncio.create_task(watch()) for _ in range(10)]
        longest = 0.0
        for _ in range(50):
            began = loop.time()
            await asyncio.sleep(0.01)
            longest = max(longest, loop.time() - began)
        assert longest < 1.0
        began = loop.time()
        for task in watches:
            task.cancel()
        results = await asyncio.gather(*watches, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results), results
        assert loop.time() - began < 2.0
        await until(lambda: readers() == [])
