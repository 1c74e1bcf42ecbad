"""A loop of reconciles by itself, without manager, caches and server."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import logging
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from deltaloop.api.references import Trigger
from deltaloop.client import Client, ClientConfig
from deltaloop.errors import ReconcileStoppedError, TerminalError
from deltaloop.runtime import Context, Controller, Request, Result, controller
from deltaloop.runtime.core.attribution import Attribution
from deltaloop.runtime.core.history import History
from deltaloop.runtime.core.running import StopReason
from deltaloop.runtime.objects.cached_views import Views
from deltaloop.runtime.reconcile.execution import running_reconcile
from deltaloop.runtime.reconcile.loop import ReconcileLoop
from deltaloop.runtime.reconcile.tracing import Tracing
from deltaloop.workqueue import ItemExponentialFailureRateLimiter, QueueOptions
from deltaloop.workqueue.metrics import QueueMetrics
from tests.client.fake_transport import FakeTransport
from tests.runtime.worlds import now, until


class Hooks:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def queue(self, controller: str) -> QueueMetrics | None:
        self.told.append(("queue", controller))
        return None

    def reconciled(self, controller: str, result: str, counters: tuple[str, ...], seconds: float) -> None:
        self.told.append(("reconciled", result, seconds))

    def active_workers(self, controller: str, number: int) -> None:
        self.told.append(("active", number))

    def max_concurrent_reconciles(self, controller: str, number: int) -> None:
        self.told.append(("most", number))

    def triggered(self, controller: str, source: str, verb: str) -> None:
        self.told.append(("triggered", source, verb))

    def lingering(self, controller: str, number: int) -> None:
        self.told.append(("lingering", number))

    def hot_loop(self, controller: str, cause: str) -> None:
        self.told.append(("hot", cause))

    def slowed_down(self, controller: str) -> None:
        self.told.append(("slowed down",))


@dataclass
class Alone:
    loop: ReconcileLoop
    hooks: Hooks
    client: Client
    task: asyncio.Task[None]

    def add(self, key: str = "default/a", **options: Any) -> None:
        self.loop.queue.add(key, **options)


@asynccontextmanager
async def alone(declared: Controller) -> AsyncGenerator[Alone, None]:
    """Run a loop; close it in the end, wherever it is then."""
    hooks = Hooks()
    loop = ReconcileLoop(
        declared,
        Views(),
        attribution=Attribution(),
        history=History(),
        tracing=Tracing(),
        recorder=None,
        metrics=hooks,
        clock=now,
    )
    client = Client(ClientConfig(server="http://fake"), transport=FakeTransport())
    one = Alone(loop, hooks, client, asyncio.create_task(loop.run(client)))
    try:
        yield one
    finally:
        one.task.cancel()
        await asyncio.wait([one.task], timeout=1.0)
        loop.abandon()
        await asyncio.wait([one.task])
        loop.close()


def limiter() -> ItemExponentialFailureRateLimiter:
    return ItemExponentialFailureRateLimiter(base_delay=1.0, max_delay=60.0)


def sleeper(seconds: float, **options: Any) -> Controller:
    @controller("v1/ConfigMap", name="maps", rate_limiter=limiter, **options)
    async def reconcile(request: Request, ctx: Context) -> None:
        if ctx.attempts == 1:
            await asyncio.sleep(seconds)

    return reconcile


class Stubborn:
    """Ends when it may, and never because it was told to."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_end = asyncio.Event()
        self.raises: BaseException | None = None

    def declared(self, **options: Any) -> Controller:
        @controller("v1/ConfigMap", name="maps", rate_limiter=limiter, **options)
        async def reconcile(request: Request, ctx: Context) -> None:
            self.begun.append(request.key)
            while not self.may_end.is_set():
                with suppress(asyncio.CancelledError):
                    await self.may_end.wait()
            if self.raises is not None:
                raise self.raises

        return reconcile


# -- its queue


