"""Reading one's own writes: waited for, and never patched over what the server says (upstream's mutation cache)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.reflector_options import ReflectorOptions
from tests.cache.fake_source import FakeSource, broken, refused

STILL = InformerOptions(random=lambda: 0.0, reflector=ReflectorOptions(watch_list=False, detect_restore=False))


@asynccontextmanager
async def cached(source: FakeSource) -> AsyncGenerator[Informer[Resource], None]:
    informer = Informer(source, POD, options=STILL)
    task = asyncio.create_task(informer.run())
    try:
        await informer.wait_for_sync(timeout=100)
        yield informer
    finally:
        task.cancel()
        await asyncio.wait([task])


async def late(source: FakeSource) -> None:
    """Let the watch break, so that what is written now is heard of only 0.8 s later."""
    await asyncio.sleep(5)
    source.watch_faults.append(refused())
    source.break_watches(broken())
    await asyncio.sleep(0.1)


async def test_cache_has_own_write_or_newer_after_wait() -> None:
    source = FakeSource()
    source.put("a")
    async with cached(source) as informer:
        await late(source)
        written = source.put("a")
        assert informer.lister().get("default/a") != written
        await informer.wait_for_resource_version(written.resource_version, timeout=5)
        assert informer.lister().get("default/a") == written
        await late(source)
        written, newer = source.put("a"), source.put("a")
        await informer.wait_for_resource_version(written.resource_version, timeout=5)
        assert informer.lister().get("default/a") in {written, newer}


async def test_own_write_does_not_restore_deleted_object() -> None:
    source = FakeSource()
    source.put("a")
    async with cached(source) as informer:
        await late(source)
        written = source.put("a")
        source.remove("a")
        await informer.wait_for_resource_version(str(source.version), timeout=5)
        assert informer.lister().find("default/a") is None
        await informer.wait_for_resource_version(written.resource_version, timeout=5)
        assert informer.lister().find("default/a") is None


async def test_own_write_does_not_replace_recreated_object() -> None:
    source = FakeSource()
    source.put("a")
    async with cached(source) as informer:
        await late(source)
        written = source.put("a")
        source.remove("a")
        again = source.put("a")
        assert again.uid != written.uid
        await informer.wait_for_resource_version(written.resource_version, timeout=5)
        await informer.wait_for_resource_version(again.resource_version, timeout=5)
        assert informer.lister().get("default/a").uid == again.uid
