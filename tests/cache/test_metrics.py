"""Metrics hooks: what is counted, and that nothing they raise does harm."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

import pytest

from deltaloop.api.kinds import POD
from deltaloop.cache.handlers import HandlerFuncs
from deltaloop.cache.informer import Informer
from deltaloop.cache.metrics import CacheLevels
from deltaloop.cache.reflector_options import ReflectorOptions
from tests.cache.fake_source import FakeSource, expired
from tests.cache.test_informer import STILL, running, settle


class Counts:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def started(self, resource: str, *, levels: Callable[[], CacheLevels]) -> None:
        self.levels = levels
        self.told.append(f"{resource} started")

    def stopped(self, resource: str, *, levels: Callable[[], CacheLevels]) -> None:
        assert levels is self.levels
        self.told.append(f"{resource} stopped")

    def listed(self, resource: str, *, seconds: float, items: int, streamed: bool) -> None:
        self.told.append(f"{resource} listed {items} in {seconds:.1f} s{' streamed' if streamed else ''}")

    def watch_opened(self, resource: str) -> None:
        self.told.append(f"{resource} watch opened")

    def watch_ended(self, resource: str, *, seconds: float, events: int) -> None:
        self.told.append(f"{resource} watch ended after {seconds:.1f} s with {events}")

    def event(self, resource: str, *, event_type: str, size: int) -> None:
        assert size > 10
        self.told.append(f"{resource} {event_type}")

    def failed(self, resource: str, *, operation: str, error: str) -> None:
        self.told.append(f"{resource} failed: {operation}, {error}")

    def handled(self, resource: str, *, handler: str, seconds: float, waiting: int, failed: bool) -> None:
        self.told.append(f"{resource} {handler} took {seconds:.1f} s, {waiting} wait{', failed' if failed else ''}")


@pytest.mark.parametrize("streamed", [True, False])
async def test_metrics_count_all_operations(streamed: bool) -> None:
    source = FakeSource(list_delay=2.0)
    source.put("a")
    counts = Counts()
    options = STILL.replace(metrics=counts, reflector=ReflectorOptions(watch_list=streamed, detect_restore=False))
    informer = Informer(source, POD, options=options)

    async def slow(obj: object) -> None:
        await asyncio.sleep(3)
        raise ValueError

    informer.add_event_handler(HandlerFuncs(on_add=slow), name="slow")
    async with running(informer):
        source.put("b")
        source.bookmark()
        await settle()
        await asyncio.sleep(4)
        source.break_watches(expired())
        await settle()
        held = sum(len(obj.raw) for obj in source.objects.values())
        assert informer.bytes_held() == held
        levels = await asyncio.to_thread(counts.levels)
    age = levels.last_event_age
    assert age == pytest.approx(4.0, abs=0.1)
    assert levels == CacheLevels(
        items=2,
        bytes_held=held,
        queued=0,
        pending={"slow": 0},
        resource_version="12",
        seen_resource_version="12",
        last_event_age=age,
        last_byte_age=levels.last_byte_age,
        last_confirmed_age=age,
    )
    how = " streamed" if streamed else ""
    began = "0.0" if streamed else "2.0"
    assert Counter(counts.told) == Counter(
        [
            "v1/Pod started",
            "v1/Pod stopped",
            f"v1/Pod listed 1 in {began} s{how}",
            "v1/Pod watch opened",
            "v1/Pod ADDED",
            "v1/Pod BOOKMARK",
            "v1/Pod slow took 3.0 s, 1 wait, failed",
            "v1/Pod watch ended after 4.0 s with 2",
            "v1/Pod failed: watch, ExpiredError",
            "v1/Pod slow took 1.0 s, 0 wait",
        ]
    )


async def test_failing_metrics_hook_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Counts):
        def event(self, resource: str, *, event_type: str, size: int) -> None:
            raise ZeroDivisionError

    source = FakeSource()
    informer = Informer(source, POD, options=STILL.replace(metrics=Broken()))
    with caplog.at_level(logging.ERROR, logger="deltaloop.cache"):
        async with running(informer):
            source.put("a")
            await settle()
            assert len(informer.lister()) == 1
    first = caplog.records[0]
    assert (first.getMessage(), first.levelno) == ("metrics hook of the cache raised an exception", logging.ERROR)
    assert (vars(first)["resource"], vars(first)["raised"]) == ("v1/Pod", "ZeroDivisionError")


async def test_no_hook_does_harm_whichever_raises(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def __getattr__(self, name: str) -> Callable[..., None]:
            def hook(resource: str, **values: object) -> None:
                raise ValueError(name)

            return hook

    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL.replace(metrics=Broken()))
    registration = informer.add_event_handler(HandlerFuncs(on_add=lambda _: None))
    async with running(informer):
        source.put("b")
        source.break_watches(expired())
        await asyncio.sleep(5)
        assert (len(informer.lister()), registration.pending, registration.failures) == (2, 0, 0)
    hooks = ["started", "stopped", "listed", "watch_opened", "watch_ended", "event", "failed", "handled"]
    raised = {
        vars(record)["raised"].removeprefix("ValueError: ") for record in caplog.records if "raised" in vars(record)
    }
    assert raised >= set(hooks)
