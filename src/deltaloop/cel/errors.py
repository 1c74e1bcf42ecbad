"""Errors of expressions, at compile time and at run time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from deltaloop._internal.root_error import DeltaloopError


@dataclass(frozen=True, slots=True)
class ExpressionFault:
    """Error in the text of an expression.

    Attributes:
        message: Message of cel-go.
        offset: Position in characters, or -1 for the whole text.
        line: Line, starting at 1.
        column: Column, starting at 1.
    """

    message: str
    offset: int
    line: int
    column: int

    def shown(self, source: str) -> str:
        """Return the error in kube-apiserver's form: with its line, and a mark below the position."""
        lines = source.split("\n")
        head = f"ERROR: <input>:{self.line}:{self.column}: {self.message}"
        if self.offset < 0 or self.line > len(lines):
            return head
        line = lines[self.line - 1].replace("\t", " ")
        before = "".join("." if character.isascii() else "．" for character in line[: self.column - 1])
        mark = "^" if line[self.column - 1 : self.column].isascii() else "＾"
        return f"{head}\n | {line}\n | {before}{mark}"


def fault_at(source: str, offset: int, message: str) -> ExpressionFault:
    if offset < 0:
        return ExpressionFault(message, -1, -1, 0)
    before = source[:offset]
    return ExpressionFault(message, offset, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


class InvalidExpressionError(DeltaloopError):
    """An expression cannot be compiled.

    Attributes:
        source: Text of the expression.
        faults: All errors in the order of the text.
        checked: Whether its types are valid and only a constant is invalid, for which kube-apiserver has a different
            message.
    """

    def __init__(self, source: str, faults: tuple[ExpressionFault, ...], *, checked: bool = False) -> None:
        super().__init__("\n".join(fault.shown(source) for fault in faults))
        self.source = source
        self.faults = faults
        self.checked = checked


class EvaluationError(DeltaloopError):
    """An expression has no value for its bindings, for example because of a missing key or an overflow.

    Attributes:
        message: Message of cel-go.
        wrong_types: Whether no overload accepts the values.
    """

    def __init__(self, message: str, *, wrong_types: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.wrong_types = wrong_types


class CostLimitError(EvaluationError):
    """An expression exceeds its budget, which no operator can catch."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class InternalError(Exception):
    """cel-go itself fails on a value, which ends the whole expression with Go's ``message``."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@final
class FailedValue:
    """Placeholder of a value that could not be computed or read. Its users raise the error."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error: EvaluationError = error


def sound(value: Any) -> Any:
    if type(value) is FailedValue:
        raise value.error
    return value


def first_error(value: object, later: EvaluationError) -> EvaluationError:
    """Return the error of an operand if it failed, and the later error otherwise. A spent budget precedes both."""
    return value.error if isinstance(value, FailedValue) and not isinstance(later, CostLimitError) else later


def no_such_overload(*values: object, named: str = "") -> EvaluationError:
    for value in values:
        if isinstance(value, FailedValue):
            return value.error
    return EvaluationError(f"no such overload{named}", wrong_types=True)


def succeeds(compute: Callable[..., object], *values: object) -> bool:
    """Return whether a function has a value for its arguments."""
    try:
        compute(*values)
    except EvaluationError:
        return False
    return True
