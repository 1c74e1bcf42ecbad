"""Which keys a standby gives up."""

from __future__ import annotations

import pytest

from deltaloop.api.references import Trigger
from deltaloop.runtime.core.standby import SPARE, names_gone_object, surplus


@pytest.mark.parametrize(
    ("sources", "cached", "gone"),
    [
        (("informer",), False, True),
        (("informer",), True, False),
        (("channel", "owner", "channel"), False, True),
        (("channel",), False, False),  # nothing says that it is an object's key: another part of the program asked
        (("watch", "timer"), False, False),
        ((), False, False),
    ],
)
def test_a_key_is_of_an_object_that_is_gone_if_an_event_named_it(
    sources: tuple[str, ...], cached: bool, gone: bool
) -> None:
    triggers = [Trigger(source=source, verb="update", at=0.0) for source in sources]
    assert names_gone_object("default/a", triggers, lambda key: cached and key == "default/a") is gone


def test_a_trigger_of_the_programs_own_is_nobodys_event() -> None:
    assert not names_gone_object("default/a", ["informer"], lambda _: False)


@pytest.mark.parametrize(
    ("queued", "cached", "given_up"),
    [
        (0, 0, 0),
        (2 * SPARE, 0, 0),
        (2 * SPARE + 1, 0, SPARE + 1),
        (2 * SPARE + 50, 50, 0),
        (2 * SPARE + 51, 50, SPARE + 1),
        (100_000, 100_000, 0),
        (120_000, 100_000, 0),
        (120_001, 100_000, 10_001),  # a tenth of the cache stays
    ],
)
def test_the_latest_stay_and_few_are_not_worth_looking_through_the_queue(
    queued: int, cached: int, given_up: int
) -> None:
    assert surplus(queued, cached) == given_up
