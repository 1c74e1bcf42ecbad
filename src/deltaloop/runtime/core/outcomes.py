"""Table of decisions about a key after its reconcile.

``ROWS`` specifies for each ``Case`` what happens to the key, whether its failures are forgotten, and the ``result``
label of the metric.

Source: controller-runtime pkg/internal/controller/controller.go ``reconcileHandler``, pkg/reconcile/reconcile.go.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast, final

import msgspec

from deltaloop._internal.option_types import Options
from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import (
    InvalidArgumentError,
    InvalidResourceVersionError,
    MalformedObjectError,
    UnknownResourceError,
)
from deltaloop.client.errors import ConfigError
from deltaloop.workqueue.errors import TerminalError, is_terminal


@final
class Result(Options, frozen=True, kw_only=True):
    """Request of a successful reconcile for another reconcile; returning ``None`` requests nothing.

    Attributes:
        requeue_after: Time in seconds from the end of this reconcile to the next one. Zero or less means immediately,
            None means never.
        requeue: Whether to reconcile again with the rate limiter's delay, like after an error. ``requeue_after`` takes
            precedence.
        jitter: Maximum random increase of ``requeue_after`` as a fraction, for example 0.1 for up to 10 %. It spreads
            objects that were reconciled together.

    Raises:
        ValueError: If ``requeue_after`` is not finite, or if ``jitter`` is not between 0 and 1 or is set without it.
    """

    requeue_after: float | None = None
    requeue: bool = False
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if self.requeue_after is not None and not math.isfinite(self.requeue_after):
            raise InvalidArgumentError(
                f"must be a finite number, got {self.requeue_after!r}.", argument="Result.requeue_after"
            )
        if not 0.0 <= self.jitter <= 1.0:
            raise InvalidArgumentError(f"must be from 0.0 to 1.0, got {self.jitter!r}.", argument="Result.jitter")
        if self.jitter and self.requeue_after is None:
            raise InvalidArgumentError("must be set together with requeue_after.", argument="Result.jitter")


@final
class InvalidResultError(TerminalError, TypeError):
    """A reconcile function returned a value that is neither None nor a ``Result``.

    The key is parked, because a retry would return the same.

    Attributes:
        returned: Class name of the value.
        where: Location of the function, for example ``greeter.py:12 in reconcile``; empty if unknown.
    """

    def __init__(self, returned: str, *, awaitable: bool = False, where: str = "") -> None:
        """Keep the class name; ``awaitable`` is whether the value is a call that was not awaited."""
        what_to_do = (
            "Declare it with `async def` and await the call, or use ctx.wait(...)."
            if awaitable
            else "Return None or a Result."
        )
        super().__init__(f"the reconcile function returned an invalid value of type {returned}. {what_to_do}")
        self.returned = returned
        self.where = where


@final
class NotAwaitedError(TerminalError):
    """A reconcile function did not await calls, so they had no effect.

    The key is parked, because a retry would do the same.

    Attributes:
        calls: Calls with their locations, for example ``ctx.client.patch(...) at greeter.py:12 in reconcile``.
        where: Location of the first call.
    """

    def __init__(self, calls: Sequence[str]) -> None:
        self.calls: tuple[str, ...] = tuple(calls)
        call, _, where = calls[0].partition(" at ")
        self.where: str = where
        super().__init__(
            f"{', '.join(calls)} had no effect, because it was not awaited. "
            f"Write `await {call}`, or `ctx.wait({call})` in a plain function."
        )


@final
class ReconcileTimeoutError(DeltaloopError, TimeoutError):
    """A reconcile exceeded its controller's ``timeout``; it is retried like after other errors.

    Attributes:
        timeout: Timeout in seconds.
    """

    def __init__(self, timeout: float) -> None:
        """Keep the timeout in seconds."""
        super().__init__(f"the reconcile did not end within {timeout:g} s")
        self.timeout = timeout


@final
class Returned(msgspec.Struct, frozen=True):
    value: object
    not_awaited: tuple[str, ...] = ()
    where: str = ""


@final
class Raised(msgspec.Struct, frozen=True):
    error: Exception


@final
class TimedOut(msgspec.Struct, frozen=True):
    """The reconcile exceeded its timeout in seconds; its result does not count."""

    timeout: float


@final
class Stopped(msgspec.Struct, frozen=True):
    """The reconcile was stopped, because leadership was lost or the program ends."""


Ended: TypeAlias = "Returned | Raised | TimedOut | Stopped"


class Action(Enum):
    FORGET = "done"
    REQUEUE_AFTER = "again after the requested time"
    RATE_LIMIT = "again after the rate limiter's delay"
    PARK = "parked until a change"
    PUT_BACK = "returned to the line"


class Case(Enum):
    NOTHING = "nothing"
    AFTER = "after"
    REQUEUE = "requeue"
    INVALID = "invalid"
    TERMINAL = "terminal"
    TIMEOUT = "timeout"
    ERROR = "error"
    INTERRUPTED = "interrupted"


@final
class Row(msgspec.Struct, frozen=True):
    """One row of the table; without a ``result``, the metric does not count the reconcile."""

    action: Action
    result: str
    counters: tuple[str, ...] = ()


_CAN_HEAL: Final = (InvalidResourceVersionError, ConfigError)
_ERRORS: Final = "controller_runtime_reconcile_errors_total"
_TERMINAL: Final = "controller_runtime_terminal_reconcile_errors_total"
_TIMEOUTS: Final = "controller_runtime_reconcile_timeouts_total"

SUCCESSES: Final = (Action.FORGET, Action.REQUEUE_AFTER)
ROWS: Final[Mapping[Case, Row]] = MappingProxyType(
    {
        Case.NOTHING: Row(Action.FORGET, "success"),
        Case.AFTER: Row(Action.REQUEUE_AFTER, "requeue_after"),
        Case.REQUEUE: Row(Action.RATE_LIMIT, "requeue"),
        Case.INVALID: Row(Action.PARK, "error", (_ERRORS, _TERMINAL)),
        Case.ERROR: Row(Action.RATE_LIMIT, "error", (_ERRORS,)),
        Case.TERMINAL: Row(Action.PARK, "error", (_ERRORS, _TERMINAL)),
        Case.TIMEOUT: Row(Action.RATE_LIMIT, "error", (_ERRORS, _TIMEOUTS)),
        Case.INTERRUPTED: Row(Action.PUT_BACK, ""),
    }
)


@final
class KeyDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Decision about one key; ``delay`` is in seconds, and ``jitter`` is its maximum random increase as a fraction."""

    case: Case
    row: Row
    delay: float = 0.0
    jitter: float = 0.0
    error: Exception | None = None

    @property
    def action(self) -> Action:
        return self.row.action

    @property
    def terminal(self) -> bool:
        return self.action is Action.PARK

    @property
    def timed_out(self) -> bool:
        return self.case is Case.TIMEOUT


