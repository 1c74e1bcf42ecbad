"""Convert large reviews in turns, so that they do not block the event loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from deltaloop.webhooks.answer import Answer
from deltaloop.webhooks.converting import KindConversion, ReviewConversion, refused_conversion
from deltaloop.webhooks.core.admission_review import InvalidReviewError
from deltaloop.webhooks.core.bytes_in_flight import HeldBytes, TooManyBytesError
from deltaloop.webhooks.core.conversion_review import ConversionRequest, read_conversion_review
from deltaloop.webhooks.core.review_splitting import is_costly, split_review
from deltaloop.webhooks.steps import finished
from deltaloop.webhooks.turns import Turn, Turns


async def convert_review(
    conversion: KindConversion, body: bytearray, turns: Turns, deadline: float, *, max_objects: int, held: HeldBytes
) -> Answer:
    """Convert the objects of a review, and empty its body; responses count where they are larger.

    Raises:
        TooManyBytesError: If the reviews and responses in flight exceed their limit.
        ReviewTooLargeError: If the review or an object exceeds a limit.
        LateError: If the deadline, a time on the event loop's clock, has passed.
    """
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
