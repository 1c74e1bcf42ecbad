"""What is said of an error, and when its whole traceback is."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import cast

import pytest

import deltaloop
from deltaloop._internal.tracebacks import TRACEBACK_PERIOD, ErrorSummaries, error_text, own_frames, thread_frames
from deltaloop.api.keys import split_meta_namespace_key

HERE = Path(__file__).name


def caught(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except BaseException as error:  # noqa: BLE001 - whatever it raises is what is wanted
        return error
    raise AssertionError("nothing was raised")


def fails() -> None:
    raise ValueError("boom")


def fails_elsewhere() -> None:
    raise ValueError("boom")


def misses() -> None:
    raise LookupError("boom")


def fails_inside_the_library() -> None:
    split_meta_namespace_key("a/b/c")


def as_if_in(file: str, function: FunctionType) -> Callable[[], None]:
    """Return a function whose code is said to stand in another file."""
    return FunctionType(function.__code__.replace(co_filename=file), function.__globals__)


def names(frames: list[str]) -> list[str]:
    return [f"{Path(frame.rpartition(':')[0]).name} {frame.rpartition(' ')[2]}" for frame in frames]


def test_error_text_has_class_and_message() -> None:
    assert error_text(ValueError("boom")) == "ValueError: boom"
    assert error_text(ValueError()) == "ValueError"


def test_error_text_includes_notes() -> None:
    error = ValueError("boom")
    error.add_note("of controller 'maps'")
    error.add_note("try again")
    assert error_text(error) == "ValueError: boom; of controller 'maps'; try again"
    assert error_text(ExceptionGroup("both", [error, LookupError()])).endswith("try again; LookupError")


def test_error_text_of_group_has_first_errors() -> None:
    inner = ExceptionGroup("inner", [ValueError(str(number)) for number in range(4)])
    group = ExceptionGroup("outer", [inner, LookupError("last")])
    assert error_text(group) == "ValueError: 0; ValueError: 1; ValueError: 2; and 2 more"


def test_error_text_is_bounded_and_never_fails() -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert len(error_text(ValueError("x" * 5000))) == 1000
    assert error_text(BrokenError()).endswith("BrokenError: <no text: its __str__ failed>")


async def test_own_frames_contain_frames_of_program_only() -> None:
    async def reconcile() -> None:
        fails()

    with pytest.raises(ValueError, match="boom") as caught_here:
        await asyncio.wait_for(reconcile(), 1.0)  # by way of frames of asyncio
    assert names(own_frames(caught_here.value)) == [
        f"{HERE} test_own_frames_contain_frames_of_program_only",
        f"{HERE} test_own_frames_contain_frames_of_program_only.<locals>.reconcile",
        f"{HERE} fails",
    ]


def test_error_raised_by_library_has_frame_of_call() -> None:
    assert names(own_frames(caught(fails_inside_the_library)))[-1] == f"{HERE} fails_inside_the_library"


def test_installed_frames_are_used_without_own_frames() -> None:
    installed = as_if_in("/venv/lib/python3.11/site-packages/operator/main.py", cast("FunctionType", fails))
    error = caught(installed)
    assert names(own_frames(error))[-1] == f"{HERE} caught"  # the program's own frame is better, further out or not
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next
    assert names(own_frames(error)) == ["main.py fails"]


def test_error_without_traceback_has_no_frames() -> None:
    assert own_frames(ValueError("never raised")) == []


def test_traceback_is_logged_once_a_minute_per_kind() -> None:
    summaries = ErrorSummaries()
    kinds = (fails, fails_elsewhere, misses)  # the same class on another line is another kind
    for kind in kinds:
        error = caught(kind)
        summary = summaries.of(error, 10.0)
        assert summary.exc_info is error
        assert summary.extra == {"raised": error_text(error), "where": own_frames(error)}
    for at in (10.0, 10.5, 10.0 + TRACEBACK_PERIOD - 0.001):
        assert [summaries.of(caught(kind), at).exc_info for kind in kinds] == [None] * 3
    again = caught(fails)
    assert summaries.of(again, 10.0 + TRACEBACK_PERIOD).exc_info is again
    assert summaries.of(caught(fails), 11.0 + TRACEBACK_PERIOD).exc_info is None


def test_least_recent_error_kinds_are_dropped_first() -> None:
    def kind(number: int) -> BaseException:
        made: type[Exception] = type(f"Error{number}", (Exception,), {})
        return made()

    summaries = ErrorSummaries()
    kinds = [kind(number) for number in range(300)]
    assert summaries.of(kinds[0], 0.0).exc_info is not None
    for error in kinds[1:]:
        assert summaries.of(error, 1.0).exc_info is not None
        assert summaries.of(kinds[0], 1.0).exc_info is None  # it comes all the time
    assert summaries.of(kinds[-1], 2.0).exc_info is None
    assert summaries.of(kinds[1], 2.0).exc_info is not None  # forgotten
    assert len(summaries._due_at) <= 256


@pytest.mark.real_time
async def test_frames_of_thread_start_at_running_callback() -> None:
    found: list[str] = []
    main = threading.get_ident()

    def look() -> None:
        found.extend(thread_frames(main))

    def blocks() -> None:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()

    async def reconcile() -> None:
        blocks()

    await asyncio.create_task(reconcile())
    assert found[0].endswith("reconcile: blocks()")
    assert "blocks: thread." in found[1]  # starting it, or waiting for it


def test_ended_thread_has_no_frames() -> None:
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    assert thread.ident is not None
    assert thread_frames(-1) == []


ONCE = {
    "_internal/tracebacks.py": "here it is decided",
    "apiserver/filters.py": "a fault of the server itself",
    "apiserver/server.py": "a controller of the server has died",
    "blocking/background_loop.py": "at its end",
    "blocking/handler_thread.py": "after an informer's end",
    "cache/factory.py": "an informer has ended",
    "leaderelection/renewal_thread.py": "the thread has ended",
    "runtime/program/health_server.py": "a fault of a page",
    "runtime/program/manager.py": "a source has ended",
    "runtime/objects/tracking.py": "the watch of a tracked object has ended",
    "sharding/member.py": "the task of a member has failed",
}


def test_repeated_failures_are_logged_with_summary() -> None:
    """Whoever logs a traceback says here why it cannot come with every event."""
    source = Path(deltaloop.__file__).parent
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"\bexc_info=(?!None)|log(ger)?\.exception\(", path.read_text())
    }
    assert found == set(ONCE)