NOTHING: Final = KeyDecision(case=Case.NOTHING, row=ROWS[Case.NOTHING])


def decide(ended: Ended, *, declared: Iterable[str] = ()) -> KeyDecision:
    """Return the decision about a key.

    Errors about the ``declared`` kinds are retried, because they can be served later.
    """
    match ended:
        case Stopped():
            return _decision(Case.INTERRUPTED)
        case TimedOut(timeout):
            return _decision(Case.TIMEOUT, error=ReconcileTimeoutError(timeout))
        case Raised(error):
            return _decision(Case.TERMINAL if _is_final(error, declared) else Case.ERROR, error=error)
        case Returned(_, not_awaited) if not_awaited:
            return _decision(Case.INVALID, error=NotAwaitedError(not_awaited))
        case Returned(value, _, where):
            return _of_value(value, where)


def _is_final(error: BaseException, declared: Iterable[str]) -> bool:
    """Return whether another run would fail in the same way."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(_is_final(member, declared) for member in group.exceptions)
    if isinstance(error, UnknownResourceError):
        return bool(error.name) and not any(_may_be(error.name, kind) for kind in declared)
    if isinstance(error, MalformedObjectError) and not is_terminal(error):
        return error.given
    wrong = isinstance(error, InvalidArgumentError) and not isinstance(error, _CAN_HEAL)
    return wrong or is_terminal(error)


def _may_be(name: str, kind: str) -> bool:
    """Return whether a name such as ``foos.example.com`` can mean a kind such as ``Foo``."""
    return kind.partition(".")[0].lower() in name.lower()


def _of_value(value: object, where: str) -> KeyDecision:
    if value is None:
        return _decision(Case.NOTHING)
    if not isinstance(value, Result):
        returned = "type" if isinstance(value, type) else type(cast("Any", value)).__name__
        awaitable = isinstance(value, Awaitable)
        return _decision(Case.INVALID, error=InvalidResultError(returned, awaitable=awaitable, where=where))
    if value.requeue_after is not None:
        return _decision(Case.AFTER, delay=value.requeue_after, jitter=value.jitter)
    return _decision(Case.REQUEUE if value.requeue else Case.NOTHING)


def _decision(case: Case, *, delay: float = 0.0, jitter: float = 0.0, error: Exception | None = None) -> KeyDecision:
    if case is Case.NOTHING:
        return NOTHING
    return KeyDecision(case=case, row=ROWS[case], delay=delay, jitter=jitter, error=error)
