"""Seeded bugs of the reflector: when to list, watch, wait."""

from __future__ import annotations

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import WatchEvent
from deltaloop.cache.core.reflector.effects import CompleteList, Verdict
from deltaloop.cache.core.reflector.machine import ReflectorMachine
from deltaloop.cache.core.reflector.reactions import Operation, Reaction, Recovery
from deltaloop.cache.core.reflector.states import ReflectorPhase
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.client.resource_list import ResourceList
from tests.cache.core.reflector.test_server_model import PAGE, make_machine
from tests.cache.fake_source import expired
from tests.cache.machines import Step, step
from tests.mutants.seeded_bug import bugs_of

PART = "reflector"


class ResumesAtOnceForEver(ReflectorMachine):
    """A stream that ends after one event is resumed at once, again and again, as client-go does."""

    def _may_resume_at_once(self, now: float) -> bool:
        return True


class BelievesShortWatches(ReflectorMachine):
    """An empty stream of no length counts as a clean end."""

    def _was_useless(self, now: float) -> bool:
        return False

    def _may_resume_at_once(self, now: float) -> bool:
        return True


class ListsTheNewestAtOnceForEver(ReflectorMachine):
    """A refused list at the newest version is repeated without a wait."""

    def list_failed(self, error: BaseException, now: float, *, chance: float) -> Reaction:
        reaction = super().list_failed(error, now, chance=chance)
        if reaction.operation is Operation.LIST and self._version_unavailable:
            self._go_on(ReflectorPhase.LISTING)
        return reaction


class KeepsThePagesOfALostList(ReflectorMachine):
    """Begins the full list with what the lost pages brought."""

    def list_failed(self, error: BaseException, now: float, *, chance: float) -> Reaction:
        lost = self._round.items if self._round else []
        reaction = super().list_failed(error, now, chance=chance)
        if reaction.recovery is Recovery.LIST_IN_FULL_NOW and self._round is not None:
            self._round.items = lost
            self._server_pages = True
        return reaction


class ResumesAfterExpired(ReflectorMachine):
    """Watches on from a version that the server has forgotten."""

    def watch_failed(self, error: BaseException, now: float, *, chance: float) -> Reaction:
        reaction = super().watch_failed(error, now, chance=chance)
        if isinstance(error, type(expired())):
            self._after_wait = ReflectorPhase.CONNECTING
        return reaction


class MovesOnBeforeTheEventIsApplied(ReflectorMachine):
    """Forgets that the store refused an event: watches on behind it."""

    def store_failed(self, error: BaseException, now: float, *, chance: float) -> Reaction:
        reaction = super().store_failed(error, now, chance=chance)
        self._after_wait = ReflectorPhase.CONNECTING
        return reaction


class MovesOnWithOddEvents(ReflectorMachine):
    """The version of an object without a name is taken for the stream's."""

    def watch_event(self, event: WatchEvent, now: float) -> Verdict:
        verdict = super().watch_event(event, now)
        self.resource_version = event.object.resource_version
        return verdict


class TakesTheVersionOfTheLastPage(ReflectorMachine):
    """The version of a list is that of its last page, so that what happened between pages is lost."""

    def listed(self, page: ResourceList[Resource], now: float, *, chance: float) -> CompleteList | Reaction | None:
        outcome = super().listed(page, now, chance=chance)
        if self._round is not None:
            self._round.pages = 0
        return outcome


class NeverAsksForTheNewest(ReflectorMachine):
    """After a refused version, asks for that version again."""

    def list_failed(self, error: BaseException, now: float, *, chance: float) -> Reaction:
        reaction = super().list_failed(error, now, chance=chance)
        self._version_unavailable = False
        return reaction


class NeverProbes(ReflectorMachine):
    """A server whose counter went back is never found."""

    def _should_probe(self, now: float) -> bool:
        return False


class TakesAPartForTheWhole(ReflectorMachine):
    """Takes the end of the stream for the end of the list."""

    def watch_list_ended(self, now: float, *, chance: float) -> Reaction:
        held = self._initial
        reaction = super().watch_list_ended(now, chance=chance)
        self._initial = held
        return reaction

    def _begin_watch_list(self, now: float, chance: float) -> ListOptions:
        held = self._initial
        options = super()._begin_watch_list(now, chance)
        self._initial = held
        return options

    def _may_stream_a_list(self, now: float) -> bool:
        return True


class StreamsAgainAtOnceForEver(ReflectorMachine):
    """A streamed list that broke is streamed again at once, for ever, as client-go does: kubernetes#138557."""

    def _may_stream_a_list(self, now: float) -> bool:
        return True


class IgnoresTheBookmarksVersion(ReflectorMachine):
    """The version of a streamed list is that of its first object."""

    def initial_event(self, event: WatchEvent, now: float) -> Verdict | CompleteList:
        outcome = super().initial_event(event, now)
        if isinstance(outcome, CompleteList) and outcome.items:
            self.resource_version = outcome.items[0].resource_version
        return outcome


CUT = step("step", fault=None, chance=0.0, cut=2)


OF_PAGED_LISTS: dict[type[ReflectorMachine], list[Step]] = {
    ResumesAtOnceForEver: [
        step("hammer", rounds=7, what="event and end"),
        step("hammer", rounds=4, what="event and end"),
    ],
    BelievesShortWatches: [
        step("hammer", rounds=4, what="event and end"),
        step("hammer", rounds=7, what="event and end"),
    ],
    ListsTheNewestAtOnceForEver: [step("hammer", rounds=4, what="list expired")],
    KeepsThePagesOfALostList: [step("change_between_pages", expire=True, name="a"), step("heal")],
    ResumesAfterExpired: [step("heal"), step("odd_event_before_a_gap", name="a"), step("compact"), step("heal")],
    MovesOnBeforeTheEventIsApplied: [
        step("hammer", rounds=4, what="event and end"),
        step("change", delete=False, name="a"),
        step("event", refuse=True),
    ],
    MovesOnWithOddEvents: [step("heal"), step("odd_event_before_a_gap", name="a")],
    TakesTheVersionOfTheLastPage: [step("change_between_pages", expire=False, name="a"), step("heal")],
    NeverAsksForTheNewest: [step("hammer", rounds=4, what="list expired")],
}
OF_STREAMED_LISTS: dict[type[ReflectorMachine], list[Step]] = {
    NeverProbes: [
        step("heal"),
        step("change", name="a", delete=False),
        step("restore", back=500),
        step("heal"),
        step("change", name="b", delete=True),
    ],
    TakesAPartForTheWhole: [CUT, step("change", name="a", delete=True), step("heal")],
    StreamsAgainAtOnceForEver: [step("hammer_streamed_lists", rounds=8, cut=2)],
    IgnoresTheBookmarksVersion: [step("heal")],
}


PAGED = ReflectorOptions(page_size=PAGE, watch_list=False, probe=False)
BUGS = [
    *bugs_of(PART, ReflectorMachine, OF_PAGED_LISTS, lambda kind: make_machine(lambda: kind(PAGED))),
    *bugs_of(PART, ReflectorMachine, OF_STREAMED_LISTS, make_machine),
]
