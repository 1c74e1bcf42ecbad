"""The harms that the informer must survive, each by its name, and the test that plays it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from deltaloop.testing import Cut, Reset, Stall
from tests.hostile import test_hostile_server as tests

Play = Callable[[], Coroutine[Any, Any, None]]

SCENARIOS: dict[str, Play] = {
    "cut mid-object": tests.test_cut_in_middle_of_object,
    "cut mid-chunk": partial(tests.test_cut_in_middle_of_chunk, Cut, 3),
    "reset mid-chunk": partial(tests.test_cut_in_middle_of_chunk, Reset, 60),
    "stalled stream": partial(tests.test_stalled_stream_ends_at_deadline, Stall()),
    "410 in a list page": tests.test_expired_token_in_paged_list,
    "410 as an event": tests.test_expired_error_event,
    "429": partial(tests.test_rejected_lists_are_retried, 429, 7),
    "500": partial(tests.test_rejected_lists_are_retried, 500, None),
    "503": partial(tests.test_rejected_watches_are_retried, 503, None),
    "HTML instead of JSON": partial(tests.test_html_instead_of_a_list, 200),
    "a 20 MB object": partial(tests.test_a_twenty_megabyte_object, 300),
    "an object that fails to decode between good ones": partial(
        tests.test_malformed_event_between_valid_events, tests.BAD_OBJECTS[0]
    ),
    "duplicated and re-ordered events": tests.test_next_list_corrects_duplicated_and_reordered_events,
    "bookmarks only": partial(tests.bookmarks_only, minutes=60),
    "a WatchList that never sends its end bookmark": (tests.test_streamed_list_without_end_falls_back_to_pages),
    "a server whose version counter was reset": partial(
        tests.test_server_with_reset_counter_without_error, watch_list=False
    ),
    "connection refused for a minute": tests.test_connection_refused_for_a_minute,
}