async def test_queue_has_options_of_controller() -> None:
    options = QueueOptions(max_requeues=1, max_triggers=3)
    seen: list[tuple[float, int]] = []

    @controller("v1/ConfigMap", name="maps", rate_limiter=limiter, queue=options, workers=3)
    async def reconcile(request: Request, ctx: Context) -> None:
        seen.append((now(), len(ctx.triggers)))
        raise ValueError("always")

    async with alone(reconcile) as a:
        for number in range(5):
            a.add(trigger=Trigger(source="test", verb=str(number)))
        await asyncio.sleep(30.0)
        assert a.loop.queue.name == "maps"
        assert [at for at, _ in seen] == [0.0, 1.0]
        assert [letter.item for letter in a.loop.queue.dead_letters()] == ["default/a"]
        assert seen[0][1] == 3
        assert a.hooks.told[:2] == [("queue", "maps"), ("most", 3)]


async def test_default_rate_limiter_is_used() -> None:
    seen: list[float] = []

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        seen.append(now())
        raise ValueError("always")

    async with alone(reconcile) as a:
        a.add()
        await asyncio.sleep(0.02)
        assert [round(at, 3) for at in seen] == [0.0, 0.005, 0.015]


async def test_values_other_than_triggers_are_omitted() -> None:
    seen: list[tuple[Trigger, ...]] = []
    why = Trigger(source="test", verb="why")

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        seen.append(ctx.triggers)

    async with alone(reconcile) as a:
        a.add(trigger="a text")
        a.add(trigger=why)
        await asyncio.sleep(0.1)
        assert seen == [(why,)]


async def test_requeued_reconcile_has_requeue_as_only_trigger() -> None:
    seen: list[tuple[Trigger, ...]] = []

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> Result | None:
        seen.append(ctx.triggers)
        await asyncio.sleep(1.0)
        return Result(requeue_after=10.0) if len(seen) == 1 else None

    async with alone(reconcile) as a:
        a.add(trigger=Trigger(source="test", verb="first"))
        await asyncio.sleep(30.0)
        assert seen[1:] == [(Trigger(source="requeue", verb="after", at=1.0),)]
        assert ("triggered", "requeue", "after") in a.hooks.told


async def test_rate_limited_requeue_is_counted_as_requeue() -> None:
    @controller("v1/ConfigMap", rate_limiter=limiter)
    async def reconcile(request: Request, ctx: Context) -> Result | None:
        return Result(requeue=True) if ctx.attempts < 3 else None

    async with alone(reconcile) as a:
        a.add()
        await asyncio.sleep(0.5)
        assert ("triggered", "retry", "requeue") in a.hooks.told
        assert not a.loop.queue.dead_letters()
        await asyncio.sleep(30.0)
        assert [told[1] for told in a.hooks.told if told[0] == "reconciled"] == ["requeue", "requeue", "success"]
        assert a.loop.queue.num_requeues("default/a") == 0


async def test_parked_key_is_not_counted_as_retry() -> None:
    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        raise TerminalError("for good")

    async with alone(reconcile) as a:
        a.add()
        await asyncio.sleep(30.0)
        assert [letter.item for letter in a.loop.queue.dead_letters()] == ["default/a"]
        assert not [told for told in a.hooks.told if told[0] == "triggered"]


def tasks() -> set[str]:
    names = {task.get_name() for task in asyncio.all_tasks()}
    return {name for name in names if name.startswith(("maps", "reconcile"))}


async def test_number_of_workers_is_specified_number() -> None:
    async with alone(sleeper(10.0, workers=2)) as a:
        await asyncio.sleep(1.0)
        assert tasks() == set()
        for number in range(3):
            a.add(f"default/{number}")
        await asyncio.sleep(1.0)
        assert tasks() == {"reconcile maps default/0", "reconcile maps default/1"}
        assert len(a.loop.queue) == 1
        await asyncio.sleep(10.0)
        assert tasks() == {"reconcile maps default/2"}
        await asyncio.sleep(10.0)
        assert tasks() == set()


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


async def test_task_changes_end_with_reconcile() -> None:
    seen: list[str] = []

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        task = asyncio.current_task()
        assert task is not None
        seen.append(f"{request.name} {VARIABLE.get()} {task.cancelling()}")
        VARIABLE.set(f"of {request.name}")
        if request.name == "a":
            task.cancel()  # and it awaits nothing

    VARIABLE.set("of the loop")
    async with alone(reconcile) as a:
        for name in ("a", "b"):
            a.add(f"default/{name}")
        await asyncio.sleep(1.0)
    assert seen == ["a of the loop 0", "b of the loop 0"]


