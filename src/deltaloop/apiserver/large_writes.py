"""Writes of large objects, which run in a thread, so that the loop goes on serving others. Core: ``core/draft.py``.

Up to ``LARGE`` bytes, of what is sent and what is there together, a write runs on the loop, in one step. Answers of
webhooks count as sent, and a write that turns out to grow beyond that is repeated in the thread. Above that it
is worked out in a thread, one at a time, and carried out on the loop if nothing that it read has changed meanwhile;
else it is worked out anew, five times at most, as the real server does with patches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar, cast, final

from deltaloop.api.status import ApiError
from deltaloop.apiserver.core.outside import Outside, QuestionError
from deltaloop.apiserver.core.storage.draft import NO_DRAFT, Ask, Commit, ask_at_once
from deltaloop.apiserver.core.webhook_calls import Called
from deltaloop.apiserver.core.writes.operations import Operations
from deltaloop.schemas.growth import ALLOWED, GrowthError

T = TypeVar("T")

LARGE: Final = 32 * 1024
TRIES: Final = 5
MOST_QUESTIONS: Final = 500
"""Of one write: an object that others change all the time may be asked about again and again."""
_LOOK_EVERY: Final = 0.2


class _ClosedError(Exception):
    """The server has stopped under a write."""


async def beside(size: int, work: Callable[[], T]) -> T:
    """Return what ``work`` returns. It runs in a thread if it is about more than ``LARGE`` bytes."""
    return work() if size <= LARGE else await asyncio.to_thread(work)


def _received(answer: object) -> int:
    called = cast("tuple[object, ...]", answer) if isinstance(answer, tuple) else ()
    return sum(len(each.body) for each in called if isinstance(each, Called))


@final
class LargeWrites:
    """Runs the writes of one server, the large ones beside its loop."""

    def __init__(
        self, operations: Operations, *, answer: Callable[[Hashable], Awaitable[object]] | None = None
    ) -> None:
        """Write with these verbs.

        Args:
            operations: The verbs.
            answer: Finds the answers to the questions that writes end with (``core/outside.py``); None if there are no
                such questions.
        """
        self._operations = operations
        self._answer = answer
        self._thread: ThreadPoolExecutor | None = None
        self._closed = False

    async def run(
        self,
        write: Callable[[Operations, Ask], T],
        *,
        size: int,
        refusal: Callable[[], ApiError],
        outside: Outside | None = None,
    ) -> tuple[T, Commit]:
        """Carry out a write, and return what it returned, with what became of the revisions in that.

        Cancellation (the client went away) cannot split it: it is carried out whole, or not at all.

        Args:
            write: Called with the verbs to use and with what its other questions to the server are to be asked
                through; perhaps in a thread, and more than once, so that it must begin from the bytes each time.
            size: How many bytes it is about.
            refusal: Makes the error for a write that never gets to its end, because others change the same object all
                the time.
            outside: Gets the answers to the write's questions, for which it is run anew; None if it asks none.

        Raises:
            ApiError: The refusal.
            Exception: What the write raises.
        """
        while True:
            try:
                return await self._run(write, size=size, refusal=refusal)
            except QuestionError as asked:
                if outside is None or self._answer is None:
                    raise
                if len(outside) == MOST_QUESTIONS:
                    raise refusal() from None
                question = asked.question
            answer = await self._answer(question)
            outside.tell(question, answer)
            size += _received(answer)

    async def _run(
        self, write: Callable[[Operations, Ask], T], *, size: int, refusal: Callable[[], ApiError]
    ) -> tuple[T, Commit]:
        if size <= LARGE:
            allowed = ALLOWED.set(LARGE)
            try:
                return write(self._operations, ask_at_once), NO_DRAFT
            except GrowthError:
                pass  # nothing has been written
            finally:
                ALLOWED.reset(allowed)
        for _ in range(TRIES):
            done = await self._beside(write)
            if done is not None:
                return done
        raise refusal()

    async def _beside(self, write: Callable[[Operations, Ask], T]) -> tuple[T, Commit] | None:
        """Work a write out in the thread, and carry it out; None if what it read has changed meanwhile."""
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="deltaloop-apiserver-large-writes")
        ask = self._ask_on(loop)
        drafted = self._operations.draft(ask)
        try:
            result = await loop.run_in_executor(self._thread, write, drafted, ask)
        except Exception:
            if self._operations.is_current(drafted):
                raise
            return None
        if not self._operations.is_current(drafted):
            return None
        return result, self._operations.commit(drafted)

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
                        raise  # it is the question's own
                    if self._closed:
                        raise _ClosedError from None

        return ask

    def close(self) -> None:
        """End: what has not been worked out will not be carried out."""
        self._closed = True
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
