"""Seeded bugs of what waits for a handler."""

from __future__ import annotations

from tests.cache.core.test_notification_buffer import make_machine
from tests.cache.machines import Step, step

from deltaloop.api.resource import Resource
from deltaloop.cache.core.notification_buffer import CoalescingBuffer
from lab.mutants.edited import edited
from lab.mutants.seeded_bug import bugs_of

PART = "listeners"


KeepsOnlyTheLast = edited(
    "KeepsOnlyTheLast",
    CoalescingBuffer[Resource],
    ("merged = self._merge(entry, notification, is_initial=counted > 0)", "merged = notification"),
    what="What comes overwrites what waits: an update before its addition.",
)
ForgetsADeletion = edited(
    "ForgetsADeletion",
    CoalescingBuffer[Resource],
    (
        "return UpdateNotification(old, new",
        "return comes if isinstance(waits, DeleteNotification) else UpdateNotification(old, new",
    ),
    what="Takes a deletion and a new object for an addition.",
)
DropsEveryDeletion = edited(
    "DropsEveryDeletion",
    CoalescingBuffer[Resource],
    ("            if isinstance(waits, AddNotification):\n                return None\n", "            return None\n"),
    what="Takes an object that came and went for nothing, even if it was told before.",
)
ForgetsWhatWasTold = edited(
    "ForgetsWhatWasTold",
    CoalescingBuffer[Resource],
    ("return counted - (counted > 0)", "entry.told = None; return counted - (counted > 0)"),
    what="Tells a new object from the deleted state, which the handler never heard of.",
)


MiscountsTheInitialList = edited(
    "MiscountsTheInitialList",
    CoalescingBuffer[Resource],
    ("return counted\n", "return 0\n"),
    ("return counted - (counted > 0)", "return 0"),
    what="An item of the initial list that will never be delivered is waited for.",
)
PUT = step("put", name="a", initial=False)


FIRST = step("put", name="a", initial=True)


DELETE = step("delete", name="a", known=True)


TAKE = step("take")


HISTORIES: dict[type[CoalescingBuffer[Resource]], list[Step]] = {
    KeepsOnlyTheLast: [PUT, PUT],
    ForgetsADeletion: [PUT, TAKE, DELETE, PUT],
    DropsEveryDeletion: [PUT, TAKE, PUT, DELETE],
    ForgetsWhatWasTold: [PUT, TAKE, PUT, DELETE, PUT],
    MiscountsTheInitialList: [FIRST, DELETE],
}


BUGS = bugs_of(PART, CoalescingBuffer[Resource], HISTORIES, make_machine)
