from __future__ import annotations

import pytest

from deltaloop.leaderelection.core.combined import combined_state, split_version
from deltaloop.leaderelection.core.record import UNKNOWN_LEADER, LeaderElectionRecord, LockState


def held(holder: str, version: str, *, duration: int = 15, transitions: int = 0) -> LockState:
    return LockState(
        LeaderElectionRecord(holder_identity=holder, lease_duration_seconds=duration, leader_transitions=transitions),
        version,
    )


def test_agreeing_locks_have_common_leader() -> None:
    state = combined_state(held("a", "7", transitions=2), held("a", "12", duration=60, transitions=1))
    assert state == LockState(held("a", "", duration=60, transitions=2).record, "7,12", "12")


def test_differing_locks_have_unknown_leader_and_longer_duration() -> None:
    state = combined_state(held("a", "7", duration=15), held("b", "12", duration=60))
    assert state is not None
    assert state.record.holder_identity == UNKNOWN_LEADER
    assert state.record.lease_duration_seconds == 60


@pytest.mark.parametrize("empty_first", [True, False])
def test_free_lock_with_held_lock_is_not_free(empty_first: bool) -> None:
    first, second = (held("", "1"), held("b", "2")) if empty_first else (held("b", "2"), held("", "1"))
    state = combined_state(first, second)
    assert state is not None
    assert state.record.holder_identity == UNKNOWN_LEADER


def test_missing_lock_uses_state_of_other_lock() -> None:
    assert combined_state(None, None) is None
    assert combined_state(held("a", "7"), None) == LockState(held("a", "").record, "7,", "7")
    assert combined_state(None, held("b", "9")) == LockState(held("b", "").record, ",9", "9")


def test_fencing_token_is_from_later_write_or_primary() -> None:
    for versions, token in ((("9", "10"), "10"), (("10", "9"), "10"), (("x", "9"), "x")):
        state = combined_state(held("a", versions[0]), held("a", versions[1]))
        assert state is not None
        assert state.fencing_token == token


@pytest.mark.parametrize(("version", "parts"), [("7,12", ("7", "12")), ("7,", ("7", "")), (",12", ("", "12"))])
def test_combined_version_is_split(version: str, parts: tuple[str, str]) -> None:
    assert split_version(version) == parts


@pytest.mark.parametrize("version", ["7", "1,2,3"])
def test_malformed_combined_version_is_rejected(version: str) -> None:
    with pytest.raises(ValueError, match="two locks"):
        split_version(version)
