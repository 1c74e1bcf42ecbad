"""Decide when the TLS files are checked for changes.

The files are checked at most once a minute, and immediately after a TLS failure. Files that are not usable, for example
because they are half written, are ignored until the next check.

Source: client-go transport/cert_rotation.go (client certificates, every 5 min), transport/ca_rotation.go.
"""

from __future__ import annotations

import math
from typing import final

LOOK_EVERY = 60.0


@final
class TlsFilesState:
    """State of the TLS files, with a fingerprint of their contents."""

    __slots__ = ("_in_use", "_is_new", "due_at")

    def __init__(self, fingerprint: bytes | None) -> None:
        self._in_use = fingerprint
        self._is_new = True
        self.due_at: float = math.inf if fingerprint is None else -math.inf

    def is_due(self, now: float) -> bool:
        """Return whether to check before the next request; the first request only starts the clock."""
        if self._is_new and self._in_use is not None:
            self._is_new, self.due_at = False, now + LOOK_EVERY
        return now >= self.due_at

    def saw(self, fingerprint: bytes | None, *, now: float) -> bool:
        """Record a check (None if a file was not readable), and return whether to create a new context."""
        if self._in_use is not None:
            self._is_new, self.due_at = False, now + LOOK_EVERY
        return self._in_use is not None and fingerprint is not None and fingerprint != self._in_use

    def took(self, fingerprint: bytes) -> None:
        self._in_use = fingerprint

    def suspect(self) -> None:
        if self._in_use is not None:
            self._is_new, self.due_at = False, -math.inf
