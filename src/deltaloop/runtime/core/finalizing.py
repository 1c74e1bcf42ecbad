"""Steps of one reconcile of a controller with a finalizer.

    object lives and has the finalizer ──▶ RECONCILE
    object lives and lacks it ──▶ ADD ──check the response──▶ RECONCILE
    object is being deleted and lacks it, or is gone ──▶ DONE
    object is being deleted and has it ──▶ CLEAN_UP ──▶ DROP ──check the response──▶ DONE
                                            ▲    │ failed, "not yet", or told to stop
                                            │    └──────────────▶ AS_IT_ENDED
                                            └── ASK (after the deadline) ──give up──▶ DROP

The finalizer is removed after a successful cleanup, and only from the object that was cleaned up. The UID protects a
successor of the same name.

After the deadline, ``on_deadline`` is called once per reconcile: after a cleanup that failed or is not done, or before
the cleanup if the previous reconcile failed, because a cleanup can exceed the reconcile timeout each time. The first
attempt always happens, even after a long downtime of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, final

from deltaloop.api.dns_names import is_qualified_name
from deltaloop.api.resource import Resource
from deltaloop.api.times import parse_time
from deltaloop.runtime.core.changes import Change, Predicate
from deltaloop.runtime.core.outcomes import Case, Raised, Returned, decide
from deltaloop.runtime.core.predicates import And


class FinalizerStep(Enum):
    LOOK = "read the object, and look at it"
    RECONCILE = "call the reconciler; that is the end"
    ADD = "add the finalizer, and look at the answer"
    CLEAN_UP = "call the clean-up"
    ASK = "ask whether to give up"
    DROP = "drop the finalizer, and look at the answer"
    DONE = "end: nothing is to be done"
    AS_IT_ENDED = "end as the clean-up did"


@final
class FinalizerRun:
    """Decisions of one reconcile of a controller with a finalizer."""

    def __init__(self, finalizer: str, *, deadline: float | None, failed_before: bool) -> None:
        """Start before the object has been read; ``deadline`` is in seconds after the deletion."""
        self._finalizer = finalizer
        self._deadline = deadline
        self._failed_before = failed_before
        self._ask_at: float | None = None
        self._asked = self._tried = False
        self._uid = self._cleaned_up = ""

    def seen(self, obj: Resource | None, now: float) -> FinalizerStep:
        has_it = obj is not None and self._finalizer in obj.finalizers
        if self._cleaned_up:
            return (
                FinalizerStep.DROP if has_it and obj is not None and obj.uid == self._cleaned_up else FinalizerStep.DONE
            )
        if obj is None:
            return FinalizerStep.DONE
        if obj.deletion_timestamp is None:
            return FinalizerStep.RECONCILE if has_it else FinalizerStep.ADD
        if not has_it:
            return FinalizerStep.DONE
        self._uid = obj.uid
        if self._deadline is not None:
            self._ask_at = parse_time(obj.deletion_timestamp).timestamp() + self._deadline
        return self._ask() if self._failed_before and self.is_overdue(now) else FinalizerStep.CLEAN_UP

    def tried(self, ended: Returned | Raised, now: float, *, stopped: bool) -> FinalizerStep:
        """Process the end of a cleanup, which is done if it succeeded and requested no further reconcile."""
        self._tried = True
        if stopped:
            return FinalizerStep.AS_IT_ENDED
        if decide(ended).case is Case.NOTHING:
            return self._drop()
        return self._ask() if not self._asked and self.is_overdue(now) else FinalizerStep.AS_IT_ENDED

    def answered(self, *, give_up: bool, stopped: bool) -> FinalizerStep:
        """Process the result of ``on_deadline``, which is ignored if the reconcile was told to stop."""
        if stopped:
            return FinalizerStep.AS_IT_ENDED
        if give_up:
            return self._drop()
        return FinalizerStep.AS_IT_ENDED if self._tried else FinalizerStep.CLEAN_UP

    def is_overdue(self, now: float) -> bool:
        return self._ask_at is not None and now >= self._ask_at

    def wait(self, now: float) -> float | None:
        if self._ask_at is None or self._cleaned_up or self.is_overdue(now):
            return None
        return self._ask_at - now

    def _ask(self) -> FinalizerStep:
        self._asked = True
        return FinalizerStep.ASK

    def _drop(self) -> FinalizerStep:
        self._cleaned_up = self._uid
        return FinalizerStep.LOOK  # the cleanup or other writers may have changed the object


def finalizer_patch(obj: Resource, finalizer: str, step: FinalizerStep) -> dict[str, Any]:
    """Return the merge patch that adds or removes a finalizer, valid only for this version of the object."""
    others = [name for name in obj.finalizers if name != finalizer]
    finalizers = [*others, finalizer] if step is FinalizerStep.ADD else others
    return {"metadata": {"uid": obj.uid, "resourceVersion": obj.resource_version, "finalizers": finalizers}}


def is_finalizer(name: str) -> bool:
    """Return whether a name has a domain, like ``example.com/backup``, so that other programs do not use it."""
    return "/" in name and is_qualified_name(name)


@final
class BeginsDeletion(Predicate):
    __slots__ = ("finalizer",)

    def __init__(self, finalizer: str) -> None:
        self.finalizer: str = finalizer

    def allows(self, change: Change) -> bool:
        old, new = change.old, change.new
        if new is None or not self._waits(new):
            return False
        return old is None or old.uid != new.uid or not self._waits(old)

    def _waits(self, obj: Resource) -> bool:
        return obj.deletion_timestamp is not None and self.finalizer in obj.finalizers

    def __repr__(self) -> str:
        return f"BeginsDeletion({self.finalizer!r})"


def with_deletions(predicates: Sequence[Predicate], finalizer: str) -> Sequence[Predicate]:
    """Extend predicates so that they also pass the start of a deletion that the finalizer blocks."""
    return (BeginsDeletion(finalizer) | And(*predicates),) if predicates and finalizer else predicates
