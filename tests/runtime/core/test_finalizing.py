"""What a controller with a finalizer does: every run over every state, with everything that others may do meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import pytest

from deltaloop.api.resource import Resource
from deltaloop.runtime.core.changes import Change, Predicate
from deltaloop.runtime.core.finalizing import (
    BeginsDeletion,
    FinalizerRun,
    FinalizerStep,
    finalizer_patch,
    is_finalizer,
    with_deletions,
)
from deltaloop.runtime.core.outcomes import Raised, Result, Returned
from deltaloop.runtime.core.predicates import (
    AnnotationsChanged,
    GenerationChanged,
    HasLabels,
    LabelsChanged,
    PathChanged,
    ResourceVersionChanged,
    When,
    Where,
)

OURS, OTHERS = "example.com/backup", "example.com/other"
DELETED_AT, DEADLINE = 1_767_225_600.0, 600.0
EARLY, LATE = DELETED_AT + 1.0, DELETED_AT + DEADLINE
DELETION = "2026-01-01T00:00:00Z"
DONE: tuple[Returned | Raised, ...] = (Returned(None), Returned(Result()))
NOT_DONE: tuple[Returned | Raised, ...] = (
    Returned(Result(requeue_after=1.0)),
    Returned(Result(requeue=True)),
    Returned(object()),
    Returned(None, ("ctx.client.delete(...)",)),
    Raised(OSError("full")),
)


@dataclass(frozen=True)
class Obj:
    """An object as a server has it."""

    uid: str
    ours: bool
    deleting: bool
    version: int = 1

    @cache  # noqa: B019 - there are a few dozen
    def resource(self) -> Resource:
        metadata = {"name": "a", "namespace": "default", "uid": self.uid, "resourceVersion": str(self.version)}
        names = [OTHERS, *([OURS] if self.ours else [])]
        deletion = {"deletionTimestamp": DELETION} if self.deleting else {}
        return Resource.from_dict({"metadata": {**metadata, **deletion, "finalizers": names}})


STATES: tuple[Obj | None, ...] = (
    None,
    *(Obj("1", ours, deleting) for ours in (False, True) for deleting in (False, True)),
)


class Choices:
    """Draws every combination, one after the other."""

    def __init__(self) -> None:
        self.taken: list[list[int]] = []
        self.at = 0

    def draw(self, number: int) -> int:
        if self.at == len(self.taken):
            self.taken.append([0, number])
        self.at += 1
        return self.taken[self.at - 1][0]

    def all(self) -> Iterator[None]:
        while True:
            self.at = 0
            yield
            while self.taken and self.taken[-1][0] + 1 == self.taken[-1][1]:
                self.taken.pop()
            if not self.taken:
                return
            self.taken[-1][0] += 1


def walk(run: FinalizerRun, choices: Choices, *, failed_before: bool, deadline: bool) -> None:
    """Go one way through one run, and look at each step."""
    here: Obj | None = STATES[choices.draw(len(STATES))]
    shown = here if choices.draw(2) else None if here is None else replace(here, ours=not here.ours, version=0)
    now, steps, meddled = (EARLY, LATE)[choices.draw(2)], list[FinalizerStep](), 0
    cleaned: str | None = None
    target: Obj | None = None
    tried = asked = False
    step: FinalizerStep = FinalizerStep.LOOK
    while True:
        assert len(steps) < 14, "it goes on for ever"
        steps.append(step)
        if step in (FinalizerStep.LOOK, FinalizerStep.CLEAN_UP, FinalizerStep.ASK) and here is not None and meddled < 2:
            meddling = choices.draw(4)  # what others do while a read, a clean-up or a question is under way
            meddled += bool(meddling)
            later = replace(here, ours=False, version=here.version + 1)
            here = (here, later, None, replace(later, uid="2", ours=True))[meddling]
        match step:
            case FinalizerStep.LOOK:
                seen = shown if len(steps) == 1 else here
                step = run.seen(None if seen is None else seen.resource(), now)
                if cleaned is None:
                    expected = {
                        None: {FinalizerStep.DONE},
                        (True, False): {FinalizerStep.RECONCILE},
                        (False, False): {FinalizerStep.ADD},
                        (False, True): {FinalizerStep.DONE},
                        (True, True): {
                            FinalizerStep.ASK if deadline and failed_before and now >= LATE else FinalizerStep.CLEAN_UP
                        },
                    }[None if seen is None else (seen.ours, seen.deleting)]
                else:
                    is_it = seen is not None and seen.uid == cleaned and seen.ours
                    expected = {FinalizerStep.DROP if is_it else FinalizerStep.DONE}
                assert step in expected, (steps, seen, step)
                target = seen
            case FinalizerStep.ADD | FinalizerStep.DROP:
                assert target is not None
                assert target.deleting is (step is FinalizerStep.DROP)
                assert (target.uid == cleaned) if step is FinalizerStep.DROP else cleaned is None
                patch = finalizer_patch(target.resource(), OURS, step)["metadata"]
                assert patch["finalizers"] == ([OTHERS, OURS] if step is FinalizerStep.ADD else [OTHERS])
                assert (patch["uid"], patch["resourceVersion"]) == (target.uid, str(target.version))
                if here is None:
                    step = run.seen(None, now)
                    assert step is FinalizerStep.DONE
                elif here != target:  # a conflict
                    step = FinalizerStep.LOOK
                else:
                    here = target = replace(here, ours=step is FinalizerStep.ADD, version=here.version + 1)
                    after = run.seen(here.resource(), now)
                    assert after is (FinalizerStep.RECONCILE if step is FinalizerStep.ADD else FinalizerStep.DONE)
                    step = after
            case FinalizerStep.CLEAN_UP:
                assert not tried, "one try a run"
                assert target is not None
                assert target.ours
                assert target.deleting
                ended = (*DONE, *NOT_DONE)[choices.draw(len(DONE) + len(NOT_DONE))]
                tried, stopped = True, choices.draw(2) == 1
                done = ended in DONE and not stopped
                now = max(now, (EARLY, LATE)[choices.draw(2)])
                step = run.tried(ended, now, stopped=stopped)
                cleaned = target.uid if done else None
                late = deadline and now >= LATE and not asked and not stopped
                assert step is (
                    FinalizerStep.LOOK if done else FinalizerStep.ASK if late else FinalizerStep.AS_IT_ENDED
                )
            case FinalizerStep.ASK:
                assert deadline
                assert now >= LATE
                assert not asked
                assert tried or failed_before
                assert target is not None
                asked, answer, stopped = True, choices.draw(2) == 1, choices.draw(2) == 1
                step = run.answered(give_up=answer, stopped=stopped)
                give_up = answer and not stopped
                cleaned = target.uid if give_up else None
                is_over = tried or stopped
                assert step is (
                    FinalizerStep.LOOK if give_up else FinalizerStep.AS_IT_ENDED if is_over else FinalizerStep.CLEAN_UP
                )
            case _:
                break
    is_waited_for = step is FinalizerStep.AS_IT_ENDED and deadline and now < LATE
    assert run.wait(now) == (LATE - now if is_waited_for else None)
    if cleaned is not None and here is not None:
        assert here.uid != cleaned or not here.ours, "it was cleaned up, and keeps the finalizer"


def explore(make: type[FinalizerRun]) -> int:
    """Go every way, and return how many there are."""
    ways = 0
    for failed_before in (False, True):
        for deadline in (False, True):
            choices = Choices()
            for _ in choices.all():
                ways += 1
                run = make(OURS, deadline=DEADLINE if deadline else None, failed_before=failed_before)
                walk(run, choices, failed_before=failed_before, deadline=deadline)
    return ways


def test_finalizer_run_satisfies_invariants_in_all_paths() -> None:
    assert explore(FinalizerRun) > 1000


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("example.com/backup", True),
        ("a/B_c.d", True),
        ("backup", False),
        ("example.com/", False),
        ("/backup", False),
        ("Example.com/backup", False),
        ("example.com/a/b", False),
        ("example.com/" + 63 * "a", True),
        ("example.com/" + 64 * "a", False),
        ("example.com/-a", False),
        ("", False),
    ],
)
def test_finalizer_name_needs_domain(name: str, fits: bool) -> None:
    assert is_finalizer(name) is fits


PREDICATES = [
    GenerationChanged(),
    LabelsChanged(),
    AnnotationsChanged(),
    PathChanged("spec"),
    HasLabels("app=web"),
    Where(lambda _: False),
    When(lambda _: False),
    ~ResourceVersionChanged(),
]


@pytest.mark.parametrize("predicate", PREDICATES, ids=repr)
def test_start_of_deletion_passes_all_predicates_if_controller_has_finalizer(predicate: Predicate) -> None:
    lives, dies = Obj("1", ours=True, deleting=False), Obj("1", ours=True, deleting=True, version=2)
    [passes] = with_deletions((predicate,), OURS)
    for old in (lives, None, replace(lives, ours=False), replace(dies, uid="0")):
        change = Change(verb="update", old=None if old is None else old.resource(), new=dies.resource())
        assert passes.allows(change), old
    begins = BeginsDeletion(OURS)
    for old, new in (
        (dies, replace(dies, version=3)),
        (lives, replace(dies, ours=False)),
        (lives, lives),
        (dies, None),
    ):
        change = Change(verb="update", old=old.resource(), new=None if new is None else new.resource())
        assert not begins.allows(change)
        assert passes.allows(change) == predicate.allows(change)


def test_predicates_are_unchanged_without_finalizer() -> None:
    predicates = (GenerationChanged(),)
    assert with_deletions(predicates, "") is predicates
    assert with_deletions((), OURS) == ()
