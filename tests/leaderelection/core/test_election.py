"""Each rule of the election by an example: lease 15 s, renew deadline 10 s, retry period 2 s."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from deltaloop._internal.pacing import Wait
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.leaderelection.core.election import (
    BecameLeader,
    Create,
    Election,
    ElectionPhase,
    ElectionTiming,
    Left,
    LossReason,
    NewLeader,
    Read,
    ReleaseOutcome,
    StepDown,
    Update,
)
from deltaloop.leaderelection.core.record import LeaderElectionRecord, LockState, whole_seconds
from tests.having import having

WALL = datetime(2026, 1, 2, tzinfo=UTC)
EARLIER = datetime(2026, 1, 1, tzinfo=UTC)


def held(holder: str = "b", version: str = "1", duration: int = 15, transitions: int = 4) -> LockState:
    return LockState(
        LeaderElectionRecord(
            holder_identity=holder,
            lease_duration_seconds=duration,
            acquire_time=EARLIER,
            renew_time=EARLIER,
            leader_transitions=transitions,
        ),
        version,
    )


def contending(now: float = 0.0) -> Election:
    election = Election("a")
    election.join(now)
    assert election.ask(now, wall=WALL) == Read(5.0)
    return election


def leading(now: float = 0.0) -> Election:
    election = contending(now)
    election.observed(None, now, random=0.0)
    assert isinstance(election.ask(now, wall=WALL), Create)
    assert election.wrote("1", now, random=0.0) == (BecameLeader("1", 0), NewLeader("a"))
    return election


def test_a_missing_lock_is_created() -> None:
    election = contending()
    assert election.observed(None, 0.1, random=0.0) == ()
    request = election.ask(0.1, wall=WALL)
    assert request == Create(
        LeaderElectionRecord(
            holder_identity="a", lease_duration_seconds=15, acquire_time=WALL, renew_time=WALL, leader_transitions=0
        ),
        5.0,
    )


@pytest.mark.parametrize(
    ("before", "written"),
    [(0, 1), (-1, 0), (-7, 0), (2**31 - 2, 2**31 - 1), (2**31 - 1, 2**31 - 1), (10**40, 2**31 - 1)],
)
def test_transition_count_is_within_lease_range(before: int, written: int) -> None:
    election = contending()
    election.observed(held("", transitions=before), 0.0, random=0.0)
    request = election.ask(0.0, wall=WALL)
    assert isinstance(request, Update)
    assert request.record.leader_transitions == written
    election.wrote("2", 0.0, random=0.0)
    election.release(1.0)
    request = election.ask(1.0, wall=WALL)
    assert isinstance(request, Update)
    assert request.record.leader_transitions == written


@pytest.mark.parametrize(("recorded", "expires"), [(0, 15.0), (-5, 15.0), (10**400, 2.0**31 - 1)])
def test_invalid_duration_is_replaced(recorded: int, expires: float) -> None:
    election = contending()
    election.observed(held("b", duration=recorded), 0.0, random=0.0)
    assert election.long_lease == (expires if recorded > 0 else 0.0)
    for now, step in ((expires - 1, Wait), (expires + 9, Update)):
        assert isinstance(election.ask(now, wall=WALL), Read)
        election.observed(held("b", duration=recorded), now, random=0.0)
        assert isinstance(election.ask(now, wall=WALL), step)


def test_empty_holder_is_replaced_immediately_as_transition() -> None:
    election = contending()
    election.observed(held(""), 0.0, random=0.0)
    request = election.ask(0.0, wall=WALL)
    assert isinstance(request, Update)
    assert request.version == "1"
    assert (request.record.leader_transitions, request.record.acquire_time) == (5, WALL)


def test_lock_with_same_identity_is_reacquired_without_transition() -> None:
    election = contending()
    election.observed(held("a"), 0.0, random=0.0)
    request = election.ask(0.0, wall=WALL)
    assert isinstance(request, Update)
    assert (request.record.leader_transitions, request.record.acquire_time) == (4, EARLIER)
    assert request.record.renew_time == WALL


@pytest.mark.parametrize(("duration", "expires"), [(15, 15.0), (60, 60.0), (3, 3.0), (0, 15.0)])
def test_held_lock_is_acquired_after_recorded_duration_since_observation(duration: int, expires: float) -> None:
    election = contending()
    assert election.observed(held(duration=duration), 0.0, random=0.0) == (NewLeader("b"),)
    for at, taken in ((expires - 0.5, False), (expires, True)):
        election._next_at = at
        assert isinstance(election.ask(at, wall=WALL), Read)
        election.observed(held(duration=duration), at, random=0.0)
        assert isinstance(election.ask(at, wall=WALL), Update if taken else Wait)


def test_new_resource_version_restarts_the_lease_duration() -> None:
    election = contending()
    election.observed(held(version="1"), 0.0, random=0.0)
    election._next_at = 15.0
    election.ask(15.0, wall=WALL)
    election.observed(held(version="2"), 15.0, random=0.0)
    assert isinstance(election.ask(15.0, wall=WALL), Wait)


@pytest.mark.parametrize(("random", "until"), [(0.0, 2.0), (0.5, 3.2), (0.999, 4.3976)])
def test_candidates_retry_after_jittered_retry_period(random: float, until: float) -> None:
    election = contending()
    election.observed(held(), 0.0, random=random)
    effect = election.ask(0.0, wall=WALL)
    assert isinstance(effect, Wait)
    assert effect.until == pytest.approx(until)


def test_renewal_uses_fast_path_and_keeps_record_fields() -> None:
    election = leading()
    assert election.ask(0.0, wall=EARLIER) == Wait(2.0)
    later = datetime(2026, 1, 3, tzinfo=UTC)
    request = election.ask(2.0, wall=later)
    assert isinstance(request, Update)
    assert (request.version, request.timeout) == ("1", 5.0)
    assert (request.record.acquire_time, request.record.renew_time) == (WALL, later)
    election.wrote("2", 3.0, random=0.0)
    assert election.guard_until == 12.0  # from the start at 2, not from the answer at 3
    assert election.ask(3.0, wall=WALL) == Wait(4.0)


@pytest.mark.parametrize("news", ["conflict", "failure"])
def test_failed_fast_path_reads_and_writes_immediately(news: str) -> None:
    election = leading()
    election.ask(2.0, wall=WALL)
    if news == "conflict":
        election.conflicted(2.0, random=0.0)
    else:
        election.failed(2.0, random=0.0)
    assert election.slow_paths == 1
    assert isinstance(election.ask(2.0, wall=WALL), Read)
    election.observed(held("a", "7"), 2.0, random=0.0)
    request = election.ask(2.0, wall=WALL)
    assert isinstance(request, Update)
    assert request.version == "7"
    election.failed(2.0, random=0.0)
    assert election.ask(2.0, wall=WALL) == Wait(4.0)
    assert isinstance(election.ask(4.0, wall=WALL), Read)  # the version is in doubt


def test_request_timeouts_are_limited_by_renew_deadline() -> None:
    election = leading()
    election.ask(2.0, wall=WALL)
    election.failed(7.0, random=0.0)
    assert election.ask(7.0, wall=WALL) == Read(3.0)
    election.failed(10.0, random=0.0)
    assert election.ask(10.0, wall=WALL) == StepDown(LossReason.RENEW_DEADLINE)


def test_response_after_deadline_does_not_extend_term() -> None:
    election = leading()
    election.ask(2.0, wall=WALL)
    assert election.wrote("2", 10.0, random=0.0) == ()
    assert not election.is_leading(10.0)
    assert election.ask(10.0, wall=WALL) == StepDown(LossReason.RENEW_DEADLINE)


def test_late_successful_acquire_is_retried_immediately() -> None:
    election = contending()
    election.observed(None, 0.0, random=0.0)
    election.ask(0.0, wall=WALL)
    assert election.wrote("1", 10.0, random=0.0) == ()
    assert election.phase is ElectionPhase.CONTENDING
    assert isinstance(election.ask(10.0, wall=WALL), Read)


@pytest.mark.parametrize(
    ("seen", "because"), [(held("b", "9"), LossReason.TAKEN), (held("", "9"), LossReason.GONE), (None, LossReason.GONE)]
)
def test_lock_held_by_another_ends_leadership(seen: LockState | None, because: LossReason) -> None:
    election = leading()
    election.ask(2.0, wall=WALL)
    election.conflicted(2.0, random=0.0)
    election.ask(2.0, wall=WALL)
    election.observed(seen, 2.0, random=0.0)
    assert not election.is_leading(2.0)
    assert election.ask(2.0, wall=WALL) == StepDown(because)
    election.release(2.0)
    assert election.ask(2.0, wall=WALL) == Left(ReleaseOutcome.NOT_HELD)


def test_a_release_empties_the_holder() -> None:
    election = leading()
    election.release(1.0)
    assert not election.is_leading(1.0)
    assert election.ask(1.0, wall=WALL) == Update(
        LeaderElectionRecord(lease_duration_seconds=1, acquire_time=WALL, renew_time=WALL), "1", 5.0
    )
    election.wrote("2", 1.0, random=0.0)
    assert election.ask(1.0, wall=WALL) == Left(ReleaseOutcome.RELEASED)
    election.join(1.0)
    assert election.ask(1.0, wall=WALL) == Wait(2.0)  # a retry period after the last attempt began


def test_a_release_ends_with_the_lease() -> None:
    election = leading()
    assert election.step_down_if_due(12.0) is LossReason.RENEW_DEADLINE
    election.release(12.0)
    assert election.ask(12.0, wall=WALL) == Update(
        LeaderElectionRecord(lease_duration_seconds=1, acquire_time=WALL, renew_time=WALL), "1", 3.0
    )
    election.conflicted(15.0, random=0.0)
    assert election.ask(15.0, wall=WALL) == Left(ReleaseOutcome.KEPT)


def test_lock_acquired_too_late_is_released() -> None:
    election = contending()
    election.observed(None, 0.0, random=0.0)
    assert isinstance(election.ask(0.0, wall=WALL), Create)
    assert election.wrote("1", 11.0, random=0.0) == (), "after the renew deadline"
    assert not election.is_leading(11.0)
    election.release(11.5)
    request = election.ask(11.5, wall=WALL)
    assert isinstance(request, Update)
    assert (request.version, request.record.holder_identity) == ("1", "")
    election.wrote("2", 11.6, random=0.0)
    assert election.ask(11.6, wall=WALL) == Left(ReleaseOutcome.RELEASED)


def test_lock_with_same_identity_is_released_before_first_write() -> None:
    election = contending()
    election.observed(held("a"), 1.0, random=0.0)
    election.release(1.0)
    assert isinstance(election.ask(1.0, wall=WALL), Update)
    election.failed(3.0, random=0.0)
    assert election.ask(3.0, wall=WALL) == Left(ReleaseOutcome.KEPT), "one try"
    again = contending()
    again.observed(held("a"), 1.0, random=0.0)
    again.release(16.0)
    assert again.ask(16.0, wall=WALL) == Left(ReleaseOutcome.KEPT), "it has expired by now"


def test_release_without_response_is_not_retried() -> None:
    election = leading()
    election.release(1.0)
    election.ask(1.0, wall=WALL)
    election.failed(1.0, random=0.0)
    assert election.ask(1.0, wall=WALL) == Left(ReleaseOutcome.KEPT)


def test_leaving_without_release_sends_no_request() -> None:
    election = leading()
    election.release(1.0, give_up=False)
    assert election.ask(1.0, wall=WALL) == Left(ReleaseOutcome.KEPT)
    follower = contending()
    follower.observed(held(), 0.0, random=0.0)
    follower.release(0.0)
    assert follower.ask(0.0, wall=WALL) == Left(ReleaseOutcome.NOT_HELD)


def test_unexpected_responses_are_rejected() -> None:
    election = leading()
    feeds: tuple[Callable[[], object], ...] = (
        lambda: election.observed(None, 0.0, random=0.0),
        lambda: election.wrote("2", 0.0, random=0.0),
        lambda: election.conflicted(0.0, random=0.0),
        lambda: election.failed(0.0, random=0.0),
    )
    for feed in feeds:
        with pytest.raises(RuntimeError):
            feed()
    with pytest.raises(RuntimeError, match="release"):
        election.join(0.0)
    election.ask(2.0, wall=WALL)
    with pytest.raises(RuntimeError):
        election.ask(2.0, wall=WALL)


def test_empty_identity_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="identity")):
        Election("")


def test_lease_durations_are_rounded_up() -> None:
    election = Election("a", ElectionTiming(lease_duration=14.2))
    election.join(0.0)
    election.ask(0.0, wall=WALL)
    election.observed(None, 0.0, random=0.0)
    request = election.ask(0.0, wall=WALL)
    assert isinstance(request, Create)
    assert request.record.lease_duration_seconds == 15
    assert "contending" in repr(election)


def test_candidate_that_never_joined_holds_nothing() -> None:
    election = Election("a")
    assert election.ask(0.0, wall=WALL) == Left(ReleaseOutcome.NOT_HELD)
    assert (election.renewed_at, election.guard_until, election.leader) == (-math.inf, -math.inf, "")
    assert not election.is_leading(0.0)


def test_caller_can_end_leadership_with_reason() -> None:
    election = leading()
    assert isinstance(election.ask(2.0, wall=WALL), Update)
    assert election.lose(LossReason.WEDGED, 3.0) is LossReason.WEDGED
    assert not election.is_leading(3.0)
    assert election.loss_due(3.0) is LossReason.WEDGED
    assert election.ask(3.0, wall=WALL) == StepDown(LossReason.WEDGED), "the request that was out is dropped"
    assert election.lose(LossReason.TAKEN, 4.0) is LossReason.WEDGED, "it ends once"
    election.release(4.0)
    assert isinstance(election.ask(4.0, wall=WALL), Read), "the write may have been carried out"


def test_expired_deadline_overrides_given_loss_reason() -> None:
    election = leading()
    assert election.loss_due(9.9) is None
    assert election.loss_due(10.0) is LossReason.RENEW_DEADLINE
    assert election.lose(LossReason.WEDGED, 10.0) is LossReason.RENEW_DEADLINE


def test_lose_without_leadership_raises() -> None:
    with pytest.raises(RuntimeError, match="contending"):
        contending().lose(LossReason.WEDGED, 0.0)


def test_attempt_ends_when_retry_wait_begins() -> None:
    election = contending()
    assert not election.attempt_is_over, "a request is out"
    election.observed(None, 0.0, random=0.0)
    assert not election.attempt_is_over, "a write comes next"
    election.ask(0.0, wall=WALL)
    election.conflicted(0.0, random=0.0)
    assert election.attempt_is_over
    assert not leading().attempt_is_over


def test_record_without_times_starts_now() -> None:
    election = contending()
    state = LockState(LeaderElectionRecord(holder_identity="a", lease_duration_seconds=15), "1")
    election.observed(state, 0.0, random=0.0)
    request = election.ask(0.0, wall=WALL)
    assert isinstance(request, Update)
    assert request.record.acquire_time == WALL


def test_overtaken_write_without_response_holds_nothing() -> None:
    election = contending()
    election.observed(None, 0.0, random=0.0)
    election.ask(0.0, wall=WALL)
    election.release(1.0)
    assert isinstance(election.ask(1.0, wall=WALL), Read)
    election.observed(held("b"), 1.0, random=0.0)
    assert election.ask(1.0, wall=WALL) == Left(ReleaseOutcome.NOT_HELD)


def test_rejoined_candidate_forgets_earlier_writes() -> None:
    election = contending()
    election.observed(None, 0.0, random=0.0)
    election.ask(0.0, wall=WALL)
    election.leave(1.0)
    election.join(5.0)
    election.release(5.0)
    assert election.ask(5.0, wall=WALL) == Left(ReleaseOutcome.NOT_HELD)


def test_lease_duration_is_at_least_one_second() -> None:
    assert [whole_seconds(duration) for duration in (0.0, 0.2, 1.0, 1.2)] == [1, 1, 1, 2]


def test_write_pending_at_loss_may_hold_lock_for_full_lease() -> None:
    election = leading()
    election.ask(2.0, wall=WALL)
    election.lose(LossReason.WEDGED, 9.0)
    election.release(9.0)
    assert isinstance(election.ask(16.0, wall=WALL), Read), "only the lease of the last answer is over"
