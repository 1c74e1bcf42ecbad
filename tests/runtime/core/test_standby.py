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
def test_key_of_gone_object_is_recognized_by_event(sources: tuple[str, ...], cached: bool, gone: bool) -> None:
    triggers = [Trigger(source=source, verb="update", at=0.0) for source in sources]
    assert names_gone_object("default/a", triggers, lambda key: cached and key == "default/a") is gone


def test_text_trigger_does_not_count_as_event() -> None:
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
def test_standby_drops_surplus_keys_only_above_threshold(queued: int, cached: int, given_up: int) -> None:
    assert surplus(queued, cached) == given_up
