"""Reject writes after leadership may have ended.

Threads cannot be canceled, and a suspended process does not know that its lease expired. Therefore ``term.client``
checks the clock immediately before it sends a write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast, final

from deltaloop.api.errors import DeltaloopError


class LeadershipLostError(DeltaloopError):
    """This process does not lead any more and must not act as the leader.

    Let the work end, and contend again.

    Attributes:
        lock: Lock, as ``namespace/name`` of its object.
        identity: Identity of this candidate, as in the lock's ``holderIdentity``.
        fencing_token: Token of the ended term, or an empty string without a term.
    """

    def __init__(self, message: str, *, lock: str, identity: str, fencing_token: str = "") -> None:
        super().__init__(message)
        self.lock = lock
        self.identity = identity
        self.fencing_token = fencing_token


@final
class LeadershipGuard:
    """Thread-safe check that a term has not ended.

    After the end of the term, it stays closed.
    """

    __slots__ = ("_clock", "_closed", "_deadline", "fencing_token", "identity", "lock")

    def __init__(
        self, deadline: Callable[[], float], clock: Callable[[], float], *, lock: str, identity: str, fencing_token: str
    ) -> None:
        """Create the guard of a term.

        Args:
            deadline: Function that returns the current end of leadership on ``clock``.
            clock: Clock in seconds that runs during suspend.
            lock: Lock, as ``namespace/name`` of its object.
            identity: Identity of this candidate, as in the lock's ``holderIdentity``.
            fencing_token: Fencing token of the term. It increases from term to term.
        """
        self._deadline = deadline
        self._clock = clock
        self._closed = False
        self.lock: str = lock
        self.identity: str = identity
        self.fencing_token: str = fencing_token

    @property
    def is_open(self) -> bool:
        """Whether writes are allowed."""
        return not self._closed and self._clock() < self._deadline()

    def check(self, action: str) -> None:
        """Check that ``action`` is allowed.

        Raises:
            LeadershipLostError: If it is not allowed.
        """
        if not self.is_open:
            raise LeadershipLostError(
                f"{action} rejected: {self.identity} no longer leads {self.lock}",
                lock=self.lock,
                identity=self.identity,
                fencing_token=self.fencing_token,
            )

    def close(self) -> None:
        """Reject all further writes."""
        self._closed = True

    def caused(self, error: BaseException | None) -> bool:
        """Return whether this guard raised the error, or all errors of the group."""
        if isinstance(error, BaseExceptionGroup):
            group = cast("BaseExceptionGroup[BaseException]", error)
            return all(self.caused(inner) for inner in group.exceptions)
        return (
            isinstance(error, LeadershipLostError)
            and error.fencing_token == self.fencing_token
            and error.lock == self.lock
        )
