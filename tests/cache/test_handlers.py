"""Handlers made of functions, and their names."""

from __future__ import annotations

import functools

from deltaloop.cache.handlers import HandlerFuncs, handler_name


def added(obj: str) -> str:
    return f"added {obj}"


def gone(obj: str) -> str:
    return f"gone {obj}"


def test_what_is_left_out_is_not_called() -> None:
    handler = HandlerFuncs[str](on_add=added)
    assert handler.on_add("a", is_in_initial_list=True) == "added a"
    assert handler.on_update("a", "b") is None
    assert handler.on_delete("a", final_state_known=False) is None
    assert HandlerFuncs[str](on_delete=gone).on_delete("a", final_state_known=True) == "gone a"


def test_names_are_readable() -> None:
    assert handler_name(HandlerFuncs[str](on_add=added, on_delete=gone)).split("+") == [
        "tests.cache.test_handlers.added",
        "tests.cache.test_handlers.gone",
    ]
    assert handler_name(HandlerFuncs[str](on_add=added, on_delete=added)) == "tests.cache.test_handlers.added"
    assert handler_name(HandlerFuncs[str]()) == "no functions"
    assert "partial" in handler_name(HandlerFuncs[str](on_add=functools.partial(added)))
    assert handler_name(object()) == "builtins.object"
    assert repr(HandlerFuncs[str](on_add=added)) == "<HandlerFuncs tests.cache.test_handlers.added>"
