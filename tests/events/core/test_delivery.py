from __future__ import annotations

import pytest

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.status import Status, StatusCause, StatusDetails, error_from_status
from deltaloop.client.errors import TransportError
from deltaloop.events.core.delivery import Delivery, Outcome, Step, Wait

NO_ANSWER = TransportError("no answer", method="POST", path="/events")


def refusal(code: int, reason: str, cause: str = "") -> Exception:
    causes = (StatusCause(reason=cause),) if cause else ()
    return error_from_status(Status(code=code, reason=reason, details=StatusDetails(causes=causes)))


def make(*, is_update: bool = False, max_tries: int = 12) -> Delivery:
    return Delivery(is_update=is_update, max_tries=max_tries, retry_delay=10.0)


def fail(delivery: Delivery, error: Exception, *, closing: bool = False) -> None:
    delivery.failed(error, chance=0.3, closing=closing)


def test_a_new_event_is_created_and_a_repeat_is_patched() -> None:
    assert make().ask() is Step.CREATE
    delivery = make(is_update=True)
    assert delivery.ask() is Step.PATCH
    delivery.sent()
    assert delivery.ask() is Outcome.SENT


def test_a_patch_of_what_is_gone_becomes_a_create() -> None:
    delivery = make(is_update=True)
    fail(delivery, refusal(404, "NotFound"))
    assert delivery.ask() is Step.CREATE
    fail(delivery, refusal(404, "NotFound"))  # the namespace is gone, too
    assert delivery.ask() is Outcome.REFUSED


def test_without_an_answer_it_tries_twelve_times() -> None:
    delivery = make()
    waits: list[float] = []
    while True:
        fail(delivery, NO_ANSWER)
        effect = delivery.ask()
        if not isinstance(effect, Wait):
            break
        waits.append(effect.delay)
        delivery.waited()
        assert delivery.ask() is Step.CREATE
    assert effect is Outcome.GIVEN_UP
    assert waits == [3.0] + [10.0] * 10
    assert delivery.tries == 12


def test_while_closing_there_is_one_try() -> None:
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
def test_what_the_server_refuses_is_not_tried_again(error: Exception, outcome: Outcome) -> None:
    delivery = make()
    fail(delivery, error)
    assert delivery.ask() is outcome


def test_what_was_not_asked_for_is_refused() -> None:
    delivery = make()
    with pytest.raises(RuntimeError, match="without a wait"):
        delivery.waited()
    delivery.sent()
    with pytest.raises(RuntimeError, match="without a request"):
        delivery.sent()
