"""What a cluster's models have to do, and when each of it is due: a step takes a time that chance draws, once.

    models say what is to be done ──▶ new: draw how long it takes ──▶ wait ──▶ due ──▶ done, or failed and due later
                                  ──▶ no longer said: forgotten

A step that has no write is a mark: once its time is over it is *passed*, for as long as it is said.
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
    """How a model writes."""

    CREATE = "create"
    PATCH = "patch"
    STATUS = "status"
    BIND = "bind"
    DELETE = "delete"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentWrite:
    """A write of a model.

    Attributes:
        verb: How it writes.
        kind: What kind of object.
        namespace: Of the object; empty if its kind has none.
        name: Of the object; empty if the server makes it up.
        body: The object to create, the merge patch, or the binding.
        uid: Which object is deleted.
        grace: Seconds that a deleted object has to end; None is what the object says.
    """

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
    """Something that a model does.

    Attributes:
        about: Uid of the object that it is about.
        told: What happens, for people; with ``about`` it says which step it is.
        takes: Least and most seconds that it takes.
        write: What it writes; None is nothing: it only marks that the time is over.
    """

    about: str
    told: str
    takes: tuple[float, float]
    write: EnvironmentWrite | None

    @property
    def identity(self) -> tuple[str, str]:
        """What makes it the same step the next time that it is said."""
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
    """All steps that wait for their time."""

    def __init__(self, draw: Callable[[str], float]) -> None:
        """Begin with nothing.

        Args:
            draw: Gives a number in [0, 1) for a text; the same text has the same number.
        """
        self._draw = draw
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._passed: set[tuple[str, str]] = set()
        self._often: Counter[str] = Counter()

    @property
    def passed(self) -> frozenset[tuple[str, str]]:
        """The marks whose time is over."""
        return frozenset(self._passed)

    @property
    def next_at(self) -> float | None:
        """When the next step is due; None if there is none."""
        return min((entry.at for entry in self._entries.values()), default=None)

    def plan(self, steps: Sequence[EnvironmentStep], *, now: float) -> tuple[EnvironmentStep, ...]:
        """Take all that is to be done, and return what is due of it, the longest due first.

        Args:
            steps: What the models say; what they said before and do not say now is forgotten.
            now: Seconds.
        """
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
        """Take that a step was carried out; if it is said again, it takes its time again."""
        self._entries.pop(step.identity, None)

    def failed(self, step: EnvironmentStep, why: str, *, now: float) -> None:
        """Take that a step could not be carried out: it is tried again, after a pause that doubles up to a minute.

        Args:
            step: The step.
            why: For people.
            now: Seconds.
        """
        entry = self._entries.get(step.identity)
        if entry is not None:
            entry.at = now + min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**entry.failures)
            entry.failures += 1
            entry.why = why

    def left(self, *, now: float) -> tuple[str, ...]:
        """Return what waits for its time, for people.

        Args:
            now: Seconds.
        """
        return tuple(
            f"the environment: {entry.step.told}"
            + (f", tried {entry.failures} times: {entry.why}" if entry.failures else "")
            + f", in {max(0.0, entry.at - now):.3g} s"
            for entry in sorted(self._entries.values(), key=lambda entry: entry.at)
        )
