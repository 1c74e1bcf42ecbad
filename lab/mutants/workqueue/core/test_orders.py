"""Mistakes seeded into the code, each of which the tests of ``tests.workqueue.core.test_orders`` must find."""

from __future__ import annotations

import pytest
from tests.workqueue.core.order_bounds import PATIENCE, Item, MakeOrder, flow_of
from tests.workqueue.core.test_orders import CASES, explore

from deltaloop.workqueue.core.orders import (
    FairOrder,
    PriorityOrder,
)
from lab.mutants.edited import edited

NoAgeing = edited(
    "NoAgeing",
    PriorityOrder[Item],
    ("now + self._patience.of(priority), self._joined", "-1e9 * priority + self._patience.of(priority), self._joined"),
    what="Strict priorities: a low one may wait for ever.",
)


TouchMovesBack = edited(
    "TouchMovesBack",
    PriorityOrder[Item],
    ("if earlier < deadline:\n            self._place(item, earlier,", "self._place(item, max(deadline, earlier),"),
    what="An add while waiting makes the item wait anew.",
)


TouchIsIgnored = edited(
    "TouchIsIgnored",
    PriorityOrder[Item],
    ("if earlier < deadline:", "if False:"),
    what="A more urgent add does not move the item.",
)


LastAmongEquals = edited(
    "LastAmongEquals",
    PriorityOrder[Item],
    ("self._joined += 1", "self._joined -= 1"),
    what="Of equal deadlines the newest goes first.",
)


StaleEntriesCount = edited(
    "StaleEntriesCount",
    PriorityOrder[Item],
    (
        "if self._deadlines.get(item) == (deadline, joined):\n                del self._deadlines[item]",
        "if True:\n                self._deadlines.pop(item, None)",
    ),
    what="What a touch left behind gives the item a second time.",
)


FlowStaysAtTheHead = edited(
    "FlowStaysAtTheHead",
    FairOrder[Item],
    ("self._ring.move_to_end(flow)", "pass"),
    what="A flow is served until it is empty.",
)


NewFlowsJumpTheRing = edited(
    "NewFlowsJumpTheRing",
    FairOrder[Item],
    ("= self._make_order()", "= self._make_order()\n            self._ring.move_to_end(flow, last=False)"),
    what="A flow that empties and comes again is served at once, again and again.",
)


MUTANTS: list[tuple[MakeOrder, bool, bool, str]] = [
    (lambda: NoAgeing(PATIENCE), True, False, "priorities"),
    (lambda: TouchMovesBack(PATIENCE), True, False, "priorities"),
    (lambda: TouchIsIgnored(PATIENCE), True, False, "priorities"),
    (lambda: LastAmongEquals(PATIENCE), True, False, "priorities"),
    (lambda: StaleEntriesCount(PATIENCE), True, False, "priorities"),
    (lambda: FlowStaysAtTheHead(flow_of), False, True, "shares"),
    (lambda: NewFlowsJumpTheRing(flow_of), False, True, "shares"),
]


@pytest.mark.parametrize(("make_order", "ageing", "fair", "case"), MUTANTS)
def test_explorer_detects_seeded_bug(make_order: MakeOrder, ageing: bool, fair: bool, case: str) -> None:
    *_, alphabet, length = CASES[case]
    with pytest.raises((AssertionError, StopIteration, IndexError)):
        explore(make_order, alphabet, length, ageing=ageing, fair=fair)
