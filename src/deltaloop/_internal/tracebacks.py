"""Short log records for errors, with the lines of the program's own code from their tracebacks."""

from __future__ import annotations

import asyncio
import inspect
import linecache
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, ParamSpec, TypeAlias, cast, final

import msgspec

TRACEBACK_PERIOD: Final = 60.0
_FRAMES: Final = 5
_STACK_FRAMES: Final = 12
_ERRORS_OF_GROUP: Final = 3
_TEXT_LENGTH: Final = 1000
_KINDS_KEPT: Final = 256

_OUR_FOLDER: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100, PTH120 - pathlib costs imports
_STANDARD_LIBRARY: Final = os.path.dirname(os.path.abspath(os.__file__)) + os.sep  # noqa: PTH100, PTH120 - same
_INSTALLED: Final = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))

# asyncio's loops run each callback and each step of a task in this function.
_RUNS_CALLBACKS: Final[CodeType] = asyncio.Handle._run.__code__  # noqa: SLF001 - only compared
# They wait for the next callback in this function.
_RUNS_ONCE: Final[CodeType] = asyncio.BaseEventLoop._run_once.__code__  # type: ignore[attr-defined]  # noqa: SLF001 - same

P = ParamSpec("P")
_ErrorKind: TypeAlias = "tuple[type[BaseException], CodeType | None, int]"


@final
class ErrorSummary(msgspec.Struct, frozen=True):
    """Fields of a log record for an error."""

    extra: dict[str, object]
    exc_info: BaseException | None


@final
class ErrorSummaries:
    """Summaries of repeated errors, by class and the line that raised them. Thread-safe."""

    def __init__(self, period: float = TRACEBACK_PERIOD) -> None:
        """Create the summaries, with ``period`` seconds between two whole tracebacks of the same kind."""
        self._period = period
        self._due_at: dict[_ErrorKind, float] = {}

    def of(self, error: BaseException, now: float) -> ErrorSummary:
        """Summarize an error at a monotonic time in seconds."""
        extra: dict[str, object] = {"raised": error_text(error), "where": own_frames(error)}
        return ErrorSummary(extra, error if self._traceback_is_due(_kind_of(error), now) else None)

    def log(
        self,
        logger: logging.Logger,
        level: int,
        message: str,
        error: BaseException,
        *,
        now: float,
        extra: Mapping[str, object],
        again: int | None = None,
    ) -> None:
        """Log an error in one line, with its traceback if it is due; ``again`` is the level of repeats."""
        summary = self.of(error, now)
        if again is not None and summary.exc_info is None:
            level = again
        logger.log(level, message, extra={**extra, **summary.extra}, exc_info=summary.exc_info, stacklevel=2)

    def _traceback_is_due(self, kind: _ErrorKind, now: float) -> bool:
        due_at = self._due_at.pop(kind, now)
        due = now >= due_at
        self._due_at[kind] = now + self._period if due else due_at  # at the end, because the oldest entry is evicted
        if len(self._due_at) > _KINDS_KEPT:
            del self._due_at[next(iter(self._due_at))]
        return due


@final
class GuardedCalls:
    """Calls of a user's hooks. Their exceptions are only logged, and never fail the code that calls them."""

    def __init__(self, logger: logging.Logger, message: str, **extra: object) -> None:
        self._errors = ErrorSummaries()
        self._logger = logger
        self._message = message
        self._extra = extra

    def __call__(self, hook: Callable[P, object], /, *arguments: P.args, **keywords: P.kwargs) -> None:
        try:
            hook(*arguments, **keywords)
        except Exception as error:  # noqa: BLE001 - see the class
            self._errors.log(self._logger, logging.ERROR, self._message, error, now=time.monotonic(), extra=self._extra)


def error_text(error: BaseException) -> str:
    """Return an error's class, text and notes in one line. For a group, return those of its first errors."""
    leaves = list(leaves_of(error))
    texts = [_text_of(leaf) for leaf in leaves[:_ERRORS_OF_GROUP]]
    if len(leaves) > _ERRORS_OF_GROUP:
        texts.append(f"and {len(leaves) - _ERRORS_OF_GROUP} more")
    return "; ".join(texts)


def own_frames(error: BaseException) -> list[str]:
    """Return the program's own frames of an error, for example ``greeter.py:12 in reconcile``."""
    leaf = next(leaves_of(error))
    if isinstance(where := getattr(leaf, "where", None), str) and where:
        return [where]
    frames = [(tb.tb_frame.f_code, tb.tb_lineno) for tb in _tracebacks(leaf)]
    return [place_in(code, line) for code, line in _own(frames)]


