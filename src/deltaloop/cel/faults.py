"""What is wrong with an expression, and where: found before it runs, or while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from deltaloop._internal.root_error import DeltaloopError


@dataclass(frozen=True, slots=True)
class ExpressionFault:
    """One thing that is wrong with the text of an expression.

    Attributes:
        message: What is wrong, in cel-go's words.
        offset: Where, in characters from the text's beginning; -1 if it is the whole text.
        line: The line, from 1 on.
        column: The column, from 1 on.
    """

    message: str
    offset: int
    line: int
    column: int

    def shown(self, source: str) -> str:
        """Return it as kube-apiserver shows it: with the line that it is in, and a mark below the place."""
        lines = source.split("\n")
        head = f"ERROR: <input>:{self.line}:{self.column}: {self.message}"
        if self.offset < 0 or self.line > len(lines):
            return head
        line = lines[self.line - 1].replace("\t", " ")
        before = "".join("." if character.isascii() else "．" for character in line[: self.column - 1])
        mark = "^" if line[self.column - 1 : self.column].isascii() else "＾"
        return f"{head}\n | {line}\n | {before}{mark}"


def fault_at(source: str, offset: int, message: str) -> ExpressionFault:
    """Return a fault at a place of a text."""
    if offset < 0:
        return ExpressionFault(message, -1, -1, 0)
    before = source[:offset]
    return ExpressionFault(message, offset, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


class InvalidExpressionError(DeltaloopError):
    """An expression cannot be compiled; its author must correct it.

    Attributes:
        source: The expression.
        faults: All that is wrong with it, in the order of the text.
        checked: Whether its types fit, and only a constant in it is wrong: kube-apiserver says that in other words.
    """

    def __init__(self, source: str, faults: tuple[ExpressionFault, ...], *, checked: bool = False) -> None:
        super().__init__("\n".join(fault.shown(source) for fault in faults))
        self.source = source
        self.faults = faults
        self.checked = checked


class EvaluationError(DeltaloopError):
    """An expression has no value for these bindings: a key is missing, a number overflows, a type does not fit.

    Attributes:
        message: What happened, in cel-go's words.
        wrong_types: Whether it is that a function takes no values like these.
    """

    def __init__(self, message: str, *, wrong_types: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.wrong_types = wrong_types


class CostLimitError(EvaluationError):
    """An expression costs more than its budget; nothing in the expression can catch this."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class InternalError(Exception):
    """cel-go itself fails on a value: the whole expression ends, whatever is around; its user gets an evaluation error.

    Attributes:
        message: What happened, in Go's words.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@final
class FailedValue:
    """What there is instead of a value that could not be computed or read; whoever uses it gets the error.

    Attributes:
        error: Why there is no value.
    """

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error: EvaluationError = error


def sound(value: Any) -> Any:
    """Return a value that is to be part of a list or a map.

    Raises:
        EvaluationError: If it could not be computed or read.
    """
    if type(value) is FailedValue:
        raise value.error
    return value


def no_such_overload(*values: object, named: str = "") -> EvaluationError:
    """Return the error of values that no implementation takes; that of the first that has failed, if one has."""
    for value in values:
        if isinstance(value, FailedValue):
            return value.error
    return EvaluationError(f"no such overload{named}", wrong_types=True)
