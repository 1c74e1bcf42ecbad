"""Informers of one shard, on servers with and without KEP-5866."""

from __future__ import annotations

import asyncio

import pytest

from deltaloop.api.kinds import CONFIG_MAP, NAMESPACE, POD
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.shard_selector import HASH_SPACE, ShardSelector, shard_hash
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.informer import InformerOptions
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.client import Client, ClientConfig
from tests.cache.fake_client import FakeClient

ONE = shard_hash("one")
SHARD = ShardSelector("namespace", [(ONE, ONE + 1)])
UIDS = ShardSelector("uid", [(ONE, ONE + 1)])


def names(objects: list[Resource]) -> list[str]:
    return sorted(obj.name for obj in objects)


@pytest.mark.parametrize("watch_list", [True, False])
async def test_cache_filters_shard_if_server_sends_all_objects(watch_list: bool) -> None:
    client = FakeClient()
    source = client.source("v1/Pod")
    source.put("a", uid="one")
    source.put("b", uid="two")
    options = InformerOptions(reflector=ReflectorOptions(watch_list=watch_list, detect_restore=False))
    async with InformerFactory(client, options=options) as factory:
        informer = factory.informer(POD, shard_selector=UIDS)
        await factory.wait_for_sync(timeout=5)
        assert names(informer.indexer.list()) == ["a"]
        source.put("c", uid="two")
        source.put("d", uid="one")
        last = source.put("e", uid="two")
        await asyncio.sleep(1)
        assert names(informer.indexer.list()) == ["a", "d"]
        source.remove("d")
        source.remove("b")
        await asyncio.sleep(1)
        assert names(informer.indexer.list()) == ["a"]
        assert int(informer.last_sync_resource_version) > int(last.resource_version)


async def test_server_with_sharding_sends_only_objects_of_shard() -> None:
    async with (
        ApiServer(ServerOptions(insecure_http=True, controllers=frozenset())) as server,
        Client(ClientConfig(server=server.url)) as client,
    ):
        for namespace in ("one", "two"):
            await client.create(NAMESPACE, Resource.from_dict({"metadata": {"name": namespace}}))
            await client.create(CONFIG_MAP, Resource.from_dict({"metadata": {"name": "c", "namespace": namespace}}))
        listed = await client.list(CONFIG_MAP, options=ListOptions(shard_selector=str(SHARD)))
        assert [obj.namespace for obj in listed] == ["one"]
        assert listed.shard_selector == str(SHARD)
        everything = await client.list(CONFIG_MAP, options=ListOptions())
        assert everything.shard_selector == ""
        async with InformerFactory(client) as factory:
            halves = [
                factory.informer(CONFIG_MAP, shard_selector=ShardSelector("uid", [bounds]))
                for bounds in ((0, HASH_SPACE // 2), (HASH_SPACE // 2, HASH_SPACE))
            ]
            await factory.wait_for_sync(timeout=5)
            found = [obj.key for half in halves for obj in half.indexer.list()]
            assert sorted(found) == sorted(obj.key for obj in everything)
            assert halves[0].statistics().events <= len(found)


@pytest.mark.parametrize("watch_list", [True, False])
async def test_a_changed_shard_lists_only_new_ranges_and_drops_other_objects(watch_list: bool) -> None:
    numbers = {name: shard_hash(name) for name in ("one", "two", "three")}
    share = {name: (number, number + 1) for name, number in numbers.items()}
    client = FakeClient()
    source = client.source("v1/Pod")
    for name in numbers:
        source.put(name, uid=name)
    options = InformerOptions(reflector=ReflectorOptions(watch_list=watch_list, detect_restore=False))
    async with InformerFactory(client, options=options) as factory:
        informer = factory.informer(POD, shard_selector=ShardSelector("uid", [share["one"]]))
        await factory.wait_for_sync(timeout=5)
        assert informer.lister().shard == ShardSelector("uid", [share["one"]])
        source.put("two", uid="two", node="before")
        lists = informer.statistics().lists
        await informer.change_shard(ShardSelector("uid", [share["one"], share["two"]]))
        assert names(informer.indexer.list()) == ["one", "two"]
        assert informer.lister().shard == ShardSelector("uid", [share["one"], share["two"]])
        assert informer.statistics().lists == lists
        source.put("two", uid="two", node="after")
        source.put("one", uid="one", node="after")
        await asyncio.sleep(1)
        assert {obj["spec"]["nodeName"] for obj in informer.indexer.list()} == {"after"}
        await informer.change_shard(ShardSelector("uid", [share["two"], share["three"]]))
        assert names(informer.indexer.list()) == ["three", "two"]
        source.remove("two")
        await asyncio.sleep(1)
        assert names(informer.indexer.list()) == ["three"]


async def test_the_last_of_several_changed_shards_applies() -> None:
    share = {name: (shard_hash(name), shard_hash(name) + 1) for name in ("one", "two", "three")}
    client = FakeClient()
    source = client.source("v1/Pod")
    for name in share:
        source.put(name, uid=name)
    async with InformerFactory(client) as factory:
        informer = factory.informer(POD, shard_selector=ShardSelector("uid", [share["one"]]))
        await factory.wait_for_sync(timeout=5)
        changes = [asyncio.create_task(informer.change_shard(ShardSelector("uid", [each]))) for each in share.values()]
        first, second, third = await asyncio.gather(*changes, return_exceptions=True)
        assert (type(first), type(second), third) == (RuntimeError, RuntimeError, None)
        assert names(informer.indexer.list()) == ["three"]


@pytest.mark.parametrize("turns", range(1, 5))
async def test_a_shard_that_changes_again_at_once_replaces_the_first_change(turns: int) -> None:
    client = FakeClient()
    source = client.source("v1/Pod")
    shards: dict[str, ShardSelector] = {}
    for name in ("one", "two", "three"):
        source.put(name, uid=name)
        shards[name] = ShardSelector("uid", [(shard_hash(name), shard_hash(name) + 1)])
    options = InformerOptions(reflector=ReflectorOptions(detect_restore=False))
    async with InformerFactory(client, options=options) as factory:
        informer = factory.informer(POD, shard_selector=shards["one"])
        await factory.wait_for_sync(timeout=5)
        first = asyncio.create_task(informer.change_shard(shards["two"]))
        for _ in range(turns):  # the watch ends in these iterations of the event loop
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await informer.change_shard(shards["three"])
        await asyncio.gather(first, return_exceptions=True)
        assert names(informer.indexer.list()) == ["three"]
