"""Faults: which requests are struck, how often, and what an open watch does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltaloop.apiserver.core.fault_rules import Fault, FaultBook, WatchFate, WatchTrouble
from deltaloop.apiserver.core.wire.request_info import RequestInfo, describe
from tests.nightly import examples


def request(method: str = "GET", path: str = "/api/v1/namespaces/default/configmaps", **query: str) -> RequestInfo:
    return describe(method, path, tuple(path.strip("/").split("/")), query)


def never() -> float:
    raise AssertionError("no chance was needed")


@pytest.mark.parametrize(
    ("fault", "struck"),
    [
        (Fault(do="refuse"), "all"),
        (Fault(do="refuse", verbs=("list",)), "list"),
        (Fault(do="refuse", resources=("deployments.apps",)), "patch"),
        (Fault(do="refuse", namespaces=("other",)), "patch"),
        (Fault(do="refuse", names=("d",)), "patch"),
        (Fault(do="refuse", users=("somebody",)), ""),
        (Fault(do="refuse", subresources=("scale",)), "patch"),
        (Fault(do="stale"), "list get watch"),
        (Fault(do="cut"), "watch"),
        (Fault(do="delay", verbs=("get",)), "get path"),
    ],
)
def test_scopes(fault: Fault, struck: str) -> None:
    requests = {
        "list": request(),
        "watch": request(watch="1"),
        "get": request(path="/api/v1/namespaces/default/configmaps/a"),
        "patch": request("PATCH", "/apis/apps/v1/namespaces/other/deployments/d/scale"),
        "path": request(path="/version"),
    }
    found = {name for name, info in requests.items() if fault.matches(info, "me")}
    assert found == (set(requests) if struck == "all" else set(struck.split()))


def test_fault_skips_requests_then_strikes_up_to_its_count() -> None:
    book = FaultBook()
    number = book.add(Fault(do="refuse", code=500, after=2, count=2))
    outcomes = [book.strike(request(), user="me", draw=never).fault is not None for _ in range(6)]
    assert outcomes == [False, False, True, True, False, False]
    assert book.active() == ()
    assert not book.remove(number)


def test_delays_add_up_and_the_oldest_other_fault_wins() -> None:
    book = FaultBook()
    book.add(Fault(do="delay", seconds=1.0))
    first = Fault(do="refuse", code=409, count=1)
    book.add(first)
    second = Fault(do="refuse", code=503)
    book.add(second)
    book.add(Fault(do="delay", seconds=0.5))
    strikes = [book.strike(request(), user="me", draw=never) for _ in range(2)]
    assert [(strike.delay, strike.fault) for strike in strikes] == [(1.5, first), (1.5, second)]
    assert [struck for _, _, struck in book.active()] == [2, 1, 2]


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])
@given(chances=st.lists(st.sampled_from((0.0, 0.25, 0.5, 0.99)), max_size=12), probability=st.sampled_from((0, 0.5, 1)))
def test_probability_uses_the_given_random_numbers(chances: list[float], probability: float) -> None:
    book = FaultBook()
    book.add(Fault(do="drop", probability=probability))
    draws = iter(chances)
    outcomes = [book.strike(request(), user="me", draw=lambda: next(draws)).fault is not None for _ in chances]
    assert outcomes == [probability == 1 or random < probability for random in chances]


@pytest.mark.parametrize(
    ("code", "reason", "wait"),
    [
        (409, "Conflict", None),
        (410, "Expired", None),
        (429, "TooManyRequests", 1.0),
        (500, "InternalError", None),
        (507, "InternalError", None),
    ],
)
def test_injected_errors(code: int, reason: str, wait: float | None) -> None:
    error = Fault(do="refuse", code=code).refusal()
    assert (error.status.code, error.status.reason, error.retry_after) == (code, reason, wait)
    assert Fault(do="refuse", code=code, retry_after=7).refusal().retry_after == 7.0


@pytest.mark.parametrize(
    "fields",
    [
        {"do": "explode"},
        {"do": "drop", "probability": 1.5},
        {"do": "drop", "count": 0},
        {"do": "refuse", "code": 200},
        {"do": "delay", "seconds": float("nan")},
        {"do": "stale", "behind": -1},
        {"do": "drop", "verb": "list"},
        {"do": "drop", "verbs": 3},
        {},
    ],
)
def test_invalid_faults_are_rejected(fields: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Fault.from_fields(fields)


def test_fault_fields_round_trip() -> None:
    fault = Fault(do="stall", verbs=("watch",), resources=("pods",), seconds=3.0, count=2)
    assert Fault.from_fields(fault.to_fields()) == fault
    assert Fault.from_fields({"do": "stall", "verbs": "watch"}).verbs == ("watch",)


def test_fault_strikes_a_watch_after_its_events() -> None:
    trouble = WatchTrouble(Fault(do="cut", events=2))
    fates: list[WatchFate] = []
    for _ in range(3):
        fates.append(trouble.fate(0.0))
        trouble.sent()
    assert fates == [WatchFate.SEND, WatchFate.SEND, WatchFate.CUT]


def test_stall_ends_after_its_time_or_when_cleared() -> None:
    trouble = WatchTrouble()
    assert trouble.fate(0.0) is WatchFate.SEND
    trouble.order(Fault(do="stall", seconds=5.0))
    assert trouble.fate(10.0) is WatchFate.WAIT
    assert trouble.until == 15.0
    assert trouble.fate(14.9) is WatchFate.WAIT
    assert trouble.fate(15.0) is WatchFate.SEND
    trouble.order(Fault(do="stall"))
    assert trouble.fate(1e9) is WatchFate.WAIT
    assert trouble.until is None
    trouble.lift()
    assert trouble.fate(1e9) is WatchFate.SEND


def test_order_counts_events_from_its_start() -> None:
    trouble = WatchTrouble()
    for _ in range(5):
        trouble.sent()
    trouble.order(Fault(do="expire", events=1))
    assert trouble.fate(0.0) is WatchFate.SEND
    trouble.sent()
    assert trouble.fate(0.0) is WatchFate.EXPIRE
