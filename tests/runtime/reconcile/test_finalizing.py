"""Controllers with a finalizer: what runs, what is written, and what is left to others."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.apiserver.core.fault_rules import Fault
from deltaloop.errors import (
    InvalidControllerError,
    InvalidDeadlineResultError,
    InvalidResultError,
    NotAwaitedError,
    ShutdownTimeoutError,
)
from deltaloop.runtime import Context, Controller, Manager, Request, Result, controller
from deltaloop.runtime.program.access import Program, rules_of
from deltaloop.runtime.reconcile.metrics import CLEANUPS
from deltaloop.testing import Harness, crash_at_every_write
from tests.having import having
from tests.runtime.test_loop_alone import Hooks
from tests.runtime.worlds import CM, World, cm, now, until, world

FINALIZER = "example.com/backup"
SECOND = "example.com/second"


class Counted(Hooks):
    """Keeps the names of counters, too."""

    def reconciled(self, controller: str, result: str, counters: tuple[str, ...], seconds: float) -> None:
        self.told.append(("reconciled", counters))


def quick() -> dl.workqueue.RateLimiter[str]:
    return dl.workqueue.ItemExponentialFailureRateLimiter(base_delay=1.0, max_delay=1.0)


def at_once() -> dl.workqueue.RateLimiter[str]:
    return dl.workqueue.ItemExponentialFailureRateLimiter(base_delay=0.01, max_delay=0.01)


class Runs:
    """What ran, in order."""

    def __init__(self, *ends: Exception | Result | object) -> None:
        self.seen: list[str] = []
        self.ends = list(ends)
        self.meanwhile: Callable[[Context], Any] | None = None

    def make(self, *, deadline: float | None = None, give_up: Any = None, **options: Any) -> Controller:
        """Make a controller whose clean-ups end one after the other as was said."""

        @controller("v1/ConfigMap", finalizer=FINALIZER, rate_limiter=quick, **options)
        async def reconcile(request: Request, ctx: Context) -> None:
            found = await ctx.client.find(CM, request.name, namespace=request.namespace)
            assert not ctx.cleanup
            self.seen.append("gone" if found is None else f"reconcile {FINALIZER in found.finalizers}")

        @reconcile.cleanup(deadline=deadline, on_deadline=give_up)
        async def backup(request: Request, ctx: Context) -> Any:
            self.seen.append("clean up")
            assert ctx.cleanup
            if self.meanwhile is not None:
                await self.meanwhile(ctx)
            end = self.ends.pop(0) if self.ends else None
            if isinstance(end, Exception):
                raise end
            return end

        return reconcile


async def names_of(w: World, name: str = "a") -> tuple[str, ...] | None:
    found = await w.client.find(CM, name, namespace="default")
    return None if found is None else found.finalizers


async def gone(w: World, name: str = "a", *, within: float = 60.0) -> None:
    """Wait until an object is gone, and until whatever that leads to has happened."""
    await w.client.wait_for(CM, name, dl.wait.deleted(), namespace="default", timeout=within)
    await asyncio.sleep(5.0)


async def delete(w: World, name: str = "a") -> None:
    await w.client.delete(CM, name, namespace="default")


async def test_finalizer_is_added_before_reconcile_and_removed_after_cleanup() -> None:
    runs = Runs()
    async with world() as w, w.running(runs.make(predicates=[dl.predicates.GenerationChanged()])):
        body: dict[str, Any] = cm("a") | {"metadata": {"name": "a", "finalizers": [SECOND]}}
        await w.client.create(CM, body)
        await asyncio.sleep(5.0)
        assert runs.seen == ["reconcile True"]
        assert await names_of(w) == (SECOND, FINALIZER)
        await delete(w)
        await asyncio.sleep(5.0)
        assert runs.seen == ["reconcile True", "clean up"]
        assert await names_of(w) == (SECOND,), "the others' finalizers stay, and neither function runs any more"
        await w.client.patch(CM, "a", {"metadata": {"finalizers": None}}, namespace="default")
        await asyncio.sleep(5.0)
        assert await names_of(w) is None
        assert runs.seen == ["reconcile True", "clean up"], "nothing runs for what is gone: it would make it again"


async def test_cleanup_is_retried_until_it_succeeds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runs = Runs(OSError("full"), Result(requeue_after=100.0), Result(requeue=True), Result())
    hooks = Counted()
    caplog.set_level(logging.DEBUG, "deltaloop.runtime.reconcile")
    async with world() as w:
        metadata: dict[str, Any] = {"name": "a", "namespace": "default", "finalizers": [FINALIZER]}
        await w.client.create(CM, {"metadata": metadata})
        await delete(w)
        async with w.running(runs.make(), metrics=hooks):  # it sees the deletion first of all
            await asyncio.sleep(50.0)
            assert runs.seen == ["clean up"] * 2
            assert await names_of(w) == (FINALIZER,)
            await gone(w, within=300.0)
            assert runs.seen == ["clean up"] * 4
    told = [told for told in hooks.told if told[0] == "reconciled"]
    assert [CLEANUPS in each[1] for each in told] == [True] * 4 + [False]
    records = [record for record in caplog.records if record.message == "reconciled"]
    assert [record.__dict__["cleanup"] for record in records] == [*[True] * 4, False]


@pytest.mark.parametrize("end", [object(), dl.TerminalError("never")])
async def test_parked_cleanup_keeps_finalizer(end: object) -> None:
    runs = Runs(end)
    async with world() as w, w.running(runs.make()) as manager:
        await w.put("a")
        await until(lambda: runs.seen)
        await delete(w)
        await until(manager.loops[0].queue.dead_letters)
        assert await names_of(w) == (FINALIZER,)


async def test_cleanup_over_timeout_is_canceled_and_retried() -> None:
    runs = Runs()

    async def slow(ctx: Context) -> None:
        await asyncio.sleep(0.0 if ctx.attempts == 3 else 60.0)

    runs.meanwhile = slow
    async with world() as w, w.running(runs.make(timeout=10.0)):
        await w.put("a")
        await until(lambda: runs.seen)
        await delete(w)
        await asyncio.sleep(11.5)
        assert await names_of(w) == (FINALIZER,)
        await gone(w)
        assert runs.seen.count("clean up") == 3


@pytest.mark.parametrize("recreated", [False, True])
async def test_foreign_changes_during_cleanup_are_preserved(recreated: bool) -> None:
    runs, others = Runs(), list[str]()
    async with world() as w:

        async def meddle(ctx: Context) -> None:
            if others:
                return
            others.append("meddled")
            left = None if recreated else [SECOND]
            await w.client.patch(CM, "a", {"metadata": {"finalizers": left}}, namespace="default")
            if recreated:
                made = await w.client.create(CM, {"metadata": {"name": "a", "finalizers": [FINALIZER]}})
                others.append(made.resource_version)

        runs.meanwhile = meddle
        async with w.running(runs.make()):
            await w.client.create(CM, {"metadata": {"name": "a", "finalizers": [SECOND]}})
            await until(lambda: runs.seen)
            await delete(w)
            await asyncio.sleep(10.0)
            assert runs.seen.count("clean up") == 1
            found = await w.client.get(CM, "a", namespace="default")
            assert found.finalizers == ((FINALIZER,) if recreated else (SECOND,))
            if recreated:
                assert found.resource_version == others[-1], "nothing was written to the successor"


async def test_conflict_during_cleanup_is_resolved_with_current_object() -> None:
    runs = Runs()

    async def write(ctx: Context) -> None:
        found = await ctx.client.live.get(CM, "a", namespace="default")
        await ctx.client.live.patch(CM, "a", {"data": {"by": "others"}}, namespace="default")
        assert found.deletion_timestamp

    runs.meanwhile = write
    async with world() as w, w.running(runs.make()):
        w.server.faults.add(Fault(do="refuse", verbs=("patch",), code=409, count=2))
        await w.put("a")
        await until(lambda: runs.seen)
        assert {*runs.seen} == {"reconcile True"}
        w.server.faults.add(Fault(do="stall", resources=("configmaps",), seconds=3.0))
        await delete(w)
        await gone(w)
        assert runs.seen.count("clean up") == 1, "a conflict is no reason to clean up again"


async def test_persistent_conflicts_on_finalizer_are_left_to_next_reconcile() -> None:
    runs = Runs()
    async with world() as w, w.running(runs.make()):
        fault = Fault(do="refuse", verbs=("patch",), code=409)
        number = w.server.faults.add(fault)
        await w.put("a")
        await asyncio.sleep(1.5)
        assert runs.seen == []
        w.server.faults.remove(number)
        await until(lambda: runs.seen)
        assert runs.seen[0] == "reconcile True"


async def test_deadline_function_is_called_once_per_attempt_after_deadline() -> None:
    asked: list[tuple[float, int]] = []
    start = now()
    at_start = datetime.now(UTC)

    def wall_clock() -> datetime:
        return at_start + timedelta(seconds=now() - start)

    async def give_up(request: Request, ctx: Context) -> bool:
        asked.append((now() - start, runs.seen.count("clean up")))
        return len(asked) == 3

    runs = Runs(*[Result(requeue_after=10_000.0), *[OSError("full")] * 10])
    async with world() as w, w.running(runs.make(deadline=600.0, give_up=give_up), wall_clock=wall_clock):
        await w.put("a")
        await until(lambda: runs.seen)
        await delete(w)
        await asyncio.sleep(590.0)
        assert (asked, runs.seen.count("clean up")) == ([], 1)
        await gone(w)
        # At the deadline, though the next run was hours away: tried, and asked after it had failed; then before.
        assert [tried for _, tried in asked] == [2, 2, 3]
        assert 598.0 < asked[0][0] < 602.0
        assert await names_of(w) is None


@pytest.mark.parametrize("answer", [None, 1])
async def test_invalid_result_of_deadline_function_keeps_finalizer(answer: Any) -> None:
    async def give_up(request: Request, ctx: Context) -> bool:
        return answer  # type: ignore[no-any-return]

    runs = Runs(OSError("full"))
    late = datetime.now(UTC) + timedelta(days=1)
    async with (
        world() as w,
        w.running(runs.make(deadline=1.0, give_up=give_up), wall_clock=lambda: late) as manager,
    ):
        await w.put("a")
        await until(lambda: runs.seen)
        await delete(w)
        await until(manager.loops[0].queue.dead_letters)
        assert "return True to give up" in str(manager.loops[0].queue.dead_letters()[0].error)
        assert await names_of(w) == (FINALIZER,)


@pytest.mark.real_time
async def test_plain_cleanup_and_deadline_run_in_threads() -> None:
    seen: list[tuple[str, bool]] = []
    go, begun = threading.Event(), threading.Event()

    @controller("v1/ConfigMap", finalizer=FINALIZER, rate_limiter=at_once, timeout=0.1)
    async def reconcile(request: Request, ctx: Context) -> None:
        seen.append(("reconcile", threading.current_thread() is threading.main_thread()))

    @reconcile.cleanup
    def backup(request: Request, ctx: Context) -> None:
        seen.append(("clean up", threading.current_thread() is threading.main_thread()))
        if not begun.is_set():
            begun.set()
            assert go.wait(5.0)
            assert ctx.cancelled.is_set(), "it is told to stop, and its end is waited for"

    async with world() as w, w.running(reconcile) as manager:
        await w.put("a")
        await until(lambda: seen, timeout=5.0)
        await delete(w)
        await until(begun.is_set, timeout=5.0)
        await asyncio.sleep(0.2)
        assert len(manager.loops[0].runs) == 1
        go.set()
        await w.client.wait_for(CM, "a", dl.wait.deleted(), namespace="default", timeout=5.0)
    assert seen[0] == ("reconcile", True)
    assert [each for each in seen if each[0] == "clean up"] == [("clean up", False)] * 2


async def test_cleanup_with_missing_await_keeps_finalizer(caplog: pytest.LogCaptureFixture) -> None:
    @controller("v1/ConfigMap", name="maps", finalizer=FINALIZER, writes=["v1/Secret"])
    async def reconcile(request: Request, ctx: Context) -> None: ...

    @reconcile.cleanup
    async def backup(request: Request, ctx: Context) -> None:
        ctx.client.delete("v1/Secret", request.name)  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]

    async with world() as w, w.running(reconcile) as manager:
        await w.put("a")
        await asyncio.sleep(1.0)
        await delete(w)
        await until(manager.loops[0].queue.dead_letters)
        assert await names_of(w) == (FINALIZER,)
    assert "`await ctx.client.delete(...)`" in caplog.text


# -- a run with a finalizer ends as one without


def declared_for(place: str, function: Any, **options: Any) -> Controller:
    """Make a controller whose ``place`` is a function: plainly the reconciler, that with a finalizer, or a clean-up."""

    async def nothing(request: Request, ctx: Context) -> None: ...

    async def fails(request: Request, ctx: Context) -> None:
        raise OSError("full")

    finalizer = "" if place == "plain" else FINALIZER
    made = controller("v1/ConfigMap", finalizer=finalizer, rate_limiter=at_once, **options)(
        function if place in ("plain", "reconcile") else nothing
    )
    if place == "clean up":
        made.cleanup(function)
    elif place == "on deadline":
        made.cleanup(deadline=0.001, on_deadline=function)(fails)
    elif finalizer:
        made.cleanup(nothing)
    return made


async def forgets(request: Request, ctx: Context) -> None:
    call: Any = ctx.client.delete(CM, "other", namespace="default")
    del call


async def forgets_and_gives_up(request: Request, ctx: Context) -> bool:
    call: Any = ctx.client.delete(CM, "other", namespace="default")
    del call
    return True


def forgets_in_thread(request: Request, ctx: Context) -> None:
    ctx.wait(ctx.client.find(CM, "other", namespace="default"))
    call: Any = ctx.client.delete(CM, "other", namespace="default")
    del call


def returns_coroutine(request: Request, ctx: Context) -> Any:
    return forgets(request, ctx)


def returns_object(request: Request, ctx: Context) -> Any:
    return object()


MISTAKES: list[tuple[Any, type]] = [
    (forgets, NotAwaitedError),
    (forgets_in_thread, NotAwaitedError),
    (returns_coroutine, InvalidResultError),
    (returns_object, InvalidResultError),
]


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("place", "function", "error"),
    [
        *((place, *mistake) for place in ("plain", "reconcile", "clean up") for mistake in MISTAKES),
        ("on deadline", forgets_and_gives_up, NotAwaitedError),
        ("on deadline", forgets_in_thread, NotAwaitedError),
        ("on deadline", returns_coroutine, InvalidDeadlineResultError),
    ],
)
async def test_programming_error_parks_key_and_keeps_finalizer(place: str, function: Any, error: type) -> None:
    async with world() as w:
        finalizers = [] if place == "plain" else [FINALIZER]
        await w.client.create(CM, {"metadata": {"name": "a", "namespace": "default", "finalizers": finalizers}})
        if place in ("clean up", "on deadline"):
            await delete(w)
        async with w.running(declared_for(place, function)) as manager:
            await until(manager.loops[0].queue.dead_letters, timeout=5.0)
            assert type(manager.loops[0].queue.dead_letters()[0].error) is error
            assert await names_of(w) == tuple(finalizers)


@pytest.mark.real_time
@pytest.mark.parametrize("place", ["plain", "reconcile", "clean up", "on deadline"])
def test_program_ends_despite_running_cleanup_thread(place: str) -> None:
    begun, release = threading.Event(), threading.Event()

    def lingers(request: Request, ctx: Context) -> Any:
        begun.set()
        release.wait(10.0)

    async def program() -> None:
        async with world() as w:
            metadata: dict[str, Any] = {
                "name": "a",
                "namespace": "default",
                "finalizers": [] if place == "plain" else [FINALIZER],
            }
            await w.client.create(CM, {"metadata": metadata})
            if place in ("clean up", "on deadline"):
                await delete(w)
            manager = w.manager(declared_for(place, lingers), drain_timeout=0.05, shutdown_timeout=0.1)
            running = asyncio.create_task(manager.run())
            await until(begun.is_set, timeout=5.0)
            manager.stop()
            with pytest.raises(ShutdownTimeoutError, match="default/a"):
                await running

    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(asyncio.run, program()).result(timeout=8.0)
        finally:
            release.set()


async def test_canceled_cleanup_does_not_call_deadline_function() -> None:
    asked: list[tuple[int, bool]] = []
    tries: list[int] = []

    async def cleans(request: Request, ctx: Context) -> None:
        tries.append(ctx.attempts)
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:
            raise OSError("full") from None

    async def give_up(request: Request, ctx: Context) -> bool:
        asked.append((len(tries), ctx.cancelled.is_set()))
        return True

    @controller("v1/ConfigMap", finalizer=FINALIZER, rate_limiter=quick, timeout=10.0)
    async def reconcile(request: Request, ctx: Context) -> None: ...

    reconcile.cleanup(deadline=0.001, on_deadline=give_up)(cleans)
    async with world() as w:
        await w.client.create(CM, {"metadata": {"name": "a", "namespace": "default", "finalizers": [FINALIZER]}})
        await delete(w)
        late = datetime.now(UTC) + timedelta(days=1)
        async with w.running(reconcile, wall_clock=lambda: late):
            await until(lambda: asked, timeout=60.0)
            assert asked == [(1, False)], "by the next run, before it tries"


async def test_cleanup_that_starts_task_is_complete() -> None:
    kept: list[asyncio.Task[object]] = []

    async def leaves(request: Request, ctx: Context) -> None:
        kept.append(asyncio.create_task(ctx.client.find(CM, "other", namespace="default")))

    async with world() as w, w.running(declared_for("clean up", leaves)):
        await w.client.create(CM, {"metadata": {"name": "a", "namespace": "default", "finalizers": [FINALIZER]}})
        await delete(w)
        await asyncio.sleep(5.0)
        await asyncio.gather(*kept)
        assert await names_of(w) is None


async def test_lost_term_during_cleanup_keeps_finalizer() -> None:
    begun, runs = asyncio.Event(), Runs()

    async def wait(ctx: Context) -> None:
        begun.set()
        await asyncio.sleep(0.0 if runs.seen.count("clean up") > 1 else 3600.0)

    runs.meanwhile = wait
    async with world() as w:
        elector = w.elector(w.client, "one")
        async with w.running(runs.make(), elector=elector):
            await w.put("a")
            await until(lambda: runs.seen)
            await delete(w)
            await begun.wait()
            w.server.faults.add(Fault(do="refuse", resources=("leases.coordination.k8s.io",), code=503, count=100))
            await until(lambda: not elector.is_leader)
            assert await names_of(w) == (FINALIZER,)
            w.server.faults.clear()
            await gone(w, within=120.0)
            assert runs.seen.count("clean up") == 2


CHILD = dl.kinds.SECRET


@controller("v1/ConfigMap", name="maps", finalizer=FINALIZER, owns=["v1/Secret"], writes=["v1/Secret"])
async def secrets_of_maps(request: Request, ctx: Context) -> None:
    """Make a Secret elsewhere, which nothing but the clean-up deletes."""
    found = await ctx.client.find(CM, request.name, namespace=request.namespace)
    made = await ctx.client.find(CHILD, "made", namespace="elsewhere")
    if found is not None and "wanted" in found.labels and made is None:
        await ctx.client.apply(CHILD, {"metadata": {"name": "made", "namespace": "elsewhere"}})


@secrets_of_maps.cleanup
async def delete_secret(request: Request, ctx: Context) -> None:
    if await ctx.client.find(CHILD, "made", namespace="elsewhere") is not None:
        await ctx.client.delete(CHILD, "made", namespace="elsewhere")


async def test_cleanup_is_complete_after_crash_at_each_write() -> None:
    async def scenario(harness: Harness) -> None:
        await harness.client.create(dl.kinds.NAMESPACE, {"metadata": {"name": "elsewhere"}})
        await harness.start(secrets_of_maps)
        metadata: dict[str, Any] = {"name": "a", "labels": {"wanted": "yes"}}
        await harness.client.create(CM, {"metadata": metadata})
        await harness.settled()
        assert await harness.client.find(CHILD, "made", namespace="elsewhere") is not None
        await harness.client.delete(CM, "a")
        await harness.settled()
        assert await harness.client.find(CM, "a") is None
        assert await harness.client.find(CHILD, "made", namespace="elsewhere") is None
        verbs = [write.verb for write in harness.writes if write.carried_out]
        assert verbs[:2] == ["patch", "apply"], "the finalizer comes before the first child"

    assert await crash_at_every_write(scenario) == 2 * 4 + 1, "before and after each of four writes"


# -- what is declared


async def function(request: Request, ctx: Context) -> None: ...


def declared(**options: Any) -> Controller:
    return controller("v1/ConfigMap", name="maps", **options)(function)


def declares_two() -> None:
    made = declared(finalizer=FINALIZER)
    made.cleanup(function)
    made.cleanup(function)


def manages(*finalizers: str, kinds: tuple[str, ...] = ("v1/ConfigMap",) * 2, cleanup: bool = True) -> None:
    made = [
        controller(kind, name=f"maps-{number}", finalizer=finalizer)(function)
        for number, (kind, finalizer) in enumerate(zip(kinds, finalizers, strict=False))
    ]
    for each in made if cleanup else ():
        each.cleanup(function)
    Manager(dl.Client(dl.ClientConfig(server="http://127.0.0.1:1")), made)


@pytest.mark.parametrize(
    ("declare", "argument"),
    [
        (lambda: declared(finalizer="backup"), "finalizer"),
        (lambda: declared().cleanup(function), "finalizer"),
        (declares_two, "cleanup"),
        (lambda: declared(finalizer=FINALIZER).cleanup(lambda: None), "cleanup"),  # type: ignore[misc, arg-type]
        (lambda: declared(finalizer=FINALIZER).cleanup(deadline=5.0)(function), "deadline"),
        (lambda: declared(finalizer=FINALIZER).cleanup(on_deadline=function)(function), "deadline"),  # type: ignore[arg-type]
        (lambda: declared(finalizer=FINALIZER).cleanup(deadline=0.0, on_deadline=function)(function), "deadline"),  # type: ignore[arg-type]
        (
            lambda: declared(finalizer=FINALIZER).cleanup(deadline=5.0, on_deadline=lambda: True)(function),  # type: ignore[misc, arg-type]
            "on_deadline",
        ),
        (lambda: manages(FINALIZER, cleanup=False), "finalizer"),
        (lambda: manages(FINALIZER, FINALIZER), "finalizer"),
        (
            lambda: manages(FINALIZER, FINALIZER, kinds=("apps/v1/Deployment", "apps/v1beta1/Deployment")),
            "finalizer",
        ),
    ],
)
def test_invalid_finalizer_declarations_are_rejected(declare: Callable[[], object], argument: str) -> None:
    with pytest.raises(InvalidControllerError, check=having(argument=argument)):
        declare()


def test_valid_finalizer_declarations_are_accepted() -> None:
    manages(FINALIZER, SECOND)
    manages(FINALIZER, FINALIZER, kinds=("v1/ConfigMap", "v1/Secret"))


def test_role_allows_finalizer_patches() -> None:
    program = Program(lease_namespace=None, token_review=False)
    rules = {str(rule) for rule in rules_of([declared(finalizer=FINALIZER)], program=program)[0]}
    assert "patch configmaps in all namespaces" in rules
    assert "patch configmaps in all namespaces" not in {
        str(rule) for rule in rules_of([declared()], program=program)[0]
    }
