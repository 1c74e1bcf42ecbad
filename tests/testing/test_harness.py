"""The harness, with a controller that makes a Secret and a ConfigMap for each ConfigMap that asks for it."""

from __future__ import annotations

import asyncio
import gc
import inspect
import itertools
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.apiserver import Fault
from deltaloop.errors import NotSettledError
from deltaloop.testing import CrashMoment, Harness, crash_at_every_write, embedded_harness
from deltaloop.testing.harness import state_of
from deltaloop.testing.injected_faults.core.program_writes import FaultKind, PlannedFault, WriteName
from tests.having import having

MAP, SECRET = dl.kinds.CONFIG_MAP, dl.kinds.SECRET
CRD = Path(__file__).parents[2] / "examples/sample_controller/crd.yaml"
LOGINS = {"matchLabels": {"login": "yes"}}


@dl.controller(
    dl.Watch(MAP).resource, name="login", writes=[SECRET, MAP], predicates=[dl.predicates.HasLabels("login")]
)
async def login(request: dl.Request, ctx: dl.Context) -> dl.Result | None:
    """Make a Secret with a password that is never made again, and say so in the ConfigMap."""
    asking = await ctx.client.find(MAP, request.name, namespace=request.namespace)
    if asking is None:
        return None
    secret = await ctx.client.find(SECRET, request.name, namespace=request.namespace)
    if secret is None:
        meta: dict[str, Any] = {"name": request.name, "namespace": request.namespace}
        await ctx.client.create(SECRET, {"metadata": meta, "stringData": {"password": str(ctx.number)}})
        ctx.recorder.event(asking, "Normal", "Made", "a secret was made")
    if asking.annotations.get("secret") != request.name:
        patch = {"metadata": {"annotations": {"secret": request.name}}}
        await ctx.client.patch(MAP, request.name, patch, namespace=request.namespace)
    return dl.Result(requeue_after=3600)


async def ask(client: dl.Client, name: str = "a") -> None:
    await client.create(MAP, {"metadata": {"name": name, "labels": {"login": "yes"}}})


async def answer(client: dl.Client, name: str = "a") -> str | None:
    return (await client.get(MAP, name)).annotations.get("secret")


async def test_a_harness_has_at_most_20_public_members_with_documentation(deltaloop_harness: Harness) -> None:
    members = [name for name in dir(deltaloop_harness) if not name.startswith("_")]
    assert len(members) <= 20, members
    documented = inspect.getdoc(Harness) or ""
    for name in members:
        found = getattr(Harness, name, None)
        assert f"    {name}: " in documented if found is None else inspect.getdoc(found), name


