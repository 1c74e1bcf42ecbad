from __future__ import annotations

import pytest

from deltaloop.leaderelection.core.combined import combined_state, split_version
from deltaloop.leaderelection.core.record import UNKNOWN_LEADER, LeaderElectionRecord, LockState


def held(holder: str, version: str, *, duration: int = 15, transitions: int = 0) -> LockState:
    return LockState(
        LeaderElectionRecord(holder_identity=holder, lease_duration_seconds=duration, leader_transitions=transitions),
        version,
    )


def test_two_that_agree_say_who_leads() -> None:
    state = combined_state(held("a", "7", transitions=2), held("a", "12", duration=60, transitions=1))
    assert state == LockState(held("a", "", duration=60, transitions=2).record, "7,12", "12")


def test_two_that_differ_have_an_unknown_leader_for_the_longer_duration() -> None:
    state = combined_state(held("a", "7", duration=15), held("b", "12", duration=60))
    assert state is not None
    assert state.record.holder_identity == UNKNOWN_LEADER
    assert state.record.lease_duration_seconds == 60


@pytest.mark.parametrize("empty_first", [True, False])
def test_a_free_lock_beside_a_held_one_is_not_free(empty_first: bool) -> None:
    first, second = (held("", "1"), held("b", "2")) if empty_first else (held("b", "2"), held("", "1"))
    state = combined_state(first, second)
    assert state is not None
    assert state.record.holder_identity == UNKNOWN_LEADER


def test_a_missing_lock_leaves_the_word_to_the_other() -> None:
    assert combined_state(None, None) is None
    assert combined_state(held("a", "7"), None) == LockState(held("a", "").record, "7,", "7")
    assert combined_state(None, held("b", "9")) == LockState(held("b", "").record, ",9", "9")


def test_the_token_is_that_of_the_later_write_or_the_primarys() -> None:
    for versions, token in ((("9", "10"), "10"), (("10", "9"), "10"), (("x", "9"), "x")):
        state = combined_state(held("a", versions[0]), held("a", versions[1]))
        assert state is not None
        assert state.fencing_token == token


@pytest.mark.parametrize(("version", "parts"), [("7,12", ("7", "12")), ("7,", ("7", "")), (",12", ("", "12"))])
def test_a_version_is_taken_apart(version: str, parts: tuple[str, str]) -> None:
    assert split_version(version) == parts


@pytest.mark.parametrize("version", ["7", "1,2,3"])
def test_another_version_is_a_bug(version: str) -> None:
    with pytest.raises(ValueError, match="two locks"):
        split_version(version)
