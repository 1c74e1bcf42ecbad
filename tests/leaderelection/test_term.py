"""What a term says of itself, how it ends, and what is reported of it; in virtual time."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from typing import Any

import pytest

from deltaloop.client import Client, ClientConfig
from deltaloop.client.errors import TransportError
from deltaloop.errors import LeadershipLostError
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock, LossReason, Term, TermEnd
from tests.having import having
from tests.leaderelection.fake_server import FakeClient, FakeServer, OtherWrites, WallClock
from tests.leaderelection.test_elector import make, now
from tests.leaderelection.test_lock import Recorder


def cancelling() -> int:
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


def said(caplog: pytest.LogCaptureFixture, message: str, *names: str) -> list[tuple[object, ...]]:
    """The lines that begin so, with these of their fields."""
    found = [vars(record) for record in caplog.records if record.getMessage().startswith(message)]
    return [tuple(each[name] for name in names) for each in found]


async def test_term_reports_leadership_times() -> None:
    elector, client = make(FakeServer())
    client.delay = 1.0  # the read from 0 to 1, the create from 1 to 2
    term = await elector.acquire()
    assert elector.term is term
    assert (term.entered, term.over, term.loss, term.ended_because) == (False, False, None, None)
    assert (term.leads_until, term.lease_until, term.transitions) == (11.0, 16.0, 0)
    term.ensure_leading()
    assert repr(term) == "<Term default/example of a, token 1, leading>"
    async with term:
        assert term.entered
        await asyncio.sleep(3)  # the renewal of 3 has been answered at 4
        assert (term.leads_until, term.lease_until) == (13.0, 18.0)
        client.always = "refuse"
        try:
            await asyncio.sleep(100)
        finally:
            assert (term.loss, term.is_leading, term.leads_until) == (LossReason.RENEW_DEADLINE, False, -float("inf"))
            assert repr(term) == "<Term default/example of a, token 1, not leading>"
            with pytest.raises(LeadershipLostError, check=having(identity="a", fencing_token="1")):
                term.ensure_leading()
            with pytest.raises(LeadershipLostError, check=having(identity="a", fencing_token="1")):
                term.ensure_leading("paying")
    assert (term.entered, term.over) == (True, True)
    assert elector.term is None
    assert repr(term) == "<Term default/example of a, token 1, renew deadline>"


class WorkError(Exception):
    """What the work raises."""


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        ("returns", None),
        ("raises", WorkError),
        ("turns it into a refusal", None),
        ("turns it into a refusal of another lock", LeadershipLostError),
        ("goes on", None),
    ],
)
async def test_cancellation_for_loss_is_always_uncancelled(ending: str, expected: type[Exception] | None) -> None:
    elector, client = make(FakeServer())
    term = await elector.acquire()
    other = LeadershipLostError("another", lock="default/other", identity="a", fencing_token=term.fencing_token)

    async def body() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            if ending == "returns":
                return
            if ending == "raises":
                raise WorkError from None
            if ending == "turns it into a refusal":
                term.ensure_leading()
            if ending == "turns it into a refusal of another lock":
                raise other from None
            await asyncio.sleep(1)

    async def lead() -> None:
        async with term:
            client.always = "refuse"
            await body()

    if expected is None:
        await lead()
    else:
        with pytest.raises(expected):
            await lead()
    assert term.ended_because is TermEnd.RENEW_DEADLINE
    assert term.lost.is_set()
    assert cancelling() == 0
    await asyncio.sleep(0)  # and nothing of it comes later


async def test_loss_is_detected_when_body_ends(caplog: pytest.LogCaptureFixture) -> None:
    """As after a suspended process: the deadline has passed, and the body ends before the renewals have a turn."""
    events, server = Recorder(), FakeServer()
    lock = LeaseLock(FakeClient(server), namespace="default", name="example", identity="a", recorder=events)
    late = 0.0
    elector = LeaderElector(lock, clock=lambda: now() + late, wall_clock=WallClock(), random=lambda: 0.0)
    caplog.set_level(logging.INFO)
    term = await elector.acquire()
    async with term:
        await asyncio.sleep(1)
        late = 20.0
    assert (term.ended_because, term.loss, term.lost.is_set()) == (
        TermEnd.RENEW_DEADLINE,
        LossReason.RENEW_DEADLINE,
        True,
    )
    assert said(caplog, "lost leadership", "because") == [("renew deadline",)]
    assert [message for *_, message in events.events] == ["a became leader", "a stopped leading"]


@pytest.mark.parametrize(
    ("ending", "end", "lock_was"),
    [
        ("returns", TermEnd.COMPLETED, "released"),
        ("raises", TermEnd.FAILED, "released"),
        ("is cancelled", TermEnd.CANCELLED, "released"),
        ("is not released", TermEnd.COMPLETED, "kept until it expires"),
        ("is taken", TermEnd.TAKEN, "not held"),
    ],
)
async def test_end_of_term_is_logged(
    ending: str, end: TermEnd, lock_was: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = FakeServer()
    config = LeaderElectionConfig(name="n", release_on_cancel=ending != "is not released")
    elector, _ = make(server, config=config)
    term = await elector.acquire()

    async def body() -> None:
        async with term:
            if ending == "raises":
                raise WorkError
            if ending == "is taken":
                server.edit(lambda lease: lease["spec"].update(holderIdentity="thief"))
            if ending in ("is cancelled", "is taken"):
                await asyncio.sleep(100)

    task = asyncio.create_task(body())
    await asyncio.sleep(1)
    if ending == "is cancelled":
        task.cancel()
    await asyncio.wait([task])
    assert term.ended_because is end
    names = ("elector", "lock", "identity")
    ours = ("n", "default/example", "a")
    assert said(caplog, "contending", *names) == [ours]
    assert said(caplog, "won", *names, "fencing_token", "transitions") == [(*ours, "1", 0)]
    assert said(caplog, "stopped leading", *names, "because", "lock_was") == [(*ours, str(end), lock_was)]
    taken = [(*ours, "taken by another holder")] if ending == "is taken" else []
    assert said(caplog, "lost leadership", *names, "because") == taken
    leaders = [("a",), ("thief",)] if ending == "is taken" else [("a",)]
    assert said(caplog, "new leader", "leader") == leaders


async def test_continuing_work_is_logged_at_warning_interval(caplog: pytest.LogCaptureFixture) -> None:
    elector, client = make(FakeServer(), config=LeaderElectionConfig(warning_interval=2.0))
    term = await elector.acquire()

    async def deaf() -> None:
        async with term:
            client.always = "refuse"
            while now() < 15:
                try:
                    await asyncio.sleep(15 - now())
                except asyncio.CancelledError:
                    continue

    await asyncio.create_task(deaf(), name="deaf")
    warned = said(caplog, "work continues", "levelno", "task", "because")
    assert warned == [(logging.WARNING, "deaf", "renew deadline")] * 2  # at 12 and 14


async def test_writes_are_rejected_after_body_ends() -> None:
    allowed = list[bool]()
    elector, _ = make(FakeServer(), config=LeaderElectionConfig(on_stopped_leading=lambda: allowed.append(seen())))

    def seen() -> bool:
        return term.is_leading

    term = await elector.acquire()
    async with term:
        assert seen()
    assert allowed == [False]


async def test_keep_lock_leaves_lock_to_expire(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = FakeServer()
    elector, _ = make(server)
    async with await elector.acquire() as term:
        term.keep_lock()
    assert server.holder() == "a"
    assert said(caplog, "stopped leading", "lock_was") == [("kept until it expires",)]


async def test_terms_without_rejoin_continue_until_loss() -> None:
    server = FakeServer()
    elector, client = make(server, config=LeaderElectionConfig(rejoin=False))
    tokens = list[str]()
    async for term in elector.terms():
        async with term:
            tokens.append(term.fencing_token)
            if len(tokens) == 3:
                client.always = "refuse"
                await asyncio.sleep(100)
    assert len(tokens) == 3


async def test_abandoned_term_releases_lock(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = FakeServer()
    elector, _ = make(server)
    term = await elector.acquire()
    await term.abandon()
    assert (term.over, term.entered, term.ended_because) == (True, False, TermEnd.COMPLETED)
    assert not term.is_leading
    assert server.holder() == ""
    assert said(caplog, "stopped leading", "because", "lock_was") == [("completed", "released")]
    with pytest.raises(RuntimeError):
        await term.abandon()
    with pytest.raises(RuntimeError):
        await term.__aenter__()
    entered = await elector.acquire()
    async with entered:
        with pytest.raises(RuntimeError):
            await entered.abandon()
        assert entered.is_leading


def test_term_requires_a_task() -> None:
    async def win() -> Term:
        elector, _ = make(FakeServer())
        return await elector.acquire()

    loop = asyncio.new_event_loop()
    try:
        term = loop.run_until_complete(win())
        refusals = list[str]()

        def enter() -> None:
            step = term.__aenter__()
            try:
                step.send(None)
            except RuntimeError as error:
                refusals.append(str(error))
            loop.stop()

        loop.call_soon(enter)
        loop.run_forever()
        assert refusals == ["a term must be entered in a task"]
        loop.run_until_complete(term.abandon())
    finally:
        loop.close()


async def test_internal_error_in_renewals_ends_term_and_propagates() -> None:
    broken = False

    def wall_clock() -> datetime:
        if broken:
            raise WorkError
        return WallClock()()

    client = FakeClient(FakeServer())
    lock = LeaseLock(client, namespace="default", name="example", identity="a")
    elector = LeaderElector(lock, clock=now, wall_clock=wall_clock, random=lambda: 0.0)
    term = await elector.acquire()
    ended = list[tuple[float, bool]]()

    async def lead() -> None:
        nonlocal broken
        async with term:
            await asyncio.sleep(1)
            broken = True
            try:
                await asyncio.sleep(100)
            finally:
                ended.append((now(), term.is_leading))
                broken = False

    with pytest.raises(WorkError):
        await lead()
    assert ended == [(2, False)]
    assert (term.loss, term.over, term.lost.is_set()) == (LossReason.RENEW_DEADLINE, True, True)


async def test_internal_error_at_end_of_renewals_cancels_nothing() -> None:
    broken = False

    def wall_clock() -> datetime:
        if broken:
            raise WorkError
        return WallClock()()

    class Wrapping(FakeClient):
        """Raises an error of its own when it is cancelled."""

        async def update(self, *given: Any, **options: Any) -> Any:
            nonlocal broken
            try:
                await asyncio.sleep(4)
            except asyncio.CancelledError:
                broken = True
                raise TransportError("cancelled", method="PUT", path="/lease") from None
            return await super().update(*given, **options)

    lock = LeaseLock(Wrapping(FakeServer()), namespace="default", name="example", identity="a")
    elector = LeaderElector(lock, clock=now, wall_clock=wall_clock, random=lambda: 0.0)
    term = await elector.acquire()

    async def lead() -> None:
        nonlocal broken
        async with term:
            await asyncio.sleep(3)

    with pytest.raises(WorkError):
        await lead()
    assert term.over
    assert cancelling() == 0
    await asyncio.sleep(0)


async def test_term_client_is_given_client_or_client_of_lock() -> None:
    server = FakeServer()
    without = LeaderElector(LeaseLock(FakeClient(server), namespace="default", name="x", identity="a"), clock=now)
    term = await without.acquire()
    with pytest.raises(RuntimeError):
        _ = term.client
    await term.abandon()
    elector, _ = make(server)
    async with await elector.acquire() as term:
        await term.client.delete("v1/Pod", "allowed")
    with pytest.raises(LeadershipLostError):
        await term.client.delete("v1/Pod", "refused")
    assert server.others == [("delete", "allowed")]


def test_client_of_lock_is_guarded() -> None:
    client = Client(ClientConfig(server="http://fake"), transport=OtherWrites(FakeServer()))
    lock: Any = LeaseLock(client, namespace="default", name="x", identity="a")
    assert LeaderElector(lock)._client is client
    other = Client(ClientConfig(server="http://other"), transport=OtherWrites(FakeServer()))
    assert LeaderElector(lock, client=other)._client is other
