"""Decide when a token file is read again.

The file is read at most once a minute, and after the server rejected the token. If a later read fails, the last valid
token stays in use.

Source: client-go transport/token_source.go (``fileTokenSource``, period 1 min; ``cachingTokenSource``).
"""

from __future__ import annotations

from typing import final

from deltaloop.api.redaction import SecretText

READ_EVERY = 60.0


@final
class TokenFileState:
    __slots__ = ("_asked_at", "_token")

    def __init__(self, *, fallback: SecretText | None = None) -> None:
        """Start without a token. ``fallback`` is used until the file has been read."""
        self._token = fallback
        self._asked_at: float | None = None

    @property
    def token(self) -> SecretText | None:
        """Last valid token, or None before the first successful read without a fallback."""
        return self._token

    def is_due(self, now: float) -> bool:
        """Return whether to read the file before the next request."""
        return self._asked_at is None or now - self._asked_at >= READ_EVERY

    def read(self, text: str, *, now: float) -> bool:
        """Record the content of the file. Return False and keep the last token if the content is empty."""
        self._asked_at = now
        token = text.strip()
        if not token:
            return False
        self._token = SecretText(token)
        return True

    def read_failed(self, *, now: float) -> None:
        """Record a failed read. With a token, the next read is due after one minute, otherwise immediately."""
        self._asked_at = now if self._token is not None else None
