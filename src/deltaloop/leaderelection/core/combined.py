"""Combined state of two locks, to migrate candidates from one kind of lock to another.

The holder of the combined lock holds both locks. A migration has three steps: all candidates use the old kind, then all
use both, then all use the new kind. If the two locks name different holders, the leader is unknown. Then all candidates
wait until neither lock has changed for the longer of the two lease durations, and take both.

Source: client-go tools/leaderelection/resourcelock/multilock.go. Differences (see docs/reference/differences.md): the
holder of the secondary is known even if the primary is missing, and the longer lease duration applies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from deltaloop.leaderelection.core.record import UNKNOWN_LEADER, LockState

_SEPARATOR: Final = ","


def combined_state(primary: LockState | None, secondary: LockState | None) -> LockState | None:
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
    """Return the versions of the primary and the secondary (empty if missing); raises ValueError."""
    primary, separator, secondary = version.partition(_SEPARATOR)
    if not separator or _SEPARATOR in secondary:
        raise ValueError(f"{version!r} is not a version of two locks")
    return primary, secondary


def _later(first: str, second: str) -> str:
    """Return the token of the later write. The resource versions of a server come from one counter."""
    if first.isdecimal() and second.isdecimal():
        return max(first, second, key=int)
    return first
