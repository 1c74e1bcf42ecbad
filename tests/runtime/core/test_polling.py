"""Which keys a polling function's answers name: those whose value differs from that of the last good answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.errors import InvalidArgumentError, InvalidKeyError
from deltaloop.runtime.core.polling import Polled
from deltaloop.runtime.core.requests import Request

ANSWERS = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "default/c"]), st.sampled_from([1, 2, None, "1", (1, 2)])), max_size=5
)


def check(polled: Polled, answers: list[dict[str, Any]]) -> None:
    last: dict[str, Any] = {}
    for answer in answers:
        assert dict(polled.changes(answer)) == {
            key: "new" if key not in last else "gone" if key not in answer else "changed"
            for key in last.keys() | answer.keys()
            if key not in last or key not in answer or last[key] != answer[key]
        }
        last = answer


@given(ANSWERS)
def test_new_changed_and_gone_keys_are_reported_once(answers: list[dict[str, Any]]) -> None:
    check(Polled(), answers)


def test_in_place_change_is_detected() -> None:
    polled, tags, state = Polled(), ["one"], {"a": 1}
    answer = {"state": state, "tags": tags, "both": (tags, 1)}
    assert len(polled.changes(answer)) == 3
    assert polled.changes(answer) == []
    tags.append("two")
    assert polled.changes(answer) == [("tags", "changed"), ("both", "changed")]
    state["a"] = 2
    assert polled.changes(answer) == [("state", "changed")]
    answer["more"] = {}
    assert polled.changes(answer) == [("more", "new")]


def test_identical_nan_is_unchanged() -> None:
    polled, nothing = Polled(), float("nan")
    assert polled.changes({"a": nothing}) == [("a", "new")]
    assert polled.changes({"a": nothing}) == []


def test_request_and_key_are_equivalent() -> None:
    polled = Polled()
    assert polled.changes({Request("default", "a"): 1, Request("", "all"): 1}) == [("default/a", "new"), ("all", "new")]
    assert polled.changes({"default/a": 1, "all": 1}) == []


class Odd:
    """Compares like an array does: not to one truth."""

    def __eq__(self, other: object) -> Any:
        raise ValueError("which of them?")

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("answer", "error", "named"),
    [
        (None, InvalidArgumentError, "NoneType"),
        (["a"], InvalidArgumentError, "list"),
        ("a", InvalidArgumentError, "str"),
        ({1: 1}, InvalidArgumentError, "polled key .*1"),
        ({"a/b/c": 1}, InvalidKeyError, "a/b/c"),
        ({"a": Odd()}, ValueError, "which of them"),
    ],
)
def test_invalid_poll_result_keeps_state(answer: object, error: type[Exception], named: str) -> None:
    polled = Polled()
    polled.changes({"a": Odd() if error is ValueError else 1})
    with pytest.raises(error, match=named):
        polled.changes(answer)
    assert polled.changes({}) == [("a", "gone")]
