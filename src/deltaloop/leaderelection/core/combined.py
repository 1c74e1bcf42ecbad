"""What two locks say together, for the time in which candidates move from one kind of lock to another.

A holder of the combined lock holds both, so it excludes candidates that know only the one and candidates that know
only the other. The move has three steps: all use the old kind; all use both; all use the new kind.

Who leads is only certain if both say the same. If they differ, the leader is unknown, which is nobody's identity: all
wait until neither has changed for the longer of the two lease durations, and then take both.

The version of the combined state is both versions; an update needs both to stand. A lock that is missing has the empty
version, and an update creates it.

Source: client-go tools/leaderelection/resourcelock/multilock.go. In docs/reference/differences.md: a missing
primary does not hide who holds the secondary, and the longer lease duration counts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from deltaloop.leaderelection.core.record import UNKNOWN_LEADER, LockState

_SEPARATOR: Final = ","


def combined_state(primary: LockState | None, secondary: LockState | None) -> LockState | None:
    """Return what both say; None if neither exists."""
    version = _SEPARATOR.join(state.version if state is not None else "" for state in (primary, secondary))
    if primary is None and secondary is None:
        return None
    if primary is None or secondary is None:
        only = primary if primary is not None else secondary
        assert only is not None
        return LockState(only.record, version, only.fencing_token)
    first, second = primary.record, secondary.record
    record = replace(
        first,
        holder_identity=first.holder_identity if first.holder_identity == second.holder_identity else UNKNOWN_LEADER,
        lease_duration_seconds=max(first.lease_duration_seconds, second.lease_duration_seconds),
        leader_transitions=max(first.leader_transitions, second.leader_transitions),
    )
    return LockState(record, version, _later(primary.fencing_token, secondary.fencing_token))


def split_version(version: str) -> tuple[str, str]:
    """Return the versions of the primary and of the secondary; empty for one that is missing.

    Raises:
        ValueError: If it is not a combined version; a caller's bug.
    """
    primary, separator, secondary = version.partition(_SEPARATOR)
    if not separator or _SEPARATOR in secondary:
        raise ValueError(f"{version!r} is not a version of two locks")
    return primary, secondary


def _later(first: str, second: str) -> str:
    """Return the token of the later write: resource versions of one server come from one counter."""
    if first.isdecimal() and second.isdecimal():
        return max(first, second, key=int)
    return first
