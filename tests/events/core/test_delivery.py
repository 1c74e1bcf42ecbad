"""The delivery by examples, and against a naive model with random answers; seeded bugs must be caught by it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.status import Status, StatusCause, StatusDetails, error_from_status
from deltaloop.client.errors import TransportError
from deltaloop.events.core.delivery import Delivery, EventWrite, Outcome, Sleep
from deltaloop.events.core.draft import EventApi
from tests.nightly import examples

NO_ANSWER = TransportError("no answer", method="POST", path="/events")


def refusal(code: int, reason: str, cause: str = "") -> Exception:
    causes = (StatusCause(reason=cause),) if cause else ()
    return error_from_status(Status(code=code, reason=reason, details=StatusDetails(causes=causes)))


def make(*, is_update: bool = False, max_tries: int = 12, api: EventApi = EventApi.CORE_V1) -> Delivery:
    return Delivery(is_update=is_update, max_tries=max_tries, retry_delay=10.0, api=api)


def fail(delivery: Delivery, error: Exception, *, closing: bool = False) -> None:
    delivery.failed(error, random=0.3, closing=closing)


def test_new_event_is_created_and_repeat_is_patched() -> None:
    assert make().ask() is EventWrite.CREATE
    delivery = make(is_update=True)
    assert delivery.ask() is EventWrite.PATCH
    delivery.sent()
    assert delivery.ask() is Outcome.SENT


def test_patch_of_deleted_event_becomes_create() -> None:
    delivery = make(is_update=True)
    fail(delivery, refusal(404, "NotFound"))
    assert delivery.ask() is EventWrite.CREATE
    fail(delivery, refusal(404, "NotFound"))  # the namespace is gone, too
    assert delivery.ask() is Outcome.REFUSED


def test_request_without_response_is_tried_twelve_times() -> None:
    delivery = make()
    waits: list[float] = []
    while True:
        fail(delivery, NO_ANSWER)
        effect = delivery.ask()
        if not isinstance(effect, Sleep):
            break
        waits.append(effect.delay)
        delivery.waited()
        assert delivery.ask() is EventWrite.CREATE
    assert effect is Outcome.GIVEN_UP
    assert waits == [3.0] + [10.0] * 10
    assert delivery.tries == 12


def test_delivery_while_closing_is_tried_once() -> None:
    delivery = make()
    fail(delivery, NO_ANSWER, closing=True)
    assert delivery.ask() is Outcome.GIVEN_UP


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (refusal(409, "AlreadyExists"), Outcome.EXISTS),
        (refusal(403, "Forbidden", "NamespaceTerminating"), Outcome.NAMESPACE_TERMINATING),
        (refusal(403, "Forbidden"), Outcome.REFUSED),
        (refusal(500, "InternalError"), Outcome.REFUSED),
        (refusal(429, "TooManyRequests"), Outcome.REFUSED),
        (MalformedObjectError("x"), Outcome.INVALID),
    ],
)
def test_rejected_event_is_not_retried(error: Exception, outcome: Outcome) -> None:
    delivery = make()
    fail(delivery, error)
    assert delivery.ask() is outcome


def test_series_delay_has_jitter() -> None:
    delivery = make(api=EventApi.EVENTS_V1)
    waits: list[float] = []
    while True:
        delivery.failed(NO_ANSWER, random=0.8, closing=False)
        effect = delivery.ask()
        if not isinstance(effect, Sleep):
            break
        waits.append(effect.delay)
        delivery.waited()
    assert (effect, waits) == (Outcome.GIVEN_UP, [12.0] * 11)


def test_series_is_patched_when_create_finds_existing_event() -> None:
    delivery = make(is_update=True, api=EventApi.EVENTS_V1)
    fail(delivery, refusal(404, "NotFound"))
    assert delivery.ask() is EventWrite.CREATE
    fail(delivery, refusal(409, "AlreadyExists"))
    assert isinstance(delivery.ask(), Sleep)
    delivery.waited()
    assert delivery.ask() is EventWrite.PATCH
    for is_update, api in [(False, EventApi.EVENTS_V1), (True, EventApi.CORE_V1)]:
        delivery = make(is_update=is_update, api=api)
        fail(delivery, refusal(409, "AlreadyExists"))
        assert delivery.ask() is Outcome.EXISTS


@pytest.mark.parametrize("details", [StatusDetails(name="team"), StatusDetails(kind="namespaces")])
def test_not_found_error_naming_an_object_is_a_rejection(details: StatusDetails) -> None:
    delivery = make(api=EventApi.EVENTS_V1)
    fail(delivery, error_from_status(Status(code=404, reason="NotFound", details=details)))
    assert delivery.ask() is Outcome.REFUSED


@pytest.mark.parametrize("details", [None, StatusDetails()])
def test_unserved_api_is_distinguished_from_missing_namespace(details: StatusDetails | None) -> None:
    missing = Status(code=404, reason="NotFound", details=StatusDetails(name="team", kind="namespaces"))
    for api, status, outcome in [
        (EventApi.EVENTS_V1, Status(code=404, details=details), Outcome.NOT_SERVED),
        (EventApi.EVENTS_V1, missing, Outcome.REFUSED),
        (EventApi.CORE_V1, Status(code=404, details=details), Outcome.REFUSED),
    ]:
        delivery = make(api=api)
        fail(delivery, error_from_status(status))
        assert delivery.ask() is outcome


def test_unexpected_calls_raise_runtime_error() -> None:
    delivery = make()
    with pytest.raises(RuntimeError, match="without a wait"):
        delivery.waited()
    delivery.sent()
    with pytest.raises(RuntimeError, match="without a request"):
        delivery.sent()


# The model: a loop as one would write it by hand. Answers are used up one by one; then the server is well.

ANSWERS: dict[str, Exception] = {
    "lost": NO_ANSWER,
    "no event": error_from_status(Status(code=404, details=StatusDetails(name="x", kind="events"))),
    "no path": error_from_status(Status(code=404)),
    "exists": refusal(409, "AlreadyExists"),
    "forbidden": refusal(403, "Forbidden"),
}
Story = tuple[list[EventWrite], list[float], Outcome]


def expected(answers: list[str], *, is_update: bool, api: EventApi, tries: int) -> Story:
    left, steps, waits = list(answers), list[EventWrite](), list[float]()
    series = api is EventApi.EVENTS_V1
    step, failed = EventWrite.PATCH if is_update else EventWrite.CREATE, 0
    while True:
        steps.append(step)
        answer = left.pop(0) if left else "sent"
        if answer == "sent":
            return steps, waits, Outcome.SENT
        if answer in {"no event", "no path"} and step is EventWrite.PATCH:
            step = EventWrite.CREATE
            continue
        if answer == "no path" and series:
            return steps, waits, Outcome.NOT_SERVED
        if answer == "exists" and not (series and is_update):
            return steps, waits, Outcome.EXISTS
        if answer not in {"exists", "lost"}:
            return steps, waits, Outcome.REFUSED
        if answer == "exists":
            step = EventWrite.PATCH
        failed += 1
        if failed == tries:
            return steps, waits, Outcome.GIVEN_UP
        waits.append(11.25 if series else 5.0 if failed == 1 else 10.0)


def told(delivery: Delivery, answers: list[str]) -> Story:
    left, steps, waits = list(answers), list[EventWrite](), list[float]()
    for _ in range(100):
        effect = delivery.ask()
        if isinstance(effect, Outcome):
            return steps, waits, effect
        if isinstance(effect, Sleep):
            waits.append(effect.delay)
            delivery.waited()
            continue
        steps.append(effect)
        answer = left.pop(0) if left else "sent"
        if answer == "sent":
            delivery.sent()
        else:
            delivery.failed(ANSWERS[answer], random=0.5, closing=False)
    return steps, waits, Outcome.INVALID


answer_lists = st.lists(st.sampled_from(["lost", "lost", *ANSWERS]), max_size=8)


@given(answer_lists, st.booleans(), st.sampled_from(EventApi))
@settings(max_examples=examples(150), derandomize=True)
def test_delivery_matches_naive_model(answers: list[str], is_update: bool, api: EventApi) -> None:
    delivery = make(is_update=is_update, api=api, max_tries=4)
    assert told(delivery, answers) == expected(answers, is_update=is_update, api=api, tries=4)
