"""What a controller with a finalizer does with an object: one run, step by step.

    it lives and has the finalizer ──▶ RECONCILE
    it lives and lacks it ──▶ ADD ──the answer is looked at──▶ RECONCILE
    it is being deleted and lacks it, or is gone ──▶ DONE
    it is being deleted and has it ──▶ CLEAN_UP ──▶ DROP ──the answer is looked at──▶ DONE
                                        ▲    │ failed, "not yet", or told to stop
                                        │    └──────────────▶ AS_IT_ENDED
                                        └── ASK (past the deadline) ──give up──▶ DROP

Each run begins with LOOK; so does each DROP, and what comes after a write that had a conflict.

So the finalizer is there before the first write of a reconcile, and goes after a clean-up that has succeeded, from the
object that was cleaned up: a successor of its name, which its uid tells from it, keeps what it has.

Nothing runs for an object that is gone: the clean-up was its end, and a reconciler that makes what an object stands for
without looking at it would make it again.

Past the deadline the author is asked once a run: after a clean-up that failed or is not done, and before one if the run
before failed, since a clean-up that takes longer than a run may take never comes back. The first try is never left out,
however long the program was down.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, final

from deltaloop.api.dns_names import is_qualified_name
from deltaloop.api.resource import Resource
from deltaloop.api.times import parse_time
from deltaloop.runtime.core.outcomes import Case, Raised, Returned, decide
from deltaloop.runtime.core.predicates import And, Change, Predicate


class FinalizerStep(Enum):
    """What is next."""

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
    """One run of a controller with a finalizer."""

    def __init__(self, finalizer: str, *, deadline: float | None, failed_before: bool) -> None:
        """Begin, with the object still to be looked at.

        Args:
            finalizer: The controller's.
            deadline: Seconds from the deletion on after which the author is asked; None never asks.
            failed_before: Whether the run before this one failed.
        """
        self._finalizer = finalizer
        self._deadline = deadline
        self._failed_before = failed_before
        self._ask_at: float | None = None
        self._asked = self._tried = False
        self._uid = self._cleaned_up = ""

    def seen(self, obj: Resource | None, now: float) -> FinalizerStep:
        """Look at the object: as it is when the run begins, and as each write left it.

        Args:
            obj: The object; None if there is none.
            now: Seconds since the epoch.
        """
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
        """Take the end of a clean-up: it is done if it succeeded and asked for no further run.

        Args:
            ended: How it ended.
            now: Seconds since the epoch.
            stopped: Whether the run has been told to stop: then what the clean-up returned does not count.
        """
        self._tried = True
        if stopped:
            return FinalizerStep.AS_IT_ENDED
        if decide(ended).case is Case.NOTHING:
            return self._drop()
        return self._ask() if not self._asked and self.is_overdue(now) else FinalizerStep.AS_IT_ENDED

    def answered(self, *, give_up: bool, stopped: bool) -> FinalizerStep:
        """Take the author's answer; it does not count if the run has been told to stop."""
        if stopped:
            return FinalizerStep.AS_IT_ENDED
        if give_up:
            return self._drop()
        return FinalizerStep.AS_IT_ENDED if self._tried else FinalizerStep.CLEAN_UP

    def is_overdue(self, now: float) -> bool:
        """Tell whether the deadline has passed."""
        return self._ask_at is not None and now >= self._ask_at

    def wait(self, now: float) -> float | None:
        """Return the seconds until the author is to be asked; None if that is not so: it is over, or asked already."""
        if self._ask_at is None or self._cleaned_up or self.is_overdue(now):
            return None
        return self._ask_at - now

    def _ask(self) -> FinalizerStep:
        self._asked = True
        return FinalizerStep.ASK

    def _drop(self) -> FinalizerStep:
        self._cleaned_up = self._uid
        return FinalizerStep.LOOK  # the clean-up may have written it, and others, too


def finalizer_patch(obj: Resource, finalizer: str, step: FinalizerStep) -> dict[str, Any]:
    """Return the merge patch that adds or drops a finalizer, of this very object in this very state."""
    others = [name for name in obj.finalizers if name != finalizer]
    finalizers = [*others, finalizer] if step is FinalizerStep.ADD else others
    return {"metadata": {"uid": obj.uid, "resourceVersion": obj.resource_version, "finalizers": finalizers}}


def is_finalizer(name: str) -> bool:
    """Tell whether a name is one that no other program would choose by accident: ``example.com/backup``."""
    return "/" in name and is_qualified_name(name)


@final
class BeginsDeletion(Predicate):
    """Passes the change from which on an object is being deleted and has a finalizer."""

    __slots__ = ("finalizer",)

    def __init__(self, finalizer: str) -> None:
        """Look for ``finalizer``."""
        self.finalizer: str = finalizer

    def allows(self, change: Change) -> bool:
        """Tell whether the deletion is new."""
        old, new = change.old, change.new
        if new is None or not self._waits(new):
            return False
        return old is None or old.uid != new.uid or not self._waits(old)

    def _waits(self, obj: Resource) -> bool:
        return obj.deletion_timestamp is not None and self.finalizer in obj.finalizers

    def __repr__(self) -> str:
        return f"BeginsDeletion({self.finalizer!r})"


def with_deletions(predicates: Sequence[Predicate], finalizer: str) -> Sequence[Predicate]:
    """Return predicates that pass what the given ones pass, and the beginning of deletions that the finalizer holds."""
    return (BeginsDeletion(finalizer) | And(*predicates),) if predicates and finalizer else predicates
