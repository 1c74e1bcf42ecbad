"""Repeated attempts of a check: when to stop, and the error of the last attempt if all fail."""

from __future__ import annotations

import reprlib
from typing import final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.redaction import redact

_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 400
_SHOWN.maxdict = _SHOWN.maxlist = _SHOWN.maxtuple = _SHOWN.maxset = 10


@final
class EventuallyError(DeltaloopError, AssertionError):
    """Error of a condition that did not become true in time.

    Its cause is the error of the last attempt, if that raised.

    Attributes:
        within: Time limit in seconds.
        attempts: Number of attempts.
        last_value: Value that the last attempt returned; None if it did not return.
    """

    def __init__(self, message: str, *, within: float, attempts: int, last_value: object) -> None:
        super().__init__(message)
        self.within = within
        self.attempts = attempts
        self.last_value = last_value


@final
class Attempts:
    def __init__(self, what: str, *, within: float, every: float, now: float) -> None:
        """Begin; raise InvalidArgumentError if ``within`` is negative or ``every`` is not positive, both in seconds."""
        if not within >= 0 or not every > 0:
            raise InvalidArgumentError(
                f"must be within >= 0 and every > 0, got {within!r} and {every!r}.", argument="eventually"
            )
        self._what = what or "it"
        self._within = within
        self._every = every
        self.until: float = now + within
        self._last = "no attempt was made"
        self._value: object = None
        self._error: Exception | None = None
        self._attempts = 0
        self._is_last = False

    def begin(self) -> None:
        self._attempts += 1
        self._value, self._error = None, None
        self._last = "the last attempt has not returned"

    def returned(self, value: object) -> bool:
        self._value = value
        if value is None:
            # Usually a function that asserts without a result: accepting it would hide a missing return.
            self._last = "the last attempt returned None, not a true value (end a check of asserts with return True)"
        else:
            self._last = f"the last attempt returned {redact(_SHOWN.repr(value))}"
        return bool(value)

    def raised(self, error: Exception) -> None:
        self._error = error
        text = str(redact(str(error))).strip()
        self._last = f"the last attempt raised {type(error).__name__}{': ' + text if text else ''}"

    def pause(self, now: float) -> float | None:
        """Return the seconds until the next attempt; None after the last."""
        # Do not rely on the clock alone: a sleep can end slightly early, and the next one would be shorter than its
        # resolution.
        if self._is_last or now >= self.until:
            return None
        self._is_last = now + self._every >= self.until
        return min(self._every, self.until - now)

    def failure(self) -> EventuallyError:
        tries = "1 attempt" if self._attempts == 1 else f"{self._attempts} attempts"
        error = EventuallyError(
            f"{self._what} did not become true within {self._within:g} s ({tries}): {self._last}",
            within=self._within,
            attempts=self._attempts,
            last_value=self._value,
        )
        error.__cause__ = self._error
        return error
