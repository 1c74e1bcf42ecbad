"""The consistency check: silent when all is well, exact when it is not."""

from __future__ import annotations

import asyncio
import logging

import pytest

from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource
from deltaloop.api.status import GoneError
from deltaloop.cache.core.consistency import ConsistencyReport, compare, state_of
from deltaloop.cache.core.notification_buffer import BufferPolicy
from deltaloop.cache.core.reflector.errors import RepeatedContinueError
from deltaloop.cache.errors import InformerStoppedError, NotFreshError
from deltaloop.cache.handlers import HandlerFuncs, HandlerOptions
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.queue import QueueKind
from deltaloop.client.verbs.resource_list import ResourceList
from tests.cache.fake_source import FakeSource, api_error, broken, expired
from tests.cache.objects import pod
from tests.cache.test_informer import STILL, running, settle
from tests.cache.test_informer_features import Slow


def test_consistency_report_lists_differences() -> None:
    cached = state_of([pod("same", 1), pod("left over", 1), pod("changed", 1), pod("remade", 1, uid="x")])
    served = state_of([pod("same", 1), pod("missing", 1), pod("changed", 2), pod("remade", 1, uid="y")])
    report = compare(cached, served, resource_version="9")
    assert report == ConsistencyReport(
        resource_version="9",
        missing=("default/missing",),
        left_over=("default/left over",),
        different=("default/changed", "default/remade"),
    )
    assert not report.is_consistent
    assert compare(cached, cached, resource_version="9").is_consistent
    for difference in ("missing", "left_over", "different"):
        nothing: dict[str, tuple[str, ...]] = {"missing": (), "left_over": (), "different": ()}
        assert not ConsistencyReport(resource_version="9", **{**nothing, difference: ("default/a",)}).is_consistent


async def test_lost_event_is_found_by_consistency_check(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource()
    for number in range(3):
        source.put(f"p{number}")
    informer = Informer(source, POD, options=STILL)
    with caplog.at_level(logging.ERROR, logger="deltaloop.cache"):
        async with running(informer):
            assert (await informer.check_consistency()).is_consistent
            asked = source.asked[-1].options
            assert (asked.resource_version, asked.resource_version_match, asked.limit) == ("13", "Exact", 500)
            informer.indexer.delete(pod("p1"))  # the bug
            report = await informer.check_consistency()
            assert report.missing == ("default/p1",)
            source.list_faults.append(expired())
            with pytest.raises(GoneError):
                await informer.check_consistency()
    (record,) = caplog.records
    fields = {name: record.__dict__[name] for name in ("resource", "resource_version", "missing", "left_over")}
    assert fields == {"resource": "v1/Pod", "resource_version": "13", "missing": 1, "left_over": 0}
    assert record.__dict__["different"] == 0


async def test_comparison_waits_for_an_empty_queue() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    informer.add_event_handler(Slow(), options=HandlerOptions(buffer=BufferPolicy.BOUNDED, buffer_size=1))
    async with running(informer):
        for number in range(4):
            source.put(f"p{number}")
        await settle()
        with pytest.raises(NotFreshError):
            await informer.check_consistency(timeout=1.0)
        assert (await informer.check_consistency()).is_consistent


@pytest.mark.parametrize("kind", list(QueueKind))
async def test_consistency_check_waits_for_list_in_delivery(kind: QueueKind) -> None:
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL.replace(queue=kind))
    comparing: list[asyncio.Task[ConsistencyReport]] = []

    def compare_in_the_middle(obj: Resource) -> None:
        if obj.name == "p0":
            comparing.append(asyncio.create_task(informer.check_consistency()))

    informer.add_event_handler(HandlerFuncs(on_add=compare_in_the_middle))
    async with running(informer):
        for number in range(2_600):
            source.put(f"p{number}", silent=True)
        source.break_watches(expired())
        await asyncio.sleep(60)
        report = await comparing[0]
    assert report.resource_version == informer.resource_version
    assert report.is_consistent


async def test_consistency_check_of_stopped_unsynced_informer_raises_error() -> None:
    source = FakeSource()
    source.list_faults.extend([api_error(500)] * 100)
    informer = Informer(source, POD, options=STILL)
    task = asyncio.create_task(informer.run())
    comparing = asyncio.create_task(informer.check_consistency(timeout=None))
    await settle()
    task.cancel()
    with pytest.raises(InformerStoppedError):
        await comparing
    await asyncio.wait([task])


async def test_consistency_check_is_off_by_default_and_repeatable(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL.replace(consistency_period=100.0))
    with caplog.at_level(logging.DEBUG, logger="deltaloop.cache"):
        async with running(informer):
            source.asked.clear()
            await asyncio.sleep(150)
            source.list_faults.append(expired())
            await asyncio.sleep(100)
            informer.indexer.delete(pod("a"))  # the bug
            await asyncio.sleep(100)
        asked = [each for each in source.asked if each.verb == "list"]
    assert [each.options.resource_version_match for each in asked] == ["Exact"] * 3
    (said,) = [record for record in caplog.records if "with the server" in record.getMessage()]
    assert (said.getMessage(), said.levelno) == ("cannot compare cache with the server", logging.DEBUG)
    assert (said.__dict__["resource"], said.__dict__["error"].split(":")[0]) == ("v1/Pod", "ExpiredError")
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
        "cache differs from the server"
    ]
    assert InformerOptions().consistency_period == 0
    with pytest.raises(ValueError, match="consistency_period"):
        InformerOptions(consistency_period=-1.0)


@pytest.mark.parametrize("period", [0.5, 3.0])
async def test_consistency_period_is_independent_of_results(period: float) -> None:
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL.replace(consistency_period=period))
    async with running(informer):
        source.asked.clear()
        faults = [api_error(500), broken(), expired(), None]
        source.list_faults.extend(faults)
        await asyncio.sleep(4 * period)
        assert source.times("list") == pytest.approx([period * count for count in range(1, 5)], abs=0.01)


async def test_a_long_list_is_compared_page_by_page_at_one_version() -> None:
    source = FakeSource(serves_from_cache=False)
    for number in range(1_100):
        source.put(f"p{number}")
    informer = Informer(source, POD, options=STILL)
    async with running(informer):
        source.asked.clear()
        assert (await informer.check_consistency()).is_consistent
        asked = [(each.version, each.options.limit) for each in source.asked]
    assert asked == [(str(source.version), 500), ("continue", 500), ("continue", 500)]


async def test_endless_list_is_not_inconsistency() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL.replace(consistency_period=10.0))
    async with running(informer):
        endless: ResourceList[Resource] = ResourceList((), "10", "again")
        source.list = lambda options: asyncio.sleep(0, endless)  # type: ignore[method-assign]
        with pytest.raises(RepeatedContinueError, match="continue"):
            await informer.check_consistency()
        await asyncio.sleep(30)
        assert not informer.stopped


async def test_age_of_a_cache_is_never_negative() -> None:
    """Whoever asks may have looked at the clock before the last event came."""
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL)
    assert informer.levels(7.0).last_confirmed_age is None
    await asyncio.sleep(10)
    async with running(informer):
        source.put("b")
        await settle()
        levels = informer.levels(3.0)
        assert (levels.last_event_age, levels.last_confirmed_age) == (0.0, 0.0)
        assert informer.levels(asyncio.get_running_loop().time() + 2).last_event_age == pytest.approx(2.0, abs=0.01)
