"""Seeded bugs of what waits for a handler."""

from __future__ import annotations

from deltaloop.api.resource import Resource
from deltaloop.cache.core.notification_buffer import CoalescingBuffer
from deltaloop.cache.core.process_deltas import AddNotification, DeleteNotification, Notification
from tests.cache.core.test_notification_buffer import make_machine
from tests.cache.machines import Step, step
from tests.mutants.seeded_bug import bugs_of

PART = "listeners"


class KeepsOnlyTheLast(CoalescingBuffer[Resource]):
    """What comes overwrites what waits: an update before its addition."""

    def _merge(self, waits: Notification[Resource], comes: Notification[Resource]) -> Notification[Resource] | None:
        return comes


class ForgetsADeletion(CoalescingBuffer[Resource]):
    """Takes a deletion and a new object for an addition."""

    def _merge(self, waits: Notification[Resource], comes: Notification[Resource]) -> Notification[Resource] | None:
        if isinstance(waits, DeleteNotification) and isinstance(comes, AddNotification):
            return comes
        return super()._merge(waits, comes)


class DropsEveryDeletion(CoalescingBuffer[Resource]):
    """Takes an object that came and went for nothing, even if it was told before."""

    def _merge(self, waits: Notification[Resource], comes: Notification[Resource]) -> Notification[Resource] | None:
        return None if isinstance(comes, DeleteNotification) else super()._merge(waits, comes)


class ForgetsWhatWasTold(CoalescingBuffer[Resource]):
    """Tells a new object from the deleted state, which the handler never heard of."""

    def put(self, notification: Notification[Resource]) -> int:
        counted = super().put(notification)
        for entry in self._waiting.values():
            entry.told = None
        return counted


class MiscountsTheInitialList(CoalescingBuffer[Resource]):
    """An item of the initial list that will never be delivered is waited for."""

    def put(self, notification: Notification[Resource]) -> int:
        super().put(notification)
        return 0


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
