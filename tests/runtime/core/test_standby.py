"""Which keys a standby gives up."""

from __future__ import annotations

import pytest

from deltaloop.api.references import Trigger
from deltaloop.runtime.core.standby import KEPT, given_up, names_gone_object


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


def test_the_latest_stay() -> None:
    assert given_up(["a", "b", "c", "d"], kept=3) == ["a"]
    assert not given_up(["a", "b"], kept=3)
    assert KEPT > 0
