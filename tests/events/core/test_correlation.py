"""The correlator by examples, and as a machine against a naive model; two seeded bugs must be caught by the machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from deltaloop.api.references import ObjectReference
from deltaloop.events.core.correlation import (
    COMBINED_PREFIX,
    CorrelatorOptions,
    EventCorrelator,
    Key,
    combined_message,
    similar_key,
)
from deltaloop.events.core.draft import Correlated, EventDraft
from tests.nightly import examples

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def draft(
    message: str = "m", *, name: str = "n1", at: float = 0.0, reason: str = "R", about: str = "pod", path: str = ""
) -> EventDraft:
    when = START + timedelta(seconds=at)
    return EventDraft(
        name=name,
        namespace="default",
        reference=ObjectReference(kind="Pod", namespace="default", name=about, field_path=path),
        type="Normal",
        reason=reason,
        message=message,
        component="c",
        instance="",
        first_at=when,
        last_at=when,
    )


def sent(result: Correlated | None) -> Correlated:
    assert result is not None
    return result


def test_first_event_is_created_and_repeats_increase_its_count() -> None:
    correlator = EventCorrelator()
    first = sent(correlator.correlate(draft(name="n1"), 0.0))
    assert (first.is_update, first.event.count) == (False, 1)
    second = sent(correlator.correlate(draft(name="n2", at=5), 5.0))
    assert (second.is_update, second.event.count, second.event.name) == (True, 2, "n1")
    assert second.event.first_at == START
    assert second.event.last_at == START + timedelta(seconds=5)


@pytest.mark.parametrize(
    "other", [draft("other"), draft(reason="Other"), draft(about="other"), draft(path="spec.containers{x}")]
)
def test_different_field_makes_new_event(other: EventDraft) -> None:
    correlator = EventCorrelator()
    correlator.correlate(draft(), 0.0)
    assert not sent(correlator.correlate(other, 0.0)).is_update


def test_similar_events_are_combined_from_tenth_message() -> None:
    correlator = EventCorrelator()
    results = [sent(correlator.correlate(draft(f"m{index}", name=f"n{index}"), 0.0)) for index in range(12)]
    assert [result.is_update for result in results] == [False] * 10 + [True] * 2
    assert [result.event.count for result in results] == [1] * 10 + [2, 3]
    assert results[8].event.message == "m8"
    assert results[9].event.message == COMBINED_PREFIX + "m9"
    assert results[11].event.message == COMBINED_PREFIX + "m11"
    assert {result.event.name for result in results[9:]} == {"n9"}


def test_messages_are_forgotten_after_ten_idle_minutes() -> None:
    correlator = EventCorrelator()
    for index in range(9):
        correlator.correlate(draft(f"m{index}"), 0.0)
    assert sent(correlator.correlate(draft("late"), 600.5)).event.message == "late"
    correlator = EventCorrelator()
    for index in range(9):
        correlator.correlate(draft(f"m{index}"), 0.0)
    assert sent(correlator.correlate(draft("late"), 600.0)).event.message == COMBINED_PREFIX + "late"


def test_combined_message_is_limited_in_length() -> None:
    correlator = EventCorrelator(CorrelatorOptions(similar_limit=1))
    assert len(sent(correlator.correlate(draft("x" * 1024), 0.0)).event.message) == 1024


def test_spam_filter_allows_burst_and_one_every_five_minutes() -> None:
    correlator = EventCorrelator()
    passed = [correlator.correlate(draft(), 0.0) is not None for _ in range(27)]
    assert passed == [True] * 25 + [False] * 2
    assert correlator.correlate(draft(), 299.0) is None
    after = sent(correlator.correlate(draft(), 301.0))
    assert after.event.count == 29  # what was dropped is counted, too
    assert correlator.correlate(draft(about="other"), 301.0) is not None


def test_cache_evicts_least_recently_used_keys() -> None:
    correlator = EventCorrelator(CorrelatorOptions(cache_size=2))
    for about in ("a", "b", "a", "c"):
        correlator.correlate(draft(about=about), 0.0)
    assert sent(correlator.correlate(draft(about="a"), 0.0)).is_update
    assert not sent(correlator.correlate(draft(about="b"), 0.0)).is_update


@pytest.mark.parametrize("option", ["cache_size", "similar_limit", "similar_interval", "spam_burst", "spam_rate"])
def test_options_must_be_positive(option: str) -> None:
    none: dict[str, Any] = {option: 0}
    with pytest.raises(ValueError, match=rf"CorrelatorOptions\.{option}"):
        CorrelatorOptions(**none)


def make(reason: str, message: str, *, about: str = "my-pod", path: str = "spec.containers{mycontainer}") -> EventDraft:
    return draft(message, reason=reason, about=about, path=path)


DUPLICATE = make("duplicate", "me again")
UNIQUE = make("unique", "snowflake")
SIMILAR = make("similar", "similar message", path="spec.containers{container1}")
OTHER_PART = make("similar", "similar message", path="spec.containers{container2}")
ALIKE = [replace(SIMILAR, message=f"similar message-{number}") for number in range(10)]
APART = [make(f"reason-{number}", f"message-{number}", about=f"pod-{number}") for number in range(30)]
COMBINED = replace(SIMILAR, message=COMBINED_PREFIX + "similar message")


@pytest.mark.parametrize(
    ("before", "event", "interval", "expected"),
    [
        pytest.param([], UNIQUE, 5, (UNIQUE, 1), id="a single event"),
        pytest.param([DUPLICATE], DUPLICATE, 5, (DUPLICATE, 2), id="the same event is counted"),
        pytest.param([DUPLICATE] * 10, DUPLICATE, 30, (DUPLICATE, 11), id="the same event is counted, not combined"),
        pytest.param([DUPLICATE] * 26, DUPLICATE, 1, None, id="the same event too often is spam"),
        pytest.param(APART, UNIQUE, 5, (UNIQUE, 1), id="many different events"),
        pytest.param(ALIKE[:9], SIMILAR, 5, (COMBINED, 1), id="similar events are combined"),
        pytest.param(ALIKE, SIMILAR, 5, (COMBINED, 2), id="combined events are counted"),
        pytest.param([OTHER_PART], SIMILAR, 5, (SIMILAR, 1), id="different containers are different events"),
        pytest.param(ALIKE[:9], SIMILAR, 601, (SIMILAR, 1), id="similar events that are far apart"),
    ],
)
def test_client_go_scenarios(
    before: list[EventDraft], event: EventDraft, interval: float, expected: tuple[EventDraft, int] | None
) -> None:
    correlator = EventCorrelator()
    for number, earlier in enumerate(before):
        correlator.correlate(earlier, number * interval)
    result = correlator.correlate(event, len(before) * interval)
    if expected is None:
        assert result is None
        return
    assert sent(result).is_update is (expected[1] > 1)
    assert sent(result).event == replace(expected[0], count=expected[1])


def by_reason(event: EventDraft) -> Key:
    return (event.reference.name, event.reason)


@pytest.mark.parametrize(
    ("options", "second", "passes"),
    [
        (CorrelatorOptions(spam_burst=1), draft("me again", reason="other"), False),
        (CorrelatorOptions(spam_burst=1, spam_key=by_reason), draft("me again", reason="other"), True),
        (CorrelatorOptions(spam_burst=1, spam_key=by_reason), draft("me again"), False),
        (CorrelatorOptions(spam_burst=1), replace(draft("me again"), type="Warning"), True),
    ],
)
def test_spam_filter_key_is_configurable(options: CorrelatorOptions, second: EventDraft, passes: bool) -> None:
    correlator = EventCorrelator(options)
    assert correlator.correlate(draft("i am first"), 0.0) is not None
    assert (correlator.correlate(second, 1.0) is not None) is passes


def test_similar_key_ignores_message() -> None:
    fun, awful = draft("it was fun", reason="EndOfWorld"), draft("it was awful", reason="EndOfWorld")
    assert similar_key(fun) == similar_key(awful) != similar_key(draft("it was a bug", reason="Nevermind"))
    assert combined_message(fun) == "(combined from similar events): it was fun"


def test_similar_key_is_configurable() -> None:
    options = CorrelatorOptions(
        similar_limit=2, similar_key=lambda event: (event.reference.name,), combined_message=lambda _: "many"
    )
    correlator = EventCorrelator(options)
    correlator.correlate(draft("a", reason="A"), 0.0)
    assert sent(correlator.correlate(draft("b", reason="B"), 0.0)).event.message == "many"


def test_combined_event_has_no_annotations() -> None:
    correlator = EventCorrelator(CorrelatorOptions(similar_limit=2))
    first = sent(correlator.correlate(replace(draft("a"), annotations={"x": "y"}), 0.0))
    assert first.event.annotations == {"x": "y"}
    assert sent(correlator.correlate(replace(draft("b"), annotations={"x": "y"}), 0.0)).event.annotations == {}


# The machine: a history of events, each judged from the whole history before it, without caches.

OPTIONS = CorrelatorOptions(similar_limit=3, similar_interval=10.0, spam_burst=4, spam_rate=0.1)
Happening = tuple[str, str, float]


def judged(history: list[Happening]) -> list[tuple[bool, bool, int, str]]:
    """Return for each event: passed, update, count, message; computed from its past alone."""
    answers: list[tuple[bool, bool, int, str]] = []
    counts: dict[tuple[str, str], int] = {}
    now = 0.0
    past: dict[str, list[tuple[float, str]]] = {}
    tokens: dict[str, tuple[float, float]] = {}
    for about, message, delay in history:
        now += delay
        mine = past.setdefault(about, [])
        if mine and now - mine[-1][0] > OPTIONS.similar_interval:
            mine.clear()
        mine.append((now, message))
        window: list[str] = []
        combined = False
        for _, earlier in mine:
            if earlier not in window:
                window.append(earlier)
            if len(window) >= OPTIONS.similar_limit:
                window.pop(0)
                combined = True
            else:
                combined = False
        shown = COMBINED_PREFIX + message if combined else message
        key = (about, "combined" if combined else message)
        counts[key] = counts.get(key, 0) + 1
        level, at = tokens.get(about, (float(OPTIONS.spam_burst), now))
        level = min(float(OPTIONS.spam_burst), level + (now - at) * OPTIONS.spam_rate)
        passed = level >= 1.0
        tokens[about] = (level - 1.0 if passed else level, now)
        answers.append((passed, counts[key] > 1, counts[key], shown))
    return answers


def run(correlator: EventCorrelator, history: list[Happening]) -> list[tuple[bool, bool, int, str]]:
    answers: list[tuple[bool, bool, int, str]] = []
    now = 0.0
    for number, ((about, message, delay), expected) in enumerate(zip(history, judged(history), strict=True)):
        now += delay
        result = correlator.correlate(draft(message, name=f"n{number}", about=about), now)
        answers.append(
            expected
            if result is None and not expected[0]
            else (
                result is not None,
                sent(result).is_update,
                sent(result).event.count,
                sent(result).event.message,
            )
        )
    return answers


histories = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]), st.sampled_from(["x", "y", "z", "w"]), st.sampled_from([0.0, 1.0, 8.0, 16.0])
    ),
    max_size=30,
)


@given(histories)
@settings(max_examples=examples(150), derandomize=True)
def test_correlator_matches_naive_model(history: list[Happening]) -> None:
    assert run(EventCorrelator(OPTIONS), history) == judged(history)
