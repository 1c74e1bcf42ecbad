"""Mistakes seeded into the code, each of which the tests of ``tests.workqueue.core.test_machines`` must find."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.workqueue.core.machines import QueueMachine, RateLimitingMachine

from deltaloop.workqueue.core.queue import QueueCore
from deltaloop.workqueue.core.rate_limiting import RateLimitingCore
from lab.mutants.edited import edited

FIND = settings(
    max_examples=400,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


QUEUE_BUGS = [
    edited(name, QueueCore[str], *edits)
    for name, edits in {
        "TwoWorkersOnOneItem": [('return "postponed"', 'self._push(item, now, log); return "postponed"')],
        "QueuedTwice": [
            (
                "self._merged += 1\n            if",
                "self._merged += 1\n            self._line.append(item)\n            if",
            )
        ],
        "PostponedItemLost": [
            (
                "return item in self._dirty and self._push_again(run, now)",
                "return bool(self._dirty.pop(item, None)) and False",
            ),
            ("if item in self._dirty:\n                self._push_again(run, now)", "self._dirty.pop(item, None)"),
        ],
        "PostponedItemJumpsTheLine": [("self._push(run.item, now, waiting)", "self._line.appendleft(run.item)")],
        "TriggerOfMergedAddLost": [("dirty[item].add(trigger, priority)", "pass")],
        "TriggerGoesToThePresentRun": [
            (
                "dirty = self._dirty\n        if item in dirty:",
                (
                    "if item in self._processing:\n"
                    "            self._processing[item].triggers.add(trigger)\n"
                    "            trigger = None\n"
                    "        dirty = self._dirty\n        if item in dirty:"
                ),
            )
        ],
        "LatencyFromLastAdd": [
            (
                "dirty[item].add(trigger, priority)",
                "dirty[item].add(trigger, priority); dirty[item].since = now",
            )
        ],
        "EndsBeforePostponedItems": [
            ("return self._shutting_down and not self._dirty", "return self._shutting_down and not self._line")
        ],
        "DrainForgetsTheLine": [("not (self._dirty or self._processing)", "not self._processing")],
        "TakesItemsAfterShutdown": [
            (
                (
                    'if self._shutting_down:\n            self._ignored += 1\n            return "ignored"\n'
                    "        dirty = self._dirty\n"
                ),
                "dirty = self._dirty\n",
            )
        ],
        "InterruptedItemLost": [
            (
                "outcome = self._hand_on(run, now)",
                "outcome = self._hand_on(run, now); len(self._dirty) > 1 and self._dirty.pop(run.item, None)",
            )
        ],
        "TriggersOfInterruptedRunLost": [("log.extend(waiting)", "pass")],
        "TriggersOfInterruptedRunBehindNewOnes": [
            (
                "log.extend(waiting)\n",
                "waiting.extend(log)\n        log = waiting\n",
            )
        ],
    }.items()
]


RATE_LIMITING_BUGS = [
    edited(name, RateLimitingCore[str], edit)
    for name, edit in {
        "WakesTooEarly": ("now + TIMER_SLACK", "now + 5.0"),
        "NoTimerSlack": ("now + TIMER_SLACK", "now"),
        "DelaysOutliveShutdown": ("self._ignored += self._delays.clear()", "pass"),
        "ForgetMissesTheLimiter": ("self._limiter.forget(item)", "pass"),
        "LaterTimeWins": ("if due_at < present.due_at:", "if due_at > present.due_at:"),
        "AddCancelsDelay": (
            "dirty = self._dirty\n        if item in dirty:",
            "self._delays.remove(item)\n        dirty = self._dirty\n        if item in dirty:",
        ),
        "CancelledDelayComesBack": (
            "        return delay\n",
            (
                "        if delay is not None and len(self._delays):\n"
                "            self._delays.put(delay)\n"
                "        return delay\n"
            ),
        ),
        "TriggersOfMergedDelayLost": ("present.triggers.extend(log)", "pass"),
        "TokensNeverGoBack": ("self._takes_back.refund(item)", "pass"),
        "TokenOfReplacedDelayKept": ("unneeded = present.paid", "unneeded = False"),
        "FailureCountedTwice": (
            "if not isinstance(ending, Failed):",
            "run.handed_on = False\n        if not isinstance(ending, Failed):",
        ),
        "InterruptCountsAsFailure": (
            "return self._put_back(run, now)",
            "self._failures[run.item] = run.failures + 1; return self._put_back(run, now)",
        ),
        "RetriedRunLosesItsTriggers": (
            "error, item = ending.error, run.item",
            "error, item, run.triggers = ending.error, run.item, TriggerLog(0)",
        ),
    }.items()
]


@pytest.mark.parametrize("bug", QUEUE_BUGS)
def test_machine_detects_seeded_bug_of_queue(bug: type[QueueCore[str]]) -> None:
    class Mutant(QueueMachine):
        core_type = bug

    with pytest.raises((AssertionError, KeyError, IndexError, ValueError)):
        run_state_machine_as_test(Mutant, settings=FIND)


@pytest.mark.parametrize("bug", RATE_LIMITING_BUGS)
def test_machine_detects_seeded_bug_of_rate_limiting(bug: type[RateLimitingCore[str]]) -> None:
    class Mutant(RateLimitingMachine):
        limited_type = bug

    with pytest.raises((AssertionError, KeyError, IndexError, ValueError)):
        run_state_machine_as_test(Mutant, settings=FIND)
