"""A consistency check whose list fails says so, and can be made again."""

from __future__ import annotations

import asyncio

import pytest

from deltaloop.api.kinds import POD
from deltaloop.api.status import ApiError, GoneError
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.reflector_options import ReflectorOptions
from tests.cache.fake_source import FakeSource, api_error, expired


async def test_failed_list_of_consistency_check_is_raised_to_caller() -> None:
    source = FakeSource()
    source.put("a")
    options = InformerOptions(reflector=ReflectorOptions(watch_list=False, detect_restore=False))
    informer = Informer(source, POD, options=options)
    task = asyncio.create_task(informer.run())
    await informer.wait_for_sync(timeout=5)
    source.list_faults.extend([api_error(500), expired()])
    with pytest.raises(ApiError) as failed:
        await informer.check_consistency(timeout=5)
    assert failed.value.code == 500
    with pytest.raises(GoneError):
        await informer.check_consistency(timeout=5)
    assert (await informer.check_consistency(timeout=5)).is_consistent
    task.cancel()
    await asyncio.wait([task])
