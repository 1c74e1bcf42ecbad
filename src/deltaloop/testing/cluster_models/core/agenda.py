"""Agenda of the cluster models: each step waits for a random duration, drawn once.

    models return a step ──▶ new: draw its duration ──▶ wait ──▶ due ──▶ done, or failed and due later
                         ──▶ not returned any more: dropped

A step without a write is a mark. After its duration it is *passed*, as long as the models return it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, final

from deltaloop.api.resource_type import ResourceType

_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0


class EnvironmentVerb(StrEnum):
    CREATE = "create"
    PATCH = "patch"
    STATUS = "status"
    BIND = "bind"
    DELETE = "delete"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentWrite:
    """Write of a model; the namespace is empty for cluster-scoped kinds, and the name if it is generated."""

    verb: EnvironmentVerb
    kind: ResourceType[Any]
    namespace: str
    name: str
    body: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    uid: str = ""
    grace: int | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentStep:
    """Step of a model, which ``about`` (a uid) and ``told`` identify, of random seconds; ``write`` None is a mark."""

    about: str
    told: str
    takes: tuple[float, float]
    write: EnvironmentWrite | None

    @property
    def identity(self) -> tuple[str, str]:
        return self.about, self.told


@final
@dataclass(slots=True)
class _Entry:
    step: EnvironmentStep
    at: float
    failures: int = 0
    why: str = ""


@final
class Agenda:
    def __init__(self, draw: Callable[[str], float]) -> None:
        """Make an empty agenda; ``draw`` returns a number in [0, 1), always the same for the same text."""
        self._draw = draw
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._passed: set[tuple[str, str]] = set()
        self._often: Counter[str] = Counter()

    @property
    def passed(self) -> frozenset[tuple[str, str]]:
        return frozenset(self._passed)

    @property
    def next_at(self) -> float | None:
        """Time in seconds when the next step is due; None if no step waits."""
        return min((entry.at for entry in self._entries.values()), default=None)

    def plan(self, steps: Sequence[EnvironmentStep], *, now: float) -> tuple[EnvironmentStep, ...]:
        """Replace the waiting steps, and return those that are due, in the order of their due times."""
        said = {step.identity: step for step in steps}
        self._passed &= said.keys()
        entries: dict[tuple[str, str], _Entry] = {}
        for identity, step in said.items():
            if identity in self._passed:
                continue
            entry = entries[identity] = self._entries.get(identity) or _Entry(step, now + self._takes(step))
            entry.step = step
        self._entries = entries
        due = sorted((entry for entry in entries.values() if entry.at <= now), key=lambda entry: entry.at)
        for entry in due:
            if entry.step.write is None:
                self._passed.add(entry.step.identity)
                del self._entries[entry.step.identity]
        return tuple(entry.step for entry in due)

    def _takes(self, step: EnvironmentStep) -> float:
        self._often[step.told] += 1
        least, most = step.takes
        return least + (most - least) * self._draw(f"{step.told}, {self._often[step.told]}")

    def done(self, step: EnvironmentStep) -> None:
        """Remove a step that was carried out; if the models return it again, it waits again."""
        self._entries.pop(step.identity, None)

    def failed(self, step: EnvironmentStep, why: str, *, now: float) -> None:
        """Retry a failed step after a pause, which doubles from one second to a minute."""
        entry = self._entries.get(step.identity)
        if entry is not None:
            entry.at = now + min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**entry.failures)
            entry.failures += 1
            entry.why = why

    def left(self, *, now: float) -> tuple[str, ...]:
        return tuple(
            f"the environment: {entry.step.told}"
            + (f", tried {entry.failures} times: {entry.why}" if entry.failures else "")
            + f", in {max(0.0, entry.at - now):.3g} s"
            for entry in sorted(self._entries.values(), key=lambda entry: entry.at)
        )
