"""The state of one wait: what is asked when, and that no history of the object can hide what is waited for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api import kinds
from deltaloop.api.errors import DeltaloopError, MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.api.status import Status, error_from_status
from deltaloop.api.watch_event import EventType, MalformedEventError, WatchEvent
from deltaloop.client.core.wait_conditions import Deleted, WaitCondition, created, deleted, field_value, ready
from deltaloop.client.core.waiting import AskForList, AskForWatch, Waiting
from deltaloop.client.errors import StreamEndedError, TransportError


def pod(version: int, *, name: str = "a", uid: str = "u", phase: str = "") -> Resource:
    metadata = {"name": name, "uid": uid, "resourceVersion": str(version)}
    return Resource.from_dict({"metadata": metadata, "status": {"phase": phase}}, kinds.POD)


def event(kind: EventType, obj: Resource) -> WatchEvent:
    return WatchEvent(kind, obj)


def refusal(code: int, reason: str = "", retry_after: float | None = None) -> DeltaloopError:
    return error_from_status(Status(code=code, reason=reason), retry_after=retry_after)


RUNNING = field_value("status.phase", "Running")


def test_list_can_fulfill_condition() -> None:
    waiting = Waiting("a", created())
    assert waiting.ask() == AskForList()
    waiting.saw_list([pod(3)], "9", now=0.0, random=0.0)
    assert waiting.done
    assert waiting.found == pod(3)


def test_watch_starts_at_list_version_and_resumes_at_last_event() -> None:
    waiting = Waiting("a", RUNNING)
    waiting.saw_list([pod(3)], "9", now=0.0, random=0.0)
    assert waiting.ask() == AskForWatch("9")
    waiting.saw_event(event(EventType.MODIFIED, pod(12)))
    assert waiting.ask() == AskForWatch("12")
    waiting.saw_event(event(EventType.BOOKMARK, pod(15, name="")))
    assert waiting.watch_ended(lasted=5.0, now=5.0, random=0.0) == 0.0
    assert waiting.ask() == AskForWatch("15")
    waiting.saw_event(event(EventType.MODIFIED, pod(16, phase="Running")))
    assert waiting.done


def test_expired_watch_version_is_listed_again() -> None:
    waiting = Waiting("a", RUNNING)
    waiting.saw_list([], "9", now=0.0, random=0.0)
    assert waiting.failed(refusal(410, "Expired"), now=0.0, random=0.0) == 0.5
    assert waiting.ask() == AskForList()
    assert waiting.failed(refusal(410, "Expired"), now=0.0, random=0.0) is None, "a list itself cannot be too old"


@pytest.mark.parametrize(
    "error",
    [
        refusal(429),
        refusal(500),
        refusal(503),
        TransportError("x", method="GET", path="/"),
        StreamEndedError("x", method="GET", path="/"),
        MalformedEventError("x"),
    ],
)
def test_temporary_failures_are_retried(error: DeltaloopError) -> None:
    waiting = Waiting("a", RUNNING)
    assert [waiting.failed(error, now=0.0, random=0.0) for _ in range(7)] == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    waiting.saw_list([], "1", now=0.0, random=0.0)
    assert waiting.failed(error, now=0.0, random=0.0) == 0.5
    assert waiting.ask() == AskForWatch("1"), "the watch goes on where it was"


def test_retry_after_of_the_server_is_used() -> None:
    assert Waiting("a", RUNNING).failed(refusal(429, retry_after=7.0), now=0.0, random=0.0) == 7.0
    assert Waiting("a", RUNNING).failed(refusal(429, retry_after=86_400.0), now=0.0, random=0.0) == 60.0


@pytest.mark.parametrize("error", [refusal(400), refusal(401), refusal(403), refusal(404), MalformedObjectError("x")])
def test_permanent_failures_are_not_retried(error: DeltaloopError) -> None:
    assert Waiting("a", RUNNING).failed(error, now=0.0, random=0.0) is None


def test_short_watches_are_repeated_with_delay() -> None:
    waiting = Waiting("a", RUNNING)
    waiting.saw_list([], "1", now=0.0, random=0.0)
    waits = [waiting.watch_ended(lasted=0.1, now=0.0, random=0.0) for _ in range(3)]
    assert waits == [0.5, 1.0, 2.0]


def test_list_without_version_is_repeated_with_delay() -> None:
    waiting = Waiting("a", RUNNING)
    unversioned = Resource.from_dict({"metadata": {"name": "a"}}, kinds.POD)
    waits = [waiting.saw_list([unversioned], "", now=0.0, random=0.0) for _ in range(6)]
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0]
    assert waiting.ask() == AskForList(), "there is nowhere for a watch to begin"
    assert waiting.saw_list([], "9", now=0.0, random=0.0) == 0.0
    assert waiting.failed(refusal(503), now=0.0, random=0.0) == 0.5, "a version came, so the waits begin again"


def test_deletion_condition_is_for_one_uid() -> None:
    waiting = Waiting("a", deleted())
    waiting.saw_list([pod(1, uid="u")], "1", now=0.0, random=0.0)
    assert not waiting.done
    waiting.saw_event(event(EventType.ADDED, pod(5, uid="v")))
    assert waiting.done
    assert waiting.found is None
    other = Waiting("a", deleted(uid="old"))
    other.saw_list([pod(1, uid="new")], "1", now=0.0, random=0.0)
    assert other.done


@pytest.mark.parametrize("how", ["deleted", "not listed", "replaced in a list", "replaced in a watch"])
def test_object_that_is_gone_ends_the_wait(how: str) -> None:
    for ignore in (False, True):
        waiting = Waiting("a", RUNNING, ignore_deletion=ignore)
        waiting.saw_list([], "1", now=0.0, random=0.0)
        assert not waiting.done, "it need not be there at the beginning"
        waiting.saw_event(event(EventType.ADDED, pod(3)))
        match how:
            case "deleted":
                waiting.saw_event(event(EventType.DELETED, pod(4, phase="Running")))
            case "not listed":
                waiting.saw_list([], "9", now=0.0, random=0.0)
            case "replaced in a list":
                waiting.saw_list([pod(5, uid="v")], "9", now=0.0, random=0.0)
            case _:
                waiting.saw_event(event(EventType.ADDED, pod(5, uid="v")))
        assert (waiting.gone, waiting.done) == (not ignore, not ignore)
        waiting.saw_event(event(EventType.ADDED, pod(9, uid="v", phase="Running")))
        assert waiting.found == (pod(9, uid="v", phase="Running") if ignore else None)


def test_object_without_uid_may_disappear_for_a_while() -> None:
    waiting = Waiting("a", RUNNING)
    waiting.saw_list([pod(1, uid="")], "", now=0.0, random=0.0)
    waiting.saw_list([], "", now=0.0, random=0.0)
    assert not waiting.done


def test_missing_object_counts_as_deleted() -> None:
    waiting = Waiting("a", deleted())
    waiting.saw_list([pod(1, name="b")], "1", now=0.0, random=0.0)
    assert waiting.done


def test_other_objects_do_not_count() -> None:
    waiting = Waiting("a", created())
    waiting.saw_list([pod(1, name="b")], "1", now=0.0, random=0.0)
    waiting.saw_event(event(EventType.ADDED, pod(2, name="b")))
    assert not waiting.done
    gone = Waiting("a", deleted())
    gone.saw_list([pod(1)], "1", now=0.0, random=0.0)
    gone.saw_event(event(EventType.DELETED, pod(2, name="b")))
    assert not gone.done


def test_last_seen() -> None:
    waiting = Waiting("a", ready())
    assert waiting.last_seen() == "the server has not responded yet"
    waiting.failed(refusal(503), now=0.0, random=0.0)
    assert waiting.last_seen().endswith("; the last attempt failed with ServiceUnavailableError")
    waiting.saw_list([], "5", now=0.0, random=0.0)
    assert waiting.last_seen() == "the object does not exist"
    waiting.saw_event(event(EventType.ADDED, pod(7, phase="s3cret")))
    assert waiting.last_seen() == "at resourceVersion 7 it has no condition Ready"


# --- Whatever happens to the object and to the streams: it is over as soon as the server was asked and fulfils it ---

STEPS = st.lists(
    st.sampled_from(["create", "run", "stop", "delete", "other", "end", "break", "expire", "bookmark"]), max_size=30
)


def play(
    condition: WaitCondition | Deleted,
    steps: list[str],
    make: type[Waiting] = Waiting,
    *,
    ignore_deletion: bool = True,
) -> tuple[bool, bool]:
    """Play a history; return whether the wait is over, and whether a naive observer of each state says so."""
    waiting = make("a", condition, ignore_deletion=ignore_deletion)
    server: Resource | None = None
    log: list[WatchEvent] = []
    version = uid = seen_uid = 0
    expected = False

    def observe() -> None:
        nonlocal expected, seen_uid
        if server is not None and not seen_uid:
            seen_uid = uid
        is_gone = server is None or uid != seen_uid
        if isinstance(condition, Deleted):
            expected = expected or is_gone
        elif (seen_uid and is_gone and not ignore_deletion) or (server is not None and condition.is_met(server)):
            expected = True

    def drive() -> None:
        asked = waiting.ask()
        if isinstance(asked, AskForList):
            waiting.saw_list([server] if server else [], str(version), now=0.0, random=0.0)
            observe()
            return
        for entry in log:
            if int(entry.object.resource_version) > int(asked.resource_version) and not waiting.done:
                waiting.saw_event(entry)

    drive()
    for step in steps:
        if waiting.done:
            break
        listed = isinstance(waiting.ask(), AskForWatch)
        kind = EventType.MODIFIED
        if step in ("create", "run", "stop"):
            if server is None:
                uid += 1
                kind = EventType.ADDED
            version += 1
            server = pod(version, uid=str(uid), phase="Running" if step == "run" else "")
            log.append(event(kind, server))
        elif step == "delete" and server is not None:
            version += 1
            log.append(event(EventType.DELETED, pod(version, uid=str(uid))))
            server = None
        elif step == "other":
            version += 1
            log.append(event(EventType.ADDED, pod(version, name="b")))
        elif step == "bookmark" and listed:
            drive()
            if not waiting.done:
                waiting.saw_event(event(EventType.BOOKMARK, pod(version, name="")))
        elif step == "end":
            waiting.watch_ended(lasted=2.0, now=0.0, random=0.0)
        elif step == "break":
            waiting.failed(StreamEndedError("x", method="GET", path="/"), now=0.0, random=0.0)
        elif step == "expire" and listed:
            drive()
            if not waiting.done:
                waiting.failed(refusal(410, "Expired"), now=0.0, random=0.0)
        if listed:
            observe()
    if not waiting.done:
        drive()
        observe()
    return waiting.done, expected


@given(st.sampled_from([RUNNING, created(), deleted()]), STEPS, st.booleans())
def test_no_state_is_missed(condition: Any, steps: list[str], ignore_deletion: bool) -> None:
    over, expected = play(condition, steps, ignore_deletion=ignore_deletion)
    assert over == expected


class ForgetsWhereItWas(Waiting):  # type: ignore[misc]  # a mutant of a final class
    """Seeded bug: after a broken stream the watch begins at the latest version instead of the last one seen."""

    __slots__ = ()

    def failed(self, error: DeltaloopError, *, now: float, random: float) -> float | None:
        wait = super().failed(error, now=now, random=random)
        if isinstance(error, StreamEndedError) and self._version:
            self._version = "1000000"
        return wait


@pytest.mark.nightly
def test_check_finds_seeded_bug() -> None:
    assert play(RUNNING, ["break", "run", "stop"]) == (True, True)
    assert play(RUNNING, ["break", "run", "stop"], ForgetsWhereItWas) == (False, True)


def broken() -> TransportError:
    return TransportError("x", method="GET", path="/")


def test_delays_grow_to_ten_seconds_and_restart_after_progress() -> None:
    waiting = Waiting("a", RUNNING)
    waits = [waiting.failed(broken(), now=0.0, random=0.0) for _ in range(7)]
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    waiting.saw_list([], "9", now=0.0, random=0.0)
    assert waiting.failed(broken(), now=0.0, random=1.0) == 0.6
    assert waiting.failed(broken(), now=0.0, random=0.0) == 1.0
    waiting.saw_event(event(EventType.MODIFIED, pod(12)))
    assert waiting.failed(broken(), now=0.0, random=0.0) == 0.5


def test_response_clears_previous_failure() -> None:
    waiting = Waiting("a", RUNNING)
    waiting.failed(broken(), now=0.0, random=0.0)
    assert waiting.last_seen() == "the server has not responded yet; the last attempt failed with TransportError"
    waiting.saw_list([], "9", now=0.0, random=0.0)
    assert waiting.last_seen() == "the object does not exist"
    waiting.failed(broken(), now=0.0, random=0.0)
    assert waiting.last_seen() == "the object does not exist; the last attempt failed with TransportError"
    waiting.saw_event(event(EventType.MODIFIED, pod(12)))
    assert waiting.last_seen() == "at resourceVersion 12 it has another status.phase"


def test_event_without_version_keeps_previous_version() -> None:
    waiting = Waiting("a", RUNNING)
    waiting.saw_list([], "9", now=0.0, random=0.0)
    waiting.saw_event(event(EventType.MODIFIED, Resource.from_dict({"metadata": {"name": "a"}}, kinds.POD)))
    assert waiting.ask() == AskForWatch("9")


def test_bookmark_is_not_compared_with_condition() -> None:
    waiting = Waiting("a", RUNNING)
    waiting.saw_list([], "9", now=0.0, random=0.0)
    waiting.saw_event(event(EventType.BOOKMARK, pod(12, phase="Running")))
    assert not waiting.done
    assert waiting.last_seen() == "the object does not exist"
    waiting.saw_event(event(EventType.MODIFIED, pod(13, name="b", phase="Running")))
    assert not waiting.done


@pytest.mark.parametrize(("lasted", "wait"), [(0.0, 0.5), (0.99, 0.5), (1.0, 0.0), (1.5, 0.0)])
def test_watch_shorter_than_second_is_followed_by_delay(lasted: float, wait: float) -> None:
    waiting = Waiting("a", RUNNING)
    waiting.saw_list([], "9", now=0.0, random=0.0)
    assert waiting.watch_ended(lasted=lasted, now=0.0, random=0.0) == wait


@pytest.mark.parametrize(
    ("code", "survived"),
    [(429, True), (430, False), (499, False), (500, True), (599, True), (600, False)],
)
def test_status_codes_that_are_retried(code: int, survived: bool) -> None:
    assert (Waiting("a", RUNNING).failed(refusal(code), now=0.0, random=0.0) is not None) == survived
