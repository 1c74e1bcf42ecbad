"""Whether a program may be sent work, and what each check says: pure functions of what its parts say of themselves.

Ready means: every cache has synced, none has been without a sign of the server for too long, and the program does not
end. A standby is ready: its caches are warm, and a rollout waits for it. Whoever wants to route to the leader only asks
for ``leader`` to be part of it (``require_leadership``).

Source: controller-runtime pkg/healthz (names of paths and the form of the verbose answer).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import final

import msgspec


class Leadership(Enum):
    """What this process is in the election."""

    NONE = "no election"
    STANDBY = "standby"
    LEADING = "leading"


@final
class CacheState(msgspec.Struct, frozen=True, kw_only=True):
    """What one cache says of itself.

    Attributes:
        name: The kind, and the namespace if there is one.
        synced: Whether it has held a full list.
        last_confirmed_at: When the server last gave a sign that it is current; None before the first.
    """

    name: str
    synced: bool
    last_confirmed_at: float | None


@final
class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one check.

    Attributes:
        name: Its name, as in ``/readyz/NAME``.
        ok: Whether it holds.
        message: More, for people; no data.
    """

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
    """Return the checks of ``/readyz``.

    Args:
        caches: What the caches say.
        leadership: What this process is in the election.
        started: Whether the start is over.
        stopping: Whether the end has begun.
        now: Seconds on the clock of the caches.
        max_staleness: Longest time without a sign of the server.
        require_leadership: Whether a standby is not ready.
    """
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
        Check(name="running", ok=not stopping, message="the program ends" if stopping else ""),
    )


def answer(checks: Iterable[Check], *, verbose: bool, exclude: frozenset[str] = frozenset()) -> tuple[bool, str]:
    """Return whether all checks hold, and the text that says so.

    Args:
        checks: Each check with its outcome.
        verbose: Whether to list those that hold, too.
        exclude: Names of checks to pass over.
    """
    asked = [check for check in checks if check.name not in exclude]
    ok = all(check.ok for check in asked)
    if ok and not verbose:
        return True, "ok"
    lines = [str(check) for check in asked] + [f"[+]{name} excluded: ok" for name in sorted(exclude)]
    return ok, "\n".join([*lines, "check passed" if ok else "check failed"]) + "\n"
