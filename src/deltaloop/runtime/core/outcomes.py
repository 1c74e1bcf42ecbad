"""What becomes of a key when its reconcile has ended: one table, from which the code decides.

A reconcile ends in one of the cases of ``Case``; ``ROWS`` says for each what happens to the key, whether the failures
counted so far are forgotten, and under which ``result`` it is counted. In Python a function either returns or raises,
so upstream's "result and error" pair (where the result loses) cannot occur: what was to be returned is gone.

Source: controller-runtime pkg/internal/controller/controller.go ``reconcileHandler``, pkg/reconcile/reconcile.go.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast, final

import msgspec

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
@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a reconcile that went well asks for; ``None`` in its place asks for nothing.

    Attributes:
        requeue_after: Run again so many seconds after the end of this run; zero or less is at once. None is never.
        requeue: Run again when the rate limiter says so, as after an error but without one. ``requeue_after`` wins.
        jitter: By which part of itself ``requeue_after`` grows at most, by chance, so that objects that were reconciled
            together are not all reconciled together again; 0.1 is up to a tenth.

    Raises:
        ValueError: If ``requeue_after`` is no finite number, or ``jitter`` is no part of it.
    """

    requeue_after: float | None = None
    requeue: bool = False
    jitter: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no time."""
        if self.requeue_after is not None and not math.isfinite(self.requeue_after):
            raise ValueError(f"Result.requeue_after is {self.requeue_after!r}; a finite number of seconds is needed")
        if not 0.0 <= self.jitter <= 1.0:
            raise ValueError(f"Result.jitter is {self.jitter!r}; a part of requeue_after is needed, from 0.0 to 1.0")
        if self.jitter and self.requeue_after is None:
            raise ValueError("Result.jitter needs requeue_after: it lengthens that")


@final
class InvalidResultError(TerminalError, TypeError):
    """A reconciler returned something that is neither None nor a ``Result``; the fault is the reconciler's.

    Its key is parked: another run would return the same.

    Attributes:
        returned: Name of the class of what came back.
        where: Where the reconciler is defined, such as ``greeter.py:12 in reconcile``; empty if that is unknown.
    """

    def __init__(self, returned: str, *, awaitable: bool = False, where: str = "") -> None:
        """Keep what came back; an awaitable is a call that was not awaited."""
        what_to_do = (
            "declare it with `async def` and await the call, or run it by ctx.wait(...)"
            if awaitable
            else "return None or a Result"
        )
        super().__init__(f"the reconciler returned a {returned}; {what_to_do}")
        self.returned = returned
        self.where = where


@final
class NotAwaitedError(TerminalError):
    """A reconciler made calls and did not await them, so that they did nothing; the fault is the reconciler's.

    Its key is parked: another run would do the same.

    Attributes:
        calls: Which, and where, such as ``ctx.client.patch(...) at greeter.py:12 in reconcile``.
        where: Place of the first call.
    """

    def __init__(self, calls: Sequence[str]) -> None:
        """Keep which."""
        self.calls: tuple[str, ...] = tuple(calls)
        call, _, where = calls[0].partition(" at ")
        self.where: str = where
        super().__init__(
            f"{', '.join(calls)} was not awaited and did nothing; "
            f"write `await {call}`, or `ctx.wait({call})` in a plain function"
        )


@final
class ReconcileTimeoutError(DeltaloopError, TimeoutError):
    """A reconcile took longer than its controller's ``timeout``; it is tried again as after any error.

    Attributes:
        timeout: The limit in seconds.
    """

    def __init__(self, timeout: float) -> None:
        """Keep the limit."""
        super().__init__(f"the reconcile did not end within {timeout:g} s")
        self.timeout = timeout


@final
class Returned(msgspec.Struct, frozen=True):
    """The reconciler returned a value.

    Attributes:
        value: What it returned.
        not_awaited: The calls that it made and did not await, and where.
        where: Where the reconciler is defined, if the value is wrong.
    """

    value: object
    not_awaited: tuple[str, ...] = ()
    where: str = ""


@final
class Raised(msgspec.Struct, frozen=True):
    """The reconciler raised an exception."""

    error: Exception


@final
class TimedOut(msgspec.Struct, frozen=True):
    """The reconciler was over its time limit; what it returned or raised after that does not count."""

    timeout: float


@final
class Stopped(msgspec.Struct, frozen=True):
    """The reconcile was stopped from outside: leadership was lost, or the program ends."""


Ended: TypeAlias = Returned | Raised | TimedOut | Stopped


class Action(Enum):
    """What is done with the key."""

    FORGET = "done"
    REQUEUE_AFTER = "again after the requested time"
    RATE_LIMIT = "again after the rate limiter's delay"
    PARK = "parked until a change"
    PUT_BACK = "returned to the line"


class Case(Enum):
    """How a reconcile can end."""

    NOTHING = "nothing"
    AFTER = "after"
    REQUEUE = "requeue"
    INVALID = "invalid"
    TERMINAL = "terminal"
    TIMEOUT = "timeout"
    ERROR = "error"
    INTERRUPTED = "interrupted"


@final
class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table.

    Attributes:
        returned: What the reconciler returned, in words.
        raised: What it raised, in words.
        action: What is done with the key.
        forgets: Whether its failures are forgotten.
        result: The label of ``controller_runtime_reconcile_total``; empty if it is not counted.
        counters: Other counters that grow, beside that one.
    """

    returned: str = "–"
    raised: str = "–"
    action: Action
    forgets: bool
    result: str
    counters: tuple[str, ...] = ()


