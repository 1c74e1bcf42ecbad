"""Seeded bugs of the reflector: when to list, watch, wait."""

from __future__ import annotations

from tests.cache.core.reflector.test_server_model import PAGE, make_machine
from tests.cache.machines import Step, step

from deltaloop.cache.core.reflector.machine import ReflectorMachine
from deltaloop.cache.reflector_options import ReflectorOptions
from lab.mutants.edited import edited
from lab.mutants.seeded_bug import bugs_of

PART = "reflector"


ResumesAtOnceForEver = edited(
    "ResumesAtOnceForEver",
    ReflectorMachine,
    ("return self._short_streams == 1", "return True"),
    what="A stream that ends after one event is resumed at once, again and again, as client-go does.",
)
BelievesShortWatches = edited(
    "BelievesShortWatches",
    ReflectorMachine,
    ("return now - self._watch_asked_at < _VERY_SHORT and self._stream_events == 0", "return False"),
    ("return self._short_streams == 1", "return True"),
    what="An empty stream of no length counts as a clean end.",
)
ListsTheNewestAtOnceForEver = edited(
    "ListsTheNewestAtOnceForEver",
    ReflectorMachine,
    ("if round_.first.resource_version:", "if True:"),
    what="A refused list at the newest version is repeated without a wait.",
)
KeepsThePagesOfALostList = edited(
    "KeepsThePagesOfALostList",
    ReflectorMachine,
    (
        "self._round = ListRound.begin(again, in_full=True)",
        "self._round, self._server_pages = ListRound(again, again, True, round_.items), True",
    ),
    what="Begins the full list with what the lost pages brought.",
)
ResumesAfterExpired = edited(
    "ResumesAfterExpired",
    ReflectorMachine,
    (
        "recovery = RECOVERIES.get((operation, kind), Recovery.LIST_LATER)",
        "recovery = RECOVERIES.get((operation, kind), Recovery.WATCH_LATER)",
    ),
    what="Watches on from a version that the server has forgotten.",
)
MovesOnBeforeTheEventIsApplied = edited(
    "MovesOnBeforeTheEventIsApplied",
    ReflectorMachine,
    ("Operation.STORE, ReflectorPhase.LISTING", "Operation.STORE, ReflectorPhase.CONNECTING"),
    what="Forgets that the store refused an event: watches on behind it.",
)


MovesOnWithOddEvents = edited(
    "MovesOnWithOddEvents",
    ReflectorMachine,
    ("counts.skipped += 1", "counts.skipped += 1; self.resource_version = version"),
    what="The version of an object without a name is taken for the stream's.",
)
TakesTheVersionOfTheLastPage = edited(
    "TakesTheVersionOfTheLastPage",
    ReflectorMachine,
    ("return self._complete(round_, now) if", "round_.pages = 0; return self._complete(round_, now) if"),
    what="The version of a list is that of its last page, so that what happened between pages is lost.",
)
NeverAsksForTheNewest = edited(
    "NeverAsksForTheNewest",
    ReflectorMachine,
    (
        "self._version_unavailable = True\n            if round_",
        "self._version_unavailable = False\n            if round_",
    ),
    what="After a refused version, asks for that version again.",
)
NeverProbes = edited(
    "NeverProbes",
    ReflectorMachine,
    ("return self._counts.last_error is not None or now - self._version_seen_at >= _PROBE_PERIOD", "return False"),
    what="A server whose counter went back is never found.",
)
TakesAPartForTheWhole = edited(
    "TakesAPartForTheWhole",
    ReflectorMachine,
    ("self._counts.watch_requests += 1\n        self._initial = InitialEvents()", "self._counts.watch_requests += 1"),
    ("return self.options.watch_list and not self._list_instead and now >= self._no_watch_list_until", "return True"),
    what="Takes the end of the stream for the end of the list.",
)
StreamsAgainAtOnceForEver = edited(
    "StreamsAgainAtOnceForEver",
    ReflectorMachine,
    ("return self.options.watch_list and not self._list_instead and now >= self._no_watch_list_until", "return True"),
    what="A streamed list that broke is streamed again at once, for ever, as client-go does: kubernetes#138557.",
)


IgnoresTheBookmarksVersion = edited(
    "IgnoresTheBookmarksVersion",
    ReflectorMachine,
    (
        "self.resource_version = listed.resource_version\n",
        "self.resource_version = next(iter(listed.items), listed).resource_version\n",
    ),
    what="The version of a streamed list is that of its first object.",
)
CUT = step("step", fault=None, random=0.0, cut=2)


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


PAGED = ReflectorOptions(page_size=PAGE, watch_list=False, detect_restore=False)
BUGS = [
    *bugs_of(PART, ReflectorMachine, OF_PAGED_LISTS, lambda kind: make_machine(lambda: kind(PAGED))),
    *bugs_of(PART, ReflectorMachine, OF_STREAMED_LISTS, make_machine),
]
