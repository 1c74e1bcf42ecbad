"""Hot loops, explanations and spans of controllers at work."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import Link, SpanContext, TraceFlags

import deltaloop as dl
from deltaloop.api.references import Trigger
from deltaloop.metrics import ProgramMetrics
from deltaloop.runtime import Context, HotLoopOptions, Request, controller
from deltaloop.runtime.core.history import History
from deltaloop.runtime.core.hot_loop import HotLoop, HotLoops
from deltaloop.runtime.program.bind_address import BindAddress
from deltaloop.runtime.reconcile.metrics import GuardedControllerMetrics
from deltaloop.runtime.reconcile.observing import Observer
from deltaloop.runtime.reconcile.tracing import Tracing, reasons
from tests.runtime.program.test_health_server import fetch
from tests.runtime.worlds import CM, now, world

HOT = HotLoopOptions(threshold=5, min_interval=2.0, max_interval=8.0, reset_after=30.0)


async def test_self_triggering_key_is_logged_once_slowed_down_and_recovers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runs: list[float] = []
    looping = True

    @controller("v1/ConfigMap", name="maps", hot_loops=HOT)
    async def reconcile(request: Request, ctx: Context) -> None:
        if request.name == "a":
            runs.append(now())
        if request.name != "a" or not looping:
            return
        found = await ctx.client.get(CM, request.name, namespace=request.namespace)
        data = {"count": str(int(found["data"]["count"]) + 1), "password": f"planted-{len(runs)}"}
        await ctx.client.patch(CM, "a", {"data": data}, namespace="default")

    metrics = ProgramMetrics()
    caplog.set_level(logging.INFO, "deltaloop.runtime")
    async with world() as w, w.running(reconcile, metrics=metrics.controllers):
        await w.put("a", count="0")
        await asyncio.sleep(40.0)
        # Five strikes come after one reconcile that somebody else asked for; then 2, 4, 8, 8, ... seconds apart.
        waits = [round(later - earlier) for earlier, later in itertools.pairwise(runs)]
        assert waits[:9] == [0, 0, 0, 0, 0, 2, 4, 8, 8]
        told = [record for record in caplog.records if "triggers itself" in record.getMessage()]
        assert len(told) == 1
        assert vars(told[0])["changes"] == ("data.count: 5 -> 6", "data.password: <redacted> -> <redacted>")
        assert vars(told[0])["key"] == "default/a"
        looping = False
        await asyncio.sleep(20.0)
        assert "key is no longer slowed down" in caplog.text
        before = len(runs)
        await w.client.patch(CM, "a", {"data": {"count": "0"}}, namespace="default")
        await asyncio.sleep(0.5)
        assert len(runs) == before + 1
        page = metrics.render()[0].decode()
    assert "planted" not in caplog.text
    assert 'deltaloop_hot_loops_total{cause="self",controller="maps"} 1.0' in page
    slowed = next(line for line in page.splitlines() if line.startswith("deltaloop_reconciles_slowed_down_total{"))
    assert float(slowed.rpartition(" ")[2]) >= 5


async def test_hot_key_can_be_delayed_by_fractions_of_a_second() -> None:
    runs: list[float] = []

    @controller("v1/ConfigMap", name="maps", hot_loops=HotLoopOptions(threshold=2, min_interval=0.5, max_interval=0.5))
    async def reconcile(request: Request, ctx: Context) -> None:
        if request.name == "a" and len(runs) < 8:
            runs.append(now())
            await ctx.client.patch(CM, "a", {"data": {"count": str(len(runs))}})

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await asyncio.sleep(30.0)
    assert [round(later - earlier, 1) for earlier, later in itertools.pairwise(runs)] == [0.0] * 2 + [0.5] * 5


async def test_two_fighting_controllers_are_slowed_down(caplog: pytest.LogCaptureFixture) -> None:
    writes: list[str] = []

    def wants(value: str) -> Any:
        @controller("v1/ConfigMap", name=f"wants-{value}", hot_loops=HOT)
        async def reconcile(request: Request, ctx: Context) -> None:
            found = await ctx.client.find(CM, request.name, namespace=request.namespace)
            if request.name == "a" and found is not None and found["data"]["size"] != value:
                writes.append(value)
                await ctx.client.patch(CM, "a", {"data": {"size": value}}, namespace="default")

        return reconcile

    async with world() as w, w.running(wants("big"), wants("small")):
        await w.put("a", size="none")
        await asyncio.sleep(60.0)
    told = {vars(record)["controller"]: vars(record) for record in caplog.records if "two writers" in record.message}
    assert {name: told[name]["other"] for name in told} == {"wants-big": "wants-small", "wants-small": "wants-big"}
    assert told["wants-big"]["changes"] == ("data.size: small -> big",)
    assert 10 <= len(writes) <= 40  # thousands, if nobody slowed them down


async def test_writer_of_other_program_is_found_with_one_read(caplog: pytest.LogCaptureFixture) -> None:
    reads: list[str] = []

    def note(method: str, path: str, *_: object) -> None:
        if method == "GET" and path.endswith("/configmaps/a"):
            reads.append(path)

    @controller("v1/ConfigMap", name="maps", hot_loops=HOT)
    async def reconcile(request: Request, ctx: Context) -> None:
        found = await ctx.client.find(CM, request.name)
        if request.name == "a" and found is not None and found["data"]["size"] != "small":
            await ctx.client.patch(CM, "a", {"data": {"size": "small"}})

    async def enlarge(client: dl.Client) -> None:
        """Take the field over as a whole, so that our answers name nobody."""
        options = dl.WriteOptions(field_manager="scaler")
        async with client.watch(CM, namespace="default") as events:
            async for event in events:
                if event.object.name == "a" and event.object["data"]["size"] == "small":
                    await client.patch(CM, "a", {"data": {"size": "big"}}, options=options)

    async with (
        world() as w,
        dl.Client(
            dl.ClientConfig(server=w.server.url, namespace="default"), options=dl.ClientOptions(on_request=note)
        ) as ours,
        w.running(reconcile, client=ours),
    ):
        other = asyncio.create_task(enlarge(w.client))
        await w.put("a", size="none")
        await asyncio.sleep(60.0)
        other.cancel()
    [told] = [vars(record) for record in caplog.records if "two writers" in record.message]
    assert (told["other"], told["changes"]) == ("scaler", ("data.size: big -> small",))
    assert len(reads) == 1


def test_fight_with_unknown_writer_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    fight = HotLoop(
        key="default/a", cause="fight", kind="v1/ConfigMap", object_key="default/a", changes=("data.size",),
        other="", strikes=10, seconds=5.0, interval=1.0,
    )  # fmt: skip

    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None: ...

    observer = Observer(reconcile, GuardedControllerMetrics(None, "maps"), history=History(), tracing=Tracing())
    observer._tell("default/a", fight)
    [told] = caplog.records
    assert "two writers of one object" in told.getMessage()
    assert (vars(told)["cause"], vars(told)["other"]) == ("fight", "unknown")


async def test_slow_read_for_hot_loop_does_not_block_reconciles(caplog: pytest.LogCaptureFixture) -> None:
    class Marked(HotLoops):  # type: ignore[misc]  # of a final class
        def wants_to_see(self, key: str, *, triggers: Sequence[Trigger]) -> tuple[str, str] | None:
            return "v1/ConfigMap", "default/a"

        def saw(self, key: str, subject: tuple[str, str], obj: dl.Resource) -> None:
            raise AssertionError("nothing was seen")

    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None: ...

    observer = Observer(reconcile, GuardedControllerMetrics(None, "maps"), history=History(), tracing=Tracing())
    observer.hot = Marked(HOT)
    caplog.set_level(logging.DEBUG, "deltaloop.runtime")
    async with dl.Client(dl.ClientConfig(server="http://127.0.0.1:1")) as nobody:
        began = now()
        await observer.look("default/a", triggers=[], client=nobody)
        assert now() - began <= 2.0
    [told] = [vars(record) for record in caplog.records if "cannot read an object" in record.getMessage()]
    assert (told["key"], told["object"]) == ("default/a", "default/a")


async def test_hot_loop_detection_can_be_disabled() -> None:
    runs: list[float] = []

    @controller("v1/ConfigMap", name="maps", hot_loops=None)
    async def reconcile(request: Request, ctx: Context) -> None:
        if request.name == "a" and len(runs) < 100:
            runs.append(now())
            await ctx.client.patch(CM, "a", {"data": {"count": str(len(runs))}}, namespace="default")

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await asyncio.sleep(1.0)
        assert len(runs) == 100


async def test_explanations_are_served_to_loopback_only() -> None:
    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        if request.name == "a":
            await ctx.client.create_or_update(
                "v1/Secret", "s", lambda fields: fields.update(data={"k": "cGxhbnRlZA=="}), namespace="default"
            )

    async with world() as w, w.running(reconcile, health=BindAddress()) as manager:
        await w.put("a", text="planted")
        await asyncio.sleep(1.0)
        url = f"{manager.servers['health'].url}/explain"
        status, text = await fetch(f"{url}?namespace=default&name=a&kind=configmap")
        [run] = json.loads(text)["reconciles"]
        assert status == 200
        assert (run["controller"], run["key"], run["result"]) == ("maps", "default/a", "success")
        assert run["triggers"][0].startswith("informer add ConfigMap default/a")
        [write] = run["writes"]
        assert (write["verb"], write["kind"], write["key"]) == ("create", "v1/Secret", "default/s")
        assert (await fetch(f"{url}?namespace=default&name=s&kind=secret"))[1] == text
        assert "planted" not in text
        assert "cGxhbnRlZA" not in text
        assert await fetch(f"{url}?namespace=default&name=nothing") == (404, '{"reconciles": []}')
        assert (await fetch(url))[0] == 400
        assert (await fetch(f"{url}?name=a", headers={"Host": "evil.example:80"}))[0] == 403
        assert (await fetch(f"{url}?name=nothing", headers={"Host": "[::1]:80"}))[0] == 404


# -- spans


class Span(trace.NonRecordingSpan):
    def __init__(self, number: int, name: str, links: tuple[Link, ...], attributes: dict[str, Any]) -> None:
        super().__init__(SpanContext(1, number, is_remote=False, trace_flags=TraceFlags(1)))
        self.name, self.links, self.attributes = name, links, attributes
        self.status: list[str] = []
        self.has_ended = False

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.status.append(f"{status.name} {description}")

    def end(self, end_time: int | None = None) -> None:
        self.has_ended = True


class Tracer(trace.Tracer):
    def __init__(self) -> None:
        self.spans: list[Span] = []

    def start_span(self, name: str, *arguments: Any, links: Any = (), attributes: Any = None, **options: Any) -> Span:
        span = Span(len(self.spans) + 1, name, tuple(links), dict(attributes))
        self.spans.append(span)
        return span

    @contextmanager
    def start_as_current_span(self, name: str, *arguments: Any, **options: Any) -> Generator[Span, None, None]:  # type: ignore[override]  # not used
        yield self.start_span(name)


async def test_reconcile_span_links_to_spans_of_causes(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = Tracer()

    def get_tracer(*names: Any, **options: Any) -> Tracer:
        return tracer

    monkeypatch.setattr(trace, "get_tracer", get_tracer)
    monkeypatch.setattr(trace, "get_tracer_provider", object)  # a program has set something up
    current: list[int] = []

    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        if request.name != "a":
            return
        current.append(trace.get_current_span().get_span_context().span_id)
        if len(current) == 1:
            await ctx.client.patch(CM, "a", {"data": {"x": "1"}}, namespace="default")
        else:
            raise dl.TerminalError("planted")

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await asyncio.sleep(1.0)
    first, second = (span for span in tracer.spans if span.attributes["deltaloop.name"] == "a")
    assert current == [first.get_span_context().span_id, second.get_span_context().span_id]
    assert first.name == "reconcile maps"
    assert first.attributes["deltaloop.triggers"] == ("informer add",)
    assert first.attributes["deltaloop.result"] == "success"
    assert (first.links, first.status) == ((), [])
    assert second.attributes["deltaloop.triggers"] == ("self update",)
    assert [link.context for link in second.links] == [first.get_span_context()]
    assert second.status == ["ERROR TerminalError"]
    assert all(span.has_ended for span in tracer.spans)
    assert "planted" not in repr([vars(span) for span in tracer.spans])


def test_missing_opentelemetry_disables_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    tracing = Tracing()
    tracing.look(1.0)
    assert (tracing.is_on, tracing.look_at) == (False, 2.0)
    assert reasons((Trigger(source="timer", verb="tick"), Trigger(source="timer", verb="tick"))) == ("timer tick",)