def defined_at(function: object) -> str:
    """Return the definition of a function in the format of ``own_frames``, or an empty string without Python code."""
    code = getattr(inspect.unwrap(cast("Any", function)), "__code__", None)
    return place_in(code, code.co_firstlineno) if isinstance(code, CodeType) else ""


def thread_frames(thread_id: int, *, own: bool = False) -> list[str]:
    """Return the current frames of a thread with their source lines, innermost last; of a loop only its callback.

    With ``own``, return only the program's own frames.
    """
    stack = list(_stack(sys._current_frames().get(thread_id)))  # noqa: SLF001 - documented API
    callback = next((depth for depth, frame in enumerate(stack) if frame.f_code is _RUNS_CALLBACKS), 0)
    shown = stack[: callback or len(stack)][:_STACK_FRAMES]
    places = [(frame.f_code, frame.f_lineno or 0) for frame in reversed(shown)]
    return _with_source(_own(places) if own else places)


def waits_for_events(thread_id: int) -> bool:
    frame = sys._current_frames().get(thread_id)  # noqa: SLF001 - documented API
    caller = None if frame is None or frame.f_code.co_name != "select" else frame.f_back
    return caller is not None and caller.f_code is _RUNS_ONCE


def task_frames(task: asyncio.Task[Any]) -> list[str]:
    """Return the program's own frames of a suspended task with their source lines, innermost last."""
    frames: list[tuple[CodeType, int]] = []
    awaited: Any = task.get_coro()
    while awaited is not None:
        for kind in ("cr", "gi", "ag"):
            frame: FrameType | None = getattr(awaited, f"{kind}_frame", None)
            if frame is not None:
                frames.append((frame.f_code, frame.f_lineno or 0))
                awaited = getattr(awaited, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
                break
        else:
            break
    return _with_source(_own(frames))


def call_frames(code: CodeType, variable: str, value: object) -> list[str]:
    """Return the program's own frames of the thread in which ``code`` runs with a value, like ``task_frames``."""
    for innermost in sys._current_frames().values():  # noqa: SLF001 - documented API
        frames: list[tuple[CodeType, int]] = []
        for frame in _stack(innermost):
            if frame.f_code is code and frame.f_locals.get(variable) is value:
                return _with_source(_own(frames[::-1]))
            frames.append((frame.f_code, frame.f_lineno or 0))
    return []


def _with_source(places: Sequence[tuple[CodeType, int]]) -> list[str]:
    return [f"{place_in(code, line)}: {linecache.getline(code.co_filename, line).strip()}" for code, line in places]


def _stack(innermost: FrameType | None) -> Iterator[FrameType]:
    frame = innermost
    while frame is not None:
        yield frame
        frame = frame.f_back


def _own(frames: Sequence[tuple[CodeType, int]]) -> Sequence[tuple[CodeType, int]]:
    foreign = [(code, line) for code, line in frames if not _is_library(code.co_filename)]
    program = [(code, line) for code, line in foreign if not _is_installed(code.co_filename)]
    return (program or foreign)[-_FRAMES:] or frames[-1:]


def _is_library(file: str) -> bool:
    if file.startswith((_OUR_FOLDER, "<frozen ")):
        return True
    return file.startswith(_STANDARD_LIBRARY) and not _is_installed(file)  # site-packages is inside


def _is_installed(file: str) -> bool:
    return any(folder in file for folder in _INSTALLED)


def place_in(code: CodeType, line: int) -> str:
    """Return a line of a function, for example ``greeter.py:12 in reconcile``."""
    return f"{code.co_filename}:{line} in {code.co_qualname}"


def _text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a broken __str__ must not hide the error
        text = "<no text: its __str__ failed>"
    name = type(error).__qualname__
    text = "; ".join([f"{name}: {text}" if text else name, *notes_of(error)])
    return text if len(text) <= _TEXT_LENGTH else text[: _TEXT_LENGTH - 1] + "…"


def notes_of(error: BaseException) -> list[str]:
    """Return the notes that were added with ``add_note``."""
    return [str(note) for note in cast("list[object]", getattr(error, "__notes__", []))]


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in a group, recursively, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[Any]", error).exceptions:
            yield from leaves_of(inner)
    else:
        yield error


def _tracebacks(error: BaseException) -> Iterator[TracebackType]:
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _kind_of(error: BaseException) -> _ErrorKind:
    innermost: TracebackType | None = None
    for innermost in _tracebacks(next(leaves_of(error))):  # noqa: B007 - the last one counts
        pass
    if innermost is None:
        return type(error), None, 0
    return type(error), innermost.tb_frame.f_code, innermost.tb_lineno
