"""Components that share one recorder."""

from __future__ import annotations

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.events import EventApi, EventRecorder, EventRecorderOptions
from deltaloop.runtime import Context, Request, controller
from tests.events.fake_events import POD_X, FakeEvents, make
from tests.having import having
from tests.runtime.worlds import until, world


async def test_components_share_queue_and_are_counted_separately() -> None:
    client = FakeEvents()
    async with make(client) as recorder:
        foos, bars = recorder.for_component("foos"), recorder.for_component("bars")
        for each in (foos, bars, foos, recorder):
            each.event(POD_X, "Normal", "Created", "made it")
        assert len(recorder) == 4
        assert await bars.flush(1)
    counts = {event["source"]["component"]: event["count"] for event in client.events}
    assert counts == {"foos": 2, "bars": 1, "sample-controller": 1}
    assert foos.component == "foos"
    assert repr(foos).startswith("<ComponentRecorder foos of <EventRecorder sample-controller")


@pytest.mark.parametrize(
    ("api", "component", "refused"),
    [
        (EventApi.CORE_V1, "", "component that is not empty"),
        (EventApi.EVENTS_V1, "my foos", "'my foos' cannot be the reporting controller"),
        (EventApi.CORE_V1, "my foos", ""),
    ],
)
def test_invalid_component_is_rejected_immediately(api: EventApi, component: str, refused: str) -> None:
    recorder = EventRecorder(FakeEvents(), component="all", options=EventRecorderOptions(api=api))
    if refused:
        with pytest.raises(InvalidArgumentError, check=having(argument="component")):
            recorder.for_component(component)
    else:
        assert recorder.for_component(component).component == component


async def test_instance_defaults_to_component_and_host() -> None:
    for given, expected in (("", "foos-"), ("pod-1", "pod-1")):
        client = FakeEvents()
        options = EventRecorderOptions(api=EventApi.EVENTS_V1)
        recorder = EventRecorder(client, component="all", instance=given, options=options)
        async with recorder:
            recorder.for_component("foos").event(POD_X, "Normal", "Created", "made it")
        [event] = client.events
        assert event["reportingController"] == "foos"
        assert event["reportingInstance"].startswith(expected)


async def test_controllers_report_events_under_their_names() -> None:
    seen: list[str] = []

    @controller("v1/ConfigMap", name="maps")
    async def maps(request: Request, ctx: Context) -> None:
        if request.name == "a":
            seen.append(ctx.recorder.component)
            ctx.recorder.event(await ctx.client.get("v1/ConfigMap", "a"), "Normal", "Seen", "a map")

    @controller("v1/ConfigMap", name="others")
    async def others(request: Request, ctx: Context) -> None:
        if request.name == "a":
            seen.append(ctx.recorder.component)
            ctx.recorder.event(await ctx.client.get("v1/ConfigMap", "a"), "Normal", "Seen", "a map")

    async with (
        world() as w,
        EventRecorder(w.client, component="program") as recorder,
        w.running(maps, others, recorder=recorder),
    ):
        await w.put("a")
        await until(lambda: len(seen) == 2)
        assert await recorder.flush(5)
        found = [event["source"]["component"] for event in await w.client.list("v1/Event")]
    assert sorted(found) == ["maps", "others"]


async def test_invalid_component_name_is_rejected_before_start() -> None:
    @controller("v1/ConfigMap", name="my maps")
    async def maps(request: Request, ctx: Context) -> None: ...

    async with world() as w:
        options = EventRecorderOptions(api=EventApi.EVENTS_V1)
        recorder = EventRecorder(w.client, component="program", options=options)
        with pytest.raises(InvalidArgumentError, check=having(argument="component")):
            w.manager(maps, recorder=recorder)
