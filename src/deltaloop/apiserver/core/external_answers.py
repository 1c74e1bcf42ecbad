"""External answers that a write needs, for example the response of a webhook.

If it needs a missing answer, it raises ``QuestionError`` before it has written any object. The caller finds the answer
and repeats the write with the current objects. A question about an object that changed in between is different.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import final


class QuestionError(Exception):
    def __init__(self, question: Hashable) -> None:
        super().__init__("the write needs an answer from outside of the server")
        self.question = question


@final
class ExternalAnswers:
    def __init__(self) -> None:
        self._answers: dict[Hashable, object] = {}

    def ask(self, question: Hashable) -> object:
        """Return the answer, or raise QuestionError if it is missing."""
        if question not in self._answers:
            raise QuestionError(question)
        return self._answers[question]

    def tell(self, question: Hashable, answer: object) -> None:
        self._answers[question] = answer

    def __len__(self) -> int:
        return len(self._answers)