@pytest.mark.real_time
async def test_running_reconcile_is_known_to_called_code() -> None:
    seen: list[Context | None] = []
    contexts: list[Context] = []

    async def beside() -> None:
        seen.append(running_reconcile())

    @controller("v1/ConfigMap")
    async def awaits(request: Request, ctx: Context) -> Result:
        contexts.append(ctx)
        await asyncio.gather(beside(), asyncio.to_thread(lambda: seen.append(running_reconcile())))
        asyncio.get_running_loop().call_soon(lambda: seen.append(running_reconcile()))
        return Result(requeue_after=60.0)

    @controller("v1/ConfigMap")
    def plain(request: Request, ctx: Context) -> None:
        contexts.append(ctx)
        seen.append(running_reconcile())

    for declared, wanted in ((awaits, 3), (plain, 4)):
        async with alone(declared) as a:
            a.add()
            await until(lambda: len(seen) == wanted and not len(a.loop.runs), timeout=5.0)  # noqa: B023
    assert seen == [contexts[0]] * 3 + [contexts[1]]
    assert running_reconcile() is None


@pytest.mark.real_time
@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_unexpected_cancellation_is_error(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def cancels(request: Request, ctx: Context) -> None:
        raise asyncio.CancelledError

    def plain(request: Request, ctx: Context) -> None:
        raise concurrent.futures.CancelledError  # what `ctx.wait` raises if a task was cancelled

    declared: Any = {"async": cancels, "plain": plain}[kind]
    async with alone(controller("v1/ConfigMap", rate_limiter=limiter)(declared)) as a:
        a.add()
        await until(lambda: [told for told in a.hooks.told if told[0] == "reconciled"], timeout=5.0)
        assert [told[1] for told in a.hooks.told if told[0] == "reconciled"] == ["error"]
    [raised] = [str(vars(record)["raised"]) for record in caplog.records if "raised" in vars(record)]
    assert raised.startswith("ReconcileCancelledError")
    assert "CancelledError" in raised


async def test_error_is_counted_and_retried() -> None:
    @controller("v1/ConfigMap", rate_limiter=limiter)
    async def reconcile(request: Request, ctx: Context) -> None:
        await asyncio.sleep(0.5)
        if ctx.attempts == 1:
            raise ValueError("once")

    async with alone(reconcile) as a:
        await asyncio.sleep(3.0)
        a.add()
        await asyncio.sleep(10.0)
        assert a.hooks.told[2:] == [
            ("active", 1),
            ("active", 0),
            ("reconciled", "error", 0.5),
            ("triggered", "retry", "error"),
            ("active", 1),
            ("active", 0),
            ("reconciled", "success", 0.5),
        ]


# -- the time limit


async def test_timeout_is_exact_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    async with alone(sleeper(60.0, timeout=0.25)) as a:
        await asyncio.sleep(3.0)
        a.add()
        await asyncio.sleep(5.0)
        assert a.hooks.told == [
            ("queue", "maps"),
            ("most", 1),
            ("active", 1),
            ("lingering", 1),
            ("active", 0),
            ("lingering", 0),
            ("reconciled", "error", 0.25),
            ("triggered", "retry", "timeout"),
            ("active", 1),
            ("active", 0),
            ("reconciled", "success", 0.0),
        ]
    [told] = [vars(record) for record in caplog.records if "exceeded its timeout" in record.getMessage()]
    wanted = {
        "levelno": logging.WARNING,
        "controller": "maps",
        "key": "default/a",
        "reconcile": 1,
        "seconds": 0.25,
        "reason": "its timeout expired",
    }
    assert {name: told[name] for name in wanted} == wanted
    raised = [str(vars(record).get("raised")) for record in caplog.records if "raised" in vars(record)]
    assert any("ReconcileTimeoutError: the reconcile did not end within 0.25 s" in text for text in raised)


async def test_reconcile_within_timeout_is_success(caplog: pytest.LogCaptureFixture) -> None:
    async with alone(sleeper(1.0, timeout=5.0)) as a:
        a.add()
        await asyncio.sleep(10.0)
        assert ("reconciled", "success", 1.0) in a.hooks.told
        assert not [told for told in a.hooks.told if told[0] == "lingering"]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_unstoppable_reconcile_is_logged_with_age(caplog: pytest.LogCaptureFixture) -> None:
    work = Stubborn()
    async with alone(work.declared(timeout=5.0)) as a:
        await asyncio.sleep(3.0)
        a.add()
        await asyncio.sleep(20.0)
        work.may_end.set()
        await asyncio.sleep(0.5)
    [told] = [vars(record) for record in caplog.records if "does not stop" in record.getMessage()]
    wanted = {"controller": "maps", "key": "default/a", "reconcile": 1, "seconds": 15.0}
    assert {name: told[name] for name in wanted} == wanted


async def test_error_after_timeout_is_logged_with_reconcile(caplog: pytest.LogCaptureFixture) -> None:
    work = Stubborn()
    work.raises = ValueError("late")
    async with alone(work.declared(timeout=5.0)) as a:
        a.add()
        await asyncio.sleep(6.0)
        work.may_end.set()
        await asyncio.sleep(0.5)
        assert a.hooks.told[-2:] == [("reconciled", "error", 6.0), ("triggered", "retry", "timeout")]
    [told] = [vars(record) for record in caplog.records if "after it was stopped" in record.getMessage()]
    assert (told["controller"], told["key"], told["reconcile"]) == ("maps", "default/a", 1)


class Ends(BaseException):
    """Means the program, as ``SystemExit`` does, which the event loop of a test would not survive."""


@pytest.mark.parametrize("timeout", [None, 5.0])
async def test_base_exception_ends_workers_at_any_time(timeout: float | None) -> None:
    work = Stubborn()
    work.raises = Ends()
    async with alone(work.declared(timeout=timeout)) as a:
        a.add()
        await asyncio.sleep(6.0)
        work.may_end.set()
        with pytest.raises(Ends):
            await a.task
        assert work.begun == ["default/a"], "it is not tried again"
        assert len(a.loop.runs) == 0
        assert len(a.loop.queue) == 1, "the key was put back"


# -- its end


async def test_stop_taking_ends_idle_workers_now_and_busy_workers_later() -> None:
    async with alone(sleeper(10.0, workers=3)) as a:
        a.add()
        await asyncio.sleep(1.0)
        a.loop.stop_taking()
        a.add("default/b")
        await asyncio.sleep(8.0)
        assert not a.task.done()
        await asyncio.wait_for(a.task, 2.0)
        assert now() == 10.0
        assert len(a.loop.queue) == 1


async def test_idle_workers_end_immediately(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "deltaloop.runtime")
    async with alone(sleeper(0.0, workers=2)) as a:
        await asyncio.sleep(1.0)
        a.loop.stop_taking()
        await asyncio.wait_for(a.task, 1.0)
        assert now() == 1.0
    assert [(record.getMessage(), vars(record)["controller"]) for record in caplog.records] == [
        ("starting workers", "maps"),
        ("workers stopped", "maps"),
    ]


async def test_end_of_workers_is_logged_after_cancellation(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "deltaloop.runtime")
    async with alone(sleeper(0.0)) as a:
        await asyncio.sleep(1.0)
        a.task.cancel()
        await asyncio.wait([a.task])
        assert a.task.cancelled()
        assert caplog.records[-1].getMessage() == "workers stopped"


async def test_canceled_worker_returns_its_key_and_takes_no_other() -> None:
    async with alone(sleeper(60.0)) as a:
        a.add("default/a")
        a.add("default/b")
        await asyncio.sleep(1.0)
        a.task.cancel()
        await asyncio.wait([a.task], timeout=1.0)
        assert a.task.cancelled()
        assert a.hooks.told[2:] == [("active", 1), ("lingering", 1), ("active", 0), ("lingering", 0)]
        assert len(a.loop.queue) == 2
        assert a.loop.queue.num_requeues("default/a") == 0


async def test_queue_shutdown_ends_workers() -> None:
    async with alone(sleeper(0.0, workers=2)) as a:
        await asyncio.sleep(1.0)
        a.loop.queue.shut_down()
        await asyncio.wait_for(a.task, 1.0)


async def test_abandoned_reconcile_is_reported_and_not_awaited() -> None:
    work = Stubborn()
    async with alone(work.declared(workers=2)) as a:
        a.add()
        await asyncio.sleep(1.0)
        assert a.loop.abandon() == ("default/a",)
        a.add("default/b")
        await asyncio.wait_for(a.task, 1.0)
        assert now() == 1.0
        assert work.begun == ["default/a"], "nothing is begun any more"
        assert a.loop.abandon() == ("default/a",)
        assert len(a.loop.queue) == 2, "it is put back, as it was"
        assert a.hooks.told[-1] == ("active", 1)
        work.may_end.set()
        await asyncio.sleep(0.1)
        assert a.loop.abandon() == ()
        assert a.hooks.told[-2:] == [("active", 0), ("lingering", 0)]
        assert not [told for told in a.hooks.told if told[0] == "reconciled"]


async def test_unstarted_loop_abandons_no_keys() -> None:
    async with alone(sleeper(0.0)) as a:
        assert a.loop.abandon() == ()


async def test_abandoned_reconcile_must_not_write(caplog: pytest.LogCaptureFixture) -> None:
    work = Stubborn()
    refused: list[ReconcileStoppedError] = []

    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        await work.may_end.wait()
        try:
            await ctx.client.delete("v1/ConfigMap", "a")
        except ReconcileStoppedError as error:
            refused.append(error)

    async with alone(reconcile) as a:
        a.add()
        await asyncio.sleep(1.0)
        a.loop.abandon()
        await a.task
        work.may_end.set()
        await asyncio.sleep(0.1)
    [error] = refused
    assert (error.key, error.reason) == ("default/a", StopReason.INTERRUPTED)
    assert str(error).startswith("DELETE /api/v1/namespaces/default/configmaps/a rejected")


async def test_close_rejects_keys_and_calls_callbacks() -> None:
    called: list[str] = []
    async with alone(sleeper(0.0)) as a:
        a.loop.at_close(lambda: called.append("one"))
        a.loop.at_close(lambda: called.append("two"))
        a.loop.stop_taking()
        await a.task
        assert called == []
        a.loop.close()
        assert called == ["one", "two"]
        a.add()
        assert len(a.loop.queue) == 0
        assert a.loop.queue.shutting_down


# -- what comes before a run


async def test_key_is_not_started_after_cancellation_during_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async with alone(sleeper(60.0)) as a:
        looked: list[tuple[str, tuple[Trigger, ...], Client]] = []

        async def look(key: str, *, triggers: tuple[Trigger, ...], client: Client) -> None:
            looked.append((key, triggers, client))
            await asyncio.sleep(1.0)

        monkeypatch.setattr(a.loop._observer, "look", look)
        assert a.loop._observer.hot is not None
        a.loop._observer.hot.watched.add("default/a")
        why = Trigger(source="test", verb="why")
        a.add(trigger=why)
        await asyncio.sleep(0.5)
        a.loop.stop_taking()
        await asyncio.wait_for(a.task, 1.0)
        assert looked == [("default/a", (why,), a.client)]
        assert len(a.loop.queue) == 1
        assert a.hooks.told[2:] == []


async def test_failure_before_reconcile_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with alone(sleeper(0.0)) as a:

        def fails(context: Context, *, now: float) -> None:
            raise OSError("a tracer of somebody else's fails")

        monkeypatch.setattr(a.loop._observer, "begins", fails)
        a.loop._observer.tracing.is_on = True
        a.add()
        await asyncio.sleep(0.1)
        assert a.hooks.told[2:] == [("active", 1), ("active", 0)]
    assert vars(caplog.records[0])["raised"].startswith("OSError: a tracer")


# -- plain functions


@pytest.mark.real_time
async def test_threads_are_reused_across_terms_until_close() -> None:
    threads: list[threading.Thread] = []
    free = threading.Event()

    @controller("v1/ConfigMap", name="maps", workers=1)
    def reconcile(request: Request, ctx: Context) -> None:
        threads.append(threading.current_thread())
        if request.name == "held":
            free.wait(10.0)

    async with alone(reconcile) as a:
        a.add("default/one")
        await until(lambda: len(threads) == 1, timeout=5.0)
        a.task.cancel()
        await asyncio.wait([a.task])
        a.task = asyncio.create_task(a.loop.run(a.client))
        a.add("default/held")
        await until(lambda: len(threads) == 2, timeout=5.0)
        assert threads[0] is threads[1]
        assert threads[0].name.startswith("maps-")
        a.loop.abandon()
        await a.task
        a.loop.close()  # waits for nobody
        assert threads[0].is_alive()
        free.set()
        await asyncio.to_thread(threads[0].join, 5.0)
        assert not threads[0].is_alive()
