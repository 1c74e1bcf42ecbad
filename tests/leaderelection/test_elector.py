"""The elector in virtual time: lease 15 s, renew deadline 10 s, retry period 2 s, no jitter."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.status import ConflictError, Status
from deltaloop.client import Client, ClientConfig
from deltaloop.errors import LeadershipLostError
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock, Term, TermEnd
from tests.having import having
from tests.leaderelection.fake_server import FakeClient, FakeServer, Fault, OtherWrites, WallClock


def now() -> float:
    return asyncio.get_running_loop().time()


def make(
    server: FakeServer, identity: str = "a", config: LeaderElectionConfig | None = None, **options: Any
) -> tuple[LeaderElector, FakeClient]:
    client = FakeClient(server)
    lock = LeaseLock(client, namespace="default", name="example", identity=identity)
    guarded = Client(ClientConfig(server="http://fake"), transport=OtherWrites(server))
    elector = LeaderElector(
        lock, config, client=guarded, clock=now, wall_clock=WallClock(), random=lambda: 0.0, **options
    )
    return elector, client


async def lead_for(elector: LeaderElector, seconds: float) -> Term:
    async for term in elector.terms():
        async with term:
            await asyncio.sleep(seconds)
        return term
    raise AssertionError


async def test_term_from_first_read_to_release() -> None:
    server = FakeServer()
    elector, client = make(server)
    assert not elector.is_leader
    term = await elector.acquire()
    async with term:
        assert elector.is_leader
        assert elector.leader == "a"
        assert term.fencing_token == "1"
        assert server.holder() == "a"
        await asyncio.sleep(5)
    assert client.calls == [(0, "get"), (0, "create"), (2, "update"), (4, "update"), (5, "update")]
    assert server.leases["default/example"].to_dict()["spec"] == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": "2026-01-02T03:04:10.000000Z",
        "renewTime": "2026-01-02T03:04:10.000000Z",
        "leaseTransitions": 0,
    }
    assert not elector.is_leader
    assert elector.term is None
    assert term.ended_because is TermEnd.COMPLETED
    assert not term.lost.is_set()


async def test_standby_takes_over_immediately_after_release() -> None:
    server = FakeServer()
    first, _ = make(server, "a")
    second, _ = make(server, "b")
    seen: list[float] = []

    async def follow() -> None:
        async for term in second.terms():
            async with term:
                seen.append(now())
                assert term.transitions == 1
            return

    async with asyncio.TaskGroup() as group:
        group.create_task(lead_for(first, 5))
        await asyncio.sleep(0.5)
        group.create_task(follow())
    assert seen == [6.5]  # b looks each 2 s; a left at 5


async def test_standby_waits_full_lease_after_last_observed_change() -> None:
    server = FakeServer()
    first, first_client = make(server, "a", LeaderElectionConfig(release_on_cancel=False))
    second, second_client = make(server, "b")
    await lead_for(first, 5)  # last renewal at 4; b sees it first at 5
    assert first_client.verbs[-1] == "update"
    assert server.holder() == "a"
    await lead_for(second, 0)
    assert second_client.calls[0] == (5, "get")
    assert second_client.calls[-2:] == [(21, "update"), (21, "update")]  # 5 + 15, then its next look


@pytest.mark.parametrize(("fault", "lost_at"), [("hang", 10.0), ("refuse", 10.0)])
async def test_a_leader_that_cannot_renew_stops_in_time(fault: Any, lost_at: float) -> None:
    server = FakeServer()
    elector, client = make(server)
    ended: list[float] = []
    term = await elector.acquire()
    async with term:
        client.always = fault
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(now())
    assert term.lost.is_set()
    assert term.ended_because is TermEnd.RENEW_DEADLINE
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]
    assert ended == [lost_at]  # counted from the start of the create at 0
    assert now() <= 15  # giving up is bounded by the lease


async def test_leadership_counts_from_the_start_of_the_renewal() -> None:
    server = FakeServer()
    elector, client = make(server)
    client.delay = 3.0  # read 0 to 3, create 3 to 6
    term = await elector.acquire()
    assert now() == 6
    async with term:
        client.always = "hang"
        await asyncio.sleep(100)
    assert term.ended_because is TermEnd.RENEW_DEADLINE
    lost = [at for at, verb in client.calls if verb == "update"]
    assert lost[0] == 6
    assert elector.leader == "a"


async def test_leadership_ends_at_the_start_plus_the_deadline() -> None:
    server = FakeServer()
    elector, client = make(server)
    client.delay = 3.0
    term = await elector.acquire()
    client.always = "hang"
    await asyncio.sleep(6.75)
    assert term.is_leading
    assert elector.renewed_ago == 9.75
    await asyncio.sleep(0.25)
    assert now() == 13
    assert not term.is_leading
    assert elector.renewed_ago is None
    with pytest.raises(LeadershipLostError):
        await term.client.delete("v1/Pod", "x")
    client.always = None
    client.delay = 0
    await term.abandon()


async def test_one_failed_renewal_keeps_leadership() -> None:
    server = FakeServer()
    elector, client = make(server)
    term = await elector.acquire()
    async with term:
        client.faults = ["lose answer"]
        await asyncio.sleep(8)
    assert term.ended_because is TermEnd.COMPLETED
    # The update at 2 is given up at 7; its version is not known, so the leader reads, and writes at once.
    assert client.calls[2:] == [(2, "update"), (7, "get"), (7, "update"), (8, "update")]


async def test_lock_held_by_another_ends_term_immediately() -> None:
    server = FakeServer()
    elector, _ = make(server)
    term = await elector.acquire()
    async with term:
        server.edit(lambda lease: lease["spec"].update(holderIdentity="thief"))
        await asyncio.sleep(100)
    assert now() == 2
    assert term.ended_because is TermEnd.TAKEN
    assert elector.leader == "thief"
    assert server.holder() == "thief"


async def test_deleted_lock_ends_term_and_is_reacquired() -> None:
    server = FakeServer()
    elector, _ = make(server)
    tokens: list[int] = []
    async for term in elector.terms():
        async with term:
            tokens.append(int(term.fencing_token))
            if len(tokens) == 2:
                break
            del server.leases["default/example"]
            await asyncio.sleep(100)
        assert term.ended_because is TermEnd.GONE
    assert tokens == sorted(tokens)
    assert now() == 4  # lost at 2; the next attempt is a retry period after the last


async def test_loss_without_rejoin_ends_terms() -> None:
    server = FakeServer()
    elector, client = make(server, config=LeaderElectionConfig(rejoin=False))

    async def work(term: Term) -> None:
        client.always = "refuse"
        await asyncio.sleep(100)

    with pytest.raises(LeadershipLostError, check=having(identity="a")):
        await elector.run(work)


async def test_run_restarts_work_after_loss_and_returns_result() -> None:
    server = FakeServer()
    elector, client = make(server)
    starts: list[float] = []

    async def work(term: Term) -> str:
        starts.append(now())
        if len(starts) == 1:
            client.faults = ["refuse"] * 12
            await asyncio.sleep(100)
        return "done"

    assert await elector.run(work) == "done"
    # Seven of the twelve go to renewals and the release; contending goes on each 2 s from 12 on.
    assert starts == [0, 22]
    assert server.holder() == ""


async def test_error_of_work_propagates_after_release() -> None:
    server = FakeServer()
    elector, _ = make(server)

    async def work(term: Term) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await elector.run(work)
    assert server.holder() == ""


async def test_cancellation_waits_for_work_releases_and_propagates() -> None:
    server = FakeServer()
    elector, client = make(server)
    holders: list[str | None] = []

    async def work(term: Term) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(20)  # renewals go on meanwhile
            holders.append(server.holder())
            assert term.is_leading

    task = asyncio.create_task(elector.run(work))
    await asyncio.sleep(5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert now() == 25
    assert holders == ["a"]
    assert server.holder() == ""
    assert client.calls[-1] == (25, "update")


async def test_without_release_on_cancel_the_lock_is_left_to_expire() -> None:
    server = FakeServer()
    elector, client = make(server, config=LeaderElectionConfig(release_on_cancel=False))
    await lead_for(elector, 1)
    assert server.holder() == "a"
    assert client.verbs == ["get", "create"]


@pytest.mark.parametrize("cancel_at", [0.5, 1.5, 2.5, 3.5, 4.5])
async def test_cancellation_during_request_still_releases(cancel_at: float) -> None:
    server = FakeServer()
    elector, client = make(server)
    client.delay = 1.0  # get 0 to 1, create 1 to 2, updates from 3, 5, ...
    task = asyncio.create_task(lead_for(elector, 100))
    await asyncio.sleep(cancel_at)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.holder() in (None, "")


async def test_cancellation_after_successful_write_releases() -> None:
    server = FakeServer()
    elector, client = make(server)
    client.faults = [None, "lose answer"]
    task = asyncio.create_task(lead_for(elector, 100))
    await asyncio.sleep(1)
    assert server.holder() == "a"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.holder() == ""
    assert client.verbs == ["get", "create", "get", "update"]


async def test_a_conflict_at_the_release_is_retried() -> None:
    server = FakeServer()
    elector, client = make(server)
    term = await elector.acquire()
    async with term:
        await asyncio.sleep(1)
        server.edit(lambda lease: lease["metadata"].update(labels={"theirs": "1"}))
    assert client.verbs == ["get", "create", "update", "get", "update"]
    assert server.holder() == ""
    assert server.leases["default/example"].labels == {"theirs": "1"}


async def test_second_cancellation_stops_release_and_elector_is_reusable() -> None:
    server = FakeServer()
    elector, client = make(server)
    task = asyncio.create_task(lead_for(elector, 100))
    await asyncio.sleep(1)
    client.always = "hang"
    task.cancel()
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert now() == 2
    client.always = None
    await lead_for(elector, 0)
    assert server.holder() == ""


async def test_body_ignoring_cancellation_is_logged_and_its_writes_rejected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = FakeServer()
    elector, client = make(server)
    refused: list[float] = []

    async def deaf(term: Term) -> None:
        client.always = "refuse"
        await term.client.delete("v1/Pod", "allowed")
        until = now() + 22
        while now() < until:
            try:
                await asyncio.sleep(until - now())
            except asyncio.CancelledError:
                with pytest.raises(LeadershipLostError):
                    await term.client.delete("v1/Pod", "refused")
                refused.append(now())
                elector.check(tolerance=20)
        with pytest.raises(LeadershipLostError, check=having(identity="a", fencing_token="1")):
            elector.check(tolerance=5)
        client.always = None

    with caplog.at_level(logging.WARNING, logger="deltaloop.leaderelection"):
        term = await elector.acquire()
        async with term:
            await deaf(term)
    assert refused == [10]
    assert server.others == [("delete", "allowed")]
    warned = [record for record in caplog.records if "work continues" in record.getMessage()]
    assert len(warned) == 2  # at 15 and 20
    assert vars(warned[0])["task"]
    assert term.ended_because is TermEnd.RENEW_DEADLINE
    elector.check()


async def test_rejected_write_ends_term_without_error() -> None:
    server = FakeServer()
    elector, client = make(server)
    client.delay = 0
    for grouped in (False, True):
        term = await elector.acquire()
        async with term:
            client.always = "refuse"
            await asyncio.sleep(5)
            elector._election.guard_until = now()  # the process was suspended until the deadline
            if grouped:
                raise ExceptionGroup("workers", [_refusal(term)])
            await term.client.delete("v1/Pod", "x")
        assert term.ended_because is TermEnd.RENEW_DEADLINE
        client.always = None


def _refusal(term: Term) -> Exception:
    try:
        term.ensure_leading()
    except LeadershipLostError as error:
        return error
    raise AssertionError


async def test_error_grouped_with_rejected_write_propagates() -> None:
    server = FakeServer()
    elector, _ = make(server)

    async def work(term: Term) -> None:
        elector._election.guard_until = now()
        raise ExceptionGroup("workers", [_refusal(term), KeyError("real")])

    with pytest.raises(ExceptionGroup):
        await elector.run(work)


async def test_outer_cancellation_takes_precedence() -> None:
    server = FakeServer()
    elector, client = make(server)

    async def work(term: Term) -> None:
        client.always = "refuse"
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(5)
            raise

    task = asyncio.create_task(elector.run(work))
    await asyncio.sleep(12)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_term_entered_during_cancellation_ends_normally() -> None:
    server = FakeServer()
    elector, client = make(server)
    ends: list[tuple[float, TermEnd | None, int]] = []

    async def clean_up() -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            await asyncio.sleep(100)
        finally:
            term = await elector.acquire()
            async with term:
                client.always = "refuse"
                await asyncio.sleep(100)
            ends.append((now(), term.ended_because, task.cancelling()))

    task = asyncio.create_task(clean_up())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ends == [(11.0, TermEnd.RENEW_DEADLINE, 1)]


async def test_read_with_write_error_is_a_failed_read(caplog: pytest.LogCaptureFixture) -> None:
    class Strange(FakeClient):
        refusals = 1

        async def get(self, *arguments: Any, **options: Any) -> Any:
            if self.refusals:
                self.refusals -= 1
                self.calls.append((now(), "refused get"))
                raise ConflictError(Status(code=409, message="a proxy that knows better"))
            return await super().get(*arguments, **options)

    server = FakeServer()
    client = Strange(server)
    lock = LeaseLock(client, namespace="default", name="example", identity="a")
    elector = LeaderElector(lock, clock=now, wall_clock=WallClock(), random=lambda: 0.0)
    await (await elector.acquire()).abandon()
    assert client.calls[:3] == [(0, "refused get"), (2, "get"), (2, "create")]
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "request to the leader election lock failed, retrying"
    ]


async def test_callbacks_and_metrics_and_a_callback_that_raises() -> None:
    told: list[tuple[float, str]] = []

    def tell(text: str) -> Callable[[], object]:
        return lambda: told.append((now(), text))

    def new_leader(identity: str) -> None:
        told.append((now(), f"leader {identity}"))
        raise RuntimeError("a broken callback costs nothing")

    class Metrics:
        def leader_on(self, name: str) -> None:
            told.append((now(), f"on {name}"))

        def leader_off(self, name: str) -> None:
            told.append((now(), f"off {name}"))

        def slow_path_exercised(self, name: str) -> None:
            told.append((now(), "slow"))

    server = FakeServer()
    config = LeaderElectionConfig(
        name="n", on_started_leading=tell("started"), on_stopped_leading=tell("stopped"), on_new_leader=new_leader
    )
    elector, client = make(server, config=config, metrics=Metrics())
    _term = await elector.acquire()
    async with _term:
        client.faults = ["refuse"]
        await asyncio.sleep(3)
    assert told == [
        *((0, "off n"), (0, "leader a"), (0, "on n"), (0, "started")),
        *((2, "slow"), (3, "off n"), (3, "stopped")),
    ]


async def test_stopped_leading_is_not_called_if_leading_was_not_started() -> None:
    told: list[str] = []
    server = FakeServer()
    first, _ = make(server, "a", LeaderElectionConfig(release_on_cancel=False))
    await lead_for(first, 0)
    second, _ = make(server, "b", LeaderElectionConfig(on_stopped_leading=lambda: told.append("stopped")))
    task = asyncio.create_task(lead_for(second, 0))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told == []
    assert second.leader == "a"


async def test_misuse_raises_runtime_error() -> None:
    elector, _ = make(FakeServer())
    term = await elector.acquire()
    async with term:
        with pytest.raises(RuntimeError):
            await elector.acquire()
        with pytest.raises(RuntimeError):
            await term.__aenter__()
    with pytest.raises(RuntimeError):
        await term.__aenter__()


async def test_elector_rejects_second_task() -> None:
    server = FakeServer()
    first, _ = make(server, "a", LeaderElectionConfig(release_on_cancel=False))
    await lead_for(first, 0)
    second, _ = make(server, "b")
    task = asyncio.create_task(second.acquire())
    await asyncio.sleep(1)
    with pytest.raises(RuntimeError, match="another task"):
        await second.acquire()
    term = await task
    await term.abandon()


async def test_acquire_abandons_term_that_was_not_entered() -> None:
    server = FakeServer()
    elector, _ = make(server)
    first = await elector.acquire()
    second = await elector.acquire()
    assert first.over
    assert not first.is_leading
    assert second.is_leading
    assert int(second.fencing_token) > int(first.fencing_token)
    await second.abandon()


@pytest.mark.parametrize(
    ("durations", "message"),
    [
        ({"lease_duration": 10.0}, "lease_duration"),
        ({"renew_deadline": 2.4}, "renew_deadline"),
        ({"retry_period": 0.0}, "retry_period"),
        ({"lease_duration": float("nan")}, "lease_duration"),
        ({"lease_duration": float("inf")}, "lease_duration"),
        ({"lease_duration": 2.0**31}, "lease_duration"),
        ({"renew_deadline": -1.0}, "renew_deadline"),
    ],
)
def test_inconsistent_durations_are_rejected(durations: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument=message)):
        LeaderElectionConfig(**durations)  # type: ignore[arg-type]


def test_empty_identity_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="LeaseLock.identity")):
        LeaseLock(FakeClient(FakeServer()), namespace="default", name="example", identity="")


@pytest.mark.parametrize("seed", range(4))
async def test_two_electors_never_overlap_under_faults(seed: int) -> None:
    numbers = random.Random(seed)
    server = FakeServer()
    pair = [make(server, identity) for identity in ("a", "b")]
    bodies: set[str] = set()
    terms = 0

    async def contend(elector: LeaderElector) -> None:
        nonlocal terms
        async for term in elector.terms():
            async with term:
                terms += 1
                bodies.add(elector.identity)
                try:
                    await asyncio.sleep(numbers.uniform(5, 60))
                finally:
                    bodies.discard(elector.identity)

    async def disturb(client: FakeClient) -> None:
        faults: list[Fault | None] = ["refuse", "hang", "lose answer", "slow", None, None]
        while True:
            await asyncio.sleep(numbers.uniform(0, 20))
            client.delay = numbers.uniform(0, 4)
            client.always = numbers.choice(faults)

    tasks = [asyncio.create_task(contend(elector)) for elector, _ in pair]
    tasks += [asyncio.create_task(disturb(client)) for _, client in pair]
    while now() < 200:
        await asyncio.sleep(0.37)
        assert sum(elector.is_leader for elector, _ in pair) <= 1
        assert len(bodies) <= 1
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert [task.cancelled() for task in tasks] == [True] * 4
    assert terms >= 2


@pytest.mark.parametrize(("seconds", "warnings"), [(2_147_483_647, 1), (3_601, 1), (3_600, 0), (15, 0)])
async def test_very_long_lease_is_warned_about_once(
    seconds: int, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    server = FakeServer()
    elector, _ = make(server)
    spec = {"holderIdentity": "b", "leaseDurationSeconds": seconds}
    server.create({"metadata": {"name": "example", "namespace": "default"}, "spec": spec})
    with caplog.at_level(logging.WARNING, logger="deltaloop.leaderelection"):
        contending = asyncio.create_task(elector.acquire())
        await asyncio.sleep(9)
        server.edit(lambda fields: fields["spec"].update(renewTime="2026-01-01T00:00:00.000000Z"))
        await asyncio.sleep(9)
        assert not contending.done()
    contending.cancel()
    await asyncio.wait([contending])
    found = [vars(record) for record in caplog.records if "very long" in record.getMessage()]
    assert [(each["holder"], each["lease_seconds"]) for each in found] == [("b", seconds)] * warnings
