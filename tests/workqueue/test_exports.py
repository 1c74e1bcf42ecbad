"""What this room shows."""

from __future__ import annotations

import inspect

import deltaloop.workqueue as room


def test_everything_named_is_there_and_documented() -> None:
    assert room.__all__ == sorted(room.__all__)
    for name in room.__all__:
        assert inspect.getdoc(getattr(room, name)), name
