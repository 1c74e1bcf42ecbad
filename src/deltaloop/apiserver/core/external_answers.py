"""External answers that a write needs, such as the response of a webhook.

A write runs in one step and cannot wait. If it needs an answer that is not there yet, it raises ``QuestionError``
before it has written anything. Its driver finds the answer, adds it, and runs the write again from its body and the
current objects. Equal questions are asked once; a question about an object that has changed meanwhile is another one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import final


class QuestionError(Exception):
    """A write needs an external answer.

    Attributes:
        question: Question whose answer the driver must find.
    """

    def __init__(self, question: Hashable) -> None:
        super().__init__("the write needs an answer from outside of the server")
        self.question = question


@final
class ExternalAnswers:
    """Answers to the questions of one request."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, object] = {}

    def ask(self, question: Hashable) -> object:
        """Return the answer.

        Raises:
            QuestionError: If the answer is not there yet.
        """
        if question not in self._answers:
            raise QuestionError(question)
        return self._answers[question]

    def tell(self, question: Hashable, answer: object) -> None:
        """Add an answer."""
        self._answers[question] = answer

    def __len__(self) -> int:
        return len(self._answers)