# The server's data can be the cause, or a file that is written later.
_CAN_HEAL: Final = (InvalidResourceVersionError, ConfigError)
_ERRORS: Final = "controller_runtime_reconcile_errors_total"
_TERMINAL: Final = "controller_runtime_terminal_reconcile_errors_total"
_TIMEOUTS: Final = "controller_runtime_reconcile_timeouts_total"

ROWS: Final[Mapping[Case, Row]] = MappingProxyType(
    {
        Case.NOTHING: Row(returned="`None` or `Result()`", action=Action.FORGET, forgets=True, result="success"),
        Case.AFTER: Row(
            returned="`Result(requeue_after=s)`, with or without `requeue`",
            action=Action.REQUEUE_AFTER,
            forgets=True,
            result="requeue_after",
        ),
        Case.REQUEUE: Row(returned="`Result(requeue=True)`", action=Action.RATE_LIMIT, forgets=False, result="requeue"),
        Case.INVALID: Row(
            returned="any other value, or a call was not awaited",
            action=Action.PARK,
            forgets=True,
            result="error",
            counters=(_ERRORS, _TERMINAL),
        ),
        Case.ERROR: Row(
            raised="an exception", action=Action.RATE_LIMIT, forgets=False, result="error", counters=(_ERRORS,)
        ),
        Case.TERMINAL: Row(
            raised="`TerminalError`, `InvalidArgumentError`, or a group of only these",
            action=Action.PARK,
            forgets=True,
            result="error",
            counters=(_ERRORS, _TERMINAL),
        ),
        Case.TIMEOUT: Row(
            returned="any result after the timeout",
            raised="any result after the timeout",
            action=Action.RATE_LIMIT,
            forgets=False,
            result="error",
            counters=(_ERRORS, _TIMEOUTS),
        ),
        Case.INTERRUPTED: Row(
            returned="any result after lost leadership or shutdown",
            raised="any result after lost leadership or shutdown",
            action=Action.PUT_BACK,
            forgets=False,
            result="",
        ),
    }
)
"""What happens in each case."""


@final
class KeyDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What is done with one key.

    Attributes:
        case: How its reconcile ended.
        row: The line of the table that this is.
        delay: Seconds until the run that was asked for, if one was.
        jitter: By which part of itself the delay grows at most.
        error: Why it failed, if it did.
    """

    case: Case
    row: Row
    delay: float = 0.0
    jitter: float = 0.0
    error: Exception | None = None

    @property
    def action(self) -> Action:
        """What is done with the key."""
        return self.row.action

    @property
    def terminal(self) -> bool:
        """Whether it failed for good."""
        return self.action is Action.PARK

    @property
    def timed_out(self) -> bool:
        """Whether it was over its time limit."""
        return self.case is Case.TIMEOUT


NOTHING: Final = KeyDecision(case=Case.NOTHING, row=ROWS[Case.NOTHING])
"""Most reconciles end so."""


def decide(ended: Ended, *, declared: Iterable[str] = ()) -> KeyDecision:
    """Decide about a key whose reconcile has ended.

    Args:
        ended: How it has ended.
        declared: Kinds that the controller declares, such as ``Foo``: the server may serve them later.
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
    """Return whether a name such as ``foos.example.com`` can be one of a kind such as ``Foo``."""
    return kind.partition(".")[0].lower() in name.lower()


def _of_value(value: object, where: str) -> KeyDecision:
    if value is None:
        return _decision(Case.NOTHING)
    if not isinstance(value, Result):
        returned = type(cast("Any", value)).__name__
        awaitable = isinstance(value, Awaitable)
        return _decision(Case.INVALID, error=InvalidResultError(returned, awaitable=awaitable, where=where))
    if value.requeue_after is not None:
        return _decision(Case.AFTER, delay=value.requeue_after, jitter=value.jitter)
    return _decision(Case.REQUEUE if value.requeue else Case.NOTHING)


def _decision(case: Case, *, delay: float = 0.0, jitter: float = 0.0, error: Exception | None = None) -> KeyDecision:
    if case is Case.NOTHING:
        return NOTHING
    return KeyDecision(case=case, row=ROWS[case], delay=delay, jitter=jitter, error=error)
