"""When a file that holds a token is read again.

A service account's token is replaced on disk before it expires, about every hour; the one in memory must follow. The
file is read at most once a minute, and again when the server has refused the token. When a read fails, the last good
token is used on: the file may be in the middle of being replaced. Only the first read must succeed.

Source: client-go transport/token_source.go (``fileTokenSource``, period 1 min; ``cachingTokenSource``).
"""

from __future__ import annotations

from typing import final

from deltaloop.api.redaction import SecretText

READ_EVERY = 60.0


@final
class TokenFileState:
    """What is known of one token file."""

    __slots__ = ("_asked_at", "_token")

    def __init__(self, *, fallback: SecretText | None = None) -> None:
        """Begin unread; ``fallback`` is used for as long as the file has not been read."""
        self._token = fallback
        self._asked_at: float | None = None

    @property
    def token(self) -> SecretText | None:
        """The last good token, or None if there never was one."""
        return self._token

    def is_due(self, now: float) -> bool:
        """Tell whether the file is to be read before the next request."""
        return self._asked_at is None or now - self._asked_at >= READ_EVERY

    def read(self, text: str, *, now: float) -> bool:
        """Take what the file holds; False if that is no token (the last one stays)."""
        self._asked_at = now
        token = text.strip()
        if not token:
            return False
        self._token = SecretText(token)
        return True

    def read_failed(self, *, now: float) -> None:
        """The file could not be read; it is not tried again before a minute has passed, unless there is no token."""
        self._asked_at = now if self._token is not None else None
