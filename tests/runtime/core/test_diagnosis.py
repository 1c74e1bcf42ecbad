"""Diagnoses of made-up states."""

from __future__ import annotations

import msgspec

from deltaloop.runtime.core.diagnosis import (
    MOST_LISTED,
    BlockedLoop,
    CacheSeen,
    ControllerSeen,
    DiagnosisKind,
    FailingKey,
    LeaseSeen,
    ProgramState,
    QueueSeen,
    RequestsSeen,
    SlotSeen,
    diagnoses,
)

QUEUE = QueueSeen(queued=0, processing=0, delayed=0, failing=0, parked=0, adds=0, done=0)
MAPS = ControllerSeen(name="maps", kind="v1/ConfigMap", workers=1, timeout=None, paused_for=None, queue=QUEUE)
CACHE = CacheSeen(
    name="v1/Pod", synced=True, objects=3, age=99.0, confirmed=1.0, silent=1.0, failing=None, error="", refused=False,
    bookmarks=True,
)  # fmt: skip
IDLE = ProgramState(leadership="leading", leader="a", seconds=99.0, max_staleness=600.0, controllers=(MAPS,))


def kinds(state: ProgramState) -> list[tuple[DiagnosisKind, bool]]:
    return [(each.kind, each.stuck) for each in diagnoses(state)]


def of_cache(**changes: object) -> list[str]:
    return [each.cause for each in diagnoses(msgspec.structs.replace(IDLE, caches=(replaced(CACHE, **changes),)))]


def replaced(cache: CacheSeen, **changes: object) -> CacheSeen:
    return msgspec.structs.replace(cache, **changes)


def test_urgent_diagnoses_come_first_and_an_idle_program_has_none() -> None:
    assert diagnoses(IDLE) == []
    failing = FailingKey(key="default/a", error="OSError", attempts=9, seconds=61.0, next_in=2.0, where=("a.py:3",))
    growing = msgspec.structs.replace(QUEUE, queued=400, added_rate=50.0, done_rate=10.0)
    state = msgspec.structs.replace(
        IDLE,
        controllers=(msgspec.structs.replace(MAPS, queue=growing, failing=(failing,), paused_for=3.0),),
        lease=LeaseSeen(name="default/maps", age=6.0, renew_deadline=10.0),
        blocked=BlockedLoop(task="reconcile maps default/a", seconds=4.0, where=("a.py:3",)),
        requests=RequestsSeen(throttled=5, throttled_ago=2.0, undiscovered=("metrics.k8s.io/v1beta1",)),
    )
    assert kinds(state) == [
        (DiagnosisKind.BLOCKED_LOOP, True),
        (DiagnosisKind.LEASE_AT_RISK, True),
        (DiagnosisKind.BACK_OFF, True),
        (DiagnosisKind.PAUSED, True),
        (DiagnosisKind.GROWING_QUEUE, False),
        (DiagnosisKind.THROTTLED, False),
        (DiagnosisKind.STALE_DISCOVERY, False),
    ]


def test_ordinary_delays_are_not_reported() -> None:
    failing = FailingKey(key="default/a", error="ConflictError", attempts=2, seconds=1.0, next_in=0.1, where=())
    steady = msgspec.structs.replace(QUEUE, queued=400, added_rate=50.0, done_rate=45.0)
    state = msgspec.structs.replace(
        IDLE,
        controllers=(msgspec.structs.replace(MAPS, queue=steady, failing=(failing,)),),
        lease=LeaseSeen(name="default/maps", age=4.9, renew_deadline=10.0),
        requests=RequestsSeen(throttled=4, throttled_ago=2.0),
    )
    assert diagnoses(state) == []
    for seconds, reported in ((2.9, []), (3.0, [(DiagnosisKind.BLOCKED_LOOP, False)])):
        ended = BlockedLoop(task="", seconds=seconds, where=(), ended_ago=9.0)
        assert kinds(msgspec.structs.replace(IDLE, blocked=ended)) == reported


def test_number_of_keys_is_complete_beyond_the_listed_keys() -> None:
    keys = [
        FailingKey(key=f"default/{number}", error="OSError", attempts=9, seconds=1.0, next_in=2.0, where=())
        for number in range(MOST_LISTED)
    ]
    for failing, told in ((100, False), (397, True)):
        controller = msgspec.structs.replace(
            MAPS, failing=tuple(keys), queue=msgspec.structs.replace(QUEUE, failing=failing)
        )
        [found] = diagnoses(msgspec.structs.replace(IDLE, controllers=(controller,)))
        assert ("397 keys" in found.cause) is told


def test_slot_is_held_after_a_minute_or_ten_seconds_after_its_timeout() -> None:
    for seconds, timeout, held in ((59.9, None, 0), (60.0, None, 1), (99.9, 90.0, 0), (100.0, 90.0, 1)):
        slot = SlotSeen(key="default/a", reconcile=1, seconds=seconds, where=("a.py:3",))
        controller = msgspec.structs.replace(MAPS, timeout=timeout, running=(slot,))
        assert len(diagnoses(msgspec.structs.replace(IDLE, controllers=(controller,)))) == held


def test_cache_is_judged_by_errors_bytes_and_age() -> None:
    assert of_cache() == []
    assert of_cache(failing=9.0, error="TransportError: reset") == []
    assert "TransportError" in of_cache(failing=10.0, error="TransportError: reset")[0]
    assert (
        "never synced: ForbiddenError" in of_cache(synced=False, failing=0.0, error="ForbiddenError", refused=True)[0]
    )
    assert of_cache(synced=False, age=29.0) == []
    assert "first list" in of_cache(synced=False, age=30.0)[0]
    assert "no byte" in of_cache(silent=75.0)[0]
    assert of_cache(silent=75.0, bookmarks=False) == []
    assert "no byte" in of_cache(silent=700.0, confirmed=700.0, bookmarks=False)[0]
    assert "audit" in of_cache(stalled_by=("audit",))[0]
