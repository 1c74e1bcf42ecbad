"""When a check that is made again and again has succeeded, and what to say when it never does.

A try ends in one of three ways: it returned something true (success), it returned something that is not, or it raised.
Tries are made at once, then every so many seconds, and one last time when the time is over. What is reported is the
last try, and how many there were; a try that was still under way at the end is said to be.
"""

from __future__ import annotations

import reprlib
from typing import final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.redaction import redact

_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 400
_SHOWN.maxdict = _SHOWN.maxlist = _SHOWN.maxtuple = _SHOWN.maxset = 10


@final
class EventuallyError(DeltaloopError, AssertionError):
    """Something did not become true in time.

    What the last try raised, if it did, is the cause.

    Attributes:
        within: Seconds that were waited.
        attempts: How many tries were made.
        last_value: What the last try returned, if it returned.
    """

    def __init__(self, message: str, *, within: float, attempts: int, last_value: object) -> None:
        """Keep what is known."""
        super().__init__(message)
        self.within = within
        self.attempts = attempts
        self.last_value = last_value


@final
class Attempts:
    """The tries of one check."""

    def __init__(self, what: str, *, within: float, every: float, now: float) -> None:
        """Begin now.

        Args:
            what: What should become true, for the report; "" names nothing.
            within: Seconds until the last try.
            every: Seconds between tries.
            now: The present time in seconds.

        Raises:
            ValueError: If a number of seconds is negative, or there is none between tries.
        """
        if not within >= 0 or not every > 0:
            raise ValueError(f"eventually(within={within!r}, every={every!r}): 0 or more, and more than 0, are needed")
        self._what = what or "it"
        self._within = within
        self._every = every
        self.until: float = now + within
        self._last = "no try was made"
        self._value: object = None
        self._error: Exception | None = None
        self._attempts = 0
        self._is_last = False

    def begin(self) -> None:
        """A try begins."""
        self._attempts += 1
        self._value, self._error = None, None
        self._last = "the last try has not returned"

    def returned(self, value: object) -> bool:
        """Take what a try returned, and return whether that is success."""
        self._value = value
        if value is None:
            # Most often a function that asserts and returns nothing: it would pass without having said so.
            self._last = "the last try returned None, which is not true (a check made of asserts ends with return True)"
        else:
            self._last = f"the last try returned {redact(_SHOWN.repr(value))}"
        return bool(value)

    def raised(self, error: Exception) -> None:
        """Take what a try raised."""
        self._error = error
        text = str(redact(str(error))).strip()
        self._last = f"the last try raised {type(error).__name__}{': ' + text if text else ''}"

    def pause(self, now: float) -> float | None:
        """Return how long to wait before the next try, or None after the last."""
        # Not by the clock alone: a wait may end a hair before its time, and the next would be shorter than any clock.
        if self._is_last or now >= self.until:
            return None
        self._is_last = now + self._every >= self.until
        return min(self._every, self.until - now)

    def failure(self) -> EventuallyError:
        """Return the error to raise, with its cause."""
        tries = "1 try" if self._attempts == 1 else f"{self._attempts} tries"
        error = EventuallyError(
            f"{self._what} did not become true within {self._within:g} s ({tries}): {self._last}",
            within=self._within,
            attempts=self._attempts,
            last_value=self._value,
        )
        error.__cause__ = self._error
        return error
