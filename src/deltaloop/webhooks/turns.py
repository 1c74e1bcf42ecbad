"""Share the event loop with long work: conversions take turns of a few milliseconds, large objects go to a thread.

There is only one thread, because each computing thread delays the loop by the switch interval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, Self, TypeVar, cast, final

from deltaloop._internal.threads import beside_loop
from deltaloop.webhooks.answer import Answer, Steps, finished
from deltaloop.webhooks.converting import KindConversion, ReviewConversion, refused_conversion
from deltaloop.webhooks.core.admission_review import InvalidReviewError
from deltaloop.webhooks.core.bytes_in_flight import HeldBytes, TooManyBytesError
from deltaloop.webhooks.core.conversion_review import ConversionRequest, read_conversion_review
from deltaloop.webhooks.core.review_splitting import is_costly, split_review

T = TypeVar("T")

_TURN: Final = 0.005
_STEPS: Final = 16
_PASSES: Final = 3


@final
class LateError(Exception):
    """The API server no longer waits for the response."""


@final
class Turns:
    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._one_large = asyncio.Lock()
        self._thread: ThreadPoolExecutor | None = None

    def take(self, deadline: float) -> Turn:
        """Return the turns of one request. The deadline is a time on the event loop's clock."""
        return Turn(self, self._lock, deadline)

    async def outside(self, steps: Steps[T], deadline: float) -> T:
        """Run steps in the thread, but every second step, which calls a function of the program, on the loop."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="webhooks")
        async with self._one_large:
            while True:
                _check(deadline)
                done, result = await beside_loop(partial(_advance, steps), self._thread)
                if not done:
                    _check(deadline)
                    done, result = _advance(steps)
                if done:
                    return cast("T", result)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False)


@final
class Turn:
    def __init__(self, turns: Turns, lock: asyncio.Lock, deadline: float) -> None:
        self._turns = turns
        self._lock = lock
        self._deadline = deadline
        self._loop = asyncio.get_running_loop()
        self._has_turn = False
        self._began = 0.0
        self._steps = 0

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._end()

    async def worked(self) -> None:
        """Let other requests run if this turn has lasted long enough; raises LateError after the deadline."""
        self._steps += 1
        if self._steps < _STEPS and self._loop.time() - self._began < _TURN:
            return
        _check(self._deadline)
        for _ in range(_PASSES):
            await asyncio.sleep(0)
        self._end()
        await self._begin()

    async def outside(self, steps: Steps[T]) -> T:
        self._end()
        result = await self._turns.outside(steps, self._deadline)
        await self._begin()
        return result

    async def _begin(self) -> None:
        await self._lock.acquire()
        self._has_turn = True
        self._began, self._steps = self._loop.time(), 0

    def _end(self) -> None:
        if self._has_turn:  # the request may be waiting for its turn
            self._has_turn = False
            self._lock.release()


def _check(deadline: float) -> None:
    if asyncio.get_running_loop().time() > deadline:
        raise LateError


def _advance(steps: Steps[Any]) -> tuple[bool, Any]:
    try:
        next(steps)
    except StopIteration as stop:
        return True, stop.value
    return False, None


async def convert_review(
    conversion: KindConversion, body: bytearray, turns: Turns, deadline: float, *, max_objects: int, held: HeldBytes
) -> Answer:
    """Convert the objects of a review, and empty its body; responses count where they are larger."""
    async with turns.take(deadline) as turn:
        try:
            if not is_costly(body):
                request = read_conversion_review(body)
                objects: Iterable[dict[str, Any] | bytearray] = request.objects
            else:
                request, spans = await _split(body, turn, max_objects)
                objects = (body[begin:end] for begin, end in spans)
        except InvalidReviewError as error:
            return refused_conversion(error)
        review, counted = ReviewConversion(conversion, request.uid, request.desired), len(body)
        for obj in objects:
            steps = review.object_steps(obj)
            costly = not isinstance(obj, dict) and is_costly(obj)
            answer = await turn.outside(steps) if costly else finished(steps)
            if answer is not None:
                return answer
            if review.size > counted:
                if not held.grow(review.size - counted):
                    raise TooManyBytesError
                counted = review.size
            await turn.worked()
        body.clear()
        return review.converted()


async def _split(body: bytearray, turn: Turn, max_objects: int) -> tuple[ConversionRequest, list[tuple[int, int]]]:
    splitting = split_review(body, max_objects=max_objects)
    while True:
        try:
            next(splitting)
        except StopIteration as stop:
            split = stop.value
            return read_conversion_review(split.envelope), split.spans
        await turn.worked()
