"""What a write needs to know from outside of the server, such as a webhook's answer: it is asked, and begins anew.

A write is worked out in one step and cannot wait. So where it needs an answer that nobody has given yet, it ends with
``QuestionError``, before it has written anything; its driver finds the answer, tells it, and runs the write again, from
its body and from what is stored by then. A question that is equal to one that was answered is not asked again; if the
object has changed meanwhile, it is another question, as when a real server tries an update again.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import final


class QuestionError(Exception):
    """A write needs an answer.

    Attributes:
        question: What is asked; the driver knows how to find the answer.
    """

    def __init__(self, question: Hashable) -> None:
        """End a write with a question."""
        super().__init__("a write needs an answer from outside of the server")
        self.question = question


@final
class Outside:
    """The answers that one request has got."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._answers: dict[Hashable, object] = {}

    def ask(self, question: Hashable) -> object:
        """Return the answer.

        Raises:
            QuestionError: If nobody has told it yet.
        """
        if question not in self._answers:
            raise QuestionError(question)
        return self._answers[question]

    def tell(self, question: Hashable, answer: object) -> None:
        """Note an answer."""
        self._answers[question] = answer

    def __len__(self) -> int:
        """Return how many questions were answered."""
        return len(self._answers)
