"""The driver of an election: what it sends, waits for and says; in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from deltaloop._internal.pacing import Wait
from deltaloop.api.times import WallTime
from deltaloop.leaderelection import LeaseLock, LossReason
from deltaloop.leaderelection.candidacy import Candidacy
from deltaloop.leaderelection.core.election import Effect, Election, ElectionTiming, Left, ReleaseOutcome, StepDown
from deltaloop.leaderelection.process_exit import ExitTimer
from tests.leaderelection.fake_server import FakeClient, FakeServer, WallClock
from tests.leaderelection.test_elector import now
from tests.leaderelection.test_lock import Recorder
from tests.leaderelection.test_term import said


class Place:
    """A candidacy and what it was heard to do."""

    def __init__(self, election: Election | None = None, *, exit_timer: float | None = None) -> None:
        self.server = FakeServer()
        self.client = FakeClient(self.server)
        self.events = Recorder()
        self.heard: list[tuple[float, str]] = []
        self.candidacy = Candidacy(
            election if election is not None else Election("a"),
            LeaseLock(self.client, namespace="default", name="example", identity="a", recorder=self.events),
            clock=now,
            wall_clock=WallClock(),
            random=lambda: 0.5,
            on_new_leader=lambda identity: self.hear(f"leader {identity}"),
            on_slow_path=lambda: self.hear("slow path"),
            exit_timer=ExitTimer(exit_timer, lambda: self.hear("last resort")),
        )

    def hear(self, what: str) -> None:
        self.heard.append((now(), what))


async def test_candidacy_from_contend_to_give_up() -> None:
    place = Place()
    won = await place.candidacy.contend()
    assert (won.token, won.transitions) == ("1", 0)
    renewing = asyncio.create_task(place.candidacy.renew())
    await asyncio.sleep(3)
    place.client.faults = ["refuse"]
    await asyncio.sleep(2)
    renewing.cancel()
    await asyncio.wait([renewing])
    assert await place.candidacy.give_up(release=True) is ReleaseOutcome.RELEASED
    await place.candidacy.close()
    assert place.client.calls == [
        *((0, "get"), (0, "create"), (2, "update")),
        *((4, "update"), (4, "get"), (4, "update"), (5, "update")),
    ]
    assert place.heard == [(0, "leader a"), (4, "slow path")]
    place.candidacy.record_event("was here")
    assert [message for *_, message in place.events.events] == ["a was here"]


async def test_short_waits_are_not_extended() -> None:
    place = Place(Election("a", ElectionTiming(lease_duration=1.5, renew_deadline=1.0, retry_period=0.25)))
    await place.candidacy.contend()
    renewing = asyncio.create_task(place.candidacy.renew())
    await asyncio.sleep(0.6)
    renewing.cancel()
    await asyncio.wait([renewing])
    assert place.client.calls[2:] == [(0.25, "update"), (0.5, "update")]


@pytest.mark.parametrize(("release", "outcome"), [(False, ReleaseOutcome.KEPT), (True, ReleaseOutcome.NOT_HELD)])
async def test_give_up_returns_release_outcome(release: bool, outcome: ReleaseOutcome) -> None:
    place = Place()
    await place.candidacy.contend()
    if release:
        place.server.edit(lambda lease: lease["spec"].update(holderIdentity="thief"))
    assert await place.candidacy.give_up(release=release) is outcome
    assert place.server.holder() == ("thief" if release else "a")


async def test_a_loss_is_returned_and_starts_the_exit_timer() -> None:
    for end in ("give up", "close", "neither"):
        place = Place(exit_timer=3.0)
        await place.candidacy.contend()
        place.server.edit(lambda lease: lease["spec"].update(holderIdentity="thief"))
        began = now()
        assert await place.candidacy.renew() is LossReason.TAKEN
        if end == "give up":
            await place.candidacy.give_up(release=True)
        elif end == "close":
            await place.candidacy.close()
        await asyncio.sleep(10)
        resort = [(began + 2 + 3, "last resort")] if end == "neither" else []
        assert [each for each in place.heard if each[1] == "last resort"] == resort


async def test_canceled_release_propagates_and_leaves_lock_to_expire() -> None:
    place = Place()
    await place.candidacy.contend()
    place.client.always = "hang"
    giving_up = asyncio.create_task(place.candidacy.give_up(release=True))
    await asyncio.sleep(1)
    giving_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await giving_up
    place.client.always = None
    assert (await place.candidacy.contend()).token == "2"


async def test_steps_are_logged_at_debug_with_lock_and_identity(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="deltaloop.leaderelection")
    place = Place()
    spec = {"holderIdentity": "b", "leaseDurationSeconds": 1}
    place.server.create({"metadata": {"name": "example", "namespace": "default"}, "spec": spec})
    await place.candidacy.contend()
    renewing = asyncio.create_task(place.candidacy.renew())
    await asyncio.sleep(3)
    place.server.edit(lambda lease: lease["metadata"].update(labels={"theirs": "1"}))
    await asyncio.sleep(2)
    renewing.cancel()
    await asyncio.wait([renewing])
    await place.candidacy.give_up(release=True)
    ours = ("default/example", "a")
    steps = [
        ("lease of another candidate has not yet expired", *ours, "b", None),
        ("failed to acquire the lease", *ours, None, None),
        ("renewed the lease", *ours, None, None),
        ("lock has changed", *ours, None, "Update"),
        ("renewed the lease", *ours, None, None),
    ]
    names = ("lock", "identity", "holder", "request")
    assert [(record.getMessage(), *(vars(record).get(name) for name in names)) for record in caplog.records] == steps


@pytest.mark.parametrize("unexpected", [False, True])
async def test_failed_request_is_logged_with_error(unexpected: bool, caplog: pytest.LogCaptureFixture) -> None:
    place = Place()
    if unexpected:

        async def broken(*_: Any, **__: Any) -> Any:
            raise KeyError("Bearer abcdefgh")

        place.client.get = broken  # type: ignore[method-assign]
    else:
        place.client.always = "refuse"
    contending = asyncio.create_task(place.candidacy.contend())
    await asyncio.sleep(3.1)
    contending.cancel()
    await asyncio.wait([contending])
    names = ("levelno", "lock", "identity", "request", "error")
    error = "KeyError" if unexpected else "TransportError"
    # The second comes at 3.2: a retry period, and by chance half of 1.2 times it.
    assert said(caplog, "request to the leader election lock failed", *names) == [
        (logging.WARNING, "default/example", "a", "Read", error)
    ]
    [record] = caplog.records
    assert "abcdefgh" not in vars(record)["reason"]
    assert vars(record)["reason"]
    assert (record.exc_info is not None) is unexpected


async def test_request_timeout_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    place = Place()
    place.client.faults = ["hang"]
    await place.candidacy.contend()
    assert place.client.calls[0] == (0, "get")
    assert place.client.calls[1][0] == 5 + 2 + 1.2, "half the renew deadline, then a jittered retry period"
    assert said(caplog, "request", "request", "error", "reason") == [("Read", "TimeoutError", "no response")]


@pytest.mark.parametrize(
    ("state", "answer"),
    [
        ("contending", StepDown(LossReason.TAKEN)),
        ("contending", Left(ReleaseOutcome.KEPT)),
        ("leading", Left(ReleaseOutcome.KEPT)),
        ("giving up", StepDown(LossReason.TAKEN)),
        ("giving up", Wait(0.0)),
    ],
)
async def test_unexpected_effect_raises_internal_error(
    state: str, answer: Effect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def astray(_: Election, _now: float, *, wall: WallTime) -> Effect:
        del wall
        return answer

    place = Place()
    steps: dict[str, Callable[[], Any]] = {
        "contending": place.candidacy.contend,
        "leading": place.candidacy.renew,
        "giving up": lambda: place.candidacy.give_up(release=True),
    }
    if state != "contending":
        await place.candidacy.contend()
    monkeypatch.setattr(Election, "ask", astray)
    with pytest.raises(RuntimeError, match=f"while {state}; a bug in deltaloop"):
        await asyncio.wait_for(steps[state](), 1)


async def test_long_lease_warning_repeats_for_another_lease(caplog: pytest.LogCaptureFixture) -> None:
    place = Place()
    spec = {"holderIdentity": "b", "leaseDurationSeconds": 100_000}
    place.server.create({"metadata": {"name": "example", "namespace": "default"}, "spec": spec})
    contending = asyncio.create_task(place.candidacy.contend())
    for change in ({"holderIdentity": "c"}, {"leaseDurationSeconds": 200_000}, {"renewTime": None}):
        await asyncio.sleep(10)
        place.server.edit(lambda lease, change=change: lease["spec"].update(change))  # type: ignore[misc]
    await asyncio.sleep(10)
    contending.cancel()
    await asyncio.wait([contending])
    assert said(caplog, "another candidate has a very long lease", "lock", "holder", "lease_seconds") == [
        ("default/example", "b", 100_000),
        ("default/example", "c", 100_000),
        ("default/example", "c", 200_000),
    ]
