"""What a write takes from outside: time, identity, chance, who writes, and what they may do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from deltaloop.api.times import format_time, from_epoch
from deltaloop.apiserver.core.authorization import Attributes, Decision
from deltaloop.apiserver.core.outside import Outside
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.user import User

Admit: TypeAlias = Callable[[ServedResource, str, dict[str, object] | None, dict[str, object]], None]

ITSELF: Final = User(name="system:apiserver", groups=("system:authenticated", "system:masters"))
"""The server, whose own writes pass admission, too."""


def _admit_all(*_: object) -> None:
    return


def _allow(_: Attributes) -> Decision:
    return Decision(allowed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What a write takes from outside.

    Attributes:
        now: Seconds since 1970.
        uid: For the object, if it is new.
        chance: A number in [0, 1) for generated names.
        manager: The field manager who writes; the server itself unless a request says otherwise.
        user: Who writes; the server itself unless a request says otherwise.
        options: The options of the request as an object, such as a ``CreateOptions``; empty for its own.
        outside: Has questions answered that only others can answer; None if nobody can be asked.
        admit: Refuses what this writer may not make of an object, by raising: it gets the resource, the namespace, the
            object as it is (None for a new one) and as it is to be. Lets everything pass by default.
        decide: Tells whether somebody may do something. Allows everything by default.
        may_create: Refuses, by raising, an update or an apply of this writer that turns out to create. Lets everything
            pass by default.
        warn: Takes what the writer is to be warned about in the object, once it has been checked.
        annotate: Takes a name and a value for the audit line of the request; the first value of a name stays.
    """

    now: float
    uid: str = ""
    chance: float = 0.0
    manager: str = "kube-apiserver"
    user: User = ITSELF
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    outside: Outside | None = None
    admit: Admit = _admit_all
    decide: Callable[[Attributes], Decision] = _allow
    may_create: Callable[[], None] = _admit_all
    warn: Callable[[Iterable[str]], None] = _admit_all
    annotate: Callable[[str, str], None] = _admit_all

    @property
    def time(self) -> str:
        """``now`` as objects have it."""
        return _shown_time(int(self.now))


Stamps: TypeAlias = Callable[[], Stamp]
"""Gives a stamp for the next write; asked only if there is one, since a new uid is drawn for each."""


@lru_cache(maxsize=16)
def _shown_time(now: int) -> str:
    return format_time(from_epoch(now))