async def test_writes_and_events_are_recorded(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    replica = await harness.start(login)
    await ask(harness.client)
    await harness.settled()
    namespace = harness.client.namespace
    assert [str(write) for write in harness.writes] == [
        f"create secrets {namespace}/a",
        f"patch configmaps {namespace}/a",
    ]
    first = harness.writes[0]
    assert first.carried_out
    assert first.number == 1
    assert first.replica == replica.name
    assert first.task == f"reconcile login {namespace}/a"
    assert first.body["stringData"] == {"password": "1"}
    assert "password" not in repr(first)
    [event] = harness.events
    assert (event.reason, event.reference.name, event.component) == ("Made", "a", "login")
    assert [each["reason"] for each in await harness.client.list_all(dl.kinds.EVENT)] == ["Made"]  # they were sent


async def test_settled_ignores_later_work_and_advance_runs_it(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    await harness.start(login)
    await ask(harness.client)
    await harness.settled()
    await harness.client.patch(MAP, "a", {"data": {"x": "1"}})  # another reason for the run that is due
    await harness.settled()
    assert asyncio.get_running_loop().time() < 60
    await harness.client.delete(SECRET, "a")
    await harness.settled()
    assert len(harness.writes) == 2  # nobody watches the Secret
    await harness.advance(3600)
    assert len(harness.writes) == 3


async def test_settled_does_not_wait_for_redundant_retry(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    clock = asyncio.get_running_loop().time
    refused, ran = 12, 0

    @dl.controller(MAP, name="late", predicates=[dl.predicates.HasLabels("login")])
    async def late(request: dl.Request, ctx: dl.Context) -> None:
        nonlocal ran
        ran += 1
        if ran <= refused:
            raise TimeoutError

    await harness.start(late)
    await ask(harness.client)
    await harness.advance(12)
    assert ran == refused
    with pytest.raises(NotSettledError, match="TimeoutError"):
        await harness.settled(0.1)  # it was the last run that failed
    await harness.client.patch(MAP, "a", {"data": {"x": "1"}})
    began = clock()
    await harness.settled()
    assert (ran, clock() - began < 1) == (refused + 1, True)
    await harness.advance(30)
    assert ran == refused + 2  # it comes all the same


async def test_crash_runs_no_cleanup_and_restart_has_new_state(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    ran: list[str] = []

    @dl.controller(MAP, name="slow", writes=[MAP])
    async def slow(request: dl.Request, ctx: dl.Context) -> None:
        try:
            ran.append(f"begins {request.name}")
            await asyncio.sleep(100)
            ran.append("ends")
        finally:
            ran.append("cleans up")
            await ctx.client.delete(MAP, request.name, namespace=request.namespace)

    replica = await harness.start(slow, options=dl.ManagerOptions(namespace=harness.client.namespace))
    await ask(harness.client)
    await harness.advance(1)
    assert ran == ["begins a"]
    with pytest.raises(NotSettledError, match=r"replica-1: slow reconciles .*/a"):
        await harness.settled(timeout=5)
    before = replica.manager
    await harness.crash()
    assert not replica.alive
    await harness.advance(1000)
    await harness.settled()
    assert ran == ["begins a"]
    assert harness.writes == []
    await harness.restart()
    assert replica.manager is not before
    assert replica.identity == "replica-1-2"
    await harness.advance(50)
    assert ran == ["begins a", "begins a"]
    await replica.restart(crash=True)
    await replica.stop()
    assert len(harness.replicas) == 1


async def test_stop_is_graceful(deltaloop_harness: Harness) -> None:
    replica = await deltaloop_harness.start(login)
    await replica.stop()
    await replica.stop()
    assert not replica.alive
    await replica.restart()
    assert replica.alive
    assert replica.leads


async def test_error_of_program_is_raised_in_test(deltaloop_harness: Harness) -> None:
    foos = dl.controller("samples.deltaloop.dev/v1alpha1/Foo", name="foos")(login.function)
    with pytest.raises(dl.errors.UnknownResourceError, match="Foo"):
        await deltaloop_harness.start(foos)
    deltaloop_harness.replicas.clear()


@pytest.mark.parametrize("path", [CRD, CRD.parent, f"{CRD.parent}/crd*.yaml"])
async def test_installed_files_define_kinds(deltaloop_harness: Harness, path: Path | str) -> None:
    harness = deltaloop_harness
    await harness.install(path)
    await harness.install(path)
    foo = {"metadata": {"name": "a"}, "spec": {"deploymentName": "a"}}
    await harness.client.create("samples.deltaloop.dev/v1alpha1/Foo", foo)


async def test_path_without_objects_is_rejected(deltaloop_harness: Harness) -> None:
    with pytest.raises(dl.errors.InvalidArgumentError, check=having(argument="paths")):
        await deltaloop_harness.install("nothing/*")


@pytest.mark.parametrize("refuse", [False, True])
async def test_partitioned_replica_continues_after_partition(deltaloop_harness: Harness, refuse: bool) -> None:
    harness = deltaloop_harness
    await harness.start(login)
    with harness.partition(refuse=refuse):
        await ask(harness.client)
        await harness.advance(20)
        assert harness.writes == []
        with pytest.raises(NotSettledError) as caught:
            await harness.settled(timeout=5)
        assert any("replica-1 is disconnected" in text for text in caught.value.left)
    await harness.settled(timeout=300)
    assert await answer(harness.client) == "a"


async def test_standby_takes_over_after_crash_of_leader(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    first = await harness.start(login, leader_election=True)
    second = await harness.start(login, leader_election=True)
    await harness.settled()
    assert harness.leader is first
    assert not second.leads
    await first.crash()
    await ask(harness.client)
    with pytest.raises(NotSettledError, check=having(left=("no program is working: replica-2 is a standby",))):
        await harness.settled(timeout=5)  # its lease has not run out
    await harness.settled()
    assert harness.leader is second
    assert [write.replica for write in harness.writes] == ["replica-2"] * 2
    await first.restart()
    assert not first.leads


async def test_leader_with_a_slow_clock_leads(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    leader = await harness.start(login, leader_election=True)
    state_of(harness).plan.planned[WriteName("create", "secrets")] = PlannedFault(FaultKind.SLOW_CLOCK)
    await ask(harness.client)
    await harness.advance(60)  # its clock shows 18 s less than the clock of the test
    assert leader.leads
    await harness.settled()


async def test_standby_takes_over_from_partitioned_leader(
    deltaloop_harness: Harness,
) -> None:
    harness = deltaloop_harness
    first = await harness.start(login, leader_election=True)
    second = await harness.start(login, leader_election=True)
    with first.partition():
        await harness.advance(30)
        assert not first.leads
        await ask(harness.client)
        await harness.settled()
        assert harness.leader is second
    await harness.settled()
    assert harness.leader is second


async def test_resumed_leader_does_not_write_after_takeover(
    deltaloop_harness: Harness,
) -> None:
    harness = deltaloop_harness
    first = await harness.start(login, leader_election=True)
    second = await harness.start(login, leader_election=True)
    await harness.settled()
    first.pause()
    await harness.advance(60)
    await ask(harness.client)
    await harness.settled()
    assert second.leads
    written = len(harness.writes)
    first.resume()
    await ask(harness.client, "b")
    await harness.settled()
    assert harness.leader is second
    assert {write.replica for write in harness.writes[written:]} == {"replica-2"}


async def test_settled_waits_for_paused_replica_without_standby(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness

    @dl.controller(MAP, name="other", writes=[MAP])
    async def other(request: dl.Request, ctx: dl.Context) -> None:
        pass

    first = await harness.start(login)
    await harness.start(other)
    first.pause()
    with pytest.raises(NotSettledError) as caught:
        await harness.settled(5)
    assert "replica-1 is paused, and no other replica takes over" in caught.value.left
    with first.partition():
        first.resume()
        with pytest.raises(NotSettledError) as caught:
            await harness.settled(5)
        assert "replica-1 is disconnected from the server, and no other replica takes over" in caught.value.left
    await harness.settled()


async def test_invariant_is_checked_after_each_write(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    looked: list[int] = []

    @harness.invariant
    async def few(client: dl.Client) -> None:
        looked.append(len(harness.writes))
        assert len(looked) < 2, "too many"

    await harness.start(login)
    await ask(harness.client)
    with pytest.raises(AssertionError, match="too many") as caught:
        await harness.settled()
    with pytest.raises(AssertionError) as again:
        await harness.settled()
    assert caught.value is again.value
    assert caught.value.__notes__[0].startswith("after ")
    assert looked == [0, 1], "the program has not heard of its write yet, and no more is looked at"


async def test_failing_writes_do_not_change_final_state(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    await harness.start(login)
    with harness.fail_writes(0.5, seed=3):
        for number in range(20):
            await ask(harness.client, f"a{number}")
        await harness.settled(timeout=600)
    assert {await answer(harness.client, f"a{number}") for number in range(20)} == {f"a{n}" for n in range(20)}
    codes = [write.code for write in harness.writes]
    assert {0, 200, 201, 409, 500} == set(codes)
    assert 0.3 < sum(code in (0, 409, 500) for code in codes) / len(codes) < 0.7
    assert harness.faults.active() == ()


async def test_faults_affect_programs_but_not_test_client(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    await harness.start(login)
    harness.faults.add(Fault(do="refuse", code=403, resources=("secrets",), verbs=("create",)))
    await ask(harness.client)
    with pytest.raises(NotSettledError, match=r"login retries .*/a in .* s after \w+Error") as raised:
        await harness.settled(timeout=2)
    assert "during the wait" in str(raised.value)
    await harness.client.create(SECRET, {"metadata": {"name": "a"}})
    harness.faults.clear()
    await harness.settled()


async def test_hot_loop_is_reported(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness

    @dl.controller(MAP, name="hot", writes=[MAP], predicates=[dl.predicates.HasLabels("login")], hot_loops=None)
    async def hot(request: dl.Request, ctx: dl.Context) -> None:
        patch = {"metadata": {"annotations": {"number": str(ctx.number)}}}
        await ctx.client.patch(MAP, request.name, patch, namespace=request.namespace)

    await harness.start(hot)
    await ask(harness.client)
    with pytest.raises(NotSettledError) as raised:
        await harness.settled()
    key = f"{harness.client.namespace}/a"
    message = str(raised.value)
    assert f"most often for {key}" in message
    assert f"times: patch configmaps {key}" in message
    await harness.crash()


async def test_busy_loop_without_passing_time_stops_program() -> None:
    @dl.controller(MAP, name="hot", writes=[MAP], predicates=[dl.predicates.HasLabels("login")], hot_loops=None)
    async def hot(request: dl.Request, ctx: dl.Context) -> None:
        patch = {"metadata": {"annotations": {"number": str(ctx.number)}}}
        await ctx.client.patch(MAP, request.name, patch, namespace=request.namespace)

    async with embedded_harness() as harness:
        await harness.start(hot)
        await ask(harness.client)
        with pytest.raises(NotSettledError) as raised:
            await harness.advance(60.0)
        key = f"{harness.client.namespace}/a"
        assert raised.value.left == (f"replica-1 sent patch configmaps {key} 200 times at the same virtual time",)
        with pytest.raises(NotSettledError, match="200 times"):
            await harness.settled()
        await harness.crash()


async def test_canceled_write_is_recorded() -> None:
    @dl.controller(MAP, name="slow", writes=[SECRET], predicates=[dl.predicates.HasLabels("login")], timeout=5.0)
    async def slow(request: dl.Request, ctx: dl.Context) -> None:
        if await ctx.client.find(SECRET, request.name) is None:
            await ctx.client.create(SECRET, {"metadata": {"name": request.name}})

    async with embedded_harness() as harness:
        harness.faults.add(Fault(do="delay", seconds=60.0, verbs=("create",), resources=("secrets",), count=1))
        await harness.start(slow)
        await ask(harness.client)
        await harness.settled()
        assert [(str(write), write.code) for write in harness.writes] == [
            ("create secrets default/a", 0),
            ("create secrets default/a", 201),
        ]


async def logins(harness: Harness) -> None:
    await harness.start(login)
    await ask(harness.client)
    await harness.settled()
    assert await answer(harness.client) == "a"
    secret = await harness.client.get(SECRET, "a")
    made = [write for write in harness.writes if write.resource == "secrets"]
    assert len({write.code for write in made if write.carried_out}) <= 1
    assert secret["data"]


async def test_crash_at_each_write_gives_same_final_state() -> None:
    assert await crash_at_every_write(logins) == 5


async def test_harmful_crash_is_reported_with_its_write() -> None:
    @dl.controller(MAP, name="counter", writes=[MAP, SECRET], predicates=[dl.predicates.HasLabels("login")])
    async def counter(request: dl.Request, ctx: dl.Context) -> None:
        found = await ctx.client.find(MAP, request.name, namespace=request.namespace)
        if found is None or "done" in found.annotations:
            return
        await ctx.client.create(SECRET, {"metadata": {"generateName": "made-", "namespace": request.namespace}})
        patch = {"metadata": {"annotations": {"done": "yes"}}}
        await ctx.client.patch(MAP, request.name, patch, namespace=request.namespace)

    async def scenario(harness: Harness) -> None:
        await harness.start(counter)
        await ask(harness.client)
        await harness.settled()
        assert len(await harness.client.list_all(SECRET)) == 1

    with pytest.raises(AssertionError) as raised:
        await crash_at_every_write(scenario)
    assert raised.value.__notes__[-1].startswith(
        "The program crashed at write 1 of 2, after the server had completed it: create secrets default/made-. "
        "Repeat it alone: harness.crash_at_write(1, CrashMoment.AFTER)"
    )


@pytest.mark.parametrize("moment", CrashMoment)
async def test_planned_crash_is_before_or_after_write(deltaloop_harness: Harness, moment: CrashMoment) -> None:
    harness = deltaloop_harness
    replica = await harness.start(login)
    harness.crash_at_write(1, moment)
    await ask(harness.client)
    await harness.advance(0.5)
    assert not replica.alive
    found = await harness.client.list_all(SECRET)
    assert len(found) == (moment is CrashMoment.AFTER)
    await harness.settled()
    assert await answer(harness.client) == "a"
    assert replica.identity == "replica-1-2"


@pytest.mark.real_time
async def test_harness_in_real_time_rejects_advance(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    await harness.start(login)
    await ask(harness.client)
    await harness.settled()
    await harness.crash()
    await harness.client.delete(SECRET, "a")
    await harness.restart()
    await harness.settled()
    assert len(harness.writes) == 3
    with pytest.raises(dl.errors.InvalidArgumentError, check=having(argument="advance()")):
        await harness.advance(1)


async def test_crashed_program_is_garbage_collected() -> None:
    async with embedded_harness() as harness:
        replicas = [await harness.start(login, leader_election=True) for _ in range(2)]
        await ask(harness.client)
        managers = [weakref.ref(replica.manager) for replica in replicas]
        await harness.crash()
    del harness, replicas
    gc.collect()
    assert [manager() for manager in managers] == [None, None]


async def test_programming_error_is_raised_in_test(deltaloop_harness: Harness) -> None:
    @dl.controller(MAP, name="writes", predicates=[dl.predicates.HasLabels("login")])
    async def writes(request: dl.Request, ctx: dl.Context) -> None:
        await ctx.client.delete(SECRET, request.name, namespace=request.namespace)

    await deltaloop_harness.start(writes)
    await ask(deltaloop_harness.client)
    with pytest.raises(dl.errors.UndeclaredAccessError, match="delete v1/Secret"):
        await deltaloop_harness.settled()


async def test_invalid_children_error_is_raised_in_test_without_retry(
    deltaloop_harness: Harness,
) -> None:
    runs = list[str]()

    @dl.controller(MAP, name="mothers", children=[SECRET], predicates=[dl.predicates.HasLabels("login")])
    async def mothers(request: dl.Request, ctx: dl.Context) -> None:
        runs.append(request.name)
        await ctx.children.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}})

    await deltaloop_harness.start(mothers)
    await ask(deltaloop_harness.client)
    with pytest.raises(dl.errors.InvalidChildrenError, check=having(argument="v1/Pod")):
        await deltaloop_harness.settled()
    await deltaloop_harness.advance(3600)
    assert len(runs) == 1


async def counts(client: dl.Client) -> None:
    """A program that is no controller: makes a ConfigMap each time that it starts, and another one a minute later."""
    for kind in ("start", "later"):
        await client.create(dl.kinds.CONFIG_MAP, {"metadata": {"generateName": f"{kind}-"}})
        await asyncio.sleep(30)
    await asyncio.get_running_loop().create_future()


async def test_any_coroutine_can_run_crash_and_end(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    replica = await harness.run(counts)
    await harness.settled(600)
    assert [write.key.rpartition("/")[2] for write in harness.writes] == ["start-", "later-"]
    assert asyncio.get_running_loop().time() >= 30 + 60, "it has been quiet for a minute"
    with pytest.raises(dl.errors.InvalidArgumentError):
        _ = replica.manager
    harness.crash_at_write(3)
    await replica.restart(crash=True)
    await harness.settled(600)
    assert len(harness.writes) == 5, "one at which it crashed, and two after it had started again"
    await replica.stop()
    assert not replica.alive


async def test_failed_program_is_restarted(deltaloop_harness: Harness) -> None:
    harness = deltaloop_harness
    ended: list[float] = []

    async def ends(client: dl.Client) -> None:
        ended.append(asyncio.get_running_loop().time())
        if len(ended) < 3:
            raise LookupError("nothing there")
        await counts(client)

    await harness.run(ends)
    await harness.settled(600)
    assert [round(after - before) for before, after in itertools.pairwise(ended)] == [1, 1]
    assert len(harness.writes) == 2


async def test_crash_looping_program_is_reported_with_error(deltaloop_harness: Harness) -> None:
    async def ends(_: dl.Client) -> None:
        raise LookupError("nothing there")

    await deltaloop_harness.run(ends)
    with pytest.raises(NotSettledError, check=having(left=("replica-1 starts again after LookupError",))):
        await deltaloop_harness.settled(30)


async def test_completed_program_is_settled(deltaloop_harness: Harness) -> None:
    async def once(client: dl.Client) -> None:
        await client.create(dl.kinds.CONFIG_MAP, {"metadata": {"name": "once"}})

    await deltaloop_harness.run(once)
    await deltaloop_harness.settled()
    assert len(deltaloop_harness.writes) == 1


async def test_each_program_has_own_lifespan(deltaloop_harness: Harness) -> None:
    notes: list[str] = []

    @dl.lifespan
    async def pool() -> AsyncIterator[list[str]]:
        notes.append("open")
        yield notes
        notes.append("closed")

    @dl.controller(MAP, lifespan=pool)
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        ctx.lifespan(pool).append(request.name)

    await deltaloop_harness.start(reconcile)
    await ask(deltaloop_harness.client)
    await deltaloop_harness.settled()
    await deltaloop_harness.restart(crash=True)
    await deltaloop_harness.settled()
    await deltaloop_harness.restart()
    await deltaloop_harness.settled()
    made = [note for note in notes if note != "kube-root-ca.crt"]
    assert made == ["open", "a", "open", "a", "closed", "open", "a"]
