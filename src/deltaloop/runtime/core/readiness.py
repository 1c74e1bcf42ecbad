"""Checks of ``/readyz``.

A program is ready if all caches have synced and are fresh, and it is not shutting down. Standbys are ready because
rollouts wait for readiness. To route requests only to the leader, use ``require_leadership``.

Source: controller-runtime pkg/healthz (names of paths and the form of the verbose answer).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, final

import msgspec

if TYPE_CHECKING:
    from deltaloop.sharding.core.ownership import ShardState


class Leadership(Enum):
    NONE = "no election"
    STANDBY = "standby"
    LEADING = "leading"


@final
class CacheState(msgspec.Struct, frozen=True, kw_only=True):
    """State of one cache; ``last_confirmed_at`` is None before the server's first confirmation."""

    name: str
    synced: bool
    last_confirmed_at: float | None


@final
class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one check, as in ``/readyz/NAME``; the message has details without object data."""

    name: str
    ok: bool
    message: str = ""

    def __str__(self) -> str:
        state = "ok" if self.ok else "failed"
        return f"[{'+' if self.ok else '-'}]{self.name} {state}{f': {self.message}' if self.message else ''}"


def readiness(
    caches: Iterable[CacheState],
    leadership: Leadership,
    *,
    started: bool,
    stopping: bool,
    now: float,
    max_staleness: float,
    require_leadership: bool = False,
) -> tuple[Check, ...]:
    """Return the checks of ``/readyz``; times are in seconds."""
    behind: list[str] = []
    stale: list[str] = []
    for cache in caches:
        if not cache.synced:
            behind.append(cache.name)
        elif cache.last_confirmed_at is None or now - cache.last_confirmed_at > max_staleness:
            age = "never" if cache.last_confirmed_at is None else f"{now - cache.last_confirmed_at:.0f} s ago"
            stale.append(f"{cache.name} (last confirmed {age})")
    synced = started and not behind
    waits = f"not synced: {', '.join(sorted(behind))}" if behind else "" if started else "the caches are not started"
    return (
        Check(name="caches-synced", ok=synced, message=waits),
        Check(name="caches-fresh", ok=not stale, message=", ".join(sorted(stale))),
        Check(
            name="leader",
            ok=leadership is not Leadership.STANDBY or not require_leadership,
            message=leadership.value,
        ),
        Check(name="running", ok=not stopping, message="the program is ending" if stopping else ""),
    )


def shard_check(state: ShardState) -> Check:
    """Return the check of a sharded program, which fails on all members if a range has had no owner for too long."""
    longest = max((each.unowned_for or 0.0 for each in state.unowned), default=0.0)
    named = state.unowned or state.own
    names = ", ".join(each.name for each in named[:5])
    more = f" and {len(named) - 5} more" if len(named) > 5 else ""
    begin = f"{len(state.own)} of {len(state.ranges)} ranges"
    if state.unowned:
        begin = f"ranges without an owner for up to {longest:.0f} s"
    message = f"{begin}: {names}{more}" if named else begin
    return Check(name="shards", ok=not state.unowned and bool(state.ranges), message=message)


def answer(checks: Iterable[Check], *, verbose: bool, exclude: frozenset[str] = frozenset()) -> tuple[bool, str]:
    """Return whether all checks passed, and the response text."""
    asked = [check for check in checks if check.name not in exclude]
    ok = all(check.ok for check in asked)
    if ok and not verbose:
        return True, "ok"
    lines = [str(check) for check in asked] + [f"[+]{name} excluded: ok" for name in sorted(exclude)]
    return ok, "\n".join([*lines, "check passed" if ok else "check failed"]) + "\n"
