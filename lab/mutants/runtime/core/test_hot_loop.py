"""Mistakes seeded into the code, each of which the tests of ``tests.runtime.core.test_hot_loop`` must find."""

from __future__ import annotations

import pytest
from tests.runtime.core.test_hot_loop import check, drive_fight_with_looks

from deltaloop.runtime.core.hot_loop import HotLoopOptions, HotLoops
from lab.mutants.edited import edited

# Asks before the other one has written again: the fields are still ours.
LooksAtItsOwnEcho = edited(
    "LooksAtItsOwnEcho",
    HotLoops,
    ("if of_object and not trigger.origin and trigger.new_resource_version != last.version:", "if True:"),
)


LooksEachTime = edited("LooksEachTime", HotLoops, ("last.marked = False", "pass"))


@pytest.mark.parametrize("mutant", [LooksAtItsOwnEcho, LooksEachTime])
def test_seeded_bugs_of_reads_are_detected(mutant: type[HotLoops]) -> None:
    loops = mutant(HotLoopOptions(threshold=4, window=2.6, min_interval=1.0, max_interval=8.0, reset_after=20.0))
    assert drive_fight_with_looks(loops, seen=None)[1] != [4]


CoolsByTheEchoOfAFight = edited(
    "CoolsByTheEchoOfAFight", HotLoops, ('(hot.cause == "self" and quiet_echo)', "quiet_echo")
)


NeverForgetsStrikes = edited(
    "NeverForgetsStrikes", HotLoops, ("for at in present.strikes if now - at <= window]", "for at in present.strikes]")
)


ForgetsTheFirstStrike = edited("ForgetsTheFirstStrike", HotLoops, ("last.strikes = (at, *last.strikes)", "pass"))


KeepsTheFirstForEver = edited(
    "KeepsTheFirstForEver", HotLoops, ("last.strikes = (at, *last.strikes)", "last.strikes = (now, *last.strikes)")
)


SeesNoFight = edited("SeesNoFight", HotLoops, ("elif last.uid != write.uid or", "elif True or"))


TakesEveryForeignWriteForAFight = edited(
    "TakesEveryForeignWriteForAFight",
    HotLoops,
    ("elif last.uid != write.uid or write.before.resource_version == last.version:", "elif False:"),
    ("contested = changed_by_both(*states)", "contested = changed_paths(write.before, write.after)"),
)


@pytest.mark.parametrize(
    "mutant",
    [
        CoolsByTheEchoOfAFight,
        NeverForgetsStrikes,
        ForgetsTheFirstStrike,
        KeepsTheFirstForEver,
        SeesNoFight,
        TakesEveryForeignWriteForAFight,
    ],
)
def test_seeded_bugs_are_detected(mutant: type[HotLoops]) -> None:
    with pytest.raises(AssertionError):
        check(mutant, 300)
