"""Controllers at work on the embedded server, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.api import kinds
from deltaloop.api.errors import InvalidKeyError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.errors import ReconcileStoppedError, TerminalError
from deltaloop.predicates import Where
from deltaloop.runtime import Context, Request, Result, controller, set_controller_reference
from deltaloop.runtime.core.running import StopReason
from deltaloop.sources import Channel, Periodic, Watch
from deltaloop.workqueue import ItemExponentialFailureRateLimiter
from tests.having import having
from tests.runtime.worlds import CM, now, world

ONLY_MINE = [Where(lambda obj: obj.name != "kube-root-ca.crt")]


def slow_limiter() -> ItemExponentialFailureRateLimiter:
    return ItemExponentialFailureRateLimiter(base_delay=1.0, max_delay=60.0)


async def test_each_outcome_has_documented_effect() -> None:
    seen: dict[str, list[tuple[float, int]]] = {}

    @controller("v1/ConfigMap", rate_limiter=slow_limiter, workers=5)
    async def reconcile(request: Request, ctx: Context) -> Any:
        seen.setdefault(request.name, []).append((now() - began, ctx.attempts))
        match request.name:
            case "fails-twice" if ctx.attempts < 3:
                raise ValueError("not yet")
            case "after" if len(seen["after"]) < 3:
                return Result(requeue_after=10.0)
            case "requeues" if ctx.attempts < 3:
                return Result(requeue=True)
            case "terminal":
                raise TerminalError("for good")
            case "invalid" if ctx.attempts < 2:
                return "done"
            case _:
                return None

    async with world() as w, w.running(reconcile) as manager:
        began = now()
        for name in ("fine", "fails-twice", "after", "requeues", "terminal", "invalid"):
            await w.put(name)
        await asyncio.sleep(100.0)
        assert {name: [(round(at, 3), attempt) for at, attempt in runs] for name, runs in seen.items()} == {
            "fine": [(0.0, 1)],
            "fails-twice": [(0.0, 1), (1.0, 2), (3.0, 3)],
            "after": [(0.0, 1), (10.0, 1), (20.0, 1)],
            "requeues": [(0.0, 1), (1.0, 2), (3.0, 3)],
            "terminal": [(0.0, 1)],
            "invalid": [(0.0, 1)],
        }
        parked = sorted(letter.item for letter in manager.loops[0].queue.dead_letters())
        assert parked == ["default/invalid", "default/terminal"]


async def test_unusual_failure_does_not_affect_other_keys() -> None:
    done: list[str] = []

    @controller("v1/ConfigMap", workers=1, rate_limiter=slow_limiter)
    async def reconcile(request: Request, ctx: Context) -> None:
        if ctx.attempts == 1 and request.name == "cancels-itself":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(1)
        if ctx.attempts == 1 and request.name == "lets-one-out":
            raise asyncio.CancelledError
        if ctx.attempts == 1 and request.name == "group":
            raise ExceptionGroup("several", [ValueError(), KeyError()])
        done.append(request.name)

    async with world() as w, w.running(reconcile):
        for name in ("cancels-itself", "lets-one-out", "group", "fine"):
            await w.put(name)
        await asyncio.sleep(0.5)
        assert done == ["fine"]
        await asyncio.sleep(1.0)
        assert sorted(done) == ["cancels-itself", "fine", "group", "lets-one-out"]


async def test_long_queue_shares_tasks_but_not_context_variables() -> None:
    changed: ContextVar[str] = ContextVar("changed", default="")
    seen: list[str] = []
    tasks: list[object] = []  # kept, so that no two tasks have the same identity

    @controller("v1/ConfigMap", workers=1, predicates=ONLY_MINE)
    async def reconcile(request: Request, _: Context) -> None:
        seen.append(changed.get())
        tasks.append(asyncio.current_task())
        if request.name >= "b":
            changed.set(request.name)

    async with world() as w:
        for name in [f"{letter}{number}" for letter in "ab" for number in range(5)]:
            await w.put(name)
        async with w.running(reconcile):
            await asyncio.sleep(1.0)
    assert seen == [""] * 10
    assert len(set(tasks)) == 5, "one for the first six keys, and one for each key after a change"


async def test_reconciles_that_wait_for_writes_share_task() -> None:
    tasks: list[object] = []

    @controller("v1/ConfigMap", workers=1, predicates=ONLY_MINE, writes=["v1/Secret"])
    async def reconcile(request: Request, ctx: Context) -> None:
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0.01)  # longer than a task takes further keys
        if request.name < "b":
            await ctx.client.create("v1/Secret", {"metadata": {"name": request.name}})

    async with world() as w:
        for name in [f"{letter}{number}" for letter in "ab" for number in range(5)]:
            await w.put(name)
        async with w.running(reconcile):
            await asyncio.sleep(1.0)
    assert [tasks.count(task) for task in dict.fromkeys(tasks)] == [6, 2, 2]


async def test_timeout_cancels_counts_and_retries() -> None:
    seen: list[tuple[float, int, str]] = []

    @controller("v1/ConfigMap", timeout=5.0, rate_limiter=slow_limiter)
    async def reconcile(_: Request, ctx: Context) -> None:
        seen.append((now() - began, ctx.attempts, "begins"))
        if ctx.attempts == 1:
            try:
                await asyncio.sleep(60.0)
            finally:
                seen.append((now() - began, ctx.attempts, f"cancelled {ctx.cancelled.is_set()}"))

    async with world() as w, w.running(reconcile):
        began = now()
        await w.put("slow")
        await asyncio.sleep(30.0)
    assert [(round(at, 3), attempt, what) for at, attempt, what in seen] == [
        (0.0, 1, "begins"),
        (5.0, 1, "cancelled True"),
        (6.0, 2, "begins"),
    ]


async def test_reconcile_that_suppresses_cancellation_keeps_key_and_worker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[tuple[str, float]] = []
    refused: list[str] = []

    @controller("v1/ConfigMap", timeout=5.0, workers=1, rate_limiter=slow_limiter)
    async def reconcile(request: Request, ctx: Context) -> None:
        seen.append((f"{request.name} {ctx.attempts}", round(now() - began, 3)))
        if request.name == "stubborn" and ctx.attempts == 1:
            try:
                await asyncio.sleep(60.0)
            except asyncio.CancelledError:
                await asyncio.sleep(15.0)
                try:
                    await ctx.client.create(CM, {"metadata": {"name": "late", "namespace": "default"}})
                except ReconcileStoppedError as error:
                    refused.append(str(error))

    async with world() as w, w.running(reconcile) as manager:
        began = now()
        await w.put("stubborn")
        await asyncio.sleep(1.0)
        await w.put("waits")
        await asyncio.sleep(10.0)
        assert [run.key for run in manager.loops[0].runs.lingering()] == ["default/stubborn"]
        await asyncio.sleep(20.0)
        assert seen == [("stubborn 1", 0.0), ("waits 1", 20.0), ("stubborn 2", 21.0)]
        assert refused == [
            "POST /api/v1/namespaces/default/configmaps rejected: the reconcile of 'default/stubborn' "
            "must stop, because " + StopReason.TIMEOUT.value
        ]
    named = [
        (record.levelno, getattr(record, "key", "")) for record in caplog.records if "does not stop" in record.message
    ]
    assert named == [(logging.WARNING, "default/stubborn")]


async def test_key_runs_once_at_a_time_and_keys_run_concurrently() -> None:
    running: set[str] = set()
    most = 0

    @controller("v1/ConfigMap", workers=4, predicates=ONLY_MINE)
    async def reconcile(request: Request, _: Context) -> None:
        nonlocal most
        assert request.key not in running
        running.add(request.key)
        most = max(most, len(running))
        await asyncio.sleep(1.0)
        running.discard(request.key)

    async with world() as w, w.running(reconcile) as manager:
        for number in range(8):
            await w.put(f"c{number}")
        for number in range(8):
            await w.client.patch(CM, f"c{number}", {"data": {"a": "b"}}, namespace="default")
        await asyncio.sleep(10.0)
        assert most == 4
        assert manager.loops[0].queue.statistics().taken == 16 - 4  # the second four were not yet begun when changed


async def test_echoes_of_one_reconcile_cause_one_reconcile() -> None:
    seen: list[list[str]] = []

    @controller("v1/ConfigMap", owns=["v1/Secret"], predicates=ONLY_MINE, workers=3)
    async def reconcile(request: Request, ctx: Context) -> None:
        seen.append([f"{trigger.source} {trigger.origin}" for trigger in ctx.triggers])
        if len(seen) == 1:
            owner = await ctx.client.get(CM, request.name)
            child: dict[str, Any] = {"metadata": {"name": "s", "namespace": request.namespace}}
            set_controller_reference(child, owner)
            await ctx.client.create(kinds.SECRET, child)
            await ctx.client.patch(CM, request.name, {"data": {"x": "y"}})

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await asyncio.sleep(1.0)
    assert seen == [["informer "], ["owner self, reconcile 1", "informer self, reconcile 1"]]


async def test_owners_mappers_channels_and_timers_trigger_reconciles() -> None:
    reasons: list[tuple[str, str]] = []
    external = Channel("webhook")
    external.send("default/early", verb="ping")
    external.send("default/early", verb="ping")

    def by_label(obj: Resource) -> list[Request]:
        return [Request("default", obj.labels["for"])] if "for" in obj.labels else []

    @controller(
        "v1/ConfigMap",
        predicates=[Where(lambda obj: False)],
        owns=["v1/Secret"],
        watches=[Watch("v1/Service", to=by_label, source="service")],
        sources=[external, Periodic(30.0, ["default/tick"])],
    )
    async def reconcile(request: Request, ctx: Context) -> None:
        reasons.extend((request.key, f"{trigger.source} {trigger.verb}") for trigger in ctx.triggers)

    async with world() as w, w.running(reconcile):
        assert reasons == [("default/early", "webhook ping")]
        owner = await w.put("owner")
        secret: dict[str, Any] = {"metadata": {"name": "s", "namespace": "default"}}
        set_controller_reference(secret, owner, kinds.CONFIG_MAP)
        await w.client.create(kinds.SECRET, secret)
        service: dict[str, Any] = {
            "metadata": {"name": "svc", "namespace": "default", "labels": {"for": "one"}},
            "spec": {"ports": [{"port": 80}]},
        }
        await w.client.create(kinds.SERVICE, service)
        await asyncio.sleep(0.1)
        await w.client.patch(kinds.SERVICE, "svc", {"metadata": {"labels": {"for": "two"}}}, namespace="default")
        await asyncio.sleep(0.1)
        assert external.send(owner)
        await asyncio.sleep(30.0)
        assert reasons[1:] == [
            ("default/owner", "owner add"),
            ("default/one", "service add"),
            ("default/one", "service update"),
            ("default/two", "service update"),
            ("default/owner", "webhook event"),
            ("default/tick", "timer tick"),
        ]


async def test_controller_metrics_count_work() -> None:
    told: list[tuple[Any, ...]] = []

    class Hooks:
        def queue(self, controller: str) -> None:
            told.append(("queue", controller))

        def reconciled(self, controller: str, result: str, counters: tuple[str, ...], seconds: float) -> None:
            told.append((controller, result, *counters, round(seconds, 3)))

        def active_workers(self, controller: str, number: int) -> None:
            told.append((controller, "active", number))

        def max_concurrent_reconciles(self, controller: str, number: int) -> None:
            told.append((controller, "most", number))

        def triggered(self, controller: str, source: str, verb: str) -> None:
            told.append((controller, "trigger", source, verb))

        def lingering(self, controller: str, number: int) -> None:
            raise RuntimeError("a hook that fails changes nothing")

        def hot_loop(self, controller: str, cause: str) -> None:
            told.append((controller, "hot", cause))

        def slowed_down(self, controller: str) -> None:
            told.append((controller, "slowed down"))

    @controller("v1/ConfigMap", name="maps", timeout=5.0, rate_limiter=slow_limiter)
    async def reconcile(request: Request, ctx: Context) -> Result | None:
        if ctx.attempts == 1:
            await asyncio.sleep(60.0)
        return Result(requeue_after=500.0)

    async with world() as w, w.running(reconcile, metrics=Hooks()):
        await w.put("a")
        await asyncio.sleep(20.0)
    assert told == [
        ("queue", "maps"),
        ("maps", "most", 1),
        ("maps", "trigger", "informer", "add"),
        ("maps", "active", 1),
        ("maps", "active", 0),
        (
            "maps",
            "error",
            "controller_runtime_reconcile_errors_total",
            "controller_runtime_reconcile_timeouts_total",
            5.0,
        ),
        ("maps", "trigger", "retry", "timeout"),
        ("maps", "active", 1),
        ("maps", "active", 0),
        ("maps", "requeue_after", 0.0),
        ("maps", "trigger", "requeue", "after"),
    ]


async def test_timer_continues_after_failing_function() -> None:
    seen: list[float] = []
    asked: list[float] = []

    def whom() -> list[Request]:
        asked.append(round(now() - began, 3))
        if len(asked) == 1:
            raise ValueError("not now")
        return [Request("", "all")]

    @controller("v1/ConfigMap", sources=[Periodic(10.0, whom)])
    async def reconcile(_: Request, __: Context) -> None:
        seen.append(round(now() - began, 3))

    async with world() as w:
        began = now()
        async with w.running(reconcile):
            await asyncio.sleep(35.0)
    assert [at - seen[0] for at in seen] == [0.0, 10.0]
    assert len(asked) == 3


async def test_kind_with_model_is_read_as_its_class() -> None:
    typed = ResourceType[dict[str, Any]](CM.group, CM.version, CM.kind, CM.plural, model=dict)
    seen: list[tuple[str, str]] = []

    @controller(typed, predicates=ONLY_MINE, indexers={"team": dl.field_path("data.team")})
    async def reconcile(request: Request, ctx: Context) -> None:
        found = await ctx.client.get(typed, request.name)
        assert [*await ctx.client.list(typed)] == [found]
        assert await ctx.client.by_index(typed, "team", "red") == [found]
        seen.append((found["metadata"]["name"], found["data"]["team"]))

    async with world() as w, w.running(reconcile):
        await w.put("a", team="red")
        await asyncio.sleep(1.0)
    assert seen == [("a", "red")]


async def test_missing_recorder_raises_error_with_remedy() -> None:
    errors: list[str] = []

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        try:
            _ = ctx.recorder
        except RuntimeError as error:
            errors.append(str(error))
        ctx.logger.info("looked", extra={"more": 1})

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await asyncio.sleep(1.0)
    [error] = errors
    assert "recorder=EventRecorder(client, component=...)" in error


async def test_invalid_key_is_parked_without_using_worker(caplog: pytest.LogCaptureFixture) -> None:
    """What a map function makes of an annotation is whatever somebody wrote there."""
    seen: list[str] = []
    keys = ["a/b/c", "", "default/", "default/fine"]

    @controller("v1/ConfigMap", predicates=[Where(lambda obj: False)], watches=[Watch("v1/Secret", to=lambda _: keys)])
    async def reconcile(request: Request, ctx: Context) -> None:
        seen.append(request.key)

    async with world() as w, w.running(reconcile) as manager:
        await w.client.create("v1/Secret", {"metadata": {"name": "s"}})
        await asyncio.sleep(1.0)
        assert seen == ["default/fine"]
        assert sorted(letter.item for letter in manager.loops[0].queue.dead_letters()) == ["", "a/b/c", "default/"]
        assert len(manager.loops[0].runs) == 0
    raised = [str(vars(record).get("raised", "")) for record in caplog.records]
    assert sum(text.startswith("TerminalError: cannot reconcile: unexpected key format") for text in raised) == 3


async def test_failure_before_reconcile_releases_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        if request.name == "a":
            seen.append(request.key)

    failures = [OSError("a tracer of somebody else's fails")]

    async with world() as w, w.running(reconcile) as manager:
        begins = manager.loops[0]._observer.begins

        def fails_once(context: Context, *, now: float) -> object:
            if failures:
                raise failures.pop()
            return begins(context, now=now)

        monkeypatch.setattr(manager.loops[0]._observer, "begins", fails_once)
        manager.loops[0]._observer.tracing.look_at = 0.0
        await w.put("a")
        await asyncio.sleep(1.0)
        assert seen == ["default/a"]


def test_channel_rejects_invalid_key() -> None:
    with pytest.raises(InvalidKeyError, check=having(key="a/b/c")):
        Channel().send("a/b/c")
