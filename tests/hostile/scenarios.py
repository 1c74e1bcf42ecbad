"""The harms that the informer must survive, each by its name, and the test that plays it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from deltaloop.testing import Cut, Reset, Stall
from tests.hostile import test_hostile_server as tests

Play = Callable[[], Coroutine[Any, Any, None]]

SCENARIOS: dict[str, Play] = {
    "cut mid-object": tests.test_cut_in_the_middle_of_an_object,
    "cut mid-chunk": partial(tests.test_cut_in_the_middle_of_a_chunk, Cut, 3),
    "reset mid-chunk": partial(tests.test_cut_in_the_middle_of_a_chunk, Reset, 60),
    "stalled stream": partial(tests.test_a_stalled_stream_is_given_up_at_its_deadline, Stall()),
    "410 in a list page": tests.test_expired_in_the_middle_of_a_paged_list,
    "410 as an event": tests.test_expired_as_an_event,
    "429": partial(tests.test_refusals_of_lists, 429, 7),
    "500": partial(tests.test_refusals_of_lists, 500, None),
    "503": partial(tests.test_refusals_of_watches, 503, None),
    "HTML instead of JSON": partial(tests.test_html_instead_of_a_list, 200),
    "a 20 MB object": partial(tests.test_a_twenty_megabyte_object, 300),
    "an object that fails to decode between good ones": partial(
        tests.test_an_event_that_cannot_be_read_between_good_ones, tests.BAD_OBJECTS[0]
    ),
    "duplicated and re-ordered events": tests.test_duplicated_and_reordered_events_are_mended_by_the_next_list,
    "bookmarks only": partial(tests.bookmarks_only, minutes=60),
    "a WatchList that never sends its end bookmark": (
        tests.test_a_streamed_list_that_never_says_where_it_ends_is_given_up
    ),
    "a server whose version counter was reset": partial(
        tests.test_a_server_whose_counter_was_reset_and_that_does_not_say_so, watch_list=False
    ),
    "connection refused for a minute": tests.test_connection_refused_for_a_minute,
}
