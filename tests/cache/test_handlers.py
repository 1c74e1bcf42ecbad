"""Handlers made of functions, and their names."""

from __future__ import annotations

import functools

from deltaloop.cache.handlers import DetailedHandlerFuncs, FilteringResourceEventHandler, HandlerFuncs, handler_name
from deltaloop.cache.interfaces import ResourceEventHandler


def added(obj: str) -> str:
    return f"added {obj}"


def gone(obj: str) -> str:
    return f"gone {obj}"


def test_omitted_functions_are_not_called() -> None:
    handler = HandlerFuncs[str](on_add=added)
    assert handler.on_add("a", is_in_initial_list=True) == "added a"
    assert handler.on_update("a", "b") is None
    assert handler.on_delete("a", final_state_known=False) is None
    assert HandlerFuncs[str](on_delete=gone).on_delete("a", final_state_known=True) == "gone a"


def test_detailed_handler_receives_details() -> None:
    told: list[tuple[str, bool]] = []
    handler: ResourceEventHandler[str] = DetailedHandlerFuncs[str](
        on_add=lambda obj, initial: told.append((obj, initial)),
        on_delete=lambda obj, known: told.append((obj, known)),
    )
    handler.on_add("a", is_in_initial_list=True)
    handler.on_add("b", is_in_initial_list=False)
    handler.on_update("b", "c")
    handler.on_delete("a", final_state_known=False)
    handler.on_delete("c", final_state_known=True)
    assert told == [("a", True), ("b", False), ("a", False), ("c", True)]
    empty = DetailedHandlerFuncs[str](on_update=lambda old, new: f"{old}{new}")
    assert (empty.on_add("a", is_in_initial_list=True), empty.on_update("a", "b")) == (None, "ab")
    assert empty.on_delete("a", final_state_known=True) is None
    here = test_detailed_handler_receives_details
    assert repr(empty) == f"<DetailedHandlerFuncs {__name__}.{here.__name__}.<locals>.<lambda>>"


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


def test_filter_passes_matching_notifications_with_details() -> None:
    told: list[tuple[str, object]] = []
    behind = DetailedHandlerFuncs[str](
        on_add=lambda obj, initial: told.append((f"+{obj}", initial)),
        on_update=lambda old, new: told.append((f"~{old}", new)),
        on_delete=lambda obj, known: told.append((f"-{obj}", known)),
    )
    handler = FilteringResourceEventHandler[str](lambda obj: obj.startswith("a"), behind)
    for flag in (True, False):
        for obj in ("a1", "b1"):
            handler.on_add(obj, is_in_initial_list=flag)
            handler.on_delete(obj, final_state_known=flag)
    handler.on_update("a1", "a2")
    handler.on_update("b1", "a2")
    handler.on_update("a1", "b2")
    assert handler.on_update("b1", "b2") is None
    assert told == [
        *[("+a1", True), ("-a1", True), ("+a1", False), ("-a1", False)],
        *[("~a1", "a2"), ("+a2", False), ("-a1", True)],
    ]
    answers = HandlerFuncs[str](on_add=added, on_update=lambda old, new: old + new, on_delete=gone)
    handler = FilteringResourceEventHandler[str](lambda obj: obj.startswith("a"), answers)
    assert handler.on_add("a", is_in_initial_list=True) == "added a"
    assert [handler.on_update("a", "ab"), handler.on_update("b", "a"), handler.on_update("a", "b")] == [
        "aab",
        "added a",
        "gone a",
    ]
    assert handler.on_delete("a", final_state_known=True) == "gone a"
