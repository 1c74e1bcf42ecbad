"""The guard of a term: it refuses writes once leadership may have ended (core/election.py has ``guard_until``).

Cancelling the work is not enough: a thread cannot be cancelled, a coroutine may swallow it, and a process that was
suspended does not even know. So every write through ``term.client`` asks the clock first, right before it is sent
(``Client.with_write_check``). What remains is a process that is paused between this check and the send; the fencing
token is for that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast, final

from deltaloop.api.errors import DeltaloopError


class LeadershipLostError(DeltaloopError):
    """This process does not lead any more, so it must not act as the leader; let the work end, and contend again.

    Attributes:
        lock: The lock, as ``namespace/name`` of its object.
        identity: The identity of this candidate, as in the lock's ``holderIdentity``.
        fencing_token: The token of the term that has ended; empty if there was none.
    """

    def __init__(self, message: str, *, lock: str, identity: str, fencing_token: str = "") -> None:
        """Keep which leadership is meant."""
        super().__init__(message)
        self.lock = lock
        self.identity = identity
        self.fencing_token = fencing_token


@final
class LeadershipGuard:
    """Tells whether one term still stands; from any thread.

    Closed for good when the term has ended.
    """

    __slots__ = ("_clock", "_closed", "_deadline", "fencing_token", "identity", "lock")

    def __init__(
        self, deadline: Callable[[], float], clock: Callable[[], float], *, lock: str, identity: str, fencing_token: str
    ) -> None:
        """Make the guard of a term.

        Args:
            deadline: Returns until when leadership stands at present, on ``clock``.
            clock: Seconds; runs during suspend.
            lock: The lock, as ``namespace/name`` of its object.
            identity: The identity of this candidate, as in the lock's ``holderIdentity``.
            fencing_token: The fencing token of the term; it grows from term to term.
        """
        self._deadline = deadline
        self._clock = clock
        self._closed = False
        self.lock: str = lock
        self.identity: str = identity
        self.fencing_token: str = fencing_token

    @property
    def is_open(self) -> bool:
        """Whether writes are allowed now."""
        return not self._closed and self._clock() < self._deadline()

    def check(self, action: str) -> None:
        """Return if ``action`` is allowed now.

        Raises:
            LeadershipLostError: If it is not.
        """
        if not self.is_open:
            raise LeadershipLostError(
                f"{action} refused: {self.identity} does not lead {self.lock} any more",
                lock=self.lock,
                identity=self.identity,
                fencing_token=self.fencing_token,
            )

    def close(self) -> None:
        """Refuse everything from now on."""
        self._closed = True

    def caused(self, error: BaseException | None) -> bool:
        """Tell whether an error is this guard's refusal, or a group of nothing else; none is neither."""
        if isinstance(error, BaseExceptionGroup):
            group = cast("BaseExceptionGroup[BaseException]", error)
            return all(self.caused(inner) for inner in group.exceptions)
        return (
            isinstance(error, LeadershipLostError)
            and error.fencing_token == self.fencing_token
            and error.lock == self.lock
        )
