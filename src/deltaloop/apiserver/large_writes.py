"""Execution of large or slow writes in threads, so that the event loop can serve other requests.

Writes up to ``LARGE`` bytes run on the event loop in one step. Larger writes run in a thread on a draft
(``core/storage/draft.py``), at most five times until its reads are still current, like patches on the real server.

Each attempt has a work budget (``schemas.work``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final, NamedTuple, TypeVar, cast, final

from deltaloop._internal.threads import beside_loop
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.external_answers import QuestionError
from deltaloop.apiserver.core.storage.draft import NO_DRAFT, Ask, Commit
from deltaloop.apiserver.core.webhook_calls import Called
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.schemas.work import (
    MOST_GROWN,
    MOST_STEPS,
    Account,
    GrowthError,
    LongWorkError,
    WorkLimitError,
    limited,
)

T = TypeVar("T")

LARGE: Final = 24 * 1024
STEPS_ON_LOOP: Final = 20_000
"""Work steps of a write on the event loop, a few milliseconds."""
STEPS_OF_LARGE: Final = 2_000_000
"""Work steps of a write in the thread for large writes, some tenths of a second."""
TRIES: Final = 5
MOST_QUESTIONS: Final = 500
"""Maximum number of questions of one write, because a busy object can cause new questions repeatedly."""
_LOOK_EVERY: Final = 0.2
_PAUSE: Final = 0.000_1


def _pause() -> None:
    """Let the event loop run, which would otherwise wait some milliseconds each time."""
    time.sleep(_PAUSE)  # noqa: TID251  # in a thread, and not to wait for something


class _Place(NamedTuple):
    """Thread of a write (empty for the event loop), and work steps before it moves on."""

    thread: str
    steps: int
    error: type[Exception] = LongWorkError

    def account(self) -> Account:
        if not self.thread:
            return Account(self.steps, error=self.error, growth=LARGE)
        return Account(self.steps, error=self.error, growth=MOST_GROWN, pause=_pause)


_PLACES: Final = (
    _Place("", STEPS_ON_LOOP),
    _Place("large-writes", STEPS_OF_LARGE),
    _Place("long-writes", MOST_STEPS, WorkLimitError),
)


class _ClosedError(Exception):
    """The server stopped during a write."""


async def beside(size: int, work: Callable[[], T]) -> T:
    """Run ``work`` directly, or in a thread for more than ``LARGE`` bytes."""
    return work() if size <= LARGE else await beside_loop(work)


def _received(answer: object) -> int:
    called = cast("tuple[object, ...]", answer) if isinstance(answer, tuple) else ()
    return sum(len(each.body) for each in called if isinstance(each, Called))


def _conflict(context: WriteContext) -> ApiError:
    return status_errors.conflict(context.served.type, context.name)


@final
class LargeWrites:
    def __init__(self, state: ServerState, *, answer: Callable[[Hashable], Awaitable[object]] | None = None) -> None:
        """Write to a state; ``answer`` finds external answers (``core/external_answers.py``), or is None."""
        self._state = state
        self._answer = answer
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._closed = False

    async def run(self, write: Callable[[WriteContext], T], context: WriteContext) -> tuple[T, Commit]:
        """Run a write, and return its result with the commit that determines final revisions.

        Cancellation cannot split the write. ``write`` can run in a thread and repeatedly, so it must start from the
        body each time. Raises ApiError: conflict if other clients keep changing the objects, or timeout if it exceeds
        its work budget.
        """
        size, answers = context.size, context.answers
        place = 0 if size <= LARGE else 1
        while True:
            try:
                return await self._run(write, context, _PLACES[place])
            except LongWorkError:
                place += 1
                context.notes.clear()
                continue
            except GrowthError:
                if place:
                    raise
                place = 1  # no object has been written
                context.notes.clear()
                continue
            except WorkLimitError:
                raise status_errors.work_limit() from None
            except QuestionError as asked:
                if answers is None or self._answer is None:
                    raise
                if len(answers) == MOST_QUESTIONS:
                    raise _conflict(context) from None
                question = asked.question
            answer = await self._answer(question)
            context.notes.clear()
            answers.tell(question, answer)
            size += _received(answer)
            place = max(place, 0 if size <= LARGE else 1)

    async def _run(self, write: Callable[[WriteContext], T], context: WriteContext, place: _Place) -> tuple[T, Commit]:
        if not place.thread:
            with limited(place.account()):
                return write(context), NO_DRAFT
        for attempt in range(TRIES):
            if attempt:
                context.notes.clear()
            done = await self._beside(write, context, place)
            if done is not None:
                return done
        raise _conflict(context)

    async def _beside(
        self, write: Callable[[WriteContext], T], context: WriteContext, place: _Place
    ) -> tuple[T, Commit] | None:
        """Compute a write in a thread and commit it; return None if an object that it read has changed."""
        loop = asyncio.get_running_loop()
        if place.thread not in self._threads:
            name = f"deltaloop-apiserver-{place.thread}"
            self._threads[place.thread] = ThreadPoolExecutor(1, thread_name_prefix=name)

        def compute(context: WriteContext) -> T:
            with limited(place.account()):
                return write(context)

        ask = self._ask_on(loop)
        drafted = self._state.draft(ask)
        try:
            result = await beside_loop(partial(compute, drafted.within(context, ask)), self._threads[place.thread])
        except Exception:
            if self._state.is_current(drafted):
                raise
            return None
        if not self._state.is_current(drafted):
            return None
        return result, self._state.commit(drafted)

    def _ask_on(self, loop: asyncio.AbstractEventLoop) -> Ask:
        def ask(question: Callable[[], T], /) -> T:
            answer: Future[T] = Future()

            def find() -> None:
                try:
                    answer.set_result(question())
                except BaseException as error:  # noqa: BLE001 - it belongs to the thread that has asked
                    answer.set_exception(error)

            loop.call_soon_threadsafe(find)
            while True:
                try:
                    return answer.result(_LOOK_EVERY)
                except TimeoutError:
                    if answer.done():
                        raise  # raised by the question
                    if self._closed:
                        raise _ClosedError from None

        return ask

    def close(self) -> None:
        self._closed = True
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)
